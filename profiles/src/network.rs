//! Keys that a profile has fetched: a set of JSON Web Keys, the one key of an id, or the certificate whose
//! address the delivery names. Nothing is fetched here: the verifier says what it wants, whoever holds the
//! network brings the answer, and only an answer read by [`KeyRequest::read`] becomes a key.

use std::collections::BTreeMap;
use std::sync::Arc;

use postern_contract::fault::{Fault, Party, Retry};
use postern_contract::{Digest, Document, Pointer, Resolution, Secret, Timestamp};
use rustls_pki_types::TrustAnchor;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::certificate::{CertificateRule, NotTrusted};
use crate::facts::Facts;
use crate::jwk::{self, JwkSet};
use crate::profile::{Auth, SchemeKind};
use crate::refusal::Step;
use crate::scheme::{LiveKey, Ready};

/// How long a key counts before it is fetched again
const FRESH_MS: i64 = 3_600_000;
/// How long a key counts where fetching it again fails
const USABLE_MS: i64 = 24 * FRESH_MS;
/// How long nothing is asked again of an id that no key has, or of a key server that fails
const COOLDOWN_MS: i64 = 30_000;
/// How far back the clock may go before what was fetched is asked for again
const CLOCK_MS: i64 = 300_000;
/// The most bytes of a key's id
const MAX_ID: usize = 128;

/// Where a profile's keys are fetched
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FetchRule {
    /// The address, in parts
    pub(crate) url: Vec<FetchPart>,
    /// The parameter by which an operator replaces the first part of it, such as for a sandbox
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url_param: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Vec<FetchPart>>,
    /// The members of a JSON object that is posted; without any, the request is a GET
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) json: BTreeMap<String, Vec<FetchPart>>,
    /// Where in the answer the key stands, as a JSON Web Key or a text; absent: the answer is a set of them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Pointer>,
}

/// A part of a request for a key: a name in braces, or a literal text
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum FetchPart {
    /// The key's id, as the delivery gives it
    Kid,
    /// The source's credential
    Credential,
    /// A parameter of the source
    Param(String),
    Literal(String),
}

impl TryFrom<String> for FetchPart {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let Some(name) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) else {
            return Ok(Self::Literal(text));
        };
        match (name, name.strip_prefix("param:")) {
            ("kid", _) => Ok(Self::Kid),
            ("credential", _) => Ok(Self::Credential),
            (_, Some(param)) => Ok(Self::Param(param.to_owned())),
            _ => Err(format!("no part of a request for a key: `{text}`")),
        }
    }
}

impl From<FetchPart> for String {
    fn from(part: FetchPart) -> Self {
        match part {
            FetchPart::Kid => "{kid}".to_owned(),
            FetchPart::Credential => "{credential}".to_owned(),
            FetchPart::Param(name) => format!("{{param:{name}}}"),
            FetchPart::Literal(text) => text,
        }
    }
}

impl FetchRule {
    fn parts(&self) -> impl Iterator<Item = &FetchPart> {
        let lists = self.headers.values().chain(self.json.values());
        self.url.iter().chain(lists.flatten())
    }

    /// Whether each key is asked for by its id
    pub(crate) fn is_by_id(&self) -> bool {
        self.parts().any(|part| *part == FetchPart::Kid)
    }

    /// Whether the source must have a credential
    pub(crate) fn needs_credential(&self) -> bool {
        self.parts().any(|part| *part == FetchPart::Credential)
    }

