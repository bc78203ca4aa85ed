//! Reads a store for the command line, while a gateway may be writing it: events, what they owe, and the
//! attempts. It never changes anything.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use postern_contract::{Digest, EventId, Name, Sha256Hex, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::index::{self, DEAD, DELIVERED, QUEUED, fault};
use super::segments::{self, Place};
use super::{DeliveryId, StoreFault, recovery};

/// How long a gateway is given to index what it has committed, and how often to look
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);

/// A store opened for reading
pub struct Reader {
    connection: Connection,
    segments: PathBuf,
}

/// An event as the store has it
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredEvent {
    /// Its id
    pub id: EventId,
    /// The digest of the trigger that it was matched for
    pub trigger_digest: Digest,
    /// The source
    pub source: String,
    /// The delivery's id by the provider
    pub delivery: String,
    /// When it arrived
    pub received_at: Timestamp,
    /// SHA-256 of the body that it was made from
    pub body_sha256: Sha256Hex,
    /// What it owes
    pub deliveries: Vec<StoredDelivery>,
}

/// States of a delivery
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is tried, or tried again
    Queued,
    /// It was accepted
    Delivered,
    /// It is not tried again
    Dead,
}

/// A delivery as the store has it
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredDelivery {
    /// Its id
    pub id: String,
    /// The event's id
    pub event: EventId,
    /// The subscription that it was matched under
    pub subscription: Digest,
    /// Where it goes
    pub destination: String,
    /// Its state
    pub state: State,
    /// When it is tried next, while it is queued
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Attempts so far
    pub attempts: u32,
    /// Why it is dead
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the last attempts came to
    pub log: Vec<StoredAttempt>,
}

/// An attempt
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredAttempt {
    /// Its number; equal to the one before where nothing was sent
    pub number: u32,
    /// When it began; nothing was sent where it is missing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended
    pub ended_at: Timestamp,
    /// What happened
    pub detail: String,
}

fn time(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms).unwrap_or(Timestamp::EPOCH)
}

impl Reader {
    /// Opens the store in `dir`. What a running gateway has committed before is seen: a moment is given to
    /// it to put that into the index.
    pub fn open(dir: &Path) -> Result<Self, StoreFault> {
        let reader = Self {
            connection: index::open_to_read(&dir.join("index.sqlite"))?,
            segments: dir.join("segments"),
        };
        if let Some((segment, end)) = recovery::unindexed(&reader.connection, &reader.segments)? {
            reader.await_indexed(segment, end)?;
        }
        Ok(reader)
    }

    /// Nobody indexes where no gateway runs: the next one will, and until then what it finds is not seen
    fn await_indexed(&self, segment: u32, end: u64) -> Result<(), StoreFault> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let known = index::extents(&self.connection).map_err(fault("read its index"))?;
            let newest = known.last_key_value();
            if newest.is_some_and(|(at, extent)| (*at, extent.end) >= (segment, end)) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Whether the index is sound
    pub fn check(&self) -> Result<(), StoreFault> {
        let said: String = self
            .connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .map_err(fault("check its index"))?;
        if said == "ok" {
            return Ok(());
        }
        Err(StoreFault::Io("trust its index", said))
    }

    /// The newest events first
    pub fn events(&self, limit: usize) -> Result<Vec<StoredEvent>, StoreFault> {
        self.find_events("ORDER BY e.id DESC LIMIT ?1", params![limit as i64])
    }

    /// One event
    pub fn event(&self, id: EventId) -> Result<Option<StoredEvent>, StoreFault> {
        let found = self.find_events("WHERE e.event = ?1", params![id.as_bytes()])?;
        Ok(found.into_iter().next())
    }

    /// The event's RFC 8785 form and the body that it was made from
    pub fn documents(&self, id: EventId) -> Result<Option<(Bytes, Bytes)>, StoreFault> {
        let row = self
            .connection
            .query_row(
                "SELECT r.segment, e.offset, e.length, r.offset, r.length
                 FROM events e JOIN receipts r ON r.id = e.receipt WHERE e.event = ?1",
                [id.as_bytes()],
                |row| {
                    let segment = row.get(0)?;
                    let place = |offset: i64, length| Place {
                        segment,
                        offset: offset as u64,
                        length,
                    };
                    let event = place(row.get(1)?, row.get(2)?);
                    Ok((event, place(row.get(3)?, row.get(4)?)))
                },
            )
            .optional()
            .map_err(fault("read its index"))?;
        let Some((event, body)) = row else {
            return Ok(None);
        };
        let read = |place| segments::read(&self.segments, place);
        Ok(Some((read(event)?, read(body)?)))
    }

