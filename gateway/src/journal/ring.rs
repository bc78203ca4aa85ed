//! A bounded ring of append-only files: the oldest goes when a new one begins. Nothing is synced; what a
//! crash has torn is cut off when the ring is opened again.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::FILES;

/// Records are written together once they are this many bytes
const TOGETHER: usize = 64 << 10;

/// One ring, written by one thread
pub(super) struct Ring {
    dir: PathBuf,
    kind: Kind,
    max_file_bytes: u64,
    number: u64,
    file: Option<File>,
    /// The end of what is whole in the file
    end: u64,
    waiting: Vec<u8>,
    records: u64,
}

/// What the files of a ring are called, and how much of one is whole
#[derive(Clone, Copy)]
pub(super) struct Kind {
    stem: &'static str,
    extension: &'static str,
    whole: fn(&[u8]) -> usize,
}

/// Lines of text
pub(super) const LINES: Kind = Kind {
    stem: "events",
    extension: "jsonl",
    whole: |file| file.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1),
};

/// Bodies as [`record`] writes them
pub(super) const BODIES: Kind = Kind {
    stem: "bodies",
    extension: "ring",
    whole: |file| {
        records(file)
            .map(|(id, body)| 8 + id.len() + body.len())
            .sum()
    },
};

/// Records that are not in the ring, and why
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) records: u64,
    pub(super) why: io::Error,
}

impl Ring {
    /// Goes on at the end of what is whole
    pub(super) fn open(dir: &Path, kind: Kind, max_bytes: u64) -> io::Result<Self> {
        let mut ring = Self {
            dir: dir.to_owned(),
            kind,
            max_file_bytes: (max_bytes / FILES).max(1),
            number: numbers(dir, kind)?.into_iter().max().unwrap_or(0),
            file: None,
            end: 0,
            waiting: Vec::new(),
            records: 0,
        };
        if ring.number > 0 {
            let path = path_of(dir, kind, ring.number);
            ring.end = (kind.whole)(&std::fs::read(&path)?) as u64;
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(ring.end)?;
            ring.file = Some(file);
        }
        Ok(ring)
    }

    /// Takes a record, and writes all that wait where that is worth it; how many it has written
    pub(super) fn write(&mut self, record: &[u8]) -> Result<u64, Lost> {
        self.waiting.extend_from_slice(record);
        self.records += 1;
        let file_is_full = self.end + self.waiting.len() as u64 >= self.max_file_bytes;
        if file_is_full || self.waiting.len() >= TOGETHER {
            return self.flush();
        }
        Ok(0)
    }

    /// Makes every record readable, or gives up those that wait: they are not tried again
    pub(super) fn flush(&mut self) -> Result<u64, Lost> {
        let written = self.try_flush();
        let records = std::mem::take(&mut self.records);
        self.waiting.clear();
        match written {
            Ok(()) => Ok(records),
            Err(why) => Err(Lost { records, why }),
        }
    }

    fn try_flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if self.end >= self.max_file_bytes {
            self.file = None;
        }
        let file = match &self.file {
            Some(file) => file,
            None => {
                let file = self.next()?;
                self.file.insert(file)
            }
        };
        if let Err(e) = file.write_all_at(&self.waiting, self.end) {
            // Half a record is none
            let _ = file.set_len(self.end);
            return Err(e);
        }
        self.end += self.waiting.len() as u64;
        Ok(())
    }

    fn next(&mut self) -> io::Result<File> {
        let number = self.number + 1;
        let path = path_of(&self.dir, self.kind, number);
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        self.number = number;
        self.end = 0;
        // Only now, so that a disk that takes no new file keeps the old ones
        let oldest = number.saturating_sub(FILES);
        for number in numbers(&self.dir, self.kind)? {
            if number <= oldest {
                std::fs::remove_file(path_of(&self.dir, self.kind, number))?;
            }
        }
        Ok(file)
    }
}

fn path_of(dir: &Path, kind: Kind, number: u64) -> PathBuf {
    dir.join(format!("{}-{number:08}.{}", kind.stem, kind.extension))
}

