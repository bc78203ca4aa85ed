//! The shape of a profile's data file, and what is checked of it before anything is verified by it.

mod auth;
mod check;
mod described;
mod generic;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use postern_contract::{Digest, Pointer, canonical};
use serde::{Deserialize, Serialize};

pub(crate) use self::auth::{
    Auth, Canonical, KeyDecoding, Parser, Part, Place, SchemeKind, SignedHeaders, TimestampRule,
    TimestampSource, Unit,
};
pub use self::generic::GENERIC_PARAMS;
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

/// How well it is known that the provider signs as the profile says
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Held against the provider's own SDK
    Sdk,
    /// Held against open source that receives it
    Source,
    /// Written from the provider's documentation
    Documentation,
    /// Nobody has seen it verify a real delivery
    Unconfirmed,
}

impl Confidence {
    /// `sdk`, `source`, `documentation` or `unconfirmed`
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sdk => "sdk",
            Self::Source => "source",
            Self::Documentation => "documentation",
            Self::Unconfirmed => "unconfirmed",
        }
    }
}

/// A profile as its file says it
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    pub(crate) title: String,
    pub(crate) docs: String,
    pub(crate) confidence: Confidence,
    /// What is to be checked before an unconfirmed profile is relied on
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) check: Vec<String>,
    pub(crate) integrity: Integrity,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) aliases: Vec<String>,
    /// The parameters of [`generic`] say the rest
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) generic: bool,
    /// Alternatives in order: the first whose signature is there decides
    pub(crate) auth: Vec<Auth>,
    /// What must hold of every delivery beside
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) require: Vec<Guard>,
    /// Where the delivery's id stands
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Delivery>,
    /// The native event's name; in a batch, the item's
    pub(crate) event: Event,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<Batch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) form: Option<Form>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) handshake: Vec<Handshake>,
    #[serde(default)]
    pub(crate) ack: Ack,
    /// Parameters that a source can do without and should have, and what happens without them
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) advised: BTreeMap<String, String>,
    /// How the provider sends again, where that is known
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// A condition on a place of the request: it is `equals`, holds `contains`, is `absent`, or is one of the
/// texts of `param`, where the source has that parameter; else it is there
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Guard {
    pub(crate) at: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) equals: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contains: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) absent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) param: Option<String>,
}

/// The native event's name
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Event {
    /// The first of these that is there
    First(Vec<Source>),
    /// All of these, joined by full stops
    Join(Vec<Source>),
    /// The first of these lists that is there whole, joined by full stops
    Any(Vec<Vec<Source>>),
}

impl Event {
    /// Every place that it may be read from
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        let lists = match self {
            Self::First(sources) | Self::Join(sources) => std::slice::from_ref(sources),
            Self::Any(lists) => lists,
        };
        lists.iter().flatten()
    }
}

/// The delivery's or the item's id
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Delivery {
    One(Source),
    /// All of these, joined by colons
    Join {
        join: Vec<Source>,
    },
    /// The first of these that is there
    First {
        first: Vec<Source>,
    },
}

impl Delivery {
    pub(crate) fn sources(&self) -> &[Source] {
        match self {
            Self::One(source) => std::slice::from_ref(source),
            Self::Join { join } => join,
            Self::First { first } => first,
        }
    }
}

/// A body of several native events, each of which is evidence of its own
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    /// The array, at the first of these places; where there is none, the body is the one event
    pub(crate) at: Vec<Pointer>,
    /// The item's id
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<Source>,
}

/// What a form body is
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Form {
    /// The field that holds JSON, where it stands exactly once; else the form is an object of strings
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    /// The body is a form whatever its media type says
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) always: bool,
}

/// The parameter that holds what a handshake with `verify = "token"` must carry
pub(crate) const VERIFY_TOKEN: &str = "verify_token";

/// A request that wants an answer instead of a delivery
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handshake {
    /// The method
    #[serde(default = "post", skip_serializing_if = "is_post")]
    pub(crate) method: String,
    /// Where in the body the text stands that tells it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Pointer>,
    /// Or the header whose text tells it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) header: Option<String>,
    /// Or the parameter of the query
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) query: Option<String>,
    /// The text or whole number; absent: any text
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) equals: Option<toml::Value>,
    /// The array at `at` is empty
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) empty: bool,
    pub(crate) verify: HandshakeAuth,
    /// With `verify = "token"`: the place of the token that is the source's parameter [`VERIFY_TOKEN`]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<Source>,
    /// With `verify = "setup"`: the secret that later deliveries are signed with
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) learn: Option<Told>,
    /// With `verify = "signed"`: the address that is visited before the answer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) visit: Option<VisitRule>,
    pub(crate) reply: ReplyRule,
}

