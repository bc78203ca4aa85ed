//! Append-only segment files for bodies and events, beside the index: one `fdatasync` carries a whole
//! group. A record is written before the index row that points at it, so that what the index has is here.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::StoreFault;

/// A segment is closed when it has grown past this
const MAX_SEGMENT_BYTES: u64 = 64 << 20;
/// Length and checksum
const HEADER: usize = 4 + CHECK;
const CHECK: usize = 8;

/// Where a record stands
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u32,
    pub(super) offset: u64,
}

/// What one commit keeps: the body, then the events
pub(super) struct Record {
    pub(super) body: Bytes,
    pub(super) events: Vec<Bytes>,
}

/// The segments of a store, written by one thread
pub(super) struct Segments {
    dir: PathBuf,
    current: Option<Open>,
    next: u32,
}

struct Open {
    segment: u32,
    file: File,
    /// Where the next record goes; what stands past it belongs to nobody
    end: u64,
    dirty: bool,
}

fn path(dir: &Path, segment: u32) -> PathBuf {
    dir.join(format!("{segment:08}.segment"))
}

fn checksum(payload: &[u8]) -> [u8; CHECK] {
    let whole: [u8; 32] = Sha256::digest(payload).into();
    let mut check = [0; CHECK];
    check
        .iter_mut()
        .zip(whole)
        .for_each(|(to, from)| *to = from);
    check
}

fn length(bytes: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::Error::other("more than 4 GiB"))?;
    Ok(length.to_le_bytes())
}

impl Segments {
    /// Starts a new segment after every one that is there: nothing is appended to a file whose end a
    /// crash may have torn
    pub(super) fn open(dir: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&dir)?;
        let last = numbers(&dir)?.into_iter().max().unwrap_or(0);
        Ok(Self {
            dir,
            current: None,
            next: last + 1,
        })
    }

    /// Appends a record, which counts only after [`Self::sync`]
    pub(super) fn append(&mut self, record: &Record) -> io::Result<Place> {
        let mut bytes = vec![0; HEADER];
        bytes.reserve(record.body.len() + 64);
        bytes.extend(length(&record.body)?);
        bytes.extend_from_slice(&record.body);
        for event in &record.events {
            bytes.extend(length(event)?);
            bytes.extend_from_slice(event);
        }
        let (header, payload) = bytes.split_at_mut_checked(HEADER).unwrap_or_default();
        let check = checksum(payload);
        let head = length(payload)?.into_iter().chain(check);
        header
            .iter_mut()
            .zip(head)
            .for_each(|(to, from)| *to = from);
        if self
            .current
            .as_ref()
            .is_some_and(|open| open.end >= MAX_SEGMENT_BYTES)
        {
            self.sync()?;
            self.current = None;
        }
        let open = match &mut self.current {
            Some(open) => open,
            None => self.current.insert(start(&self.dir, &mut self.next)?),
        };
        open.file.write_all_at(&bytes, open.end)?;
        open.dirty = true;
        let place = Place {
            segment: open.segment,
            offset: open.end,
        };
        open.end += bytes.len() as u64;
        Ok(place)
    }

    /// Makes every record so far durable
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(open) = self.current.as_mut().filter(|open| open.dirty) {
            open.file.sync_data()?;
            open.dirty = false;
        }
        Ok(())
    }

    /// Leaves the current segment alone: after an error nobody knows what of it is on the disk
    pub(super) fn abandon(&mut self) {
        self.current = None;
    }

    /// Removes every closed segment that `keep` does not name
    pub(super) fn remove_all_but(&self, keep: &[u32]) -> io::Result<()> {
        let current = self.current.as_ref().map(|open| open.segment);
        for segment in numbers(&self.dir)? {
            if Some(segment) != current && !keep.contains(&segment) {
                std::fs::remove_file(path(&self.dir, segment))?;
            }
        }
        Ok(())
    }
}

fn start(dir: &Path, next: &mut u32) -> io::Result<Open> {
    let segment = *next;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path(dir, segment))?;
    // The name must be as durable as what is written under it
    File::open(dir)?.sync_all()?;
    *next += 1;
    Ok(Open {
        segment,
        file,
        end: 0,
        dirty: false,
    })
}

fn numbers(dir: &Path) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number: Option<u32> =
            (name.to_str()).and_then(|name| name.strip_suffix(".segment")?.parse().ok());
        found.extend(number);
    }
    Ok(found)
}

/// Reads a record back, and checks it
pub(super) fn read(dir: &Path, place: Place) -> Result<Record, StoreFault> {
    let damaged = || StoreFault::Damaged {
        segment: place.segment,
        offset: place.offset,
    };
    let io = |e: io::Error| StoreFault::Io("read a segment", e.to_string());
    let file = File::open(path(dir, place.segment)).map_err(io)?;
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, place.offset)
        .map_err(|_| damaged())?;
    let (size, check) = header.split_at_checked(4).ok_or_else(damaged)?;
    let size = u32::from_le_bytes(size.try_into().map_err(|_| damaged())?) as usize;
    let end = place.offset + (HEADER + size) as u64;
    if end > file.metadata().map_err(io)?.len() {
        return Err(damaged());
    }
    let mut payload = vec![0; size];
    file.read_exact_at(&mut payload, place.offset + HEADER as u64)
        .map_err(|_| damaged())?;
    if checksum(&payload) != check {
        return Err(damaged());
    }
    let mut rest = Bytes::from(payload);
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let size = rest.get(..4).and_then(|s| <[u8; 4]>::try_from(s).ok());
        let size = u32::from_le_bytes(size.ok_or_else(damaged)?) as usize;
        if rest.len() < 4 + size {
            return Err(damaged());
        }
        let mut part = rest.split_to(4 + size);
        parts.push(part.split_off(4));
    }
    let mut parts = parts.into_iter();
    Ok(Record {
        body: parts.next().ok_or_else(damaged)?,
        events: parts.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(body: &'static str) -> Record {
        Record {
            body: Bytes::from_static(body.as_bytes()),
            events: vec![Bytes::from_static(b"{}"), Bytes::from_static(b"[]")],
        }
    }

    #[test]
    fn records_come_back_and_damage_shows() {
        let dir = tempfile::tempdir().unwrap();
        let mut segments = Segments::open(dir.path().to_owned()).unwrap();
        let first = segments.append(&record("one")).unwrap();
        let second = segments.append(&record("")).unwrap();
        segments.sync().unwrap();
        assert_eq!(read(dir.path(), first).unwrap().body, "one");
        let back = read(dir.path(), second).unwrap();
        assert_eq!((back.body.len(), back.events.len()), (0, 2));
        let file = path(dir.path(), first.segment);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[HEADER + 4] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert!(matches!(
            read(dir.path(), first),
            Err(StoreFault::Damaged { .. })
        ));
        std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        assert!(matches!(
            read(dir.path(), second),
            Err(StoreFault::Damaged { .. })
        ));
    }

    #[test]
    fn a_segment_that_a_crash_may_have_torn_is_not_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let place = |segments: &mut Segments| segments.append(&record("x")).unwrap().segment;
        let mut segments = Segments::open(dir.path().to_owned()).unwrap();
        assert_eq!(place(&mut segments), 1);
        let mut segments = Segments::open(dir.path().to_owned()).unwrap();
        assert_eq!(place(&mut segments), 2);
        segments.abandon();
        assert_eq!(place(&mut segments), 3);
    }
}
