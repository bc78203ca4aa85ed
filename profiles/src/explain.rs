//! Why a delivery does not verify: the step that failed, the bytes that are said to be signed, and, out of a
//! closed list of usual mistakes, those without which it would have verified. Everything here is found by
//! verifying again: no signature is ever made, so that none can be shown.

mod mistake;
mod quoted;
mod rewrite;

use std::time::Duration;

use bytes::Bytes;
use postern_contract::{CapturedRequest, Timestamp};

pub use self::mistake::Mistake;
use crate::catalogue::Catalogue;
use crate::evidence::Malformed;
use crate::facts::Facts;
use crate::key::{Key, KeyMaterial};
use crate::profile::{GENERIC_PARAMS, Profile};
use crate::refusal::Refusal;
use crate::request::RequestParts;
use crate::signature;
use crate::verifier::{Options, Outcome, Tolerance};

/// A captured request, and the keys and options that it is held to
#[derive(Clone)]
pub struct Trial {
    /// The request
    pub request: CapturedRequest,
    /// Its body
    pub body: Bytes,
    /// Every key that may have signed it
    pub keys: Vec<Key>,
    /// The source's options
    pub options: Options,
    /// As of when
    pub now: Timestamp,
}

/// What a verifier says of a trial
#[derive(Debug)]
pub enum Said {
    /// Authentic; by the key of this name
    Verified(String),
    /// A handshake
    Handshake,
    /// Authentic, and no evidence
    Malformed(Malformed),
    /// Not authentic
    Refused(Refusal),
    /// Not known: the key at this host must be fetched first
    Wanted(String),
    /// The keys do not fit the profile
    NotBound(crate::key::BindError),
}

impl Said {
    /// Whether the signature is right
    pub fn is_authentic(&self) -> bool {
        matches!(
            self,
            Self::Verified(_) | Self::Handshake | Self::Malformed(_)
        )
    }
}

/// A mistake without which the delivery would have verified
#[derive(Debug)]
pub struct Found {
    /// What it is
    pub mistake: Mistake,
    /// What tells it from others of its kind, such as another profile's id
    pub detail: Option<String>,
    /// The key that would have verified it
    pub key: Option<String>,
    /// How many seconds the signed timestamp is off, where it is outside of the profile's tolerance too
    pub off_by_seconds: Option<i64>,
}

/// Why, and what to do about it
#[derive(Debug)]
pub struct Explanation {
    /// What the verifier says
    pub said: Said,
    /// The signed content, quoted, of each way in which the profile is signed, and of each spelling of the
    /// URL that may have been signed: without secrets and signatures
    pub contents: Vec<String>,
    /// The mistakes that would explain it
    pub mistakes: Vec<Found>,
    /// How many were tried
    pub tried: usize,
}

/// Holds a trial to a profile
fn hold(profile: &Profile, trial: &Trial) -> Said {
    let verifier = match profile.bind(trial.keys.clone(), trial.options.clone()) {
        Ok(verifier) => verifier,
        Err(why) => return Said::NotBound(why),
    };
    match verifier.verify(&parts(trial), trial.now) {
        Outcome::Verified(evidence) => Said::Verified(evidence.key_name().to_owned()),
        Outcome::Handshake(..) => Said::Handshake,
        Outcome::Malformed(why) => Said::Malformed(why),
        Outcome::Refused(why) => Said::Refused(why),
        Outcome::Wanted(request) => {
            Said::Wanted(request.url.host_str().unwrap_or_default().to_owned())
        }
    }
}

fn parts(trial: &Trial) -> RequestParts<'_> {
    RequestParts {
        method: &trial.request.method,
        url: &trial.request.url,
        headers: &trial.request,
        body: &trial.body,
    }
}

/// Timestamps of any age pass
fn at_any_time(profile: &Profile, trial: &Trial) -> Trial {
    let ever = profile.tolerance().map(|_| Duration::MAX);
    let mut trial = trial.clone();
    trial.options.tolerance = Tolerance {
        past: ever,
        future: ever,
    };
    trial
}

impl Profile {
    /// Explains what becomes of a request. Mistakes are looked for one at a time, at any age of the signed
    /// timestamp, which is told beside.
    pub fn explain(&self, trial: &Trial, catalogue: &Catalogue) -> Explanation {
        if let Ok(Some(special)) = self.specialised(&trial.options.params) {
            let mut trial = trial.clone();
            let generic = |name: &str| GENERIC_PARAMS.iter().any(|(known, _)| *known == name);
            trial.options.params.retain(|name, _| !generic(name));
            return special.explain(&trial, catalogue);
        }
        let said = hold(self, trial);
        let mut explanation = Explanation {
            contents: self.signed_contents(trial),
            mistakes: Vec::new(),
            tried: 0,
            said,
        };
        if explanation.said.is_authentic() {
            return explanation;
        }
        for variation in mistake::variations(self, trial, catalogue) {
            explanation.tried += 1;
            let Some(found) = variation.holds(trial.now) else {
                continue;
            };
            // One word for one thing: the first variation of a kind that holds is enough
            let known = |known: &Found| {
                known.mistake == found.mistake && known.mistake != Mistake::OtherProfile
            };
            if !explanation.mistakes.iter().any(known) {
                explanation.mistakes.push(found);
            }
        }
        explanation
    }

    /// What the profile says is signed, of a request that nobody believes
    fn signed_contents(&self, trial: &Trial) -> Vec<String> {
        let facts = Facts::new(self, parts(trial), &trial.options.params);
        let view = facts.view();
        let mut contents = Vec::new();
        for auth in &self.declared.auth {
            if !auth.when.iter().all(|guard| guard.holds(&view)) {
                continue;
            }
            let texts = signature::texts(auth, &view).unwrap_or_default();
            if texts.is_empty() {
                continue;
            }
            let mut hidden: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
            hidden.extend(trial.keys.iter().filter_map(|key| match &key.material {
                KeyMaterial::Secret(secret) => Some(secret.expose()),
                KeyMaterial::Public(_) => None,
            }));
            let Ok(Some(read)) = signature::read(auth, &texts, &view) else {
                continue;
            };
            for set in &read.sets {
                for content in signature::contents(auth, set, read.id, &view).unwrap_or_default() {
                    if !content.is_empty() {
                        contents.push(quoted::quoted(&content.concat(), &hidden));
                    }
                }
            }
        }
        contents.dedup();
        contents
    }
}
