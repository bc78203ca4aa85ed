//! The methods of authentication, each in a file of its own: keys are prepared once, and a delivery's
//! candidates are compared in constant time.

mod ed25519;
mod mac;
mod prefixed;
mod public;
pub(crate) mod signing;
mod token;

use postern_contract::{Secret, Timestamp};
use subtle::Choice;

use crate::encoding::Encoding;
use crate::jwk::JwkSet;
use crate::profile::SchemeKind;

pub(crate) use self::mac::{Hash, Keyed};
pub(crate) use self::public::{PublicKey, Signature};
pub(crate) use self::token::basic;

/// One key, ready to verify
#[derive(Debug)]
pub(crate) struct LiveKey {
    pub(crate) name: String,
    /// What deliveries call it, where they do
    pub(crate) id: Option<String>,
    pub(crate) not_after: Option<Timestamp>,
    pub(crate) ready: Ready,
}

/// The prepared key of a method
#[derive(Debug)]
pub(crate) enum Ready {
    Mac(Keyed),
    Prefixed(Secret),
    Ed25519(Box<ed25519_dalek::VerifyingKey>),
    Public(Signature, Box<PublicKey>),
    /// A token's secret, for every HMAC that its profile allows
    JwtSecret(Secret),
    /// The public keys of tokens
    JwtPublic(JwkSet),
    Token(Secret),
}

/// A signature whose spelling and length have been checked
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) bytes: Vec<u8>,
    /// The key that it says it is of
    pub(crate) key_id: Option<String>,
}

impl Candidate {
    /// Decodes a header's text; `None` where it cannot be a signature of this method
    pub(crate) fn decode(
        scheme: SchemeKind,
        encoding: Option<Encoding>,
        text: &[u8],
        key_id: Option<&str>,
    ) -> Option<Self> {
        let bytes = match scheme {
            SchemeKind::Token | SchemeKind::Jwt => text.to_vec(),
            SchemeKind::Basic => token::basic(text)?,
            _ => encoding?.decode(text)?,
        };
        let (least, most) = lengths(scheme);
        (least..=most).contains(&bytes.len()).then(|| Self {
            bytes,
            key_id: key_id.map(str::to_owned),
        })
    }
}

/// The fewest and most bytes of a signature; tokens have any
fn lengths(scheme: SchemeKind) -> (usize, usize) {
    match scheme {
        SchemeKind::HmacSha1 => (20, 20),
        SchemeKind::HmacSha256 | SchemeKind::Sha256Prefixed => (32, 32),
        SchemeKind::HmacSha512 | SchemeKind::Ed25519 => (64, 64),
        // Two numbers of up to 33 bytes, each with two bytes before it, in a sequence
        SchemeKind::EcdsaP256Sha256 => (8, 72),
        // Moduli of 1,024 to 8,192 bits: a key is as long as its signatures
        SchemeKind::RsaSha1 | SchemeKind::RsaSha256 => (128, 1024),
        SchemeKind::Jwt => (1, crate::jwt::MAX_BYTES),
        SchemeKind::Token | SchemeKind::Basic => (1, 64 << 10),
    }
}

/// The most signatures in one delivery, past what any provider sends while it replaces a key. Where each of
/// them costs as much as the whole body, a sender who knows no key gets few of them.
pub(crate) fn max_candidates(scheme: SchemeKind) -> usize {
    match scheme {
        SchemeKind::Ed25519
        | SchemeKind::EcdsaP256Sha256
        | SchemeKind::RsaSha1
        | SchemeKind::RsaSha256
        | SchemeKind::Jwt => 4,
        SchemeKind::HmacSha1
        | SchemeKind::HmacSha256
        | SchemeKind::HmacSha512
        | SchemeKind::Sha256Prefixed
        | SchemeKind::Token
        | SchemeKind::Basic => 32,
    }
}

/// Proof that a candidate is right under a key: made by [`LiveKey::verify`] alone
pub(crate) struct Held(());

