//! What a commit keeps, in the group's transaction: the receipt of a delivery with its replay keys and its
//! events, which go together, and the replay check that decides whether there is anything new.

use std::collections::BTreeMap;

use postern_contract::{EventId, Name, Sha256Hex, Timestamp};
use postern_profiles::ReplayKey;
use rusqlite::{OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};

use super::outbox::owe;
use super::segments::{Place, Segments};
use super::{Commit, Committed, StoreFault, index};

/// Rows that one pruning step removes, so that commits are not held up
const CHUNK: usize = 2_000;
/// Replay keys are kept longer by as much as the clock stands behind the newest receipt, up to this: a
/// clock that went back must not shorten a window, nor one that was far ahead keep keys for ever
const MOST_BEHIND_MS: i64 = 30 * 24 * 3_600 * 1_000;

/// Replay keys are kept a source: the name counts, with its length
fn keyed(source: &Name, key: &ReplayKey) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((source.as_str().len() as u64).to_be_bytes());
    hash.update(source.as_str().as_bytes());
    hash.update(key.as_bytes());
    hash.finalize().into()
}

/// Commits, or finds that nothing is new: a known replay key, or events that are all there under a key that
/// has ended. `latest` is the newest time of receipt so far.
pub(super) fn commit(
    tx: &Transaction<'_>,
    segments: &mut Segments,
    latest: &mut i64,
    commit: &Commit,
) -> Result<Committed, StoreFault> {
    let read = index::fault("read its index");
    let write = index::fault("write its index");
    if let Some(events) = known(tx, commit).map_err(&read)? {
        return Ok(Committed::Replay { events });
    }
    *latest = (*latest).max(commit.received_at.unix_ms());
    let behind = (*latest - commit.received_at.unix_ms()).min(MOST_BEHIND_MS);
    let until = commit.window_until.unix_ms().saturating_add(behind);
    let ids: Vec<EventId> = commit.events.iter().map(|event| event.id).collect();
    let there = (ids.iter())
        .map(|id| present(tx, *id))
        .collect::<Result<Vec<_>, _>>()
        .map_err(&read)?;
    if let Some(receipt) = nothing_new(tx, commit, &there).map_err(&read)? {
        remember(tx, commit, until, receipt).map_err(&write)?;
        return Ok(Committed::Replay { events: ids });
    }
    let new = || (commit.events.iter().zip(&there)).filter(|(_, there)| there.is_none());
    let documents: Vec<_> = new().map(|(event, _)| &event.document).collect();
    let (body, places) = segments
        .append(&commit.body, &commit.body_sha256, &documents)
        .map_err(|e| StoreFault::Io("append to a segment", e.to_string()))?;
    let receipt = insert_receipt(tx, commit, body, until).map_err(&write)?;
    for ((event, _), place) in new().zip(places) {
        insert_event(tx, receipt, event, place).map_err(&write)?;
    }
    for event in &commit.events {
        let Some(there) = present(tx, event.id).map_err(&read)? else {
            continue;
        };
        for owed in &event.owed {
            owe(tx, there.row, &commit.source, owed, commit.received_at).map_err(&write)?;
        }
    }
    remember(tx, commit, until, receipt).map_err(write)?;
    Ok(Committed::Fresh { events: ids })
}

/// The events of an earlier copy
fn known(tx: &Transaction<'_>, commit: &Commit) -> Result<Option<Vec<EventId>>, rusqlite::Error> {
    let mut find = tx.prepare_cached(
        "SELECT r.events FROM replay k JOIN receipts r ON r.id = k.receipt WHERE k.key = ?1 AND k.until > ?2",
    )?;
    for key in &commit.replay_keys {
        let key = keyed(&commit.source, key);
        let now = commit.received_at.unix_ms();
        let events: Option<Vec<u8>> =
            (find.query_row(params![key, now], |row| row.get(0))).optional()?;
        if let Some(events) = events {
            let (ids, _) = events.as_chunks::<32>();
            return Ok(Some(
                ids.iter().copied().map(Sha256Hex::from_bytes).collect(),
            ));
        }
    }
    Ok(None)
}

/// An event that is there already
struct Present {
    row: i64,
    receipt: i64,
}

fn present(tx: &Transaction<'_>, id: EventId) -> Result<Option<Present>, rusqlite::Error> {
    tx.prepare_cached("SELECT id, receipt FROM events WHERE event = ?1")?
        .query_row([id.as_bytes()], |row| {
            Ok(Present {
                row: row.get(0)?,
                receipt: row.get(1)?,
            })
        })
        .optional()
}

/// The receipt of the first event, where all events are there and owe all that they should
fn nothing_new(
    tx: &Transaction<'_>,
    commit: &Commit,
    there: &[Option<Present>],
) -> Result<Option<i64>, rusqlite::Error> {
    if there.iter().any(Option::is_none) {
        return Ok(None);
    }
    let mut find = tx.prepare_cached("SELECT 1 FROM deliveries WHERE delivery = ?1")?;
    for owed in commit.events.iter().flat_map(|event| &event.owed) {
        if !find.exists([owed.id.as_bytes()])? {
            return Ok(None);
        }
    }
    Ok(there.iter().flatten().map(|event| event.receipt).next())
}

