//! What is true of a delivery once it has been authenticated, and what replays of it are recognised by.
//! Only the verifier makes these values.

use postern_contract::{Document, MalformedBody, Sha256Hex, Timestamp};
use sha2::{Digest as _, Sha256};

/// A key of the replay guard: never joined without lengths, kept a source
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplayKey([u8; 32]);

/// What a replay key is made of
#[derive(Clone, Copy)]
pub(crate) enum ReplayKind {
    /// The provider's id
    Id,
    /// What the authentication covers
    Content,
}

impl ReplayKey {
    pub(crate) fn new(kind: ReplayKind, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        hash.update(match kind {
            ReplayKind::Id => b"postern replay id 1\0".as_slice(),
            ReplayKind::Content => b"postern replay content 1\0".as_slice(),
        });
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
    /// From stored bytes
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
    /// The bytes, as a store keeps them
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// One native event of an authentic delivery
pub struct Item {
    pub(crate) event: String,
    pub(crate) delivery: String,
    pub(crate) document: Document,
}

impl Item {
    /// The native event's name
    pub fn event(&self) -> &str {
        &self.event
    }
    /// What canonical events call the delivery: the provider's id, else one made of the body; in a batch
    /// with `#` and the item's id or index
    pub fn delivery(&self) -> &str {
        &self.delivery
    }
    /// The parsed evidence
    pub fn document(&self) -> &Document {
        &self.document
    }
}

/// An authentic delivery
pub struct VerifiedEvidence {
    pub(crate) delivery: Option<String>,
    pub(crate) items: Vec<Item>,
    pub(crate) key_name: String,
    pub(crate) replay_keys: Vec<ReplayKey>,
    pub(crate) signed_at: Option<Timestamp>,
    pub(crate) body_sha256: Sha256Hex,
}

impl VerifiedEvidence {
    /// The delivery's id by the provider
    pub fn delivery(&self) -> Option<&str> {
        self.delivery.as_deref()
    }
    /// What canonical events call the delivery: the provider's id, else one made of the body
    pub fn delivery_name(&self) -> String {
        delivery_name(self.delivery(), self.body_sha256)
    }
    /// Its native events: one, or in a batch as many as there are, which may be none
    pub fn items(&self) -> &[Item] {
        &self.items
    }
    /// The name of the key that verified it
    pub fn key_name(&self) -> &str {
        &self.key_name
    }
    /// A delivery that shares any of these with an earlier one is a replay of it
    pub fn replay_keys(&self) -> &[ReplayKey] {
        &self.replay_keys
    }
    /// The signed timestamp, where there is one
    pub fn signed_at(&self) -> Option<Timestamp> {
        self.signed_at
    }
    /// SHA-256 of the whole body
    pub fn body_sha256(&self) -> Sha256Hex {
        self.body_sha256
    }
}

/// The provider's id, else one made of the body
pub(crate) fn delivery_name(id: Option<&str>, body_sha256: Sha256Hex) -> String {
    id.map_or_else(|| format!("sha256:{body_sha256}"), str::to_owned)
}

/// Authentic, and yet no evidence
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// The body is not JSON of the contract
    #[error(transparent)]
    Body(#[from] MalformedBody),
    /// The profile finds no native event's name
    #[error("the delivery names no native event where its profile looks")]
    NoEvent,
    /// A batch of more items than one delivery may hold
    #[error("the batch has more than {0} items")]
    Batch(usize),
    /// The delivery's id stands several times, or is none
    #[error("the delivery's id stands several times, or cannot be an id")]
    Delivery,
    /// It asks for an answer and does not say what is to be answered
    #[error("a handshake without what its answer is made of, or with too much of it")]
    Handshake,
}

impl Malformed {
    /// Stable kebab-case code
    pub fn code(&self) -> &'static str {
        match self {
            Self::Body(_) => "malformed-body",
            Self::NoEvent => "no-event",
            Self::Batch(_) => "batch-too-large",
            Self::Delivery => "delivery-id",
            Self::Handshake => "handshake-incomplete",
        }
    }
}
