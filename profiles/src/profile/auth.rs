//! How a data file says that deliveries are authenticated.

use postern_contract::Pointer;
use serde::{Deserialize, Serialize};

use super::Guard;
use crate::certificate::CertificateRule;
use crate::encoding::Encoding;
use crate::jwt::Rules;
use crate::network::FetchRule;
use crate::source::Source;

/// One way in which a delivery may be authenticated
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Auth {
    pub(crate) scheme: SchemeKind,
    /// The header that carries signature or token
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<String>,
    /// The parameter by which an operator names another header
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) header_param: Option<String>,
    /// Further headers that may carry one
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) more_headers: Vec<String>,
    /// Or the place that does, where it is no header
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Place>,
    /// The array whose every item carries one of its own: `from` and `{json:…}` begin at the item
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) each: Option<Pointer>,
    #[serde(default)]
    pub(crate) parser: Parser,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) encoding: Option<Encoding>,
    #[serde(default)]
    pub(crate) key: KeyDecoding,
    /// Where the delivery names the key: the others are not tried
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_id: Option<Source>,
    /// What is signed, in order
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<Part>,
    /// The header of the id that `{id}` stands for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id_header: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<TimestampRule>,
    /// The list of headers that `{header-names}`, `{header-values}` and `{header-pairs}` stand for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signed_headers: Option<SignedHeaders>,
    /// The claims of a token
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jwt: Option<Rules>,
    /// A text that must be the SHA-256 of the body in hex
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body_sha256: Option<Source>,
    /// Where the signer's certificate must stand
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<CertificateRule>,
    /// Where keys are fetched that the operator does not bind
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fetch: Option<FetchRule>,
    /// The alternative is passed over where one of these does not hold
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) when: Vec<Guard>,
    /// RSA keys of 1,024 bits count, as the provider's own software makes them
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) short_keys: bool,
    /// The next alternative may make good what is wrong in this one
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) or_next: bool,
    /// Alternatives of one group; every group must hold
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
}

impl Auth {
    /// Whether its keys are public ones
    pub(crate) fn is_public(&self) -> bool {
        let token = |rules: &Rules| rules.algorithms.iter().any(|alg| alg.is_public());
        self.scheme.is_public() || self.jwt.as_ref().is_some_and(token)
    }

    /// Whether its keys come from the network where the operator binds none
    pub(crate) fn is_fetched(&self) -> bool {
        self.certificate.is_some() || self.fetch.is_some()
    }

    /// Whether the text at `at` of the evidence is a part of what is signed
    pub(crate) fn signs_text(&self, at: &Pointer) -> bool {
        let is = |part: &Part| matches!(part, Part::Json(p) | Part::Line(p) if p == at);
        self.content.iter().any(is)
    }
}

/// The methods of authentication
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SchemeKind {
    HmacSha1,
    HmacSha256,
    HmacSha512,
    /// SHA-256 of the secret and what follows it: no HMAC, and as it is where providers have it
    Sha256Prefixed,
    Ed25519,
    /// ECDSA on P-256 with SHA-256, in DER
    EcdsaP256Sha256,
    RsaSha1,
    RsaSha256,
    /// A JSON Web Token
    Jwt,
    Token,
    /// HTTP Basic (RFC 7617)
    Basic,
}

impl SchemeKind {
    /// Whether the evidence is compared or read as it is, and nothing is signed
    pub(crate) fn is_token(self) -> bool {
        matches!(self, Self::Token | Self::Basic)
    }
    /// Whether the key is a public one
    pub(crate) fn is_public(self) -> bool {
        matches!(
            self,
            Self::Ed25519 | Self::EcdsaP256Sha256 | Self::RsaSha1 | Self::RsaSha256
        )
    }
    /// Whether it is an HMAC
    pub(crate) fn is_mac(self) -> bool {
        matches!(self, Self::HmacSha1 | Self::HmacSha256 | Self::HmacSha512)
    }
}

/// A place of a signature that is no header
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Place {
    /// A text of the evidence: of a form, `/<field>`
    Json(Pointer),
    /// A parameter of the query
    Query(String),
}

/// How the header's text becomes candidates
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Parser {
    /// The whole text
    #[default]
    Raw,
    /// What follows a fixed text
    Prefix { prefix: String },
    /// What follows a fixed text, or the whole text
    OptionalPrefix { prefix: String },
    /// `k=v` pairs; repeated keys kept, unknown ones ignored
    Pairs {
        separator: char,
        signature: String,
        timestamp: String,
    },
    /// Several sets of such pairs, each with a timestamp of its own
    Sets {
        between: char,
        separator: char,
        signature: String,
        timestamp: String,
    },
    /// Items that begin with a fixed text; others ignored
    List { separator: char, prefix: String },
    /// The timestamp, and then signatures
    Positional { separator: char },
    /// Items of a key's id, maybe the algorithm's name, and a signature
    Keyed {
        separator: char,
        within: char,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        algorithm: Option<String>,
    },
}

impl Parser {
    /// Whether the signature header holds the timestamp
    pub(crate) fn has_timestamp(&self) -> bool {
        matches!(
            self,
            Self::Pairs { .. } | Self::Sets { .. } | Self::Positional { .. }
        )
    }
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
    /// The SHA-1 of its bytes
    Sha1,
}