/// An address that confirms a subscription
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct VisitRule {
    pub(crate) at: Source,
    /// Its host is one of these; a `*` is one label
    pub(crate) hosts: Vec<String>,
    /// The parameter without which nothing is visited: it says whose subscriptions the operator wants
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) needs: Option<String>,
}

fn post() -> String {
    "POST".to_owned()
}
fn is_post(method: &str) -> bool {
    method == "POST"
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HandshakeAuth {
    /// Signed as any delivery
    Signed,
    /// Unsigned, and answered only while the source has no key
    Setup,
    /// It carries a token that the operator has given the provider
    Token,
    /// Unsigned
    None,
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
    pub(crate) echo: Option<Told>,
    /// Texts as plain text, one after the other
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) text: Vec<ReplyValue>,
    /// A JSON object
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) json: BTreeMap<String, ReplyValue>,
    /// Headers
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, ReplyValue>,
}

/// A text that the request tells: a pointer into the body, or any place
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Told {
    Body(Pointer),
    At(Source),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReplyValue {
    /// A text of the request
    Echo(Told),
    /// The hex HMAC of a text of the request, by the key that verified, else by the source's first
    Hmac(Told),
    /// The same in Base64, after a fixed text
    HmacBase64 {
        of: Told,
        #[serde(default)]
        prefix: String,
    },
    /// A fixed text
    Const(String),
    /// A parameter of the source
    Param(String),
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
    /// Further headers
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
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

/// Where a signature or token stands
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignaturePlace<'a> {
    /// A header
    Header(&'a str),
    /// A parameter of the query
    Query(&'a str),
    /// A text of the body; of every item of the array at `each`, where there is one
    Body {
        /// The array
        each: Option<&'a Pointer>,
        /// The text
        at: &'a Pointer,
    },
}

impl fmt::Display for SignaturePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => f.write_str(name),
            Self::Query(name) => write!(f, "the query's {name}"),
            Self::Body { each: None, at } => write!(f, "the body's {at}"),
            Self::Body {
                each: Some(each),
                at,
            } => write!(f, "{at} of every item of the body's {each}"),
        }
    }
}

