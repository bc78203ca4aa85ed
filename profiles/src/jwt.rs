//! JSON Web Tokens (RFC 7519) in compact form: a closed list of algorithms, keys of one family each, and
//! claims that are read only once the signature holds. The clock is handed in, and a repeated key is no
//! claim, which is why no library does this.

use std::collections::BTreeMap;

use postern_contract::{Document, Secret, Timestamp, Value};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::canonical;
use crate::encoding::Encoding;
use crate::facts::Facts;
use crate::jwk::JwkSet;
use crate::refusal::Step;
use crate::scheme::{Hash, Keyed, Signature, signing};

/// The most bytes of a token
pub(crate) const MAX_BYTES: usize = 16 << 10;
/// How far ahead of the clock a token may begin, where its profile says nothing
const AHEAD_SECONDS: u32 = 60;

/// An algorithm of a signature; there is no `none`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Alg {
    HS256,
    HS384,
    HS512,
    RS256,
    ES256,
}

impl Alg {
    /// By its one spelling
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "HS256" => Some(Self::HS256),
            "HS384" => Some(Self::HS384),
            "HS512" => Some(Self::HS512),
            "RS256" => Some(Self::RS256),
            "ES256" => Some(Self::ES256),
            _ => None,
        }
    }
    fn hash(self) -> Option<Hash> {
        match self {
            Self::HS256 => Some(Hash::Sha256),
            Self::HS384 => Some(Hash::Sha384),
            Self::HS512 => Some(Hash::Sha512),
            Self::RS256 | Self::ES256 => None,
        }
    }
    pub(crate) fn signature(self) -> Option<Signature> {
        match self {
            Self::RS256 => Some(Signature::RsaSha256),
            Self::ES256 => Some(Signature::EcdsaFixed),
            _ => None,
        }
    }
    /// Whether it is signed with a public key's other half
    pub(crate) fn is_public(self) -> bool {
        self.signature().is_some()
    }
}

/// What a profile wants of a token. `exp`, `nbf` and `iat` are held whenever they are there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Rules {
    pub(crate) algorithms: Vec<Alg>,
    /// `iss` is one of these
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) issuer: Vec<String>,
    /// `iss` is what the source's parameter says, where it says anything
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer_param: Option<String>,
    /// `aud` is, or holds, what the source's parameter says
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) audience_param: Option<String>,
    /// How old `iat` may be
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_age_seconds: Option<u32>,
    /// A source may do without the parameters of issuer and audience: the secret alone tells the sender
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) params_optional: bool,
    /// How far ahead `iat` and `nbf` may be; 60 s
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ahead_seconds: Option<u32>,
    /// How long ago `exp` may have been; not at all
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) late_seconds: Option<u32>,
    /// Claims that must be there
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) required: Vec<String>,
    /// A claim that is the SHA-256 of the body
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body_hash: Option<HashClaim>,
    /// A claim that is the SHA-256 of the URL
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url_hash: Option<HashClaim>,
    /// A claim that is the SHA-256 of method, path and sorted query
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) query_hash: Option<HashClaim>,
    /// Claims with a given value
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) equals: BTreeMap<String, Expected>,
}

impl Rules {
    /// Whether all claims that hold hashes pass, each with the bytes that are hashed
    fn hashed(&self, facts: &Facts<'_>, mut pass: impl FnMut(&HashClaim, &[u8]) -> bool) -> bool {
        let url = facts.url();
        let path = facts.path_and_query();
        let request = canonical::query_string_request(facts.request.method, path);
        let hashed = [
            (&self.body_hash, facts.request.body.as_ref()),
            (&self.url_hash, url.as_bytes()),
            (&self.query_hash, request.as_bytes()),
        ];
        (hashed.into_iter()).all(|(rule, bytes)| rule.as_ref().is_none_or(|rule| pass(rule, bytes)))
    }

    /// What a token covers of its request, in words
    pub(crate) fn covered(&self) -> Vec<&'static str> {
        let hashes = [
            (&self.body_hash, "the body"),
            (&self.url_hash, "the URL"),
            (&self.query_hash, "the method and the URL"),
        ];
        let there = hashes.into_iter().filter(|(rule, _)| rule.is_some());
        there.map(|(_, what)| what).collect()
    }

    /// The parameters that claims must equal
    pub(crate) fn expected_params(&self) -> impl Iterator<Item = &str> {
        self.equals.values().filter_map(|expected| match expected {
            Expected::Param(name) => Some(name.as_str()),
            Expected::Is(_) => None,
        })
    }
}

