//! What is owed: deliveries that are queued, leased while they are attempted, and settled. Each keeps the
//! subscription's digest that it was matched under.

use postern_contract::{Digest, Name, Sha256Hex, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::entry::EntryOwed;
use super::index::{DEAD, DELIVERED, QUEUED};
use super::segments::Place;
use super::{Claimed, DeliveryId, Settled, SettledAs};

/// Attempts that are kept of each delivery
const KEPT_ATTEMPTS: i64 = 20;
/// The most characters of an attempt's detail that are kept
const KEPT_DETAIL: usize = 1_000;

/// Queues a delivery, unless it is there. `due` is Unix milliseconds.
pub(super) fn owe(
    tx: &Transaction<'_>,
    event: i64,
    source: &Name,
    owed: &EntryOwed,
    due: i64,
) -> Result<(), rusqlite::Error> {
    tx.prepare_cached(
        "INSERT INTO deliveries (delivery, event, source, subscription, destination, state, due, leased, attempts)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, 0, 0) ON CONFLICT (delivery) DO NOTHING",
    )?
    .execute(params![
        owed.id.as_bytes(),
        event,
        // Two sources may bring one event: each is owed under the admissions of its own
        source.as_str(),
        owed.subscription.as_bytes(),
        owed.destination.as_str(),
        due,
    ])
    .map(drop)
}

/// A claimed delivery before its event is read from the segments
pub(super) struct Due {
    pub(super) place: Place,
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
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = tx
        .prepare_cached(
            "SELECT d.id, d.delivery, d.subscription, d.attempts, e.event, e.trigger_digest, e.offset,
                    e.length, d.source, r.segment
             FROM deliveries d JOIN events e ON e.id = d.event JOIN receipts r ON r.id = e.receipt
             WHERE d.destination = ?1 AND d.state = 0 AND d.due <= ?2 ORDER BY d.due, d.id LIMIT ?3",
        )?
        .query_map(params![destination.as_str(), now.unix_ms(), limit], |row| {
            let source: String = row.get(8)?;
            let due = Due {
                place: Place {
                    segment: row.get(9)?,
                    offset: row.get::<_, i64>(6)? as u64,
                    length: row.get(7)?,
                },
                claimed: Claimed {
                    id: DeliveryId::from_bytes(row.get(1)?),
                    event: Sha256Hex::from_bytes(row.get(4)?),
                    document: bytes::Bytes::new(),
                    source: source.parse().map_err(|_| rusqlite::Error::InvalidQuery)?,
                    subscription: Digest::from_bytes(row.get(2)?),
                    trigger: Digest::from_bytes(row.get(5)?),
                    attempts: row.get(3)?,
                },
            };
            Ok((row.get(0)?, due))
        })?
        .collect::<Result<Vec<(i64, Due)>, _>>()?;
    let mut lease =
        tx.prepare_cached("UPDATE deliveries SET due = ?2, leased = 1 WHERE id = ?1")?;
    for (id, _) in &found {
        lease.execute(params![id, lease_until.unix_ms()])?;
    }
    Ok(found.into_iter().map(|(_, due)| due).collect())
}

/// Records an attempt and the delivery's new state. One that is not queued any more stays so.
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
        settled.detail.chars().take(KEPT_DETAIL).collect::<String>(),
    ])?;
    tx.prepare_cached(
        "DELETE FROM attempts WHERE delivery = ?1 AND id <=
         (SELECT id FROM attempts WHERE delivery = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?
    .execute(params![id, KEPT_ATTEMPTS])?;
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
    ])
    .map(drop)
}

/// Ends what is owed under a subscription
pub(super) fn kill(
    tx: &Transaction<'_>,
    subscription: &Digest,
    reason: &str,
    now: Timestamp,
) -> Result<u64, rusqlite::Error> {
    let killed = tx.execute(
        "UPDATE deliveries SET state = ?3, leased = 0, settled_at = ?4, reason = ?2
         WHERE state = 0 AND subscription = ?1",
        params![subscription.as_bytes(), reason, DEAD, now.unix_ms()],
    )?;
    Ok(killed as u64)
}

/// Queues again what has ended
pub(super) fn requeue(
    tx: &Transaction<'_>,
    deliveries: &[DeliveryId],
    now: Timestamp,
) -> Result<u64, rusqlite::Error> {
    let mut requeue = tx.prepare_cached(
        "UPDATE deliveries SET state = 0, due = ?2, leased = 0, settled_at = NULL, reason = NULL
         WHERE delivery = ?1 AND state <> 0",
    )?;
    let mut count = 0;
    for delivery in deliveries {
        count += requeue.execute(params![delivery.as_bytes(), now.unix_ms()])?;
    }
    Ok(count as u64)
}

/// When the next delivery is due, leases included
pub(super) fn next_due(
    tx: &Transaction<'_>,
    destination: &Name,
) -> Result<Option<Timestamp>, rusqlite::Error> {
    let due: Option<i64> = tx
        .prepare_cached("SELECT min(due) FROM deliveries WHERE destination = ?1 AND state = 0")?
        .query_row([destination.as_str()], |row| row.get(0))?;
    Ok(due.and_then(|ms| Timestamp::from_unix_ms(ms).ok()))
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
