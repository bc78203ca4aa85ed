//! The replay guard: whether a delivery is known, by what the log holds and the index has. It decides
//! inside the one thread that writes the log, so that two copies cannot race.

use postern_contract::{EventId, Sha256Hex};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Commit;
use super::entry::Key;
use super::pending::Pending;

/// What there is to commit
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A copy, and the events of the first
    Replay(Vec<EventId>),
    /// No key is known, but all events are there and owe all that they should: keys have ended
    Again(Vec<EventId>),
    /// Something is new: for each event, whether it is
    Fresh(Vec<bool>),
}

/// What is known: `index` after `pending`
pub(super) struct Guard<'a> {
    pub(super) pending: &'a Pending,
    pub(super) index: &'a Connection,
}

impl Guard<'_> {
    /// Judges a delivery with these replay keys
    pub(super) fn judge(&self, keys: &[Key], commit: &Commit) -> Result<Verdict, rusqlite::Error> {
        if let Some(events) = self.known(keys, commit.received_at.unix_ms())? {
            return Ok(Verdict::Replay(events));
        }
        let new = (commit.events.iter())
            .map(|event| Ok(!self.has_event(&event.id)?))
            .collect::<Result<Vec<bool>, rusqlite::Error>>()?;
        let owes_more = || {
            for owed in commit.events.iter().flat_map(|event| &event.owed) {
                if !self.owes(&owed.id)? {
                    return Ok(true);
                }
            }
            Ok::<_, rusqlite::Error>(false)
        };
        if new.iter().any(|new| *new) || new.is_empty() || owes_more()? {
            return Ok(Verdict::Fresh(new));
        }
        let events = commit.events.iter().map(|event| event.id);
        Ok(Verdict::Again(events.collect()))
    }

    /// The events of an earlier copy. Times are Unix milliseconds.
    pub(super) fn known(
        &self,
        keys: &[Key],
        now: i64,
    ) -> Result<Option<Vec<EventId>>, rusqlite::Error> {
        let mut find = self.index.prepare_cached(
            "SELECT r.events FROM replay k JOIN receipts r ON r.id = k.receipt
             WHERE k.key = ?1 AND k.until > ?2",
        )?;
        for key in keys {
            if let Some(logged) = self.pending.by_key(key) {
                // The index can only have what came before
                if logged.entry.until > now {
                    return Ok(Some(logged.entry.events()));
                }
                continue;
            }
            let events: Option<Vec<u8>> = find
                .query_row(params![key.as_bytes(), now], |row| row.get(0))
                .optional()?;
            if let Some(events) = events {
                let (ids, _) = events.as_chunks::<32>();
                return Ok(Some(
                    ids.iter().copied().map(Sha256Hex::from_bytes).collect(),
                ));
            }
        }
        Ok(None)
    }

    fn has_event(&self, id: &EventId) -> Result<bool, rusqlite::Error> {
        if self.pending.has_event(id) {
            return Ok(true);
        }
        self.index
            .prepare_cached("SELECT 1 FROM events WHERE event = ?1")?
            .exists([id.as_bytes()])
    }

    fn owes(&self, id: &super::DeliveryId) -> Result<bool, rusqlite::Error> {
        if self.pending.owes(id) {
            return Ok(true);
        }
        self.index
            .prepare_cached("SELECT 1 FROM deliveries WHERE delivery = ?1")?
            .exists([id.as_bytes()])
    }
}