/// A part of the signed content: a name in braces, or a literal text
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Part {
    Body,
    /// The JSON inside the form's field, else the body
    Evidence,
    Timestamp,
    Id,
    Method,
    /// The URL as the provider called it
    Url,
    /// The same with a fixed set of escapes decoded
    UrlDecoded,
    PathAndQuery,
    /// The same, escaped once more: the query's one parameter by itself, and then the whole
    PathAndQueryEscaped,
    /// The registered URL, by the parameter `callback_url`; without it, the URL that was called
    CallbackUrl,
    Header(String),
    HeaderNames,
    HeaderValues,
    HeaderPairs,
    /// A text or number of the evidence
    Json(Pointer),
    /// The same; nothing where it is absent
    OptionalJson(Pointer),
    /// A line of the name and one of the value of a text of the evidence
    Line(Pointer),
    /// The same; nothing where it is absent
    OptionalLine(Pointer),
    /// A parameter of the source
    Param(String),
    /// CRC-32 of the body as a decimal number: no more than a trace of it, as anybody finds another body
    /// with the same
    Crc32,
    /// The fields of a form, name and value each, sorted by name
    FormSorted,
    /// The named canonical forms
    Canonical(Canonical),
    Literal(String),
}

/// Canonical forms that no template gives
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Canonical {
    /// URL and sorted fields, in the spellings of the URL that may have been signed
    UrlAndFields,
    /// The URL alone, in the same spellings
    UrlSpellings,
    /// URL, sorted query and sorted fields
    SortedUrlAndFields,
    /// The form but its signature, as PHP serializes it
    PhpSerialize,
}

const NAMED: &[(&str, Part)] = &[
    ("body", Part::Body),
    ("evidence", Part::Evidence),
    ("timestamp", Part::Timestamp),
    ("id", Part::Id),
    ("method", Part::Method),
    ("url", Part::Url),
    ("url-decoded", Part::UrlDecoded),
    ("path-and-query", Part::PathAndQuery),
    ("path-and-query-escaped", Part::PathAndQueryEscaped),
    ("callback-url", Part::CallbackUrl),
    ("header-names", Part::HeaderNames),
    ("header-values", Part::HeaderValues),
    ("header-pairs", Part::HeaderPairs),
    ("crc32", Part::Crc32),
    ("form-sorted", Part::FormSorted),
    ("url-and-fields", Part::Canonical(Canonical::UrlAndFields)),
    ("url-spellings", Part::Canonical(Canonical::UrlSpellings)),
    (
        "sorted-url-and-fields",
        Part::Canonical(Canonical::SortedUrlAndFields),
    ),
    ("php-serialize", Part::Canonical(Canonical::PhpSerialize)),
];

impl TryFrom<String> for Part {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let Some(name) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) else {
            return Ok(Self::Literal(text));
        };
        if let Some((_, part)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Ok(part.clone());
        }
        let pointer = |text: &str| text.parse().map_err(|e| format!("`{text}`: {e}"));
        match name.split_once(':') {
            Some(("header", name)) => Ok(Self::Header(name.to_owned())),
            Some(("param", name)) => Ok(Self::Param(name.to_owned())),
            Some(("json", at)) => Ok(Self::Json(pointer(at)?)),
            Some(("json?", at)) => Ok(Self::OptionalJson(pointer(at)?)),
            Some(("line", at)) => Ok(Self::Line(pointer(at)?)),
            Some(("line?", at)) => Ok(Self::OptionalLine(pointer(at)?)),
            _ => Err(format!("no part of a signed content: `{text}`")),
        }
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        if let Some((name, _)) = NAMED.iter().find(|(_, known)| *known == part) {
            return format!("{{{name}}}");
        }
        match part {
            Part::Header(name) => format!("{{header:{name}}}"),
            Part::Param(name) => format!("{{param:{name}}}"),
            Part::Json(at) => format!("{{json:{at}}}"),
            Part::OptionalJson(at) => format!("{{json?:{at}}}"),
            Part::Line(at) => format!("{{line:{at}}}"),
            Part::OptionalLine(at) => format!("{{line?:{at}}}"),
            Part::Literal(text) => text,
            // The others stand in the list
            _ => Self::new(),
        }
    }
}

impl Part {
    /// Whether it holds the URL as it was called
    pub(crate) fn is_of_url(&self) -> bool {
        use Canonical::{SortedUrlAndFields, UrlAndFields, UrlSpellings};
        matches!(
            self,
            Self::Url
                | Self::UrlDecoded
                | Self::CallbackUrl
                | Self::PathAndQuery
                | Self::PathAndQueryEscaped
                | Self::Canonical(UrlAndFields | UrlSpellings | SortedUrlAndFields)
        )
    }

    /// Whether it holds something of the body
    pub(crate) fn is_of_body(&self) -> bool {
        self.is_whole()
            || matches!(
                self,
                Self::Json(_)
                    | Self::OptionalJson(_)
                    | Self::Line(_)
                    | Self::OptionalLine(_)
                    | Self::Crc32
            )
    }

    /// Whether it holds something of the request
    pub(crate) fn is_of_request(&self) -> bool {
        !matches!(self, Self::Literal(_) | Self::Param(_))
    }

    /// Whether it holds every byte of the body, or everything that a form says
    pub(crate) fn is_whole(&self) -> bool {
        use Canonical::{PhpSerialize, SortedUrlAndFields, UrlAndFields};
        matches!(
            self,
            Self::Body
                | Self::Evidence
                | Self::FormSorted
                | Self::Canonical(UrlAndFields | SortedUrlAndFields | PhpSerialize)
        )
    }
}

/// A list of headers that the signature covers, which the delivery itself names
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SignedHeaders {
    /// The header that lists them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<String>,
    /// Or the pair of the signature header that does
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pair: Option<String>,
    pub(crate) separator: char,
    /// What must be among them
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) required: Vec<String>,
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
    /// A header that an operator may name by a parameter
    NamedHeader {
        param: String,
        default: String,
    },
    /// The pair that the parser names
    Pair,
    Json(Pointer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    /// A date and time of RFC 3339, signed as it is written
    Rfc3339,
}