/// A profile that has been checked
#[derive(Clone, Debug)]
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
    /// How well it is known
    pub fn confidence(&self) -> Confidence {
        self.declared.confidence
    }
    /// What is to be checked before an unconfirmed profile is relied on
    pub fn to_check(&self) -> &[String] {
        &self.declared.check
    }
    /// How the provider sends again, where that is known
    pub fn retry(&self) -> Option<&str> {
        self.declared.retry.as_deref()
    }
    /// The methods other than POST that a handshake of it comes by
    pub fn handshake_methods(&self) -> BTreeSet<&str> {
        let methods = self.declared.handshake.iter().map(|h| h.method.as_str());
        methods.filter(|method| !is_post(method)).collect()
    }
    /// Where signature or token stand, of each alternative
    pub fn signature_places(&self) -> impl Iterator<Item = SignaturePlace<'_>> {
        self.declared.auth.iter().flat_map(|auth| {
            let from = auth.from.as_ref().map(|place| match place {
                Place::Json(at) => SignaturePlace::Body {
                    each: auth.each.as_ref(),
                    at,
                },
                Place::Query(name) => SignaturePlace::Query(name),
            });
            let headers = auth.header.iter().chain(&auth.more_headers);
            from.into_iter()
                .chain(headers.map(|name| SignaturePlace::Header(name)))
        })
    }
    /// What replays are recognised by, in words
    pub fn replay(&self) -> &'static str {
        match (&self.declared.delivery, self.integrity()) {
            (Some(delivery), _) if self.covers(delivery) => "the signed delivery id",
            (Some(_), Integrity::Full) => {
                "the unsigned delivery id, and the digest of the signed content"
            }
            (None, Integrity::Full) => "the digest of the signed content",
            (Some(_), Integrity::None) => "the delivery id, and the digest of the body",
            (None, Integrity::None) => "the digest of the body",
            (_, Integrity::Partial) => "the covered content",
        }
    }
    /// Parameters that a source can do without and should have, and what happens without them
    pub fn advised(&self) -> &BTreeMap<String, String> {
        &self.declared.advised
    }
    /// Whether its parameters say how deliveries are signed
    pub fn is_generic(&self) -> bool {
        self.declared.generic
    }
    /// Whether a secret can be learned from the provider while a source is in setup
    pub fn has_setup(&self) -> bool {
        let mut handshakes = self.declared.handshake.iter();
        handshakes.any(|h| h.verify == HandshakeAuth::Setup)
    }
    /// Whether its keys come from the network where the operator binds none
    pub fn fetches_keys(&self) -> bool {
        self.declared.auth.iter().any(Auth::is_fetched)
    }
    /// Whether keys that are fetched are asked for with a credential
    pub fn needs_credential(&self) -> bool {
        let mut rules = self.declared.auth.iter().filter_map(|a| a.fetch.as_ref());
        rules.any(|rule| rule.needs_credential())
    }
    /// The parameters that a source may have, and whether it must
    pub fn params(&self) -> BTreeMap<String, bool> {
        let mut params = BTreeMap::new();
        if self.declared.generic {
            params.extend(
                GENERIC_PARAMS
                    .iter()
                    .map(|(name, _)| ((*name).to_owned(), false)),
            );
            // What the content may hold
            params.insert("base_url".to_owned(), false);
        }
        let mut add = |name: &str, needed: bool| {
            *params.entry(name.to_owned()).or_insert(false) |= needed;
        };
        let source = |source: &Source| match source {
            Source::Param(name) => Some(name.clone()),
            _ => None,
        };
        for auth in &self.declared.auth {
            auth.header_param.iter().for_each(|name| add(name, false));
            if let Some(TimestampSource::NamedHeader { param, .. }) =
                auth.timestamp.as_ref().map(|rule| &rule.from)
            {
                add(param, false);
            }
            for part in &auth.content {
                match part {
                    Part::Param(name) => add(name, true),
                    Part::CallbackUrl => add("callback_url", false),
                    part if part.is_of_url() => add("base_url", false),
                    _ => {}
                }
            }
            if let Some(rules) = &auth.jwt {
                rules
                    .issuer_param
                    .iter()
                    .for_each(|name| add(name, rules.issuer.is_empty() && !rules.params_optional));
                (rules.audience_param.iter()).for_each(|name| add(name, !rules.params_optional));
                rules.expected_params().for_each(|name| add(name, true));
                if rules.url_hash.is_some() || rules.query_hash.is_some() {
                    add("base_url", false);
                }
            }
            if let Some(rule) = &auth.fetch {
                rule.url_param.iter().for_each(|name| add(name, false));
                rule.needed_params().for_each(|name| add(name, false));
            }
            let sources = auth.key_id.iter().chain(&auth.body_sha256);
            sources.filter_map(source).for_each(|name| add(&name, true));
        }
        let guards = self.declared.auth.iter().flat_map(|auth| &auth.when);
        for guard in guards.chain(&self.declared.require) {
            guard.param.iter().for_each(|name| add(name, false));
        }
        for handshake in &self.declared.handshake {
            if handshake.verify == HandshakeAuth::Token {
                add(VERIFY_TOKEN, false);
            }
            let reply = &handshake.reply;
            let values = reply
                .text
                .iter()
                .chain(reply.json.values())
                .chain(reply.headers.values());
            for value in values {
                if let ReplyValue::Param(name) = value {
                    add(name, false);
                }
            }
        }
        params
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
    /// Whether the signature covers every part of the id
    pub(crate) fn covers(&self, delivery: &Delivery) -> bool {
        delivery.sources().iter().all(|source| self.signs(source))
    }

    fn signs(&self, source: &Source) -> bool {
        let all = |held: &dyn Fn(&Auth) -> bool| self.declared.auth.iter().all(held);
        match source {
            Source::Json(at) => {
                self.integrity() == Integrity::Full || all(&|auth| auth.signs_text(at))
            }
            Source::Whole(_) | Source::KeyBeside(_) => self.integrity() == Integrity::Full,
            Source::Header(name) => all(&|auth| {
                auth.content.contains(&Part::Id)
                    && (auth.id_header.as_deref()).is_some_and(|id| id.eq_ignore_ascii_case(name))
                    || (auth.content.iter())
                        .any(|part| matches!(part, Part::Header(h) if h.eq_ignore_ascii_case(name)))
            }),
            Source::SignedId | Source::Claim(_) => true,
            Source::Const(_) | Source::Param(_) => true,
            Source::Query(_) => false,
        }
    }
}
