//! Where a value of the delivery comes from: a header, a place in the body, or the name of a member.

use postern_contract::{Document, Pointer, Resolution};
use serde::{Deserialize, Serialize};

use crate::request::{HeaderSource, OneHeader};

/// The most bytes of an event's or delivery's name
const MAX_BYTES: usize = 256;

/// A place in the delivery
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    /// A header, which stands once
    Header(String),
    /// A text or whole number of the body
    Json(Pointer),
    /// The name of the one member of the body's root beside this one
    KeyBeside(String),
    /// The id that was signed, whichever header carried it
    SignedId,
}

impl Source {
    /// The text there; `None` where it is missing, doubled, unprintable or too long
    pub(crate) fn read(
        &self,
        headers: &dyn HeaderSource,
        document: &Document,
        signed_id: Option<&str>,
    ) -> Option<String> {
        let text = match self {
            Self::Header(name) => match headers.one(name) {
                OneHeader::One(bytes) => std::str::from_utf8(bytes).ok()?.to_owned(),
                OneHeader::None | OneHeader::Several => return None,
            },
            Self::Json(pointer) => match document.resolve(pointer) {
                Resolution::Resolved(value) => match (value.as_str(), value.number_text()) {
                    (Some(text), _) => text.to_owned(),
                    (None, Some(digits)) if whole(digits) => digits.to_owned(),
                    _ => return None,
                },
                Resolution::Absent | Resolution::Unreachable => return None,
            },
            Self::KeyBeside(known) => {
                let mut others = document.root().members()?.filter(|(key, _)| key != known);
                match (others.next(), others.next()) {
                    (Some((key, _)), None) => key.to_owned(),
                    _ => return None,
                }
            }
            Self::SignedId => signed_id?.to_owned(),
        };
        let printable =
            !text.is_empty() && text.len() <= MAX_BYTES && !text.chars().any(char::is_control);
        printable.then_some(text)
    }
}

/// Digits alone, with a sign at most: one spelling a value
fn whole(digits: &str) -> bool {
    let digits = digits.strip_prefix('-').unwrap_or(digits);
    digits.bytes().all(|b| b.is_ascii_digit())
}
