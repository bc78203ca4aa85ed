//! Append-only segment files for bodies and events, beside the index: one `fdatasync` carries a whole
//! group. A record is durable before the index row that points at it, so that what the index has is here.
//! What stands past the last record of the index belongs to nobody, and is cut off when a store is opened.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use postern_contract::Sha256Hex;

use super::StoreFault;
use super::keeper::Keeper;

/// A segment is closed before it would grow past this, and so long is one that is made beforehand
pub(super) const SEGMENT_BYTES: u64 = 32 << 20;
/// A spare is asked for once the current segment has grown past this
const ASK_SPARE: u64 = SEGMENT_BYTES / 2;
/// Length and check: the first bytes of the payload's SHA-256
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

/// How far a segment is in use
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Receipts whose records it holds
    pub(super) live: i64,
    /// The end of its last record
    pub(super) end: u64,
}

/// The segments of a store, written by one thread
pub(super) struct Segments {
    dir: PathBuf,
    current: Option<Open>,
    next: u32,
    keeper: Keeper,
    /// Whether the keeper makes a segment, or has made one
    asked: bool,
    /// Records of this group that are not in the file yet, which go to the end of the current segment
    waiting: Vec<u8>,
    /// What this group has added
    added: BTreeMap<u32, Extent>,
}

struct Open {
    segment: u32,
    file: File,
    /// Where the records of this group that are not in the file begin
    written: u64,
    /// Where the next record goes
    end: u64,
    /// The end of what the index has
    committed: u64,
    dirty: bool,
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
    /// Goes on behind the segments that the index knows (`extents`), and removes what it does not know.
    /// Nothing is appended to a file whose end a crash may have torn.
    pub(super) fn open(
        dir: PathBuf,
        extents: &BTreeMap<u32, Extent>,
        keeper: Keeper,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(&dir)?;
        for segment in numbers(&dir)? {
            let path = path(&dir, segment);
            match extents.get(&segment) {
                None => std::fs::remove_file(path)?,
                Some(extent) if std::fs::metadata(&path)?.len() > extent.end => {
                    let file = OpenOptions::new().write(true).open(path)?;
                    file.set_len(extent.end)?;
                }
                Some(_) => {}
            }
        }
        sync_dir(&dir)?;
        let last = extents.keys().next_back().copied().unwrap_or(0);
        Ok(Self {
            dir,
            current: None,
            next: last + 1,
            keeper,
            asked: false,
            waiting: Vec::new(),
            added: BTreeMap::new(),
        })
    }

    /// Appends the records of one receipt, all to one segment: a body with its SHA-256, then events. They
    /// count only after [`Self::write`] and [`Self::sync`].
    pub(super) fn append(
        &mut self,
        body: &Bytes,
        body_sha256: &Sha256Hex,
        events: &[&Bytes],
    ) -> io::Result<(Place, Vec<Place>)> {
        let size = |payload: &Bytes| (HEADER + payload.len()) as u64;
        let size = size(body) + events.iter().map(|event| size(event)).sum::<u64>();
        self.make_room(size)?;
        let body = self.put(body, body_sha256)?;
        let events = (events.iter())
            .map(|event| self.put(event, &Sha256Hex::of(event)))
            .collect::<io::Result<_>>()?;
        let extent = self.added.entry(body.segment).or_default();
        extent.live += 1;
        extent.end = self.current.as_ref().map_or(0, |open| open.end);
        Ok((body, events))
    }

    /// Appends zeros that nothing will point at, to see whether there is room
    pub(super) fn append_probe(&mut self, bytes: usize) -> io::Result<()> {
        let zeros = Bytes::from(vec![0; bytes]);
        self.make_room(zeros.len() as u64)?;
        self.put(&zeros, &Sha256Hex::of(&zeros)).map(drop)
    }

    fn put(&mut self, payload: &Bytes, hash: &Sha256Hex) -> io::Result<Place> {
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
        open.end += (HEADER + payload.len()) as u64;
        Ok(place)
    }

