//! Names of connectors, triggers, sources and destinations: `^[a-z][a-z0-9-]{0,62}$` (connector
//! specification, section 2).

use std::fmt;
use std::str::FromStr;

/// A name that has been checked
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

/// A text that is no name
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a name: `{0}`: want a lower-case letter, then at most 62 lower-case letters, digits or hyphens"
)]
pub struct NotAName(String);

impl Name {
    /// The text
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NotAName;
    fn from_str(text: &str) -> Result<Self, NotAName> {
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        let rest = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if first && rest && text.len() <= 63 {
            Ok(Self(text.into()))
        } else {
            Err(NotAName(text.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}
impl serde::Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}
impl<'de> serde::Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
impl schemars::JsonSchema for Name {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Name".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[a-z][a-z0-9-]{0,62}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_pattern_of_section_2() {
        // CS-2-01
        for good in ["a", "github", "a-1", &"a".repeat(63)] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "A",
            "1a",
            "-a",
            "a_b",
            "a b",
            "é",
            "a.b",
            &"a".repeat(64),
            "a\n",
        ] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }
}
