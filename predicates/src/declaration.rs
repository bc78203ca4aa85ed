//! Reading declarations: objects with a closed list of keys, none of them twice, and scalar literals
//! within their bounds. Everything that compiles a part of a declaration reads it through here.

use std::collections::HashSet;

use postern_contract::pointer::{Pointer, escape};
use postern_contract::{Kind, Scalar, Value};

use crate::invalid::Invalid;
use crate::number::Number;

/// The most bytes of a string literal
pub(crate) const MAX_LITERAL_BYTES: usize = 1_024;
/// The most values of a list of literals
pub(crate) const MAX_VALUES: usize = 100;

/// A scalar of a declaration, compared exactly
#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Null,
    Boolean(bool),
    /// In the declared spelling
    Number(Box<str>),
    String(Box<str>),
}

impl Literal {
    /// Exact equality with a value; another type differs
    pub(crate) fn equals(&self, value: Value<'_>) -> bool {
        match self {
            Self::Null => value.kind() == Kind::Null,
            Self::Boolean(b) => value.as_bool() == Some(*b),
            Self::String(s) => value.as_str() == Some(s),
            Self::Number(text) => (value.number_text())
                .is_some_and(|other| &**text == other || Number::read(text) == Number::read(other)),
        }
    }

    /// A scalar of a frozen document
    pub(crate) fn of(scalar: &Scalar) -> Self {
        match scalar {
            Scalar::Boolean(b) => Self::Boolean(*b),
            Scalar::String(s) => Self::String(s.as_str().into()),
            Scalar::Integer(i) => Self::Number(i.to_string().into()),
            Scalar::Number(f) if f.is_finite() => Self::Number(format!("{f:e}").into()),
            // No number of JSON: past the bounds, so that every check refuses it
            Scalar::Number(_) => Self::Number("1e999".into()),
        }
    }

    /// Whether a filter or field of type `is` can have this value
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self, Self::Number(text) if Number::read(text).is_integer())
    }

    /// Why a declaration cannot hold it
    fn fault(&self) -> Option<String> {
        match self {
            Self::String(s) if s.len() > MAX_LITERAL_BYTES => Some(format!(
                "a string literal of {} bytes: at most {MAX_LITERAL_BYTES}",
                s.len()
            )),
            Self::Number(text) if !Number::read(text).is_literal() => Some(format!(
                "the number `{}`: an integer lies within ±(2^53−1), another number must be exact in binary64",
                text.chars().take(40).collect::<String>()
            )),
            _ => None,
        }
    }

    /// Checks the bounds of a literal
    pub(crate) fn checked(self, path: &str) -> Result<Self, Invalid> {
        match self.fault() {
            Some(message) => Err(Invalid::at(path, message)),
            None => Ok(self),
        }
    }
}

/// Whether a value equals one of several literals. A number of the evidence is read once for all of them.
pub(crate) fn equals_any(literals: &[Literal], value: Value<'_>) -> bool {
    let Some(text) = value.number_text() else {
        return literals.iter().any(|literal| literal.equals(value));
    };
    let exact = Number::read(text);
    literals.iter().any(|literal| match literal {
        Literal::Number(own) => &**own == text || Number::read(own) == exact,
        _ => false,
    })
}

/// Exact equality of two scalars
pub(crate) fn same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::Null, Kind::Null) => true,
        (Kind::Boolean, Kind::Boolean) => a.as_bool() == b.as_bool(),
        (Kind::String, Kind::String) => a.as_str() == b.as_str(),
        (Kind::Number, Kind::Number) => {
            let (a, b) = (
                a.number_text().unwrap_or("0"),
                b.number_text().unwrap_or("0"),
            );
            a == b || Number::read(a) == Number::read(b)
        }
        _ => false,
    }
}

/// The path of an entry below `path`
pub(crate) fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", escape(key))
}

/// The members of an object that repeats no key
pub(crate) fn members<'a>(
    value: Value<'a>,
    path: &str,
) -> Result<Vec<(&'a str, Value<'a>)>, Invalid> {
    let Some(members) = value.members() else {
        return Err(Invalid::at(path, "want an object"));
    };
    let members: Vec<_> = members.collect();
    let mut seen = HashSet::with_capacity(members.len());
    if let Some((key, _)) = members.iter().find(|(key, _)| !seen.insert(*key)) {
        return Err(Invalid::at(path, format!("the key `{key}` stands twice")));
    }
    Ok(members)
}