    /// Goes to the next segment where the current one would grow too long
    fn make_room(&mut self, size: u64) -> io::Result<()> {
        let full = |open: &Open| open.end > 0 && open.end + size > SEGMENT_BYTES;
        if self.current.as_ref().is_some_and(full) {
            // Records of this group stay behind in it
            self.write()?;
            self.sync()?;
            if let Some(open) = self.current.take() {
                open.file.set_len(open.end)?;
            }
        }
        if self.current.is_none() {
            let (segment, file) = match self.spare() {
                Some(spare) => spare,
                None => {
                    let segment = self.number();
                    let file = create(&self.dir, segment)?;
                    // The name must be as durable as what is written under it
                    sync_dir(&self.dir)?;
                    (segment, file)
                }
            };
            self.current = Some(Open {
                segment,
                file,
                written: 0,
                end: 0,
                committed: 0,
                dirty: false,
            });
        }
        let wants_spare = (self.current.as_ref()).is_some_and(|open| open.end > ASK_SPARE);
        if wants_spare && !self.asked {
            let segment = self.number();
            self.asked = self.keeper.make_spare(segment);
        }
        Ok(())
    }

    /// The segment that was made beforehand, where it is ready
    fn spare(&mut self) -> Option<(u32, File)> {
        let made = self.asked.then(|| self.keeper.made()).flatten()?;
        self.asked = false;
        made.file.map(|file| (made.segment, file))
    }

    fn number(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Whether records wait to be written
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Writes what waits
    pub(super) fn write(&mut self) -> io::Result<()> {
        if let Some(open) = self.current.as_mut().filter(|_| !self.waiting.is_empty()) {
            open.file.write_all_at(&self.waiting, open.written)?;
            open.written = open.end;
            open.dirty = true;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Makes every record that was written durable
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(open) = self.current.as_mut().filter(|open| open.dirty) {
            open.file.sync_data()?;
            open.dirty = false;
        }
        Ok(())
    }

    /// What this group has added to each segment
    pub(super) fn added(&self) -> &BTreeMap<u32, Extent> {
        &self.added
    }

    /// The index has committed this group
    pub(super) fn committed(&mut self) {
        let added = std::mem::take(&mut self.added);
        if let Some(open) = &mut self.current {
            let end = added.get(&open.segment).map(|extent| extent.end);
            open.committed = end.unwrap_or(open.committed);
        }
    }

    /// The group has failed: the current segment is left alone, because nobody knows what of its tail is on
    /// the disk. What the group wrote is cut off, so that a full disk does not fill with failures; but not
    /// where the index may have it after all (`may_count`).
    pub(super) fn abandon(&mut self, may_count: bool) {
        self.waiting.clear();
        self.added.clear();
        if let Some(open) = self.current.take().filter(|_| !may_count)
            && let Err(e) = trim(&self.dir, &open)
        {
            tracing::warn!(segment = open.segment, error = %e, "the tail of a segment stays");
        }
    }

    /// Removes closed segments that nothing points at any more
    pub(super) fn remove(&self, segments: &[u32]) -> io::Result<()> {
        let current = self.current.as_ref().map(|open| open.segment);
        for segment in segments.iter().filter(|one| Some(**one) != current) {
            std::fs::remove_file(path(&self.dir, *segment))?;
        }
        Ok(())
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        // What was made beforehand is given back; opening would do the same
        if let Some(open) = &self.current {
            let _ = trim(&self.dir, open);
        }
    }
}

fn trim(dir: &Path, open: &Open) -> io::Result<()> {
    match open.committed {
        0 => std::fs::remove_file(path(dir, open.segment)),
        end => open.file.set_len(end),
    }
}

pub(super) fn create(dir: &Path, segment: u32) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path(dir, segment))
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
    let mut payload = Bytes::from(record);
    let header = payload.split_to(HEADER);
    let hash = Sha256Hex::of(&payload);
    let wanted = place.length.to_le_bytes();
    if header.iter().eq(wanted.iter().chain(check_of(&hash))) {
        Ok(payload)
    } else {
        Err(damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &Path, extents: &BTreeMap<u32, Extent>) -> Segments {
        let (keeper, _) = Keeper::new();
        Segments::open(dir.to_owned(), extents, keeper).unwrap()
    }

    fn put(segments: &mut Segments, body: &'static str) -> (Place, Vec<Place>) {
        let body = Bytes::from_static(body.as_bytes());
        let (one, two) = (Bytes::from_static(b"{}"), Bytes::from_static(b"[]"));
        segments
            .append(&body, &Sha256Hex::of(&body), &[&one, &two])
            .unwrap()
    }

    fn durable(segments: &mut Segments) {
        segments.write().unwrap();
        segments.sync().unwrap();
        segments.committed();
    }

    #[test]
    fn records_come_back_and_damage_shows() {
        let dir = tempfile::tempdir().unwrap();
        let mut segments = open(dir.path(), &BTreeMap::new());
        let (first, _) = put(&mut segments, "one");
        let (second, events) = put(&mut segments, "");
        durable(&mut segments);
        assert_eq!(read(dir.path(), first).unwrap(), "one");
        assert_eq!(read(dir.path(), second).unwrap(), "");
        assert_eq!(read(dir.path(), events[1]).unwrap(), "[]");
        let file = path(dir.path(), first.segment);
        let bytes = std::fs::read(&file).unwrap();
        // Any changed bit of the record, header or payload
        for at in 0..HEADER + 3 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            std::fs::write(&file, &changed).unwrap();
            let read = read(dir.path(), first);
            assert!(matches!(read, Err(StoreFault::Damaged { .. })), "{at}");
        }
        std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        let torn = read(dir.path(), events[1]);
        assert!(matches!(torn, Err(StoreFault::Damaged { .. })));
    }

