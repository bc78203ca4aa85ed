//! The log: append-only segment files, written by one thread. An entry is a record, and so are the body
//! and the events that follow it; one `fdatasync` makes a whole group durable, and with that committed. What
//! stands past the last whole entry belongs to nobody, and is cut off when a store is opened.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use postern_contract::Sha256Hex;

use super::StoreFault;
use super::entry::Records;

/// A segment is closed before it would grow past this
const SEGMENT_BYTES: u64 = 64 << 20;
/// Length and check: the first bytes of the payload's SHA-256. No payload has a header of zeros, which is
/// what a crash may leave of a tail.
const HEADER: usize = 4 + CHECK;
const CHECK: usize = 8;

/// Where a record stands
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u32,
    /// Of the header, in bytes
    pub(super) offset: u64,
    /// Of the payload, in bytes
    pub(super) length: u32,
}

impl Place {
    /// Where the next record begins
    pub(super) fn end(&self) -> u64 {
        self.offset + (HEADER as u64) + u64::from(self.length)
    }
}

/// The segments of a store, written by one thread
pub(super) struct Segments {
    dir: PathBuf,
    current: Option<Open>,
    next: u32,
    /// Records of this group that are not in the file yet, which go to the end of the current segment
    waiting: Vec<u8>,
}

struct Open {
    segment: u32,
    file: File,
    /// Where the records of this group that are not in the file begin
    written: u64,
    /// Where the next record goes
    end: u64,
    /// The end of what is durable
    durable: u64,
}

pub(super) fn path(dir: &Path, segment: u32) -> PathBuf {
    dir.join(format!("{segment:08}.segment"))
}

pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn check_of(hash: &Sha256Hex) -> impl Iterator<Item = &u8> {
    hash.as_bytes().iter().take(CHECK)
}

impl Segments {
    /// Goes on in segment number `next`: nothing is appended to a file whose end a crash may have torn
    pub(super) fn new(dir: PathBuf, next: u32) -> Self {
        Self {
            dir,
            current: None,
            next,
            waiting: Vec::new(),
        }
    }

    /// Appends an entry and the payloads that follow it, each with its SHA-256, all to one segment. They
    /// count only after [`Self::write`] and [`Self::sync`].
    pub(super) fn append(
        &mut self,
        entry: &[u8],
        payloads: &[(&[u8], Sha256Hex)],
    ) -> io::Result<Records> {
        let size = |payload: &[u8]| (HEADER + payload.len()) as u64;
        let payloads_size: u64 = payloads.iter().map(|(payload, _)| size(payload)).sum();
        self.make_room(size(entry) + payloads_size)?;
        let entry = self.put(entry, &Sha256Hex::of(entry))?;
        let payloads = (payloads.iter())
            .map(|(payload, hash)| self.put(payload, hash))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Records {
            segment: entry.segment,
            end: payloads.last().unwrap_or(&entry).end(),
            payloads,
        })
    }

    fn put(&mut self, payload: &[u8], hash: &Sha256Hex) -> io::Result<Place> {
        let length = u32::try_from(payload.len()).map_err(|_| io::Error::other("over 4 GiB"))?;
        let Some(open) = &mut self.current else {
            return Err(io::Error::other("no segment is open"));
        };
        self.waiting.extend(length.to_le_bytes());
        self.waiting.extend(check_of(hash));
        self.waiting.extend_from_slice(payload);
        let place = Place {
            segment: open.segment,
            offset: open.end,
            length,
        };
        open.end = place.end();
        Ok(place)
    }

    /// Writes `bytes` zeros beside the segments and makes them durable, to see whether there is room
    pub(super) fn probe(&self, bytes: usize) -> io::Result<()> {
        let path = self.dir.join("probe");
        let tried = File::create(&path).and_then(|file| {
            file.write_all_at(&vec![0; bytes], 0)?;
            file.sync_all()
        });
        let removed = std::fs::remove_file(&path);
        tried.and(removed)
    }

    /// Goes to the next segment where the current one would grow too long
    fn make_room(&mut self, size: u64) -> io::Result<()> {
        let full = |open: &Open| open.end > 0 && open.end + size > SEGMENT_BYTES;
        if self.current.as_ref().is_some_and(full) {
            // Records of this group stay behind in it
            self.write()?;
            self.sync()?;
            self.current = None;
        }
        if self.current.is_none() {
            let segment = self.next;
            self.next += 1;
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path(&self.dir, segment))?;
            // The name must be as durable as what is written under it
            sync_dir(&self.dir)?;
            self.current = Some(Open {
                segment,
                file,
                written: 0,
                end: 0,
                durable: 0,
            });
        }
        Ok(())
    }

    /// Whether records wait to be written
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes what waits
    pub(super) fn write(&mut self) -> io::Result<()> {
        if let Some(open) = self.current.as_mut().filter(|_| !self.waiting.is_empty()) {
            let from = std::mem::replace(&mut open.written, open.end);
            // Whatever comes of it, something may stand there now
            open.file.write_all_at(&self.waiting, from)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Makes every record that was written durable
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(open) = self
            .current
            .as_mut()
            .filter(|open| open.written > open.durable)
        {
            open.file.sync_data()?;
            open.durable = open.written;
        }
        Ok(())
    }

    /// The group has failed. Where something of it was written, the segment is left alone, because nobody
    /// knows what of its tail is on the disk, and the tail is cut off, so that a full disk does not fill
    /// with failures. Where that fails too, the next opening may find an entry whole: it is committed then,
    /// though its sender was told to come again, and a copy that came meanwhile makes it a replay.
    pub(super) fn abandon(&mut self) {
        self.waiting.clear();
        let Some(open) = &mut self.current else {
            return;
        };
        open.end = open.durable;
        if open.written > open.durable
            && let Some(open) = self.current.take()
            && let Err(e) = trim(&self.dir, &open)
        {
            tracing::warn!(segment = open.segment, error = %e, "the tail of a segment stays");
        }
    }
}

