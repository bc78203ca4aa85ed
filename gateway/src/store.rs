//! Where events and what they owe are kept. A commit is the gateway's promise: it returns only once
//! everything is on durable storage, and a copy of a known delivery commits nothing.

pub mod embedded;
mod entry;
mod guard;
mod index;
mod indexer;
mod keeper;
mod outbox;
mod pending;
pub mod reader;
mod receipts;
mod recovery;
mod segments;
mod view;
mod writer;

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use postern_contract::fault::{Fault, Party, Retry};
use postern_contract::{Digest, EventId, Name, Sha256Hex, Timestamp};
use postern_profiles::ReplayKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use embedded::{Embedded, Options, Step};

/// A future of a store, whichever it is
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A store of events and owed deliveries. No future blocks the thread that awaits it.
pub trait Store: Send + Sync + 'static {
    /// Commits events and all that they owe, or finds that they are known
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Committed, StoreFault>>;
    /// Takes up to `limit` deliveries of `destination` that are due at `now`; others leave them alone
    /// until `lease_until`
    fn claim(
        &self,
        destination: Name,
        limit: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<Claimed>, StoreFault>>;
    /// Records attempts and what became of their deliveries. One that is no longer queued stays as it is.
    fn settle(&self, settled: Vec<Settled>) -> BoxFuture<'_, Result<(), StoreFault>>;
    /// Ends everything that is still owed under `subscription`, with `reason` in stable kebab-case; how
    /// many deliveries that were
    fn kill(
        &self,
        subscription: Digest,
        reason: &'static str,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>>;
    /// Queues deliveries again that were delivered or are dead, due at `now`; how many of them there are.
    /// Their ids stay, so that a receiver knows a copy.
    fn requeue(
        &self,
        deliveries: Vec<DeliveryId>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>>;
    /// When the next delivery of `destination` is due, if one is queued
    fn next_due(&self, destination: Name) -> BoxFuture<'_, Result<Option<Timestamp>, StoreFault>>;
    /// Forgets replay keys that have ended, and events received before `before` that owe nothing more
    fn prune(&self, now: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<(), StoreFault>>;
    /// Whether it can commit; after a fault this writes, to see
    fn ready(&self) -> BoxFuture<'_, Result<(), StoreFault>>;
}

/// The id of one delivery to one destination, equal over all its attempts
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId([u8; 16]);

impl DeliveryId {
    /// The id that this event's delivery under this subscription to this destination always has
    pub fn of(event: EventId, subscription: Digest, destination: &Name) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"postern delivery 1\0");
        hash.update(event.as_bytes());
        hash.update(subscription.as_bytes());
        hash.update(destination.as_str().as_bytes());
        let whole: [u8; 32] = hash.finalize().into();
        let mut half = [0; 16];
        half.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        Self(half)
    }
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// A text that is no delivery's id
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a delivery: `{0}`: want `dlv_` and 32 lower-case hex digits")]
pub struct NotADelivery(String);

impl std::str::FromStr for DeliveryId {
    type Err = NotADelivery;
    fn from_str(text: &str) -> Result<Self, NotADelivery> {
        let fail = || NotADelivery(text.chars().take(80).collect());
        let digits = text.strip_prefix("dlv_").ok_or_else(fail)?;
        if digits.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(fail());
        }
        let mut bytes = [0; 16];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| fail())?;
        Ok(Self(bytes))
    }
}

impl std::fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dlv_{}", hex::encode(self.0))
    }
}

impl Serialize for DeliveryId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeliveryId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What one delivery of a provider commits
pub struct Commit {
    /// The source's name
    pub source: Name,
    /// Any of these known to this source: a replay
    pub replay_keys: Vec<ReplayKey>,
    /// How long they are kept
    pub window_until: Timestamp,
    /// When the delivery arrived
    pub received_at: Timestamp,
    /// The delivery's id by the provider
    pub delivery: String,
    /// The body, byte for byte
    pub body: Bytes,
    /// Its SHA-256, by which a damaged body shows when it is read
    pub body_sha256: Sha256Hex,
    /// The events, each of which owes at least one delivery
    pub events: Vec<NewEvent>,
}

