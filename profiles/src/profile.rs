//! The shape of a profile's data file, and what is checked of it before anything is verified by it.

mod check;

use std::collections::BTreeMap;
use std::time::Duration;

use postern_contract::{Digest, canonical};
use serde::{Deserialize, Serialize};

use crate::encoding::Encoding;
use crate::source::Source;

/// How much of a delivery its authentication covers
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Integrity {
    /// The whole body
    Full,
    /// Some of the body
    Partial,
    /// Nothing of it: a token
    None,
}

impl Integrity {
    /// `full`, `partial` or `none`
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

/// A profile as its file says it
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    pub(crate) title: String,
    pub(crate) docs: String,
    pub(crate) integrity: Integrity,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    /// Alternatives in order: the first whose signature header is present decides
    pub(crate) auth: Vec<Auth>,
    /// Where the delivery's id stands
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Source>,
    pub(crate) event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) form: Option<Form>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) handshake: Vec<Handshake>,
    #[serde(default)]
    pub(crate) ack: Ack,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// One way in which a delivery may be authenticated
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Auth {
    pub(crate) scheme: SchemeKind,
    /// The header that carries signature or token
    pub(crate) header: String,
    #[serde(default)]
    pub(crate) parser: Parser,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) encoding: Option<Encoding>,
    #[serde(default)]
    pub(crate) key: KeyDecoding,
    /// What is signed, in order
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<Part>,
    /// The header of the id that `{id}` stands for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id_header: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<TimestampRule>,
}

/// The methods of authentication
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SchemeKind {
    HmacSha1,
    HmacSha256,
    HmacSha512,
    Ed25519,
    Token,
}

/// How the header's text becomes candidates
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Parser {
    /// The whole text
    #[default]
    Raw,
    /// What follows a fixed text
    Prefix { prefix: String },
    /// `k=v` pairs; repeated keys kept, unknown ones ignored
    Pairs {
        separator: char,
        signature: String,
        timestamp: String,
    },
    /// Items that begin with a fixed text; others ignored
    List { separator: char, prefix: String },
}

/// How the operator's text becomes a key
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeyDecoding {
    /// Its bytes
    #[default]
    Text,
    /// `whsec_` and Base64
    Whsec,
    /// Base64
    Base64,
    /// Hex
    Hex,
}

/// A part of the signed content: `{body}`, `{evidence}`, `{timestamp}`, `{id}`, or a literal text
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) enum Part {
    Body,
    /// The JSON inside the form's field, else the body
    Evidence,
    Timestamp,
    Id,
    Literal(String),
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        match text.as_str() {
            "{body}" => Self::Body,
            "{evidence}" => Self::Evidence,
            "{timestamp}" => Self::Timestamp,
            "{id}" => Self::Id,
            _ => Self::Literal(text),
        }
    }
}
impl From<Part> for String {
    fn from(part: Part) -> Self {
        match part {
            Part::Body => "{body}".to_owned(),
            Part::Evidence => "{evidence}".to_owned(),
            Part::Timestamp => "{timestamp}".to_owned(),
            Part::Id => "{id}".to_owned(),
            Part::Literal(text) => text,
        }
    }
}