/// A token for a request, as its provider would make it: with a secret, or a private key in PEM. It names no
/// key, so that a key that is bound by itself counts.
pub(crate) fn sign(
    rules: &Rules,
    facts: &Facts<'_>,
    secret: &Secret,
    now: Timestamp,
) -> Option<String> {
    let alg = *rules.algorithms.first()?;
    let mut claims = serde_json::Map::new();
    let mut set = |name: &str, value: serde_json::Value| claims.insert(name.to_owned(), value);
    for name in &rules.required {
        set(name, format!("{name}-{}", now.unix_ms()).into());
    }
    set("iat", now.unix().into());
    set("nbf", now.unix().into());
    set("exp", now.unix().saturating_add(60).into());
    let said = |param: &Option<String>| facts.param(param.as_deref()?);
    if let Some(issuer) = said(&rules.issuer_param).or(rules.issuer.first().map(String::as_str)) {
        set("iss", issuer.into());
    }
    if let Some(audience) = said(&rules.audience_param) {
        set("aud", audience.into());
    }
    for (name, expected) in &rules.equals {
        let value = match expected {
            Expected::Is(wanted) => (*wanted).into(),
            Expected::Param(param) => facts.param(param)?.into(),
        };
        set(name, value);
    }
    rules.hashed(facts, |rule, bytes| {
        if !(rule.absent_if_empty && bytes.is_empty()) {
            set(
                &rule.claim,
                rule.encoding.encode(&Sha256::digest(bytes)).into(),
            );
        }
        true
    });
    let head = serde_json::json!({ "alg": alg, "typ": "JWT" });
    let claims = serde_json::Value::from(claims);
    let text = |part: &[u8]| Encoding::Base64urlUnpadded.encode(part);
    let signed = [head, claims]
        .map(|part| text(part.to_string().as_bytes()))
        .join(".");
    let content = &[signed.as_bytes()];
    let signature = match (alg.hash(), alg.signature()) {
        (Some(hash), _) => Keyed::new(hash, secret)?.sign(content),
        (None, Some(kind)) => signing::sign(kind, secret, content)?,
        (None, None) => return None,
    };
    Some(format!("{signed}.{}", text(&signature)))
}

/// A claim that holds a hash
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct HashClaim {
    pub(crate) claim: String,
    pub(crate) encoding: Encoding,
    /// There is no such claim exactly where nothing is hashed
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) absent_if_empty: bool,
}

/// What a claim must be
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expected {
    Is(bool),
    Param(String),
}

/// A token whose parts are well-formed, and of which nothing is believed yet
pub(crate) struct Token<'t> {
    signed: &'t [u8],
    signature: Vec<u8>,
    alg: Alg,
    kid: Option<String>,
    claims: Document,
}