/// An event to commit
pub struct NewEvent {
    /// Its id
    pub id: EventId,
    /// Its RFC 8785 form
    pub document: Bytes,
    /// The digest of the trigger that it was matched for
    pub trigger_digest: Digest,
    /// What it owes
    pub owed: Vec<Owed>,
}

/// A delivery that an event owes
pub struct Owed {
    /// Its id
    pub id: DeliveryId,
    /// The admitted subscription
    pub subscription: Digest,
    /// Where it goes
    pub destination: Name,
}

/// What a commit came to
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// New events are on durable storage
    Fresh {
        /// Their ids
        events: Vec<EventId>,
    },
    /// The delivery was known, and its events are on durable storage
    Replay {
        /// The ids of the first copy's events
        events: Vec<EventId>,
    },
}

/// A delivery that was taken to be attempted
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Its id
    pub id: DeliveryId,
    /// The event's id
    pub event: EventId,
    /// The event's RFC 8785 form
    pub document: Bytes,
    /// The source that it came from
    pub source: Name,
    /// The subscription that it was matched under
    pub subscription: Digest,
    /// The trigger that it was matched for
    pub trigger: Digest,
    /// Attempts so far
    pub attempts: u32,
}

/// What one attempt came to
#[derive(Clone, Debug)]
pub struct Settled {
    /// The delivery
    pub id: DeliveryId,
    /// When the attempt began; `None` where none was made
    pub started_at: Option<Timestamp>,
    /// When it ended
    pub ended_at: Timestamp,
    /// What happened, for the operator
    pub detail: String,
    /// What becomes of the delivery
    pub outcome: SettledAs,
}

/// What becomes of a delivery
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettledAs {
    /// It was accepted
    Delivered,
    /// It is tried again
    Retry {
        /// Not before this
        at: Timestamp,
    },
    /// It is not tried again
    Dead {
        /// Stable kebab-case code
        reason: &'static str,
    },
}

/// A store that cannot do what was asked
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreFault {
    /// Another process has the directory
    #[error("the store `{0}` is in use by another process")]
    InUse(String),
    /// Files that no version of postern wrote, or a newer one
    #[error("the store `{0}` has the format {1}, and this version reads {2}")]
    Format(String, i64, i64),
    /// Reading or writing failed
    #[error("the store cannot {0}: {1}")]
    Io(&'static str, String),
    /// The writer has stopped
    #[error("the store has stopped")]
    Stopped,
    /// A record is not what the index says
    #[error("a record of the store is damaged: segment {segment}, offset {offset}")]
    Damaged {
        /// The segment
        segment: u32,
        /// Bytes from its start
        offset: u64,
    },
}

impl Fault for StoreFault {
    fn code(&self) -> &'static str {
        match self {
            Self::InUse(_) => "store-in-use",
            Self::Format(..) => "store-format",
            Self::Io(..) => "store-io",
            Self::Stopped => "store-stopped",
            Self::Damaged { .. } => "store-damaged",
        }
    }
    fn fault(&self) -> Party {
        match self {
            Self::InUse(_) | Self::Format(..) | Self::Io(..) => Party::Operator,
            Self::Stopped | Self::Damaged { .. } => Party::Us,
        }
    }
    fn retry(&self) -> Retry {
        match self {
            Self::Io(..) | Self::Stopped | Self::InUse(_) => Retry::Later,
            Self::Format(..) | Self::Damaged { .. } => Retry::Never,
        }
    }
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::InUse(_) => {
                "one gateway writes a store: stop the other, or give this one its own `store.path`"
            }
            Self::Format(..) => "use the version that wrote it, or another `store.path`",
            Self::Io(..) => "look at the disk's free space, its health and the directory's owner",
            Self::Stopped => return None,
            Self::Damaged { .. } => {
                "the file was changed or the disk lost data: restore a backup of the directory"
            }
        };
        Some(hint.to_owned())
    }
}