    #[test]
    fn a_segment_that_a_crash_may_have_torn_is_cut_and_not_appended_to() {
        let dir = tempfile::tempdir().unwrap();
        let mut segments = open(dir.path(), &BTreeMap::new());
        let (place, _) = put(&mut segments, "x");
        let extents = segments.added().clone();
        durable(&mut segments);
        put(&mut segments, "not committed");
        segments.write().unwrap();
        std::mem::forget(segments);
        let file = path(dir.path(), place.segment);
        let end = extents[&place.segment].end;
        assert!(std::fs::metadata(&file).unwrap().len() > end);
        std::fs::write(path(dir.path(), 9), "nobody's").unwrap();
        let mut segments = open(dir.path(), &extents);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), end);
        assert_eq!(read(dir.path(), place).unwrap(), "x");
        assert_eq!(numbers(dir.path()).unwrap(), [place.segment]);
        assert_eq!(put(&mut segments, "y").0.segment, place.segment + 1);
    }

    #[test]
    fn a_group_that_fails_leaves_what_was_committed_and_no_file_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut segments = open(dir.path(), &BTreeMap::new());
        put(&mut segments, "lost");
        segments.write().unwrap();
        segments.abandon(false);
        assert_eq!(numbers(dir.path()).unwrap(), [0_u32; 0]);
        let (kept, _) = put(&mut segments, "kept");
        durable(&mut segments);
        put(&mut segments, "lost");
        segments.write().unwrap();
        segments.abandon(false);
        assert_eq!(read(dir.path(), kept).unwrap(), "kept");
        assert_ne!(put(&mut segments, "next").0.segment, kept.segment);
        assert_eq!(read(dir.path(), kept).unwrap(), "kept");
    }

    #[test]
    fn a_segment_made_beforehand_is_used_when_the_current_one_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let (keeper, work) = Keeper::new();
        let mut segments = Segments::open(dir.path().to_owned(), &BTreeMap::new(), keeper).unwrap();
        let big = Bytes::from(vec![b'x'; (SEGMENT_BYTES / 4) as usize]);
        let hash = Sha256Hex::of(&big);
        let mut put = || segments.append(&big, &hash, &[]).unwrap().0;
        for _ in 0..3 {
            assert_eq!(put().segment, 1);
        }
        assert_eq!(work.serve_spares(dir.path()), [2]);
        let made = std::fs::metadata(path(dir.path(), 2)).unwrap().len();
        assert_eq!(made, SEGMENT_BYTES);
        let next = put();
        assert_eq!((next.segment, next.offset), (2, 0));
        durable(&mut segments);
        assert_eq!(read(dir.path(), next).unwrap(), big);
        drop(segments);
        // What was made beforehand and not used is given back
        let end = std::fs::metadata(path(dir.path(), 2)).unwrap().len();
        assert_eq!(end, SEGMENT_BYTES / 4 + HEADER as u64);
    }
}