impl<'t> Token<'t> {
    /// Reads a compact token; `None` where it is none
    pub(crate) fn parse(text: &'t [u8]) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let mut parts = text.split(|b| *b == b'.');
        let (head, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let json = |part: &[u8]| {
            let text = Encoding::Base64urlUnpadded.decode(part)?;
            let document = Document::parse(text.into()).ok()?;
            document.repeated_key().is_none().then_some(document)
        };
        let signed = text.get(..head.len() + 1 + claims.len())?;
        let head = json(head)?;
        let root = head.root();
        if root.member("crit").is_some() {
            return None;
        }
        Some(Self {
            signed,
            signature: Encoding::Base64urlUnpadded.decode(signature)?,
            alg: Alg::named(root.member("alg")?.as_str()?)?,
            kid: root
                .member("kid")
                .and_then(Value::as_str)
                .map(str::to_owned),
            claims: json(claims)?,
        })
    }

    /// The id of its key, as nobody has verified it
    pub(crate) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// A claim of a token that nobody has verified: to choose the key by, and for nothing else
    pub(crate) fn unverified_claim(&self, name: &str) -> Option<&str> {
        self.claims.root().member(name)?.as_str()
    }

    /// Whether its algorithm is one of these
    pub(crate) fn is_allowed(&self, allowed: &[Alg]) -> bool {
        allowed.contains(&self.alg)
    }

    /// Whether a secret has signed it, by one of the algorithms
    pub(crate) fn is_signed_with(&self, allowed: &[Alg], secret: &Secret) -> bool {
        let keyed = (self.alg.hash())
            .filter(|_| allowed.contains(&self.alg))
            .and_then(|hash| Keyed::new(hash, secret));
        let candidate = std::iter::once(self.signature.as_slice());
        keyed.is_some_and(|keyed| bool::from(keyed.any(&[self.signed], candidate)))
    }

    /// Whether a key of the set that counts at `now` has signed it, by one of the algorithms
    pub(crate) fn is_signed_by(&self, allowed: &[Alg], keys: &JwkSet, now: Timestamp) -> bool {
        let Some(kind) = self.alg.signature().filter(|_| allowed.contains(&self.alg)) else {
            return false;
        };
        keys.named(self.kid.as_deref())
            .filter(|jwk| jwk.alg.is_none_or(|alg| alg == self.alg))
            .filter(|jwk| jwk.expired_at.is_none_or(|end| now.unix() < end))
            .any(|jwk| jwk.key.verify(kind, &[self.signed], &self.signature))
    }

    /// Holds the claims of a token whose signature is right to the rules
    pub(crate) fn held(
        self,
        rules: &Rules,
        facts: &Facts<'_>,
        now: Timestamp,
    ) -> Result<Document, Step> {
        self.times(rules, now)?;
        let root = self.claims.root();
        let text = |name: &str| root.member(name).and_then(Value::as_str);
        let absent = |name: &String| root.member(name).is_none();
        if rules.required.iter().any(absent) {
            return Err(Step::TokenClaim);
        }
        let said = |param: &Option<String>| param.as_ref().and_then(|p| facts.params.get(p));
        let issuers = said(&rules.issuer_param).unwrap_or(&rules.issuer);
        let issued = |iss: &str| issuers.iter().any(|issuer| issuer == iss);
        if !issuers.is_empty() && !text("iss").is_some_and(issued) {
            return Err(Step::TokenIssuer);
        }
        if let Some(wanted) = said(&rules.audience_param) {
            let is = |value: Value<'_>| {
                value
                    .as_str()
                    .is_some_and(|aud| wanted.iter().any(|w| w == aud))
            };
            let aud = root.member("aud");
            let named = aud.is_some_and(|aud| match aud.items() {
                Some(mut items) => items.any(is),
                None => is(aud),
            });
            if !named {
                return Err(Step::TokenAudience);
            }
        }
        for (name, expected) in &rules.equals {
            let holds = root.member(name).is_some_and(|value| match expected {
                Expected::Is(wanted) => value.as_bool() == Some(*wanted),
                Expected::Param(param) => facts
                    .param(param)
                    .is_some_and(|p| value.as_str() == Some(p)),
            });
            if !holds {
                return Err(Step::TokenClaim);
            }
        }
        let right = rules.hashed(facts, |rule, bytes| {
            let may_lack = rule.absent_if_empty && bytes.is_empty();
            match (root.member(&rule.claim), text(&rule.claim)) {
                (None, _) => may_lack,
                (Some(_), Some(claim)) if !may_lack => (rule.encoding.decode(claim.as_bytes()))
                    .is_some_and(|hash| bool::from(hash.ct_eq(&Sha256::digest(bytes)))),
                _ => false,
            }
        });
        if !right {
            return Err(Step::TokenHash);
        }
        Ok(self.claims)
    }

    fn times(&self, rules: &Rules, now: Timestamp) -> Result<(), Step> {
        let now = now.unix();
        let time = |name: &str| match self.claims.root().member(name) {
            None => Ok(None),
            // Whole seconds; a fraction is cut off
            Some(value) => (value.number_text())
                .and_then(|text| text.split('.').next()?.parse::<i64>().ok())
                .map(Some)
                .ok_or(Step::TokenClaim),
        };
        let latest = now.saturating_add(rules.ahead_seconds.unwrap_or(AHEAD_SECONDS).into());
        let late = i64::from(rules.late_seconds.unwrap_or(0));
        if time("exp")?.is_some_and(|end| now >= end.saturating_add(late)) {
            return Err(Step::TimestampOld);
        }
        if time("nbf")?.is_some_and(|start| start > latest) {
            return Err(Step::TimestampAhead);
        }
        match (time("iat")?, rules.max_age_seconds) {
            (Some(at), _) if at > latest => Err(Step::TimestampAhead),
            (Some(at), Some(age)) if now.saturating_sub(at) > i64::from(age) => {
                Err(Step::TimestampOld)
            }
            (None, Some(_)) => Err(Step::TokenClaim),
            _ => Ok(()),
        }
    }
}
