//! A bounded ring of append-only files: the oldest goes when a new one begins.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::FILES;

/// One ring, written by one thread
pub(super) struct Ring {
    dir: PathBuf,
    stem: &'static str,
    extension: &'static str,
    max_file_bytes: u64,
    number: u64,
    file: Option<BufWriter<File>>,
    bytes: u64,
}

impl Ring {
    /// Goes on after the files that are there
    pub(super) fn open(
        dir: &Path,
        stem: &'static str,
        extension: &'static str,
        max_file_bytes: u64,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let number = numbers(dir, stem, extension)?
            .into_iter()
            .max()
            .unwrap_or(0);
        Ok(Self {
            dir: dir.to_owned(),
            stem,
            extension,
            max_file_bytes: max_file_bytes.max(1),
            number,
            file: None,
            bytes: 0,
        })
    }

    pub(super) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        if self.bytes >= self.max_file_bytes {
            self.flush()?;
            self.file = None;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                self.number += 1;
                self.bytes = 0;
                let path = path_of(&self.dir, self.stem, self.extension, self.number);
                let file = OpenOptions::new().write(true).create_new(true).open(path)?;
                let oldest = self.number.saturating_sub(FILES);
                for number in numbers(&self.dir, self.stem, self.extension)? {
                    if number <= oldest {
                        let old = path_of(&self.dir, self.stem, self.extension, number);
                        std::fs::remove_file(old)?;
                    }
                }
                self.file.insert(BufWriter::new(file))
            }
        };
        file.write_all(record)?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => Ok(()),
        }
    }
}

fn path_of(dir: &Path, stem: &str, extension: &str, number: u64) -> PathBuf {
    dir.join(format!("{stem}-{number:08}.{extension}"))
}

fn numbers(dir: &Path, stem: &str, extension: &str) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let number: Option<u64> = name.to_str().and_then(|name| {
            let rest = name.strip_prefix(stem)?.strip_prefix('-')?;
            rest.strip_suffix(extension)?
                .strip_suffix('.')?
                .parse()
                .ok()
        });
        found.extend(number);
    }
    found.sort_unstable();
    Ok(found)
}

/// The files' contents, the newest first
pub(super) fn newest_first(
    dir: &Path,
    stem: &'static str,
    extension: &'static str,
) -> io::Result<impl Iterator<Item = Vec<u8>>> {
    let dir = dir.to_owned();
    let numbers = numbers(&dir, stem, extension)?.into_iter().rev();
    // One that the writer has removed meanwhile is gone
    Ok(numbers.filter_map(move |n| std::fs::read(path_of(&dir, stem, extension, n)).ok()))
}

/// A body under its line's id: two lengths, then both
pub(super) fn record(id: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(id.len() + body.len() + 8);
    for part in [id.as_bytes(), body] {
        out.extend((part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// The body under `id`, where the file has it whole
pub(super) fn find(file: &[u8], id: &str) -> Option<Bytes> {
    let mut rest = file;
    let mut next = || {
        let (length, tail) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (part, tail) = tail.split_at_checked(length)?;
        rest = tail;
        Some(part)
    };
    while let (Some(name), Some(body)) = (next(), next()) {
        if name == id.as_bytes() {
            return Some(Bytes::copy_from_slice(body));
        }
    }
    None
}