    /// The parameters that requests are made of
    pub(crate) fn needed_params(&self) -> impl Iterator<Item = &str> {
        self.parts().filter_map(|part| match part {
            FetchPart::Param(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The request for a key
    fn request(
        &self,
        scheme: SchemeKind,
        id: Option<&str>,
        facts: &Facts<'_>,
        credential: Option<&Secret>,
    ) -> Option<KeyRequest> {
        let text = |part: &FetchPart| match part {
            FetchPart::Kid => id.map(|id| id.as_bytes().to_vec()),
            FetchPart::Credential => credential.map(|secret| secret.expose().to_vec()),
            FetchPart::Param(name) => facts.param(name).map(|text| text.as_bytes().to_vec()),
            FetchPart::Literal(text) => Some(text.as_bytes().to_vec()),
        };
        let join = |parts: &[FetchPart]| -> Option<Vec<u8>> {
            let texts: Option<Vec<Vec<u8>>> = parts.iter().map(text).collect();
            Some(texts?.concat())
        };
        let (first, rest) = self.url.split_first()?;
        let own = self.url_param.as_deref().and_then(|name| facts.param(name));
        let first = match own {
            Some(own) => own.as_bytes().to_vec(),
            None => text(first)?,
        };
        let url = String::from_utf8([first, join(rest)?].concat()).ok()?;
        let mut headers = Vec::new();
        for (name, parts) in &self.headers {
            headers.push((name.clone(), Secret::new(join(parts)?)));
        }
        let mut json = serde_json::Map::new();
        for (name, parts) in &self.json {
            json.insert(name.clone(), String::from_utf8(join(parts)?).ok()?.into());
        }
        let body = serde_json::Value::from(json).to_string().into_bytes();
        Some(KeyRequest {
            url: Url::parse(&url).ok()?,
            headers,
            body: (!self.json.is_empty()).then(|| Secret::new(body)),
            answer: KeyAnswer::Key {
                at: self.at.clone(),
                scheme,
                id: id.filter(|_| self.is_by_id()).map(str::to_owned),
            },
        })
    }
}

/// A request for a key
#[derive(Clone, Debug)]
pub struct KeyRequest {
    /// Where to ask
    pub url: Url,
    /// The headers; any may hold a credential
    pub headers: Vec<(String, Secret)>,
    /// A JSON object to post; without one, the request is a GET
    pub body: Option<Secret>,
    answer: KeyAnswer,
}

/// What the answer is read as
#[derive(Clone, Debug)]
enum KeyAnswer {
    Key {
        at: Option<Pointer>,
        scheme: SchemeKind,
        id: Option<String>,
    },
    Certificate {
        rule: CertificateRule,
        scheme: SchemeKind,
    },
}

/// An answer that is no key: nobody knows yet whether the delivery is authentic
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// No key of the scheme
    #[error("the answer holds no key that the profile can use")]
    NoKey,
    /// A certificate that proves nothing
    #[error("the certificate: {0}")]
    Certificate(#[from] NotTrusted),
}

impl Fault for KeyFault {
    fn code(&self) -> &'static str {
        match self {
            Self::NoKey => "key-answer",
            Self::Certificate(_) => "key-certificate",
        }
    }
    fn fault(&self) -> Party {
        Party::Destination
    }
    fn retry(&self) -> Retry {
        Retry::Later
    }
}

/// What a key server has answered
#[derive(Clone, Debug)]
pub struct FetchedKey {
    /// Nothing where the server has no key of the id
    key: Option<Arc<LiveKey>>,
    fetched_at: Timestamp,
    fresh_until: Timestamp,
    usable_until: Timestamp,
}

impl FetchedKey {
    /// The server has no key of this id
    pub fn none(now: Timestamp) -> Self {
        Self {
            key: None,
            fetched_at: now,
            fresh_until: now.plus_ms(COOLDOWN_MS),
            usable_until: now.plus_ms(COOLDOWN_MS),
        }
    }

    /// The same key for a little longer, where asking again has failed; nothing where it is too old
    pub fn prolonged(&self, now: Timestamp) -> Option<Self> {
        (self.key.is_some() && self.fetched_at <= now && now < self.usable_until).then(|| Self {
            fresh_until: now.plus_ms(COOLDOWN_MS).min(self.usable_until),
            ..self.clone()
        })
    }

    /// When it was fetched
    pub fn fetched_at(&self) -> Timestamp {
        self.fetched_at
    }

    /// Whether it counts at `now`
    fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.fresh_until && self.fetched_at <= now.plus_ms(CLOCK_MS)
    }
}

/// What has been fetched so far
#[derive(Clone, Debug, Default)]
pub struct FetchedKeys(BTreeMap<Digest, Arc<FetchedKey>>);

impl FetchedKeys {
    /// What was answered to a request
    pub fn get(&self, request: &KeyRequest) -> Option<&Arc<FetchedKey>> {
        self.0.get(&request.id())
    }

    /// Keeps an answer; of more than `most`, the oldest are forgotten
    pub fn insert(&mut self, request: &KeyRequest, key: FetchedKey, most: usize) {
        self.0.insert(request.id(), Arc::new(key));
        while self.0.len() > most {
            let oldest = self.0.iter().min_by_key(|(_, key)| key.fetched_at);
            let Some(id) = oldest.map(|(id, _)| *id) else {
                return;
            };
            self.0.remove(&id);
        }
    }
}

impl KeyRequest {
    /// What tells it from every other request
    pub fn id(&self) -> Digest {
        let mut text = self.url.as_str().as_bytes().to_vec();
        let headers = self.headers.iter().map(|(_, value)| value);
        for secret in headers.chain(&self.body) {
            text.push(0);
            text.extend(secret.expose());
        }
        // A credential must not linger beside its secret
        Digest::of(Secret::new(text).expose())
    }

    /// Reads what the server has answered with a 2xx
    pub fn read(
        &self,
        answer: &[u8],
        anchors: &[TrustAnchor<'_>],
        now: Timestamp,
    ) -> Result<FetchedKey, KeyFault> {
        let mut usable_until = now.plus_ms(USABLE_MS);
        let (id, ready) = match &self.answer {
            KeyAnswer::Key { at, scheme, id } => (id.clone(), key(answer, at.as_ref(), *scheme)?),
            KeyAnswer::Certificate { rule, scheme } => {
                let leaf = rule.trusted(answer, anchors, now)?;
                usable_until = usable_until.min(leaf.not_after);
                let ready = Ready::public(*scheme, leaf.key);
                (None, ready.ok_or(KeyFault::NoKey)?)
            }
        };
        let host = self.url.host_str().unwrap_or_default();
        let name = match &id {
            Some(id) => format!("{host}/{id}"),
            None => host.to_owned(),
        };
        Ok(FetchedKey {
            key: Some(Arc::new(LiveKey {
                name,
                id,
                not_after: None,
                ready,
            })),
            fetched_at: now,
            fresh_until: now.plus_ms(FRESH_MS).min(usable_until),
            usable_until,
        })
    }
}

fn key(answer: &[u8], at: Option<&Pointer>, scheme: SchemeKind) -> Result<Ready, KeyFault> {
    let text = match at {
        None => std::str::from_utf8(answer).ok().map(str::to_owned),
        Some(at) => inner(answer, at),
    };
    let text = text.ok_or(KeyFault::NoKey)?;
    let ready = match scheme {
        SchemeKind::Jwt => jwk::token_keys(&text).map(Ready::JwtPublic),
        _ => jwk::public_key(&text).and_then(|key| Ready::public(scheme, key)),
    };
    ready.ok_or(KeyFault::NoKey)
}

/// The text at a place of the answer, or the JSON of the object there
fn inner(answer: &[u8], at: &Pointer) -> Option<String> {
    let document = Document::parse(answer.to_vec().into()).ok()?;
    if document.repeated_key().is_some() {
        return None;
    }
    let Resolution::Resolved(value) = document.resolve(at) else {
        return None;
    };
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let object = value.to_document().ok()?;
    String::from_utf8(object.text().to_vec()).ok()
}

/// What the verifier finds of a key that is fetched
pub(crate) enum Lookup<'k> {
    /// It is here
    Key(&'k LiveKey),
    /// It must be fetched first
    Wanted(Box<KeyRequest>),
    /// There is none
    None(Step),
}

/// The key by which a delivery says that it is signed
pub(crate) fn look_up<'k>(
    auth: &Auth,
    id: Option<&str>,
    facts: &Facts<'_>,
    certificate: Option<Url>,
    credential: Option<&Secret>,
    fetched: &'k FetchedKeys,
    now: Timestamp,
) -> Lookup<'k> {
    let scheme = auth.scheme;
    let request = match (&auth.certificate, certificate, &auth.fetch) {
        (Some(rule), Some(url), _) => Some(KeyRequest {
            url,
            headers: Vec::new(),
            body: None,
            answer: KeyAnswer::Certificate {
                rule: rule.clone(),
                scheme,
            },
        }),
        (_, _, Some(rule)) => {
            // It goes into an address or a body as it is
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            let sound = id.is_some_and(|id| {
                (1..=MAX_ID).contains(&id.len()) && id.bytes().all(plain) && id != "." && id != ".."
            });
            if rule.is_by_id() && !sound {
                return Lookup::None(Step::KeyUnnamed);
            }
            rule.request(scheme, id, facts, credential)
        }
        _ => None,
    };
    let Some(request) = request else {
        return Lookup::None(Step::NoLiveKey);
    };
    let Some(found) = fetched.get(&request).filter(|key| key.is_fresh(now)) else {
        return Lookup::Wanted(Box::new(request));
    };
    let Some(key) = &found.key else {
        return Lookup::None(Step::KeyUnknown);
    };
    // A set without the key may be older than the key
    if let Ready::JwtPublic(set) = &key.ready
        && !has(set, id)
    {
        return if now < found.fetched_at.plus_ms(COOLDOWN_MS) {
            Lookup::None(Step::KeyUnknown)
        } else {
            Lookup::Wanted(Box::new(request))
        };
    }
    Lookup::Key(key)
}

fn has(set: &JwkSet, id: Option<&str>) -> bool {
    set.named(id).next().is_some()
}
