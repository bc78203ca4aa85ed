//! Where a value of the delivery comes from: a header, a place in the body, or the name of a member. A name
//! goes into logs and keys as it is, so that one which cannot be shown or compared by eye is none.

use postern_contract::{Document, Kind, Pointer, Resolution, Value};
use serde::{Deserialize, Serialize};

use crate::facts::View;
use crate::profile::Guard;
use crate::request::OneHeader;

/// The most bytes of an event's or delivery's name
const MAX_BYTES: usize = 256;

/// A place in the delivery
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// A header, which stands once
    Header(String),
    /// A text or whole number of the body; in a batch, of the item
    Json(Pointer),
    /// The same of the whole body, in a batch too
    Whole(Pointer),
    /// The name of the one member of the body's root beside this one
    KeyBeside(String),
    /// The id that was signed, whichever header carried it
    SignedId,
    /// A parameter of the query, which stands once
    Query(String),
    /// A claim of the token
    Claim(String),
    /// A parameter of the source
    Param(String),
    /// A fixed name
    Const(String),
}

/// What stands at a place
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A name
    Name(String),
    /// Nothing, or a JSON null
    Nothing,
    /// What is no name: doubled, of another type, unprintable or too long
    Unusable,
}

impl Found {
    /// The name, where there is one
    pub(crate) fn name(self) -> Option<String> {
        match self {
            Self::Name(name) => Some(name),
            Self::Nothing | Self::Unusable => None,
        }
    }
}

impl Source {
    /// What stands there
    pub(crate) fn read(&self, view: &View<'_>) -> Found {
        let document = || view.facts.document().ok();
        match self {
            Self::Header(name) => match view.facts.request.headers.one(name) {
                OneHeader::One(bytes) => header_name(bytes),
                OneHeader::None => Found::Nothing,
                OneHeader::Several => Found::Unusable,
            },
            Self::Query(name) => match view.facts.query(name) {
                OneHeader::One(bytes) => header_name(bytes),
                OneHeader::None => Found::Nothing,
                OneHeader::Several => Found::Unusable,
            },
            Self::Json(pointer) => {
                let root = view.item.or_else(|| document().map(Document::root));
                root.map_or(Found::Nothing, |root| at(root, pointer))
            }
            Self::Whole(pointer) => document().map_or(Found::Nothing, |d| at(d.root(), pointer)),
            Self::Claim(name) => {
                let claim = view.claims.and_then(|claims| claims.root().member(name));
                claim.map_or(Found::Nothing, json_name)
            }
            Self::KeyBeside(known) => {
                let Some(members) = document().and_then(|d| d.root().members()) else {
                    return Found::Nothing;
                };
                let mut others = members.filter(|(key, _)| key != known);
                match (others.next(), others.next()) {
                    (Some((key, _)), None) => text_name(key),
                    (None, _) => Found::Nothing,
                    (Some(_), Some(_)) => Found::Unusable,
                }
            }
            Self::SignedId => view.signed_id.map_or(Found::Nothing, header_name),
            Self::Param(name) => view.facts.param(name).map_or(Found::Nothing, text_name),
            Self::Const(text) => text_name(text),
        }
    }
}

fn at(value: Value<'_>, pointer: &Pointer) -> Found {
    match value.resolve(pointer) {
        Resolution::Resolved(value) => json_name(value),
        Resolution::Absent | Resolution::Unreachable => Found::Nothing,
    }
}

impl Guard {
    /// Whether the request meets it
    pub(crate) fn holds(&self, view: &View<'_>) -> bool {
        let found = self.at.read(view);
        if let Some(name) = &self.param {
            let wanted = view.facts.params.get(name);
            let among = |name: &String| wanted.is_none_or(|texts| texts.contains(name));
            return matches!(&found, Found::Name(name) if among(name));
        }
        match (&self.equals, &self.contains, self.absent) {
            (Some(wanted), _, _) => found == Found::Name(wanted.clone()),
            (None, Some(part), _) => found.name().is_some_and(|name| name.contains(part)),
            (None, None, true) => found == Found::Nothing,
            (None, None, false) => matches!(found, Found::Name(_)),
        }
    }
}

/// The bytes of a header are visible ASCII (RFC 9110, section 5.5, without its obsolete bytes)
fn header_name(bytes: &[u8]) -> Found {
    if bytes.is_empty() {
        return Found::Nothing;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => text_name(text),
        _ => Found::Unusable,
    }
}

fn json_name(value: Value<'_>) -> Found {
    match (value.as_str(), value.number_text()) {
        (Some(text), _) => text_name(text),
        (None, Some(digits)) if whole(digits) => text_name(digits),
        _ if value.kind() == Kind::Null => Found::Nothing,
        _ => Found::Unusable,
    }
}