fn trim(dir: &Path, open: &Open) -> io::Result<()> {
    match open.durable {
        0 => std::fs::remove_file(path(dir, open.segment)),
        end => open.file.set_len(end),
    }
}

/// Removes segments that nothing points at any more
pub(super) fn remove(dir: &Path, segments: &[u32]) -> io::Result<()> {
    (segments.iter()).try_for_each(|segment| std::fs::remove_file(path(dir, *segment)))
}

/// The segments that there are, in order
pub(super) fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number: Option<u32> =
            (name.to_str()).and_then(|name| name.strip_suffix(".segment")?.parse().ok());
        found.extend(number);
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads a record back, and checks it
pub(super) fn read(dir: &Path, place: Place) -> Result<Bytes, StoreFault> {
    let damaged = || StoreFault::Damaged {
        segment: place.segment,
        offset: place.offset,
    };
    let file = match File::open(path(dir, place.segment)) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(damaged()),
        Err(e) => return Err(StoreFault::Io("read a segment", e.to_string())),
    };
    let mut record = vec![0; HEADER + place.length as usize];
    match file.read_exact_at(&mut record, place.offset) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
        Err(e) => return Err(StoreFault::Io("read a segment", e.to_string())),
    }
    checked(record.into()).ok_or_else(damaged)
}

/// The payload of a record, where its header says the same
fn checked(mut record: Bytes) -> Option<Bytes> {
    let header = record.split_to(HEADER.min(record.len()));
    let length = u32::try_from(record.len()).ok()?.to_le_bytes();
    let hash = Sha256Hex::of(&record);
    let same = header.iter().eq(length.iter().chain(check_of(&hash)));
    same.then_some(record)
}

/// The whole record at `offset` of a segment of `length` bytes, where there is one
pub(super) fn record_at(
    file: &File,
    length: u64,
    segment: u32,
    offset: u64,
) -> io::Result<Option<(Place, Bytes)>> {
    let mut size = [0; 4];
    if offset.saturating_add(HEADER as u64) > length {
        return Ok(None);
    }
    file.read_exact_at(&mut size, offset)?;
    let place = Place {
        segment,
        offset,
        length: u32::from_le_bytes(size),
    };
    if place.end() > length {
        return Ok(None);
    }
    let mut record = vec![0; HEADER + place.length as usize];
    file.read_exact_at(&mut record, offset)?;
    Ok(checked(record.into()).map(|payload| (place, payload)))
}

#[cfg(test)]
mod tests;
