//! The index in SQLite: WAL with synchronous=FULL, so that a committed transaction survives the loss of
//! power. Rows are small; bodies and events are in segments.

use std::path::Path;

use postern_contract::{Name, Timestamp};
use postern_profiles::ReplayKey;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};
use sha2::{Digest as _, Sha256};

use super::segments::Place;
use super::{Claimed, Commit, DeliveryId, Owed, Settled, SettledAs, StoreFault};

/// The format of the files, raised whenever they change
const FORMAT: i64 = 1;
/// Attempts that are kept of each delivery
const KEPT_ATTEMPTS: u32 = 20;
/// Rows that one pruning step removes, so that commits are not held up
const CHUNK: usize = 2_000;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS receipts (
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, received_at INTEGER NOT NULL, delivery TEXT NOT NULL,
    body_sha256 BLOB NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS replay (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, until INTEGER NOT NULL, receipt INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS replay_until ON replay (until);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, event BLOB NOT NULL UNIQUE, receipt INTEGER NOT NULL, place INTEGER NOT NULL,
    trigger_digest BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS events_receipt ON events (receipt);
CREATE TABLE IF NOT EXISTS deliveries (
    id INTEGER PRIMARY KEY, delivery BLOB NOT NULL UNIQUE, event INTEGER NOT NULL,
    subscription BLOB NOT NULL, destination TEXT NOT NULL, state INTEGER NOT NULL, due INTEGER NOT NULL,
    leased INTEGER NOT NULL, attempts INTEGER NOT NULL, settled_at INTEGER, reason TEXT);
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (destination, due) WHERE state = 0;
CREATE INDEX IF NOT EXISTS deliveries_event ON deliveries (event);
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY, delivery INTEGER NOT NULL, number INTEGER NOT NULL, started_at INTEGER,
    ended_at INTEGER NOT NULL, detail TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS attempts_delivery ON attempts (delivery);
";

/// States of a delivery, as the index keeps them
pub(super) const QUEUED: i64 = 0;
pub(super) const DELIVERED: i64 = 1;
pub(super) const DEAD: i64 = 2;

pub(super) fn fault(what: &'static str) -> impl Fn(rusqlite::Error) -> StoreFault {
    move |e| StoreFault::Io(what, e.to_string())
}

/// Opens the index for the writer
pub(super) fn open(file: &Path) -> Result<Connection, StoreFault> {
    let connection = Connection::open(file).map_err(fault("open its index"))?;
    let set = |name: &str, value: &str| {
        connection
            .pragma_update(None, name, value)
            .map_err(fault("set up its index"))
    };
    set("journal_mode", "WAL")?;
    set("synchronous", "FULL")?;
    set("wal_autocheckpoint", "0")?;
    set("temp_store", "MEMORY")?;
    let format: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(fault("read its index"))?;
    match format {
        0 => {
            connection
                .execute_batch(SCHEMA)
                .map_err(fault("set up its index"))?;
            set("user_version", &FORMAT.to_string())?;
        }
        FORMAT => {}
        other => {
            return Err(StoreFault::Format(
                file.display().to_string(),
                other,
                FORMAT,
            ));
        }
    }
    Ok(connection)
}

/// Opens the index for reading while a gateway may be writing
pub(super) fn open_to_read(file: &Path) -> Result<Connection, StoreFault> {
    Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(fault("open its index"))
}

/// Replay keys are kept a source: the name counts, with its length
fn keyed(source: &Name, key: &ReplayKey) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((source.as_str().len() as u64).to_be_bytes());
    hash.update(source.as_str().as_bytes());
    hash.update(key.as_bytes());
    hash.finalize().into()
}

/// The receipt of an earlier copy
pub(super) fn known(tx: &Transaction<'_>, commit: &Commit) -> Result<Option<i64>, rusqlite::Error> {
    let mut find = tx.prepare_cached("SELECT receipt FROM replay WHERE key = ?1 AND until > ?2")?;
    for key in &commit.replay_keys {
        let key = keyed(&commit.source, key);
        let now = commit.received_at.unix_ms();
        if let Some(receipt) = find.query_row(params![key, now], |r| r.get(0)).optional()? {
            return Ok(Some(receipt));
        }
    }
    Ok(None)
}

/// The events of a receipt, in their order
pub(super) fn events_of(
    tx: &Transaction<'_>,
    receipt: i64,
) -> Result<Vec<[u8; 32]>, rusqlite::Error> {
    tx.prepare_cached("SELECT event FROM events WHERE receipt = ?1 ORDER BY place")?
        .query_map([receipt], |row| row.get(0))?
        .collect()
}

/// Writes a receipt, its replay keys, its events and what they owe. Whether anything is new: an event
/// whose replay keys have ended is still the same event.
pub(super) fn insert(
    tx: &Transaction<'_>,
    commit: &Commit,
    place: Place,
) -> Result<bool, rusqlite::Error> {
    tx.prepare_cached(
        "INSERT INTO receipts (source, received_at, delivery, body_sha256, segment, offset)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        commit.source.as_str(),
        commit.received_at.unix_ms(),
        commit.delivery,
        commit.body_sha256.as_bytes(),
        place.segment,
        place.offset as i64,
    ])?;
    let receipt = tx.last_insert_rowid();
    let mut fresh = false;
    let mut first_event = None;
    for (n, event) in commit.events.iter().enumerate() {
        let inserted = tx
            .prepare_cached(
                "INSERT INTO events (event, receipt, place, trigger_digest) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (event) DO NOTHING",
            )?
            .execute(params![
                event.id.as_bytes(),
                receipt,
                n as i64,
                event.trigger_digest.as_bytes(),
            ])?;
        let row = if inserted == 1 {
            tx.last_insert_rowid()
        } else {
            tx.prepare_cached("SELECT id FROM events WHERE event = ?1")?
                .query_row([event.id.as_bytes()], |row| row.get(0))?
        };
        first_event = first_event.or(Some(row));
        for owed in &event.owed {
            fresh |= owe(tx, row, owed, commit.received_at)?;
        }
    }
    let mut remember = tx.prepare_cached(
        "INSERT INTO replay (key, until, receipt) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET until = excluded.until, receipt = excluded.receipt",
    )?;
    // A known event's keys lead to the receipt that has its events
    let kept = match (fresh, first_event) {
        (false, Some(event)) => tx
            .prepare_cached("SELECT receipt FROM events WHERE id = ?1")?
            .query_row([event], |row| row.get(0))?,
        _ => receipt,
    };
    for key in &commit.replay_keys {
        let until = commit.window_until.unix_ms();
        remember.execute(params![keyed(&commit.source, key), until, kept])?;
    }
    Ok(fresh)
}