    /// The newest deliveries first; of one state, where one is asked for
    pub fn deliveries(
        &self,
        state: Option<State>,
        limit: usize,
    ) -> Result<Vec<StoredDelivery>, StoreFault> {
        self.deliveries_to(None, state, limit)
    }

    /// The newest deliveries first; to one destination and of one state, where they are asked for
    pub fn deliveries_to(
        &self,
        destination: Option<&Name>,
        state: Option<State>,
        limit: usize,
    ) -> Result<Vec<StoredDelivery>, StoreFault> {
        let state = state.map(|state| match state {
            State::Queued => QUEUED,
            State::Delivered => DELIVERED,
            State::Dead => DEAD,
        });
        self.find_deliveries(
            "WHERE (?1 IS NULL OR d.state = ?1) AND (?2 IS NULL OR d.destination = ?2)
             ORDER BY d.id DESC LIMIT ?3",
            params![state, destination.map(Name::as_str), limit as i64],
        )
    }

    /// One delivery
    pub fn delivery(&self, id: DeliveryId) -> Result<Option<StoredDelivery>, StoreFault> {
        let found = self.find_deliveries("WHERE d.delivery = ?1", [id.as_bytes()])?;
        Ok(found.into_iter().next())
    }

    fn find_events(
        &self,
        clause: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<StoredEvent>, StoreFault> {
        let read = fault("read its index");
        let mut select = self
            .connection
            .prepare(&format!(
                "SELECT e.id, e.event, e.trigger_digest, r.source, r.delivery, r.received_at,
                        r.body_sha256
                 FROM events e JOIN receipts r ON r.id = e.receipt {clause}"
            ))
            .map_err(&read)?;
        let rows = select
            .query_map(params, |row| {
                let event = StoredEvent {
                    id: Sha256Hex::from_bytes(row.get(1)?),
                    trigger_digest: Digest::from_bytes(row.get(2)?),
                    source: row.get(3)?,
                    delivery: row.get(4)?,
                    received_at: time(row.get(5)?),
                    body_sha256: Sha256Hex::from_bytes(row.get(6)?),
                    deliveries: Vec::new(),
                };
                Ok((row.get::<_, i64>(0)?, event))
            })
            .map_err(&read)?;
        let mut events = Vec::new();
        for row in rows {
            let (id, mut event) = row.map_err(&read)?;
            event.deliveries = self.find_deliveries("WHERE d.event = ?1 ORDER BY d.id", [id])?;
            events.push(event);
        }
        Ok(events)
    }

    fn find_deliveries(
        &self,
        clause: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<StoredDelivery>, StoreFault> {
        let read = fault("read its index");
        let mut select = self
            .connection
            .prepare(&format!(
                "SELECT d.id, d.delivery, e.event, d.subscription, d.destination, d.state, d.due,
                        d.attempts, d.reason
                 FROM deliveries d JOIN events e ON e.id = d.event {clause}"
            ))
            .map_err(&read)?;
        let rows = select.query_map(params, delivery).map_err(&read)?;
        let mut deliveries = Vec::new();
        for row in rows {
            let (id, mut delivery) = row.map_err(&read)?;
            delivery.log = self.attempts(id).map_err(&read)?;
            deliveries.push(delivery);
        }
        Ok(deliveries)
    }

    fn attempts(&self, delivery: i64) -> Result<Vec<StoredAttempt>, rusqlite::Error> {
        self.connection
            .prepare_cached(
                "SELECT number, started_at, ended_at, detail FROM attempts WHERE delivery = ?1 ORDER BY id",
            )?
            .query_map([delivery], |row| {
                Ok(StoredAttempt {
                    number: row.get(0)?,
                    started_at: row.get::<_, Option<i64>>(1)?.map(time),
                    ended_at: time(row.get(2)?),
                    detail: row.get(3)?,
                })
            })?
            .collect()
    }
}

fn delivery(row: &Row<'_>) -> Result<(i64, StoredDelivery), rusqlite::Error> {
    let state = match row.get::<_, i64>(5)? {
        DELIVERED => State::Delivered,
        DEAD => State::Dead,
        _ => State::Queued,
    };
    let due: i64 = row.get(6)?;
    let stored = StoredDelivery {
        id: DeliveryId::from_bytes(row.get(1)?).to_string(),
        event: Sha256Hex::from_bytes(row.get(2)?),
        subscription: Digest::from_bytes(row.get(3)?),
        destination: row.get(4)?,
        state,
        due: (state == State::Queued).then(|| time(due)),
        attempts: row.get(7)?,
        reason: row.get(8)?,
        log: Vec::new(),
    };
    Ok((row.get(0)?, stored))
}
