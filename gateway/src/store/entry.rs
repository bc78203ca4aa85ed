//! One entry of the log: all that a commit keeps, but for the bytes of its body and its events, which
//! follow it. From entries alone the index's rows can be made again, so that an entry on durable storage
//! is the commit.

use postern_contract::{Digest, EventId, Name, Sha256Hex};
use postern_profiles::ReplayKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::segments::Place;
use super::{Commit, DeliveryId, Owed};

/// What one commit keeps. Times are Unix milliseconds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) source: Name,
    pub(super) delivery: String,
    pub(super) received_at: i64,
    /// Replay keys
    pub(super) keys: Vec<Key>,
    /// How long they are known
    pub(super) until: i64,
    pub(super) kept: Kept,
}

/// What the keys stand for
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum Kept {
    /// A receipt: its body follows, and the documents of the events that are new
    #[serde(rename_all = "camelCase")]
    Receipt {
        body_sha256: Sha256Hex,
        events: Vec<EntryEvent>,
    },
    /// The receipt of these events, which were all there, and which the keys guard anew
    Again { events: Vec<EventId> },
}

/// An event of a receipt
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EntryEvent {
    pub(super) id: EventId,
    pub(super) trigger_digest: Digest,
    /// Whether its document follows; otherwise an earlier entry has it
    pub(super) new: bool,
    pub(super) owed: Vec<EntryOwed>,
}

/// A delivery that an event owes
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EntryOwed {
    pub(super) id: DeliveryId,
    pub(super) subscription: Digest,
    pub(super) destination: Name,
}

/// An entry that is on durable storage, and where
#[derive(Debug)]
pub(super) struct Logged {
    /// Its number in the order of the log since the store was opened, from 1
    pub(super) number: u64,
    pub(super) entry: Entry,
    pub(super) at: Records,
}

/// Where the records of one entry are
#[derive(Debug, PartialEq)]
pub(super) struct Records {
    pub(super) segment: u32,
    /// The end of the last of them, in bytes
    pub(super) end: u64,
    /// The body and the documents of the new events, in their order
    pub(super) payloads: Vec<Place>,
}

impl From<&Owed> for EntryOwed {
    fn from(owed: &Owed) -> Self {
        Self {
            id: owed.id,
            subscription: owed.subscription,
            destination: owed.destination.clone(),
        }
    }
}

impl Entry {
    /// The events that a copy of this delivery is answered with
    pub(super) fn events(&self) -> Vec<EventId> {
        match &self.kept {
            Kept::Receipt { events, .. } => events.iter().map(|event| event.id).collect(),
            Kept::Again { events } => events.clone(),
        }
    }

    /// How many records follow it
    pub(super) fn payloads(&self) -> usize {
        match &self.kept {
            Kept::Receipt { events, .. } => 1 + events.iter().filter(|event| event.new).count(),
            Kept::Again { .. } => 0,
        }
    }
}

/// A replay key with its source in it: 128 bits, of which no two are alike by chance
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 16]);

impl Key {
    pub(super) const LENGTH: usize = 16;

    /// Keys are kept a source: the name counts, with its length
    fn new(source: &Name, key: &ReplayKey) -> Self {
        let mut hash = Sha256::new();
        hash.update((source.as_str().len() as u64).to_be_bytes());
        hash.update(source.as_str().as_bytes());
        hash.update(key.as_bytes());
        let whole: [u8; 32] = hash.finalize().into();
        let mut half = [0; Self::LENGTH];
        half.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        Self(half)
    }
    /// The keys of a delivery
    pub(super) fn all(commit: &Commit) -> Vec<Self> {
        let keys = commit.replay_keys.iter();
        keys.map(|key| Self::new(&commit.source, key)).collect()
    }
    pub(super) fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        let mut bytes = [0; Self::LENGTH];
        hex::decode_to_slice(text, &mut bytes).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes))
    }
}