fn owe(
    tx: &Transaction<'_>,
    event: i64,
    owed: &Owed,
    due: Timestamp,
) -> Result<bool, rusqlite::Error> {
    let inserted = tx
        .prepare_cached(
            "INSERT INTO deliveries (delivery, event, subscription, destination, state, due, leased, attempts)
             VALUES (?1, ?2, ?3, ?4, 0, ?5, 0, 0) ON CONFLICT (delivery) DO NOTHING",
        )?
        .execute(params![
            owed.id.as_bytes(),
            event,
            owed.subscription.as_bytes(),
            owed.destination.as_str(),
            due.unix_ms(),
        ])?;
    Ok(inserted == 1)
}

/// A claimed delivery before its event is read from the segments
pub(super) struct Due {
    pub(super) place: Place,
    pub(super) nth: usize,
    pub(super) claimed: Claimed,
}

/// Takes what is due, and leases it
pub(super) fn claim(
    tx: &Transaction<'_>,
    destination: &Name,
    limit: usize,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Vec<Due>, rusqlite::Error> {
    let mut select = tx.prepare_cached(
        "SELECT d.id, d.delivery, d.subscription, d.attempts, e.event, e.place, e.trigger_digest,
                r.source, r.segment, r.offset
         FROM deliveries d JOIN events e ON e.id = d.event JOIN receipts r ON r.id = e.receipt
         WHERE d.destination = ?1 AND d.state = 0 AND d.due <= ?2 ORDER BY d.due, d.id LIMIT ?3",
    )?;
    let mut lease =
        tx.prepare_cached("UPDATE deliveries SET due = ?2, leased = 1 WHERE id = ?1")?;
    let rows = select.query_map(
        params![destination.as_str(), now.unix_ms(), limit as i64],
        |row| {
            let source: String = row.get(7)?;
            let id: i64 = row.get(0)?;
            let due = Due {
                place: Place {
                    segment: row.get(8)?,
                    offset: row.get::<_, i64>(9)? as u64,
                },
                nth: row.get::<_, i64>(5)? as usize,
                claimed: Claimed {
                    id: DeliveryId::from_bytes(row.get(1)?),
                    event: postern_contract::Sha256Hex::from_bytes(row.get(4)?),
                    document: bytes::Bytes::new(),
                    source: source.parse().map_err(|_| rusqlite::Error::InvalidQuery)?,
                    subscription: postern_contract::Digest::from_bytes(row.get(2)?),
                    trigger: postern_contract::Digest::from_bytes(row.get(6)?),
                    attempts: row.get(3)?,
                },
            };
            Ok((id, due))
        },
    )?;
    let mut found = Vec::new();
    for row in rows {
        let (id, due) = row?;
        lease.execute(params![id, lease_until.unix_ms()])?;
        found.push(due);
    }
    Ok(found)
}

/// Records an attempt and the delivery's new state. A delivery that is settled already stays so.
pub(super) fn settle(tx: &Transaction<'_>, settled: &Settled) -> Result<(), rusqlite::Error> {
    let row: Option<(i64, u32)> = tx
        .prepare_cached("SELECT id, attempts FROM deliveries WHERE delivery = ?1 AND state = 0")?
        .query_row([settled.id.as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((id, attempts)) = row else {
        return Ok(());
    };
    let number = attempts + u32::from(settled.started_at.is_some());
    tx.prepare_cached(
        "INSERT INTO attempts (delivery, number, started_at, ended_at, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        id,
        number,
        settled.started_at.map(|at| at.unix_ms()),
        settled.ended_at.unix_ms(),
        settled.detail,
    ])?;
    if number > KEPT_ATTEMPTS {
        tx.prepare_cached("DELETE FROM attempts WHERE delivery = ?1 AND number <= ?2")?
            .execute(params![id, number - KEPT_ATTEMPTS])?;
    }
    let (state, due, reason) = match &settled.outcome {
        SettledAs::Delivered => (DELIVERED, settled.ended_at, None),
        SettledAs::Retry { at } => (QUEUED, *at, None),
        SettledAs::Dead { reason } => (DEAD, settled.ended_at, Some(*reason)),
    };
    tx.prepare_cached(
        "UPDATE deliveries SET state = ?2, due = ?3, leased = 0, attempts = ?4, settled_at = ?5, reason = ?6
         WHERE id = ?1",
    )?
    .execute(params![
        id,
        state,
        due.unix_ms(),
        number,
        settled.ended_at.unix_ms(),
        reason,
    ])?;
    Ok(())
}

/// When the next delivery is due, leases included
pub(super) fn next_due(
    tx: &Transaction<'_>,
    destination: &Name,
) -> Result<Option<i64>, rusqlite::Error> {
    tx.prepare_cached("SELECT min(due) FROM deliveries WHERE destination = ?1 AND state = 0")?
        .query_row([destination.as_str()], |row| row.get(0))
}

/// A process that has died holds no lease
pub(super) fn release_leases(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection
        .execute(
            "UPDATE deliveries SET due = 0, leased = 0 WHERE state = 0 AND leased = 1",
            [],
        )
        .map(drop)
}

/// Removes one chunk of what has ended; whether there may be more
pub(super) fn prune(
    tx: &Transaction<'_>,
    now: Timestamp,
    before: Timestamp,
) -> Result<bool, rusqlite::Error> {
    let keys = tx.execute(
        "DELETE FROM replay WHERE id IN (SELECT id FROM replay WHERE until <= ?1 LIMIT ?2)",
        params![now.unix_ms(), CHUNK as i64],
    )?;
    let receipts: Vec<i64> = tx
        .prepare_cached(
            "SELECT r.id FROM receipts r WHERE r.received_at < ?1
             AND NOT EXISTS (SELECT 1 FROM replay k WHERE k.receipt = r.id)
             AND NOT EXISTS (SELECT 1 FROM events e JOIN deliveries d ON d.event = e.id
                             WHERE e.receipt = r.id AND d.state = 0)
             LIMIT ?2",
        )?
        .query_map(params![before.unix_ms(), CHUNK as i64], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for receipt in &receipts {
        tx.execute(
            "DELETE FROM attempts WHERE delivery IN (SELECT d.id FROM deliveries d
             JOIN events e ON e.id = d.event WHERE e.receipt = ?1)",
            [receipt],
        )?;
        tx.execute(
            "DELETE FROM deliveries WHERE event IN (SELECT id FROM events WHERE receipt = ?1)",
            [receipt],
        )?;
        tx.execute("DELETE FROM events WHERE receipt = ?1", [receipt])?;
        tx.execute("DELETE FROM receipts WHERE id = ?1", [receipt])?;
    }
    Ok(keys == CHUNK || receipts.len() == CHUNK)
}

/// The segments that a receipt still points at
pub(super) fn segments_in_use(connection: &Connection) -> Result<Vec<u32>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT DISTINCT segment FROM receipts")?
        .query_map([], |row| row.get(0))?
        .collect()
}