fn text_name(text: &str) -> Found {
    if text.is_empty() || text.len() > MAX_BYTES || text.chars().any(is_unseen) {
        return Found::Unusable;
    }
    Found::Name(text.to_owned())
}

/// Controls, line ends, and the marks that turn or hide what stands beside them
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Digits alone, with a sign at most: one spelling a value
fn whole(digits: &str) -> bool {
    let digits = digits.strip_prefix('-').unwrap_or(digits);
    digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, Params};
    use crate::profile::Profile;
    use crate::request::RequestParts;

    const PROFILE: &str = r#"
title = "T"
docs = "https://example.com"
confidence = "sdk"
integrity = "full"
event = { first = [{ json = "/type" }] }
[[auth]]
scheme = "hmac-sha256"
header = "X-Sig"
encoding = "hex"
content = ["{body}"]
"#;

    fn read_from(source: &Source, url: &str, headers: &http::HeaderMap, body: &str) -> Found {
        let profile = Profile::read("t", PROFILE).unwrap();
        let body = bytes::Bytes::from(body.to_owned());
        let request = RequestParts {
            method: "POST",
            url,
            headers,
            body: &body,
        };
        source.read(&Facts::new(&profile, request, &Params::new()).view())
    }

    fn read(source: &Source, body: &str) -> Found {
        read_from(source, "https://h.example/", &http::HeaderMap::new(), body)
    }

    fn header(values: &[&[u8]]) -> Found {
        let mut headers = http::HeaderMap::new();
        for value in values {
            headers.append("x-id", http::HeaderValue::from_bytes(value).unwrap());
        }
        let source = Source::Header("X-Id".to_owned());
        read_from(&source, "https://h.example/", &headers, "{}")
    }

    #[test]
    fn a_query_parameter_counts_once_and_decoded() {
        let at = |url: &str| {
            let source = Source::Query("a".to_owned());
            read_from(&source, url, &http::HeaderMap::new(), "")
        };
        assert_eq!(at("https://h.example/x?b=2&a=1%2B1#a=3"), name("1+1"));
        assert_eq!(at("https://h.example?a=1"), name("1"));
        assert_eq!(at("https://h.example/a=1"), Found::Nothing);
        assert_eq!(at("https://h.example/?a=1&a=1"), Found::Unusable);
    }

    fn name(text: &str) -> Found {
        Found::Name(text.to_owned())
    }

    #[test]
    fn names_are_read_as_they_stand() {
        let at = Source::Json("/id".parse().unwrap());
        assert_eq!(read(&at, r#"{"id":"évt \"1\""}"#), name("évt \"1\""));
        // Twenty digits, past binary64 and 64 bits
        let digits = "98765432109876543210";
        assert_eq!(read(&at, &format!(r#"{{"id":{digits}}}"#)), name(digits));
        assert_eq!(read(&at, r#"{"id":-0}"#), name("-0"));
        for nothing in ["{}", "[]", r#"{"id":null}"#] {
            assert_eq!(read(&at, nothing), Found::Nothing, "{nothing}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(257));
        let unusable = [
            r#"{"id":""}"#,
            r#"{"id":1.0}"#,
            r#"{"id":1e3}"#,
            r#"{"id":true}"#,
            r#"{"id":{}}"#,
            r#"{"id":"a\nb"}"#,
            r#"{"id":"a\u202eb"}"#,
            r#"{"id":"a\u200bb"}"#,
            &long,
        ];
        for body in unusable {
            assert_eq!(read(&at, body), Found::Unusable, "{body}");
        }
        assert_eq!(
            read(&at, &format!(r#"{{"id":"{}"}}"#, "x".repeat(256))),
            name(&"x".repeat(256))
        );
    }

    #[test]
    fn a_header_counts_once_and_in_visible_ascii() {
        assert_eq!(header(&[b"a b"]), name("a b"));
        assert_eq!(header(&[]), Found::Nothing);
        assert_eq!(header(&[b""]), Found::Nothing);
        assert_eq!(header(&[b"a", b"a"]), Found::Unusable);
        assert_eq!(header(&["é".as_bytes()]), Found::Unusable);
        assert_eq!(header(&[b"\xe9"]), Found::Unusable);
        assert_eq!(header(&[&[b'x'; 257]]), Found::Unusable);
    }

    #[test]
    fn the_one_other_member_is_a_name() {
        let beside = Source::KeyBeside("id".to_owned());
        assert_eq!(read(&beside, r#"{"id":1,"message":{}}"#), name("message"));
        assert_eq!(read(&beside, r#"{"id":1}"#), Found::Nothing);
        assert_eq!(read(&beside, r#"{"a":1,"b":2}"#), Found::Unusable);
    }
}