fn numbers(dir: &Path, kind: Kind) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number: Option<u64> = name.to_str().and_then(|name| {
            let rest = name.strip_prefix(kind.stem)?.strip_prefix('-')?;
            let number = rest.strip_suffix(kind.extension)?.strip_suffix('.')?;
            number.parse().ok()
        });
        found.extend(number);
    }
    found.sort_unstable();
    Ok(found)
}

/// The files' contents, the newest first
pub(super) fn newest_first(dir: &Path, kind: Kind) -> io::Result<impl Iterator<Item = Vec<u8>>> {
    let dir = dir.to_owned();
    let numbers = numbers(&dir, kind)?.into_iter().rev();
    // One that the writer has removed meanwhile is gone
    Ok(numbers.filter_map(move |n| std::fs::read(path_of(&dir, kind, n)).ok()))
}

/// A body under its line's id: two lengths, each before what it measures
pub(super) fn record(id: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(id.len() + body.len() + 8);
    for part in [id.as_bytes(), body] {
        out.extend((part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// The whole records of a file. No id is empty: zeros that a crash has left are no records.
fn records(file: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = file;
    std::iter::from_fn(move || {
        let mut next = || {
            let (length, tail) = rest.split_at_checked(4)?;
            let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
            let (part, tail) = tail.split_at_checked(length)?;
            rest = tail;
            Some(part)
        };
        let id = next().filter(|id| !id.is_empty())?;
        Some((id, next()?))
    })
}

/// The body under `id`, where the file has it whole
pub(super) fn find(file: &[u8], id: &str) -> Option<Bytes> {
    records(file)
        .find(|(name, _)| *name == id.as_bytes())
        .map(|(_, body)| Bytes::copy_from_slice(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(dir: &Path) -> String {
        let files: Vec<Vec<u8>> = newest_first(dir, LINES).unwrap().collect();
        String::from_utf8(files.into_iter().rev().flatten().collect()).unwrap()
    }

    #[test]
    fn what_a_crash_has_torn_is_cut_and_the_file_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        for (torn, line) in [("", "one\n"), ("tor", "two\n"), ("\0\0\0", "three\n")] {
            if !torn.is_empty() {
                let path = path_of(dir.path(), LINES, 1);
                let mut bytes = std::fs::read(&path).unwrap();
                bytes.extend(torn.as_bytes());
                std::fs::write(path, bytes).unwrap();
            }
            let mut ring = Ring::open(dir.path(), LINES, 8_000).unwrap();
            ring.write(line.as_bytes()).unwrap();
            ring.flush().unwrap();
        }
        assert_eq!(text(dir.path()), "one\ntwo\nthree\n");
        assert_eq!(numbers(dir.path(), LINES).unwrap(), [1]);
    }

    #[test]
    fn whole_bodies_are_counted_and_neither_torn_ones_nor_zeros() {
        let (one, two) = (record("a", b"body"), record("b", b""));
        let both = [one.clone(), two].concat();
        assert_eq!((BODIES.whole)(&both), 4 + 1 + 4 + 4 + 4 + 1 + 4);
        for cut in one.len()..both.len() {
            assert_eq!((BODIES.whole)(&both[..cut]), one.len(), "{cut}");
        }
        assert_eq!(
            (BODIES.whole)(&[both.clone(), vec![0; 64]].concat()),
            both.len()
        );
        assert_eq!(find(&both, "a").unwrap(), "body");
        assert_eq!(find(&both, "b").unwrap(), "");
        assert_eq!(find(&both, "c"), None);
    }

    #[test]
    fn a_disk_that_fails_costs_what_waits_and_none_of_the_old_files() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(dir.path(), LINES, 8 * 4).unwrap();
        for line in ["aaa\n", "bbb\n"] {
            ring.write(line.as_bytes()).unwrap();
        }
        // A name that is taken stands for a disk that takes no new file
        let taken = path_of(dir.path(), LINES, 3);
        std::fs::create_dir(&taken).unwrap();
        for _ in 0..20 {
            let lost = ring.write(b"lost\n").unwrap_err();
            assert_eq!(lost.records, 1);
        }
        assert_eq!(text(dir.path()), "aaa\nbbb\n");
        std::fs::remove_dir(taken).unwrap();
        ring.write(b"ccc\n").unwrap();
        assert_eq!(text(dir.path()), "aaa\nbbb\nccc\n");
    }
}
