//! Writes files whole or not at all: beside the target first, then renamed into its place.

use std::io::Write as _;
use std::path::Path;

use crate::failure::Failure;

/// Writes `bytes` to `file`, whose directory is made where it does not exist. A file that says the same
/// already is left alone.
pub fn write(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if std::fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let dir = file.parent().unwrap_or(Path::new("."));
    let put = || -> std::io::Result<()> {
        std::fs::create_dir_all(dir)?;
        let mut beside = tempfile::NamedTempFile::new_in(dir)?;
        beside.write_all(bytes)?;
        beside.as_file().sync_all()?;
        beside.persist(file).map_err(|e| e.error)?;
        Ok(())
    };
    put().map_err(|e| Failure::unwritable(file, &e))
}
