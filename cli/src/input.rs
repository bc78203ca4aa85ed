//! Reading what a command is given: files within a bound, standard input as `-`.

use std::io::{ErrorKind, Read};
use std::path::Path;

use bytes::Bytes;
use postern_contract::Document;

use crate::failure::Failure;

/// The most bytes of an input: more than any provider's delivery or file of cases
const MAX_BYTES: u64 = 256 << 20;

/// The bytes of a file, or of standard input for `-`
pub fn bytes(path: &Path) -> Result<Bytes, Failure> {
    let mut read = Vec::new();
    let limit = MAX_BYTES + 1;
    let outcome = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut read)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut read))
    };
    outcome.map_err(|e| Failure::unreadable(path, &e))?;
    if read.len() as u64 > MAX_BYTES {
        let why = format!("`{}`: longer than {MAX_BYTES} bytes", path.display());
        return Err(Failure::call("too-large", why));
    }
    Ok(read.into())
}

/// The text of a file, or of standard input for `-`
pub fn text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(bytes(path)?.into()).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let why = format!("`{}`: not UTF-8 at byte {at}", path.display());
        Failure::call("not-utf-8", why)
    })
}

/// The JSON of a file, or of standard input for `-`
pub fn document(path: &Path) -> Result<Document, Failure> {
    Document::parse(bytes(path)?)
        .map_err(|e| Failure::call("not-json", format!("`{}`: {e}", path.display())))
}

/// The text of a file, or `None` where there is none
pub fn text_if_there(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        _ => text(path).map(Some),
    }
}
