//! Reads the files that an operator names: regular files alone, and never more than a bound. A pipe or a
//! device among them is refused and not waited for.

use std::fs::OpenOptions;
use std::io::{Error, Read as _, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The bytes of a regular file of at most `max` bytes. Links are followed.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    // A pipe without a writer would otherwise be waited for here
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    // Asked of what is open: the name may be another file's by now
    if !file.metadata()?.is_file() {
        return Err(Error::other("no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(Error::other(format!("more than {max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_files_within_the_bound_are_read_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "12345").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        assert!(made.unwrap().success());
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        // On a thread of its own: it would hang, not fail
        let (tell, told) = std::sync::mpsc::channel();
        let names = ["file", "link", "pipe", "socket", "."].map(at);
        std::thread::spawn(move || {
            for name in names {
                let _ = tell.send(read(&name, 5).map_err(|e| e.to_string()));
            }
            let _ = tell.send(read(Path::new("/dev/zero"), 5).map_err(|e| e.to_string()));
        });
        let next = || {
            told.recv_timeout(std::time::Duration::from_secs(60))
                .unwrap()
        };
        assert_eq!(next().unwrap(), b"12345");
        assert_eq!(next().unwrap(), b"12345");
        assert_eq!(next().unwrap_err(), "no regular file");
        // A socket cannot even be opened
        assert!(next().is_err());
        assert_eq!(next().unwrap_err(), "no regular file");
        assert_eq!(next().unwrap_err(), "no regular file");
        drop(socket);
        let large = read(&at("file"), 4).unwrap_err().to_string();
        assert_eq!(large, "more than 4 bytes");
    }
}