/// A signed timestamp and its tolerances
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TimestampRule {
    /// A header, the pair of the signature header, or a place in the signed body
    pub(crate) from: TimestampSource,
    pub(crate) unit: Unit,
    pub(crate) past_seconds: u32,
    pub(crate) future_seconds: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TimestampSource {
    Header(String),
    /// The pair that the parser names
    Pair,
    Json(postern_contract::Pointer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    /// A date and time of RFC 3339, signed as it is written
    Rfc3339,
}

/// The native event's name
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Event {
    /// The first of these that is there
    First(Vec<Source>),
    /// All of these, joined by full stops
    Join(Vec<Source>),
}

/// What a form body is
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Form {
    /// The field that holds JSON, where it stands exactly once; else the form is an object of strings
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
}

/// A request that wants an answer instead of a delivery
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handshake {
    /// Where in the body the text stands that tells it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<postern_contract::Pointer>,
    /// Or the header whose text tells it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<String>,
    /// The text or whole number; absent: any text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) equals: Option<toml::Value>,
    pub(crate) verify: HandshakeAuth,
    pub(crate) reply: ReplyRule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HandshakeAuth {
    /// Signed as any delivery
    Signed,
    /// Unsigned, and answered only while the source has no key
    Setup,
}

/// How a handshake is answered
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ReplyRule {
    pub(crate) status: u16,
    /// A fixed body
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    /// A text of the request as plain text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) echo: Option<postern_contract::Pointer>,
    /// A JSON object
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) json: BTreeMap<String, ReplyValue>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReplyValue {
    /// A text of the request
    Echo(postern_contract::Pointer),
    /// The hex HMAC of a text of the request, by the key that verified
    Hmac(postern_contract::Pointer),
}

/// A fixed answer
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reply {
    /// The status
    pub status: u16,
    /// The body
    #[serde(default)]
    pub body: String,
    /// Its media type; `nosniff` goes with it
    #[serde(default = "plain")]
    pub content_type: String,
}

fn plain() -> String {
    "text/plain; charset=utf-8".to_owned()
}

/// What a profile puts in place of the gateway's own answers
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ack {
    /// In place of 202, 200 and 204
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Reply>,
    /// In place of 401; never a 2xx
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Reply>,
}

/// A profile that has been checked
#[derive(Debug)]
pub struct Profile {
    id: String,
    pub(crate) declared: Declared,
    document: Vec<u8>,
    digest: Digest,
}

/// A frozen profile
#[derive(Serialize)]
struct Frozen<'a> {
    id: &'a str,
    kind: &'static str,
    #[serde(flatten)]
    declared: &'a Declared,
}

impl Profile {
    /// Reads and checks a data file
    pub(crate) fn read(id: &str, text: &str) -> Result<Self, String> {
        let declared: Declared = toml::from_str(text).map_err(|e| e.to_string())?;
        check::check(&declared)?;
        let document = canonical::to_vec(&Frozen {
            id,
            kind: "VerificationProfile",
            declared: &declared,
        })
        .map_err(|e| e.to_string())?;
        Ok(Self {
            id: id.to_owned(),
            declared,
            digest: Digest::of(&document),
            document,
        })
    }

    /// The id by which declarations name it
    pub fn id(&self) -> &str {
        &self.id
    }
    /// Other ids for the same profile
    pub fn aliases(&self) -> &[String] {
        &self.declared.aliases
    }
    /// The provider's own name
    pub fn title(&self) -> &str {
        &self.declared.title
    }
    /// Where the provider documents it
    pub fn docs(&self) -> &str {
        &self.declared.docs
    }
    /// What an operator should know
    pub fn note(&self) -> Option<&str> {
        self.declared.note.as_deref()
    }
    /// How much the authentication covers
    pub fn integrity(&self) -> Integrity {
        self.declared.integrity
    }
    /// The digest of its RFC 8785 form
    pub fn digest(&self) -> Digest {
        self.digest
    }
    /// Its RFC 8785 form
    pub fn document(&self) -> &[u8] {
        &self.document
    }
    /// What it puts in place of the gateway's own answers
    pub fn ack(&self) -> &Ack {
        &self.declared.ack
    }
    /// The header that carries signature or token, of each alternative
    pub fn signature_headers(&self) -> impl Iterator<Item = &str> {
        self.declared.auth.iter().map(|auth| auth.header.as_str())
    }
    /// What replays are recognised by, in words
    pub fn replay(&self) -> &'static str {
        match (&self.declared.delivery, self.integrity()) {
            (Some(source), Integrity::Full) if self.covers(source) => "the signed delivery id",
            (Some(_), Integrity::Full) => {
                "the unsigned delivery id, and the digest of the signed content"
            }
            (None, Integrity::Full) => "the digest of the signed content",
            (Some(_), Integrity::None) => "the delivery id, and the digest of the body",
            (None, Integrity::None) => "the digest of the body",
            (_, Integrity::Partial) => "the covered content",
        }
    }
    /// Past and future tolerance of signed timestamps, where there are any
    pub fn tolerance(&self) -> Option<(Duration, Duration)> {
        let rule = self
            .declared
            .auth
            .iter()
            .find_map(|a| a.timestamp.as_ref())?;
        let seconds = |s: u32| Duration::from_secs(u64::from(s));
        Some((seconds(rule.past_seconds), seconds(rule.future_seconds)))
    }
    /// Whether the signature covers what stands at `source`
    pub(crate) fn covers(&self, source: &Source) -> bool {
        match source {
            Source::Json(_) | Source::KeyBeside(_) => self.integrity() == Integrity::Full,
            Source::Header(name) => (self.declared.auth.iter()).all(|auth| {
                auth.content.contains(&Part::Id)
                    && (auth.id_header.as_deref()).is_some_and(|id| id.eq_ignore_ascii_case(name))
            }),
            Source::SignedId => true,
        }
    }
}
