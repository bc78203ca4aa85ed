//! Compiles a trigger's declaration. Faults are sought in a fixed order: the trigger's own keys, the plain
//! entries, `match`, `when`, `resourceOrigins`, `types`, `normalize`, `variants`, `resources`, `filters`.

use std::collections::{BTreeMap, HashSet};

use postern_contract::{Name, Value};

use super::{Rules, Variant, in_order};
use crate::declaration::{below, members, need, one_of, one_or_more, shape, utf16, word};
use crate::filters::{self, Filters};
use crate::invalid::Invalid;
use crate::operators::{All, OneOf};
use crate::predicate::{MAX_CHILDREN, Node, Predicate};
use crate::projection::{self, FIELD_TYPES, FieldType, Fields, Origins};
use crate::url::is_origin;

const REQUIRED: &[&str] = &[
    "connector",
    "trigger",
    "verificationProfile",
    "nativeEvents",
    "match",
    "normalize",
];
const OPTIONAL: &[&str] = &[
    "when",
    "variants",
    "types",
    "resources",
    "resourceOrigins",
    "filters",
];

type Types<'a> = BTreeMap<&'a str, FieldType>;

impl Rules {
    pub(super) fn compile(value: Value<'_>) -> Result<Self, Invalid> {
        shape(value, "", REQUIRED, OPTIONAL)?;
        let connector = name(need(value, "connector", "")?, "/connector")?;
        let trigger = name(need(value, "trigger", "")?, "/trigger")?;
        let profile = word(
            need(value, "verificationProfile", "")?,
            "/verificationProfile",
        )?;
        let native_events = native_events(need(value, "nativeEvents", "")?)?;
        let matches = matches(need(value, "match", "")?, "/match")?;
        let when = when(value, "")?;
        let origins = origins(value)?;
        let normalize = need(value, "normalize", "")?;
        let types = types(value, normalize)?;
        let mut fields = projection::fields(normalize, "/normalize", &types)?;
        projection::link(&mut fields, origins.as_deref(), |field, _| {
            field.path.clone()
        })?;
        let variants = match value.member("variants") {
            Some(variants) => Some(self::variants(
                variants,
                &fields,
                &types,
                origins.as_deref(),
            )?),
            None => None,
        };
        let resources = resources(value, &fields)?;
        let filters = match value.member("filters") {
            Some(declared) => filters::filters(declared, "/filters")?,
            None => Filters::new(),
        };
        Ok(Self {
            connector,
            trigger,
            profile: profile.to_owned(),
            native_events,
            matches,
            when,
            variants,
            fields,
            resources,
            origins: origins.unwrap_or_default(),
            filters,
        })
    }
}

fn name(value: Value<'_>, path: &str) -> Result<String, Invalid> {
    let text = word(value, path)?;
    text.parse::<Name>()
        .map(|name| name.to_string())
        .map_err(|e| Invalid::at(path, e.to_string()))
}

fn native_events(value: Value<'_>) -> Result<Vec<String>, Invalid> {
    let path = "/nativeEvents";
    let items = value
        .items()
        .filter(|_| !value.is_empty())
        .ok_or_else(|| Invalid::at(path, "want a nonempty list of native events"))?;
    items
        .map(|item| word(item, path).map(str::to_owned))
        .collect()
}

/// `match`: `all` of `equals` and `in`, in UTF-16 order of the pointers
fn matches(value: Value<'_>, path: &str) -> Result<Predicate, Invalid> {
    let mut entries = members(value, path)?;
    if !(1..=MAX_CHILDREN).contains(&entries.len()) {
        return Err(Invalid::at(
            path,
            format!("want 1 to {MAX_CHILDREN} pointers"),
        ));
    }
    entries.sort_by(|(a, _), (b, _)| utf16(a, b));
    let mut children = Vec::with_capacity(entries.len());
    for (key, wanted) in entries {
        let at = below(path, key);
        let pointer = (key.parse())
            .map_err(|e: postern_contract::pointer::NotAPointer| Invalid::at(&at, e.to_string()))?;
        let values = one_or_more(wanted, &at)?;
        children.push(Node::new(&at, OneOf { pointer, values }));
    }
    Ok(Predicate(Node::new(path, All(children))))
}

