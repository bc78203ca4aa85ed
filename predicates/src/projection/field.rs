//! The entries of `normalize`, as a trigger or a variant declares them.

use std::collections::BTreeMap;

use postern_contract::pointer::Pointer;
use postern_contract::{Kind, Value};

use super::Star;
use crate::declaration::{below, members, need, one_of, pointer, shape, utf16};
use crate::invalid::Invalid;
use crate::url::Prefix;

/// The types of fields
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    String,
    Integer,
    Number,
    Boolean,
    Url,
}

pub(crate) const FIELD_TYPES: &[(&str, FieldType)] = &[
    ("string", FieldType::String),
    ("integer", FieldType::Integer),
    ("number", FieldType::Number),
    ("boolean", FieldType::Boolean),
    ("url", FieldType::Url),
];

/// One field
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Where it is declared
    pub(crate) path: String,
    pub(crate) pointer: Pointer,
    pub(crate) star: Option<Star>,
    pub(crate) kind: Option<FieldType>,
    pub(crate) required: bool,
    pub(crate) decimal: bool,
    pub(crate) prefix: Option<Prefix>,
    prefix_text: Option<String>,
}

/// Fields in UTF-16 order of their names
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<Field>);

impl Fields {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Field> {
        self.0.iter()
    }
    pub(crate) fn get(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|field| field.name == name)
    }
}

/// The origins of URL fields, where any are declared
pub(crate) type Origins<'a> = Option<&'a [String]>;

type Types<'a> = BTreeMap<&'a str, FieldType>;

/// A trigger's `normalize`
pub(crate) fn fields(value: Value<'_>, path: &str, types: &Types<'_>) -> Result<Fields, Invalid> {
    let mut fields = Vec::new();
    for (name, value) in members(value, path)? {
        fields.push(field(name, value, &below(path, name), types)?);
    }
    fields.sort_by(|a, b| utf16(&a.name, &b.name));
    Ok(Fields(fields))
}

/// A variant's `normalize`: it may replace entries of the trigger's, never add one
pub(crate) fn replace(
    base: &Fields,
    value: Value<'_>,
    path: &str,
    types: &Types<'_>,
) -> Result<Fields, Invalid> {
    let mut fields = base.clone();
    for (name, value) in members(value, path)? {
        let path = below(path, name);
        let Some(place) = fields.0.iter_mut().find(|field| field.name == name) else {
            return Err(Invalid::at(
                &path,
                "a variant replaces fields of the trigger's `normalize`, and adds none",
            ));
        };
        *place = field(name, value, &path, types)?;
    }
    Ok(fields)
}

fn field(name: &str, value: Value<'_>, path: &str, types: &Types<'_>) -> Result<Field, Invalid> {
    let outer = types.get(name).copied();
    let mut kind = outer;
    let mut required = true;
    let mut decimal = false;
    let mut prefix_text = None;
    let pointer = if value.kind() == Kind::String {
        pointer(value, path)?
    } else {
        shape(
            value,
            path,
            &["pointer"],
            &["type", "required", "as", "prefix"],
        )?;
        let pointer = pointer(need(value, "pointer", path)?, path)?;
        single_star(&pointer, path)?;
        if let Some(own) = value.member("type") {
            let own = one_of(own, FIELD_TYPES, path)?;
            if outer.is_some_and(|outer| outer != own) {
                return Err(Invalid::at(
                    &below("/types", name),
                    "the field's own `type` is another",
                ));
            }
            kind = Some(own);
        }
        if let Some(value) = value.member("required") {
            required = (value.as_bool())
                .ok_or_else(|| Invalid::at(path, "`required` is true or false"))?;
        }
        if let Some(value) = value.member("prefix") {
            let text = (value.as_str()).ok_or_else(|| Invalid::at(path, "`prefix` is a string"))?;
            prefix_text = Some(text.to_owned());
        }
        if let Some(value) = value.member("as") {
            one_of(value, &[("decimal-string", ())], path)?;
            decimal = true;
        }
        pointer
    };
    single_star(&pointer, path)?;
    if decimal && !matches!(kind, Some(FieldType::Integer | FieldType::Number)) {
        return Err(Invalid::at(
            path,
            "`as` goes with the types integer and number",
        ));
    }
    let star = Star::of(&pointer);
    if kind == Some(FieldType::Url) && star.is_some() {
        return Err(Invalid::at(path, "a url is no list"));
    }
    if prefix_text.is_some() && kind != Some(FieldType::Url) {
        return Err(Invalid::at(path, "`prefix` goes with the type url"));
    }
    Ok(Field {
        name: name.to_owned(),
        path: path.to_owned(),
        pointer,
        star,
        kind,
        required,
        decimal,
        prefix: None,
        prefix_text,
    })
}

fn single_star(pointer: &Pointer, path: &str) -> Result<(), Invalid> {
    if pointer.wildcards() > 1 {
        return Err(Invalid::at(path, "a pointer holds at most one `*`"));
    }
    Ok(())
}

/// Holds URL fields against the origins and against the fields that their prefixes name. `blame` says
/// which entry is at fault, given the field and the other that its prefix names.
pub(crate) fn link(
    fields: &mut Fields,
    origins: Origins<'_>,
    blame: impl Fn(&Field, Option<&Field>) -> String,
) -> Result<(), Invalid> {
    for n in 0..fields.0.len() {
        let Some(field) = fields.0.get(n).filter(|f| f.kind == Some(FieldType::Url)) else {
            continue;
        };
        let Some(origins) = origins else {
            return Err(Invalid::at(
                &field.path,
                "a url field needs the trigger's `resourceOrigins`",
            ));
        };
        let Some(text) = &field.prefix_text else {
            continue;
        };
        let prefix = Prefix::read(text, origins).ok_or_else(|| {
            Invalid::at(
                &blame(field, None),
                "a prefix begins with one of `resourceOrigins` and a slash, and is written canonically",
            )
        })?;
        for name in prefix.fields() {
            match fields.get(name) {
                Some(other) if other.name == field.name => {
                    return Err(Invalid::at(
                        &blame(field, None),
                        "a prefix cannot name its own field",
                    ));
                }
                None => {
                    return Err(Invalid::at(
                        &blame(field, None),
                        format!("the prefix names `{name}`, which is no field"),
                    ));
                }
                Some(other) if other.star.is_some() || other.kind == Some(FieldType::Url) => {
                    return Err(Invalid::at(
                        &blame(field, Some(other)),
                        format!("the prefix names `{name}`, which is a list or a url"),
                    ));
                }
                Some(_) => {}
            }
        }
        if let Some(field) = fields.0.get_mut(n) {
            field.prefix = Some(prefix);
        }
    }
    Ok(())
}
