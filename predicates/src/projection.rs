//! Projection: each field is a pointer into the evidence, with a type, bounds and, for URLs, an identity.
//! Nothing is truncated, rounded or repaired: what does not fit is a nonmatch.

mod field;

use std::collections::BTreeMap;

use postern_contract::canonical;
use postern_contract::pointer::Pointer;
use postern_contract::{FieldValue, Kind, Resolution, Scalar, Value};

pub(crate) use field::{FIELD_TYPES, Field, FieldType, Fields, Origins, fields, link, replace};

use crate::nonmatch::{Nonmatch, Reason};
use crate::number::Number;
use crate::url::CanonicalUrl;

/// The most code points of a projected string
const MAX_STRING: usize = 4_096;
/// The most items of a projected list
const MAX_LIST: usize = 100;

type Values = BTreeMap<String, FieldValue>;

/// Every field of the evidence, in UTF-16 order of names
pub(crate) fn project(fields: &Fields, root: Value<'_>) -> Result<Values, Nonmatch> {
    let mut values = Values::new();
    for field in fields.iter() {
        if let Some(value) = one_field(field, root)? {
            values.insert(field.name.clone(), value);
        }
    }
    Ok(values)
}

fn one_field(field: &Field, root: Value<'_>) -> Result<Option<FieldValue>, Nonmatch> {
    let missing = |at: &str| {
        if field.required {
            Err(Nonmatch::at(Reason::MissingEvidence, at))
        } else {
            Ok(None)
        }
    };
    let Some(star) = &field.star else {
        let at = field.pointer.as_str();
        return match primitive(root.resolve(&field.pointer), field, || at.to_owned())? {
            Some(scalar) => Ok(Some(FieldValue::Scalar(scalar))),
            None => missing(at),
        };
    };
    let at = star.container.as_str();
    let list = match root.resolve(&star.container) {
        Resolution::Resolved(list) if list.kind() != Kind::Null => list,
        _ => return missing(at),
    };
    let items = list
        .items()
        .ok_or_else(|| Nonmatch::at(Reason::TypeMismatch, at))?;
    if list.len() > MAX_LIST {
        return Err(Nonmatch::at(Reason::ListTooLong, at));
    }
    let mut scalars = Vec::with_capacity(list.len());
    for (n, item) in items.enumerate() {
        let at = || format!("{at}/{n}{}", star.rest);
        match primitive(item.resolve(&star.rest), field, at)? {
            Some(scalar) => scalars.push(scalar),
            None => return missing(&at()),
        }
    }
    Ok(Some(FieldValue::List(scalars)))
}

/// One primitive of the field's type; `None` where there is no evidence, which `null` is not either
fn primitive(
    found: Resolution<'_>,
    field: &Field,
    at: impl Fn() -> String,
) -> Result<Option<Scalar>, Nonmatch> {
    let Resolution::Resolved(value) = found else {
        return Ok(None);
    };
    let refuse = |reason| Nonmatch::at(reason, &at());
    match (value.kind(), field.kind) {
        (Kind::Null, _) => Ok(None),
        (Kind::String, None | Some(FieldType::String | FieldType::Url)) => {
            let text = value.as_str().unwrap_or_default();
            // Bytes bound code points, so short texts need no count
            if text.len() > MAX_STRING && text.chars().count() > MAX_STRING {
                return Err(refuse(Reason::StringTooLong));
            }
            Ok(Some(Scalar::String(text.to_owned())))
        }
        (Kind::Boolean, None | Some(FieldType::Boolean)) => {
            Ok(value.as_bool().map(Scalar::Boolean))
        }
        (Kind::Number, None | Some(FieldType::Integer | FieldType::Number)) => {
            let exact = Number::read(value.number_text().unwrap_or("0"));
            number(&exact, field).map(Some).map_err(refuse)
        }
        _ => Err(refuse(Reason::TypeMismatch)),
    }
}

fn number(exact: &Number<'_>, field: &Field) -> Result<Scalar, Reason> {
    let whole = exact.is_integer();
    if field.kind == Some(FieldType::Integer) && !whole {
        return Err(Reason::TypeMismatch);
    }
    if field.decimal {
        return (exact.plain(MAX_STRING))
            .map(Scalar::String)
            .ok_or(Reason::StringTooLong);
    }
    if whole {
        (exact.safe_integer())
            .map(Scalar::Integer)
            .ok_or(Reason::IntegerOutOfRange)
    } else {
        (exact.exact_binary64())
            .map(Scalar::Number)
            .ok_or(Reason::NumberNotExact)
    }
}

/// Holds every URL to its origins and prefix, and brings it to its one spelling
pub(crate) fn identify(
    fields: &Fields,
    origins: &[String],
    values: &mut Values,
) -> Result<(), Nonmatch> {
    let mut canonical = Vec::new();
    for field in fields.iter().filter(|f| f.kind == Some(FieldType::Url)) {
        let Some(FieldValue::Scalar(Scalar::String(text))) = values.get(&field.name) else {
            continue;
        };
        let refuse = |reason| Nonmatch::at(reason, &field.name);
        let url = CanonicalUrl::read(text).ok_or_else(|| refuse(Reason::UrlInvalid))?;
        if !origins.iter().any(|origin| origin == url.origin()) {
            return Err(refuse(Reason::OriginNotListed));
        }
        if let Some(prefix) = &field.prefix
            && !prefix.begins(&url, |name| text_of(values.get(name)?))
        {
            return Err(refuse(Reason::PrefixMismatch));
        }
        canonical.push((field.name.clone(), url));
    }
    for (name, url) in canonical {
        let text = url.as_str().to_owned();
        values.insert(name, FieldValue::Scalar(Scalar::String(text)));
    }
    Ok(())
}

/// A scalar as a placeholder takes it: numbers in the spelling in which they are projected
fn text_of(value: &FieldValue) -> Option<String> {
    match value {
        FieldValue::Scalar(Scalar::String(text)) => Some(text.clone()),
        FieldValue::Scalar(scalar) => String::from_utf8(canonical::to_vec(scalar).ok()?).ok(),
        FieldValue::List(_) => None,
    }
}

/// A pointer with one whole token `*`, cut in two
#[derive(Clone, Debug)]
pub(crate) struct Star {
    pub(crate) container: Pointer,
    pub(crate) rest: Pointer,
}

impl Star {
    /// The halves of `pointer`: `None` where it has no `*`
    pub(crate) fn of(pointer: &Pointer) -> Option<Self> {
        let tokens = pointer.tokens();
        let star = tokens.iter().position(|token| token.text() == "*")?;
        let half = |tokens: Option<&[postern_contract::pointer::Token]>| {
            let text: String = (tokens.unwrap_or_default().iter())
                .map(|token| format!("/{}", postern_contract::pointer::escape(token.text())))
                .collect();
            // A part of a pointer within bounds is within bounds
            text.parse().unwrap_or_else(|_| Pointer::root())
        };
        Some(Self {
            container: half(tokens.get(..star)),
            rest: half(tokens.get(star + 1..)),
        })
    }
}