/// An object with all of `required` and none but those and `optional`
pub(crate) fn shape(
    value: Value<'_>,
    path: &str,
    required: &[&str],
    optional: &[&str],
) -> Result<(), Invalid> {
    let members = members(value, path)?;
    for (key, _) in &members {
        if !required.contains(key) && !optional.contains(key) {
            let known: Vec<&str> = required.iter().chain(optional).copied().collect();
            return Err(Invalid::at(
                path,
                format!("unknown key `{key}`: want {}", known.join(", ")),
            ));
        }
    }
    for key in required {
        if !members.iter().any(|(have, _)| have == key) {
            return Err(Invalid::at(path, format!("the key `{key}` is missing")));
        }
    }
    Ok(())
}

/// The member of an object whose [`shape`] has been checked
pub(crate) fn need<'a>(value: Value<'a>, key: &str, path: &str) -> Result<Value<'a>, Invalid> {
    (value.member(key)).ok_or_else(|| Invalid::at(path, format!("the key `{key}` is missing")))
}

/// A nonempty string
pub(crate) fn word<'a>(value: Value<'a>, path: &str) -> Result<&'a str, Invalid> {
    match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Invalid::at(path, "want a nonempty string")),
    }
}

/// A string out of a closed list
pub(crate) fn one_of<T: Copy>(
    value: Value<'_>,
    allowed: &[(&str, T)],
    path: &str,
) -> Result<T, Invalid> {
    let found = value
        .as_str()
        .and_then(|text| allowed.iter().find(|(name, _)| *name == text));
    match found {
        Some((_, meaning)) => Ok(*meaning),
        None => {
            let names: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
            Err(Invalid::at(
                path,
                format!("want one of {}", names.join(", ")),
            ))
        }
    }
}

/// A pointer
pub(crate) fn pointer(value: Value<'_>, path: &str) -> Result<Pointer, Invalid> {
    let text = (value.as_str()).ok_or_else(|| Invalid::at(path, "a pointer is a string"))?;
    (text.parse())
        .map_err(|e: postern_contract::pointer::NotAPointer| Invalid::at(path, e.to_string()))
}

/// A scalar literal within its bounds
pub(crate) fn literal(value: Value<'_>, path: &str) -> Result<Literal, Invalid> {
    let literal = match value.kind() {
        Kind::Null => Literal::Null,
        Kind::Boolean => Literal::Boolean(value.as_bool() == Some(true)),
        Kind::String => Literal::String(value.as_str().unwrap_or_default().into()),
        Kind::Number => Literal::Number(value.number_text().unwrap_or("0").into()),
        Kind::Array | Kind::Object => return Err(Invalid::at(path, "want a scalar")),
    };
    literal.checked(path)
}

/// 1 to 100 scalar literals
pub(crate) fn literals(value: Value<'_>, path: &str) -> Result<Vec<Literal>, Invalid> {
    let items = value
        .items()
        .filter(|_| (1..=MAX_VALUES).contains(&value.len()))
        .ok_or_else(|| Invalid::at(path, format!("want 1 to {MAX_VALUES} scalars")))?;
    items.map(|item| literal(item, path)).collect()
}

/// A literal, or a list of them
pub(crate) fn one_or_more(value: Value<'_>, path: &str) -> Result<Vec<Literal>, Invalid> {
    if value.kind() == Kind::Array {
        literals(value, path)
    } else {
        Ok(vec![literal(value, path)?])
    }
}

/// The order of RFC 8785: by UTF-16 code units
pub(crate) fn utf16(a: &str, b: &str) -> std::cmp::Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// A declaration in the shape that canonical JSON is made of. Its numbers have been checked as literals.
pub(crate) fn to_json(value: Value<'_>) -> serde_json::Value {
    match value.kind() {
        Kind::Null => serde_json::Value::Null,
        Kind::Boolean => (value.as_bool() == Some(true)).into(),
        Kind::String => value.as_str().unwrap_or_default().into(),
        Kind::Number => {
            let exact = Number::read(value.number_text().unwrap_or("0"));
            match exact.safe_integer() {
                Some(integer) => integer.into(),
                None => exact.exact_binary64().unwrap_or_default().into(),
            }
        }
        Kind::Array => value.items().into_iter().flatten().map(to_json).collect(),
        Kind::Object => value
            .members()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.to_owned(), to_json(value)))
            .collect(),
    }
}