fn when(holder: Value<'_>, path: &str) -> Result<Option<Predicate>, Invalid> {
    (holder.member("when"))
        .map(|when| Predicate::compile_at(when, &format!("{path}/when")))
        .transpose()
}

fn origins(holder: Value<'_>) -> Result<Option<Vec<String>>, Invalid> {
    let Some(value) = holder.member("resourceOrigins") else {
        return Ok(None);
    };
    let items = value
        .items()
        .filter(|_| !value.is_empty())
        .ok_or_else(|| Invalid::at("/resourceOrigins", "want a nonempty list of origins"))?;
    let mut origins = Vec::with_capacity(value.len());
    for (n, item) in items.enumerate() {
        let path = format!("/resourceOrigins/{n}");
        let origin = word(item, &path)?;
        if !is_origin(origin) {
            return Err(Invalid::at(
                &path,
                "want `https://host`, lower case, without a default port or a path",
            ));
        }
        origins.push(origin.to_owned());
    }
    Ok(Some(origins))
}

fn types<'a>(holder: Value<'a>, normalize: Value<'_>) -> Result<Types<'a>, Invalid> {
    let fields: HashSet<&str> = (members(normalize, "/normalize")?.into_iter())
        .map(|(name, _)| name)
        .collect();
    let mut types = Types::new();
    if let Some(value) = holder.member("types") {
        for (name, value) in members(value, "/types")? {
            let path = below("/types", name);
            if !fields.contains(name) {
                return Err(Invalid::at(&path, "`normalize` has no such field"));
            }
            types.insert(name, one_of(value, FIELD_TYPES, &path)?);
        }
    }
    Ok(types)
}

fn variants(
    value: Value<'_>,
    base: &Fields,
    types: &Types<'_>,
    origins: Origins<'_>,
) -> Result<Vec<Variant>, Invalid> {
    let items = value
        .items()
        .filter(|_| !value.is_empty())
        .ok_or_else(|| Invalid::at("/variants", "want a nonempty list of variants"))?;
    let mut variants: Vec<Variant> = Vec::with_capacity(value.len());
    for (n, item) in items.enumerate() {
        let path = format!("/variants/{n}");
        shape(item, &path, &["name"], &["match", "when", "normalize"])?;
        let name = word(need(item, "name", &path)?, &path)?;
        if variants.iter().any(|other| other.name == name) {
            return Err(Invalid::at(
                &path,
                format!("the variant `{name}` stands twice"),
            ));
        }
        let matches = (item.member("match"))
            .map(|value| matches(value, &format!("{path}/match")))
            .transpose()?;
        let when = when(item, &path)?;
        let own = format!("{path}/normalize");
        let mut fields = match item.member("normalize") {
            Some(normalize) => projection::replace(base, normalize, &own, types)?,
            None => base.clone(),
        };
        // A prefix of the trigger's own can break by what the variant puts in a field's place
        projection::link(&mut fields, origins, |field, other| {
            match other {
                Some(other) if !field.path.starts_with(&own) => &other.path,
                _ => &field.path,
            }
            .clone()
        })?;
        variants.push(Variant {
            name: name.to_owned(),
            matches,
            when,
            fields,
        });
    }
    Ok(variants)
}

fn resources(holder: Value<'_>, fields: &Fields) -> Result<Vec<(String, String)>, Invalid> {
    let mut resources = Vec::new();
    if let Some(value) = holder.member("resources") {
        for (field, collection) in members(value, "/resources")? {
            let path = below("/resources", field);
            if fields.get(field).is_none() {
                return Err(Invalid::at(&path, "`normalize` has no such field"));
            }
            resources.push((field.to_owned(), word(collection, &path)?.to_owned()));
        }
    }
    Ok(in_order(resources))
}