/// The HMAC of a scheme
fn hash(scheme: SchemeKind) -> Option<Hash> {
    match scheme {
        SchemeKind::HmacSha1 => Some(Hash::Sha1),
        SchemeKind::HmacSha256 => Some(Hash::Sha256),
        SchemeKind::HmacSha512 => Some(Hash::Sha512),
        _ => None,
    }
}

/// The public-key signature of a scheme
pub(crate) fn signature(scheme: SchemeKind) -> Option<Signature> {
    match scheme {
        SchemeKind::EcdsaP256Sha256 => Some(Signature::EcdsaDer),
        SchemeKind::RsaSha1 => Some(Signature::RsaSha1),
        SchemeKind::RsaSha256 => Some(Signature::RsaSha256),
        _ => None,
    }
}

impl Ready {
    /// Prepares a decoded secret; `None` where the method cannot have it
    pub(crate) fn secret(scheme: SchemeKind, key: Secret) -> Option<Self> {
        match scheme {
            SchemeKind::Sha256Prefixed => Some(Self::Prefixed(key)),
            SchemeKind::Jwt => Some(Self::JwtSecret(key)),
            SchemeKind::Token | SchemeKind::Basic => Some(Self::Token(key)),
            _ => Keyed::new(hash(scheme)?, &key).map(Self::Mac),
        }
    }

    /// Prepares 32 bytes of Ed25519
    pub(crate) fn ed25519(key: &[u8]) -> Option<Self> {
        ed25519::key(key).map(|key| Self::Ed25519(Box::new(key)))
    }

    /// Prepares a public key of a family that the scheme signs with
    pub(crate) fn public(scheme: SchemeKind, key: PublicKey) -> Option<Self> {
        let kind = signature(scheme)?;
        key.fits(kind).then(|| Self::Public(kind, Box::new(key)))
    }
}

impl LiveKey {
    /// Whether it still counts
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        self.not_after.is_none_or(|end| now < end)
    }

    /// Whether the delivery may mean this key. One without an id counts for every delivery.
    pub(crate) fn is_named(&self, named: Option<&str>) -> bool {
        self.id.is_none() || self.id.as_deref() == named
    }

    /// Whether any candidate is right for `content`; every one is compared
    pub(crate) fn verify(&self, content: &[&[u8]], candidates: &[Candidate]) -> Option<Held> {
        let mine = (candidates.iter())
            .filter(|c| c.key_id.is_none() || self.is_named(c.key_id.as_deref()))
            .map(|c| c.bytes.as_slice());
        let right = match &self.ready {
            Ready::Mac(keyed) => keyed.any(content, mine),
            Ready::Prefixed(secret) => prefixed::any(secret, content, mine),
            Ready::Ed25519(key) => ed25519::any(key, content, mine),
            Ready::Public(kind, key) => mine.fold(Choice::from(0), |held, candidate| {
                held | Choice::from(u8::from(key.verify(*kind, content, candidate)))
            }),
            Ready::Token(token) => token::any(token, mine),
            Ready::JwtSecret(_) | Ready::JwtPublic(_) => Choice::from(0),
        };
        bool::from(right).then_some(Held(()))
    }

    /// The MAC of a text, for handshakes that prove the secret
    pub(crate) fn mac(&self, text: &[u8]) -> Option<Vec<u8>> {
        match &self.ready {
            Ready::Mac(keyed) => Some(keyed.sign(&[text])),
            _ => None,
        }
    }
}

/// Signs `content` as a provider would: with a secret, the seed of an Ed25519 key, or a private key in PEM
pub(crate) fn sign(scheme: SchemeKind, key: &Secret, content: &[&[u8]]) -> Option<Vec<u8>> {
    if let Some(kind) = signature(scheme) {
        return signing::sign(kind, key, content);
    }
    match scheme {
        SchemeKind::Ed25519 => ed25519::sign(key, content),
        SchemeKind::Sha256Prefixed => Some(prefixed::sign(key, content)),
        SchemeKind::Token | SchemeKind::Basic => Some(key.expose().to_vec()),
        _ => Keyed::new(hash(scheme)?, key).map(|keyed| keyed.sign(content)),
    }
}
