//! What the index has of a commit: the receipt of a delivery with its replay keys and its events, which go
//! together.

use std::collections::BTreeMap;

use postern_contract::{EventId, Timestamp};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::entry::{Entry, EntryEvent, Kept, Key, Records};
use super::outbox::owe;
use super::segments::Place;

/// Rows that one pruning step removes, so that commits are not held up
const CHUNK: usize = 2_000;

/// Makes the rows of one entry. INVARIANT(log-first): the entry is on durable storage.
pub(super) fn apply(
    tx: &Transaction<'_>,
    entry: &Entry,
    at: &Records,
) -> Result<(), rusqlite::Error> {
    let receipt = match &entry.kept {
        Kept::Receipt { events, .. } => Some(receipt(tx, entry, events, at)?),
        Kept::Again { events } => again(tx, entry, events)?,
    };
    // Pruned since the guard saw it: there is nothing left that a copy could be answered with
    let Some(receipt) = receipt else {
        return Ok(());
    };
    let mut remember = tx.prepare_cached(
        "INSERT INTO replay (key, until, receipt) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET until = excluded.until, receipt = excluded.receipt",
    )?;
    for key in &entry.keys {
        remember.execute(params![key.as_bytes(), entry.until, receipt])?;
    }
    Ok(())
}

fn receipt(
    tx: &Transaction<'_>,
    entry: &Entry,
    events: &[EntryEvent],
    at: &Records,
) -> Result<i64, rusqlite::Error> {
    let mut payloads = at.payloads.iter();
    let receipt = insert_receipt(tx, entry, payloads.next())?;
    for event in events {
        let place = event.new.then(|| payloads.next()).flatten();
        let row = match place {
            Some(place) => insert_event(tx, receipt, event, place)?,
            None => row_of(tx, &event.id)?,
        };
        let Some(row) = row else { continue };
        for owed in &event.owed {
            owe(tx, row, &entry.source, owed, entry.received_at)?;
        }
    }
    Ok(receipt)
}

fn insert_receipt(
    tx: &Transaction<'_>,
    entry: &Entry,
    body: Option<&Place>,
) -> Result<i64, rusqlite::Error> {
    let (Kept::Receipt { body_sha256, .. }, Some(body)) = (&entry.kept, body) else {
        return Err(rusqlite::Error::InvalidQuery);
    };
    let events: Vec<u8> = (entry.events().iter())
        .flat_map(|event| *event.as_bytes())
        .collect();
    tx.prepare_cached(
        "INSERT INTO receipts (source, received_at, delivery, body_sha256, segment, offset, length,
                               guarded_until, keys, events)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        entry.source.as_str(),
        entry.received_at,
        entry.delivery,
        body_sha256.as_bytes(),
        body.segment,
        body.offset as i64,
        body.length,
        entry.until,
        keys(entry),
        events,
    ])?;
    Ok(tx.last_insert_rowid())
}

fn keys(entry: &Entry) -> Vec<u8> {
    (entry.keys.iter())
        .flat_map(|key| *key.as_bytes())
        .collect()
}

/// The event's row, which may have been there
fn insert_event(
    tx: &Transaction<'_>,
    receipt: i64,
    event: &EntryEvent,
    place: &Place,
) -> Result<Option<i64>, rusqlite::Error> {
    let inserted = tx
        .prepare_cached(
            "INSERT INTO events (event, receipt, offset, length, trigger_digest)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (event) DO NOTHING",
        )?
        .execute(params![
            event.id.as_bytes(),
            receipt,
            place.offset as i64,
            place.length,
            event.trigger_digest.as_bytes(),
        ])?;
    match inserted {
        0 => row_of(tx, &event.id),
        _ => Ok(Some(tx.last_insert_rowid())),
    }
}

fn row_of(tx: &Transaction<'_>, id: &EventId) -> Result<Option<i64>, rusqlite::Error> {
    tx.prepare_cached("SELECT id FROM events WHERE event = ?1")?
        .query_row([id.as_bytes()], |row| row.get(0))
        .optional()
}

/// The receipt that keys guard anew, kept as long as they are
fn again(
    tx: &Transaction<'_>,
    entry: &Entry,
    events: &[EventId],
) -> Result<Option<i64>, rusqlite::Error> {
    let Some(first) = events.first() else {
        return Ok(None);
    };
    let receipt: Option<i64> = tx
        .prepare_cached("SELECT receipt FROM events WHERE event = ?1")?
        .query_row([first.as_bytes()], |row| row.get(0))
        .optional()?;
    tx.prepare_cached(
        "UPDATE receipts SET guarded_until = max(guarded_until, ?2), keys = CAST(keys || ?3 AS BLOB)
         WHERE id = ?1",
    )?
    .execute(params![receipt, entry.until, keys(entry)])?;
    Ok(receipt)
}

/// What one pruning step has done
pub(super) struct Pruned {
    /// Whether there may be more to remove
    pub(super) more: bool,
    /// Segments that nothing points at any more
    pub(super) emptied: Vec<u32>,
}

/// Removes one chunk of receipts from before `before` that guard nothing and owe nothing, and all that goes
/// with them
pub(super) fn prune(
    tx: &Transaction<'_>,
    now: Timestamp,
    before: Timestamp,
) -> Result<Pruned, rusqlite::Error> {
    let ended: Vec<(i64, u32, Vec<u8>)> = tx
        .prepare_cached(
            "SELECT r.id, r.segment, r.keys FROM receipts r
             WHERE r.received_at < ?1 AND r.guarded_until <= ?2
             AND NOT EXISTS (SELECT 1 FROM events e JOIN deliveries d ON d.event = e.id
                             WHERE e.receipt = r.id AND d.state = 0)
             LIMIT ?3",
        )?
        .query_map(
            params![before.unix_ms(), now.unix_ms(), CHUNK as i64],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?
        .collect::<Result<_, _>>()?;
    let mut fewer: BTreeMap<u32, i64> = BTreeMap::new();
    for (receipt, segment, keys) in &ended {
        for clear in [
            "DELETE FROM attempts WHERE delivery IN (SELECT d.id FROM deliveries d
             JOIN events e ON e.id = d.event WHERE e.receipt = ?1)",
            "DELETE FROM deliveries WHERE event IN (SELECT id FROM events WHERE receipt = ?1)",
            "DELETE FROM events WHERE receipt = ?1",
            "DELETE FROM receipts WHERE id = ?1",
        ] {
            tx.prepare_cached(clear)?.execute([receipt])?;
        }
        // A key may stand for a later receipt by now
        let mut forget = tx.prepare_cached("DELETE FROM replay WHERE key = ?1 AND receipt = ?2")?;
        for key in keys.as_chunks::<{ Key::LENGTH }>().0 {
            forget.execute(params![key, receipt])?;
        }
        *fewer.entry(*segment).or_default() += 1;
    }
    for (segment, count) in fewer {
        tx.prepare_cached("UPDATE segments SET live = live - ?2 WHERE id = ?1")?
            .execute(params![segment, count])?;
    }
    // The newest may be written to; every entry of one before it is in the index
    let emptied = tx
        .prepare_cached(
            "DELETE FROM segments WHERE live <= 0 AND id < (SELECT max(id) FROM segments)
             RETURNING id",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(Pruned {
        more: ended.len() == CHUNK,
        emptied,
    })
}
