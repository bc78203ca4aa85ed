//! The methods of authentication, each in a file of its own: keys are prepared once, and a delivery's
//! candidates are compared in constant time.

mod ed25519;
mod mac;
mod token;

use postern_contract::{Secret, Timestamp};

use crate::encoding::Encoding;
use crate::profile::SchemeKind;

/// One key, ready to verify
#[derive(Debug)]
pub(crate) struct LiveKey {
    pub(crate) name: String,
    pub(crate) not_after: Option<Timestamp>,
    pub(crate) ready: Ready,
}

/// The prepared key of a method
#[derive(Debug)]
pub(crate) enum Ready {
    Mac(mac::Keyed),
    Ed25519(Box<ed25519_dalek::VerifyingKey>),
    Token(Secret),
}

/// A signature whose spelling and length have been checked
pub(crate) struct Candidate(Vec<u8>);

impl Candidate {
    /// Decodes a header's text; `None` where it cannot be a signature of this method
    pub(crate) fn decode(
        scheme: SchemeKind,
        encoding: Option<Encoding>,
        text: &[u8],
    ) -> Option<Self> {
        let Some(length) = length(scheme) else {
            return (!text.is_empty()).then(|| Self(text.to_vec()));
        };
        let bytes = encoding?.decode(text)?;
        (bytes.len() == length).then_some(Self(bytes))
    }
}

/// The exact bytes of a signature; tokens have any
fn length(scheme: SchemeKind) -> Option<usize> {
    match scheme {
        SchemeKind::HmacSha1 => Some(20),
        SchemeKind::HmacSha256 => Some(32),
        SchemeKind::HmacSha512 | SchemeKind::Ed25519 => Some(64),
        SchemeKind::Token => None,
    }
}

/// The most signatures in one delivery, past what any provider sends while it replaces a key. Each Ed25519
/// candidate hashes the whole body again, so that a sender who knows no key gets few of them.
pub(crate) fn max_candidates(scheme: SchemeKind) -> usize {
    match scheme {
        SchemeKind::Ed25519 => 4,
        SchemeKind::HmacSha1
        | SchemeKind::HmacSha256
        | SchemeKind::HmacSha512
        | SchemeKind::Token => 32,
    }
}

/// Proof that a candidate is right under a key: made by [`LiveKey::verify`] alone
pub(crate) struct Held(());

impl Ready {
    /// Prepares a decoded key; `None` where the method cannot have it
    pub(crate) fn new(scheme: SchemeKind, key: Secret) -> Option<Self> {
        match scheme {
            SchemeKind::HmacSha1 | SchemeKind::HmacSha256 | SchemeKind::HmacSha512 => {
                mac::Keyed::new(scheme, &key).map(Self::Mac)
            }
            SchemeKind::Ed25519 => ed25519::key(&key).map(|key| Self::Ed25519(Box::new(key))),
            SchemeKind::Token => Some(Self::Token(key)),
        }
    }
}

impl LiveKey {
    /// Whether it still counts
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        self.not_after.is_none_or(|end| now < end)
    }

    /// Whether any candidate is right for `content`; every one is compared
    pub(crate) fn verify(&self, content: &[&[u8]], candidates: &[Candidate]) -> Option<Held> {
        let right = match &self.ready {
            Ready::Mac(keyed) => keyed.any(content, candidates.iter().map(|c| c.0.as_slice())),
            Ready::Ed25519(key) => {
                ed25519::any(key, content, candidates.iter().map(|c| c.0.as_slice()))
            }
            Ready::Token(token) => token::any(token, candidates.iter().map(|c| c.0.as_slice())),
        };
        bool::from(right).then_some(Held(()))
    }

    /// The MAC of a text, for handshakes that prove the secret
    pub(crate) fn mac(&self, text: &[u8]) -> Option<Vec<u8>> {
        match &self.ready {
            Ready::Mac(keyed) => Some(keyed.sign(&[text])),
            Ready::Ed25519(_) | Ready::Token(_) => None,
        }
    }
}

/// Signs `content` as a provider would
pub(crate) fn sign(scheme: SchemeKind, key: &Secret, content: &[&[u8]]) -> Option<Vec<u8>> {
    match scheme {
        SchemeKind::HmacSha1 | SchemeKind::HmacSha256 | SchemeKind::HmacSha512 => {
            mac::Keyed::new(scheme, key).map(|keyed| keyed.sign(content))
        }
        SchemeKind::Ed25519 => ed25519::sign(key, content),
        SchemeKind::Token => Some(key.expose().to_vec()),
    }
}
