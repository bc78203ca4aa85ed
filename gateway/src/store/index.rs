//! The index in SQLite: WAL with synchronous=FULL, so that a committed transaction survives the loss of
//! power. Rows are small and have integer keys; bodies and events are in segments.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, params};

use super::StoreFault;
use super::entry::{Entry, Kept, Records};

/// The format of the files, raised whenever they change
const FORMAT: i64 = 2;

/// `replay.until`, `receipts.guarded_until` and `deliveries.due` are Unix milliseconds. Every index but the
/// unique ones grows at its end, where an insert costs little. Replay keys go with their receipt, whose
/// `keys` they are, and are known until `until`.
const SCHEMA: &str = "
BEGIN;
CREATE TABLE receipts (
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, received_at INTEGER NOT NULL, delivery TEXT NOT NULL,
    body_sha256 BLOB NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
    guarded_until INTEGER NOT NULL, keys BLOB NOT NULL, events BLOB NOT NULL);
CREATE INDEX receipts_received ON receipts (received_at);
CREATE TABLE replay (
    key BLOB PRIMARY KEY, until INTEGER NOT NULL, receipt INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY, event BLOB NOT NULL UNIQUE, receipt INTEGER NOT NULL, offset INTEGER NOT NULL,
    length INTEGER NOT NULL, trigger_digest BLOB NOT NULL);
CREATE INDEX events_receipt ON events (receipt);
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY, delivery BLOB NOT NULL UNIQUE, event INTEGER NOT NULL, source TEXT NOT NULL,
    subscription BLOB NOT NULL, destination TEXT NOT NULL, state INTEGER NOT NULL, due INTEGER NOT NULL,
    leased INTEGER NOT NULL, attempts INTEGER NOT NULL, settled_at INTEGER, reason TEXT);
CREATE INDEX deliveries_due ON deliveries (destination, due) WHERE state = 0;
CREATE INDEX deliveries_event ON deliveries (event);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY, delivery INTEGER NOT NULL, number INTEGER NOT NULL, started_at INTEGER,
    ended_at INTEGER NOT NULL, detail TEXT NOT NULL);
CREATE INDEX attempts_delivery ON attempts (delivery);
CREATE TABLE segments (id INTEGER PRIMARY KEY, live INTEGER NOT NULL, stop INTEGER NOT NULL);
CREATE TABLE probe (id INTEGER PRIMARY KEY, count INTEGER NOT NULL);
PRAGMA user_version = 2;
COMMIT;
";

/// How far a segment is in use
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Receipts whose records it holds
    pub(super) live: i64,
    /// The end of the last entry that the index has
    pub(super) end: u64,
}

/// Segments, and how far they are in use
pub(super) type Extents = BTreeMap<u32, Extent>;

/// Adds an entry that the index has now
pub(super) fn count(extents: &mut Extents, entry: &Entry, at: &Records) {
    pass(extents, at).live += i64::from(matches!(entry.kept, Kept::Receipt { .. }));
}

/// Goes past an entry, whether the index has it or not
pub(super) fn pass<'e>(extents: &'e mut Extents, at: &Records) -> &'e mut Extent {
    let extent = extents.entry(at.segment).or_default();
    extent.end = at.end;
    extent
}

/// States of a delivery, as the index keeps them
pub(super) const QUEUED: i64 = 0;
pub(super) const DELIVERED: i64 = 1;
pub(super) const DEAD: i64 = 2;

pub(super) fn fault(what: &'static str) -> impl Fn(rusqlite::Error) -> StoreFault {
    move |e| StoreFault::Io(what, e.to_string())
}

/// Opens the index for writing or for checkpoints
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
    // Plans do not depend on what is bound: otherwise every other lookup is planned anew
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(fault("set up its index"))?;
    set("cache_size", CACHE)?;
    if format(&connection)? == 0 {
        connection
            .execute_batch(SCHEMA)
            .map_err(fault("set up its index"))?;
    }
    expect_format(&connection, file)?;
    Ok(connection)
}

/// Opens the index for the replay guard, which looks keys up and changes nothing
pub(super) fn open_for_guard(file: &Path) -> Result<Connection, StoreFault> {
    let connection = open_to_read(file)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .and_then(|_| connection.pragma_update(None, "cache_size", CACHE))
        .map_err(fault("set up its index"))?;
    Ok(connection)
}

/// Opens the index for reading while a gateway may be writing
pub(super) fn open_to_read(file: &Path) -> Result<Connection, StoreFault> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(fault("open its index"))?;
    expect_format(&connection, file)?;
    Ok(connection)
}

/// KiB, negative: the ends of the trees and what random keys touch
const CACHE: &str = "-32768";

fn format(connection: &Connection) -> Result<i64, StoreFault> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(fault("read its index"))
}

fn expect_format(connection: &Connection, file: &Path) -> Result<(), StoreFault> {
    match format(connection)? {
        FORMAT => Ok(()),
        other => Err(StoreFault::Format(
            file.display().to_string(),
            other,
            FORMAT,
        )),
    }
}

/// Pages in the write-ahead log after each commit; a commit that wrote nothing does not set it
pub(super) fn count_pages(
    connection: &mut Connection,
    pages: &Arc<AtomicU32>,
) -> Result<(), StoreFault> {
    let pages = Arc::clone(pages);
    let hook = move |_: &mut rusqlite::hooks::Wal, count: std::ffi::c_int| {
        pages.store(u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    };
    connection
        .wal_hook(Some(hook))
        .map_err(fault("set up its index"))
}

/// How far each segment is in use
pub(super) fn extents(connection: &Connection) -> Result<Extents, rusqlite::Error> {
    connection
        .prepare("SELECT id, live, stop FROM segments")?
        .query_map([], |row| {
            let extent = Extent {
                live: row.get(1)?,
                end: row.get::<_, i64>(2)? as u64,
            };
            Ok((row.get(0)?, extent))
        })?
        .collect()
}

/// Notes what a group has added to the segments
pub(super) fn extend(tx: &Transaction<'_>, added: &Extents) -> Result<(), rusqlite::Error> {
    let mut extend = tx.prepare_cached(
        "INSERT INTO segments (id, live, stop) VALUES (?1, ?2, ?3) ON CONFLICT (id)
         DO UPDATE SET live = live + excluded.live, stop = max(stop, excluded.stop)",
    )?;
    for (segment, extent) in added {
        extend.execute(params![segment, extent.live, extent.end as i64])?;
    }
    Ok(())
}

/// Writes, to see whether that can be done
pub(super) fn probe(tx: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    tx.execute(
        "INSERT INTO probe (id, count) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET count = count + 1",
        [],
    )
    .map(drop)
}

/// The newest time of receipt
pub(super) fn latest(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.query_row(
        "SELECT coalesce(max(received_at), 0) FROM receipts",
        [],
        |r| r.get(0),
    )
}
