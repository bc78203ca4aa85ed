//! What opening a store finds: entries that are in the log and not in the index are put there, in the
//! order of the log, and what a crash has torn is cut off.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::entry::{Entry, Records};
use super::guard::Guard;
use super::index::{self, Extents, fault};
use super::pending::Pending;
use super::{StoreFault, receipts, segments};

/// Makes the index whole; the number of the next segment
pub(super) fn recover(connection: &mut Connection, dir: &Path) -> Result<u32, StoreFault> {
    let io = |what| move |e: io::Error| StoreFault::Io(what, e.to_string());
    std::fs::create_dir_all(dir).map_err(io("make its directory"))?;
    let known = index::extents(connection).map_err(fault("read its index"))?;
    let mut last = known.keys().next_back().copied().unwrap_or(0);
    for segment in segments::numbers(dir).map_err(io("open its segments"))? {
        let path = segments::path(dir, segment);
        let from = known.get(&segment).map_or(0, |extent| extent.end);
        let whole = index_from(connection, &path, segment, from)?;
        if whole == 0 {
            std::fs::remove_file(path).map_err(io("open its segments"))?;
        } else {
            cut(&path, whole).map_err(io("cut a segment"))?;
            last = last.max(segment);
        }
    }
    segments::sync_dir(dir).map_err(io("open its segments"))?;
    Ok(last + 1)
}

/// Puts the whole entries of a segment from `offset` on into the index; the end of the last
fn index_from(
    connection: &mut Connection,
    path: &Path,
    segment: u32,
    offset: u64,
) -> Result<u64, StoreFault> {
    let read = |e: io::Error| StoreFault::Io("read a segment", e.to_string());
    let file = File::open(path).map_err(read)?;
    let length = file.metadata().map_err(read)?.len();
    let (mut whole, mut count) = (offset, 0_u64);
    let tx = connection
        .transaction()
        .map_err(fault("begin a transaction"))?;
    let mut extents = Extents::new();
    while let Some((entry, at)) = entry_at(&file, length, segment, whole).map_err(read)? {
        whole = at.end;
        // A copy may have been committed after this one had failed
        let pending = &Pending::default();
        let guard = Guard {
            pending,
            index: &tx,
        };
        let known = guard.known(&entry.keys, entry.received_at);
        if known.map_err(fault("read its index"))?.is_some() {
            index::pass(&mut extents, &at);
            continue;
        }
        receipts::apply(&tx, &entry, &at).map_err(fault("write its index"))?;
        index::count(&mut extents, &entry, &at);
        count += 1;
    }
    index::extend(&tx, &extents).map_err(fault("write its index"))?;
    tx.commit().map_err(fault("commit"))?;
    if count > 0 {
        tracing::info!(segment, count, "commits of the log were indexed");
    }
    Ok(whole)
}

/// The whole entry at `offset`, with everything that follows it
fn entry_at(
    file: &File,
    length: u64,
    segment: u32,
    offset: u64,
) -> io::Result<Option<(Entry, Records)>> {
    let Some((place, payload)) = segments::record_at(file, length, segment, offset)? else {
        return Ok(None);
    };
    let Ok(entry) = serde_json::from_slice::<Entry>(&payload) else {
        return Ok(None);
    };
    let (mut end, mut payloads) = (place.end(), Vec::new());
    for _ in 0..entry.payloads() {
        let Some((place, _)) = segments::record_at(file, length, segment, end)? else {
            return Ok(None);
        };
        end = place.end();
        payloads.push(place);
    }
    let at = Records {
        segment,
        end,
        payloads,
    };
    Ok(Some((entry, at)))
}

/// The end of the last whole entry that the index does not have, with its segment
pub(super) fn unindexed(
    connection: &Connection,
    dir: &Path,
) -> Result<Option<(u32, u64)>, StoreFault> {
    let io = |e: io::Error| StoreFault::Io("read a segment", e.to_string());
    let known = index::extents(connection).map_err(fault("read its index"))?;
    for segment in segments::numbers(dir).map_err(io)?.into_iter().rev() {
        let from = known.get(&segment).map_or(0, |extent| extent.end);
        let file = File::open(segments::path(dir, segment)).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut end = from;
        while let Some((_, at)) = entry_at(&file, length, segment, end).map_err(io)? {
            end = at.end;
        }
        if end > from {
            return Ok(Some((segment, end)));
        }
        if known.contains_key(&segment) {
            break;
        }
    }
    Ok(None)
}

/// Cuts off what a crash has torn: nobody was told of it
fn cut(path: &Path, end: u64) -> io::Result<()> {
    if std::fs::metadata(path)?.len() > end {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(())
}