fn insert_receipt(
    tx: &Transaction<'_>,
    commit: &Commit,
    place: Place,
    until: i64,
) -> Result<i64, rusqlite::Error> {
    let events: Vec<u8> = (commit.events.iter())
        .flat_map(|event| *event.id.as_bytes())
        .collect();
    tx.prepare_cached(
        "INSERT INTO receipts (source, received_at, delivery, body_sha256, segment, offset, length,
                               guarded_until, events)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        commit.source.as_str(),
        commit.received_at.unix_ms(),
        commit.delivery,
        commit.body_sha256.as_bytes(),
        place.segment,
        place.offset as i64,
        place.length,
        until,
        events,
    ])?;
    Ok(tx.last_insert_rowid())
}

fn insert_event(
    tx: &Transaction<'_>,
    receipt: i64,
    event: &super::NewEvent,
    place: Place,
) -> Result<(), rusqlite::Error> {
    tx.prepare_cached(
        "INSERT INTO events (event, receipt, offset, length, trigger_digest) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (event) DO NOTHING",
    )?
    .execute(params![
        event.id.as_bytes(),
        receipt,
        place.offset as i64,
        place.length,
        event.trigger_digest.as_bytes(),
    ])
    .map(drop)
}

/// Points the delivery's replay keys at a receipt, which is kept as long as they are
fn remember(
    tx: &Transaction<'_>,
    commit: &Commit,
    until: i64,
    receipt: i64,
) -> Result<(), rusqlite::Error> {
    let mut remember = tx.prepare_cached(
        "INSERT INTO replay (key, until, receipt) VALUES (?1, ?2, ?3)
         ON CONFLICT (key) DO UPDATE SET until = excluded.until, receipt = excluded.receipt",
    )?;
    for key in &commit.replay_keys {
        remember.execute(params![keyed(&commit.source, key), until, receipt])?;
    }
    tx.prepare_cached(
        "UPDATE receipts SET guarded_until = ?2 WHERE id = ?1 AND guarded_until < ?2",
    )?
    .execute(params![receipt, until])?;
    Ok(())
}

/// What one pruning step has done
pub(super) struct Pruned {
    /// Whether there may be more to remove
    pub(super) more: bool,
    /// Segments that nothing points at any more
    pub(super) emptied: Vec<u32>,
}

/// Removes one chunk of replay keys that have ended, and of receipts from before `before` that guard
/// nothing and owe nothing
pub(super) fn prune(
    tx: &Transaction<'_>,
    now: Timestamp,
    before: Timestamp,
) -> Result<Pruned, rusqlite::Error> {
    let keys = tx.execute(
        "DELETE FROM replay WHERE id IN (SELECT id FROM replay WHERE until <= ?1 LIMIT ?2)",
        params![now.unix_ms(), CHUNK as i64],
    )?;
    let ended: Vec<(i64, u32)> = tx
        .prepare_cached(
            "SELECT r.id, r.segment FROM receipts r WHERE r.received_at < ?1 AND r.guarded_until <= ?2
             AND NOT EXISTS (SELECT 1 FROM events e JOIN deliveries d ON d.event = e.id
                             WHERE e.receipt = r.id AND d.state = 0)
             LIMIT ?3",
        )?
        .query_map(
            params![before.unix_ms(), now.unix_ms(), CHUNK as i64],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect::<Result<_, _>>()?;
    let mut fewer: BTreeMap<u32, i64> = BTreeMap::new();
    for (receipt, segment) in &ended {
        for clear in [
            "DELETE FROM attempts WHERE delivery IN (SELECT d.id FROM deliveries d
             JOIN events e ON e.id = d.event WHERE e.receipt = ?1)",
            "DELETE FROM deliveries WHERE event IN (SELECT id FROM events WHERE receipt = ?1)",
            "DELETE FROM events WHERE receipt = ?1",
            "DELETE FROM receipts WHERE id = ?1",
        ] {
            tx.prepare_cached(clear)?.execute([receipt])?;
        }
        *fewer.entry(*segment).or_default() += 1;
    }
    let mut emptied = Vec::new();
    for (segment, count) in fewer {
        tx.prepare_cached("UPDATE segments SET live = live - ?2 WHERE id = ?1")?
            .execute(params![segment, count])?;
        let gone = tx
            .prepare_cached("DELETE FROM segments WHERE id = ?1 AND live <= 0")?
            .execute([segment])?;
        if gone == 1 {
            emptied.push(segment);
        }
    }
    Ok(Pruned {
        more: keys == CHUNK || ended.len() == CHUNK,
        emptied,
    })
}
