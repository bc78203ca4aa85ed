//! RFC 8785 (JCS): the one spelling of a JSON value that digests are taken of. It rounds numbers as the
//! RFC does: what it cannot carry exactly must be refused before it gets here (compilation and
//! projection do).

use serde::Serialize;

use crate::Digest;

/// A value that has no JSON form: a map with keys that are not strings, a number that is not finite
#[derive(Debug, thiserror::Error)]
#[error("no canonical JSON: {0}")]
pub struct NotCanonical(#[from] serde_json::Error);

/// The canonical bytes of `value`
pub fn to_vec<T: Serialize>(value: &T) -> Result<Vec<u8>, NotCanonical> {
    Ok(serde_json_canonicalizer::to_vec(value)?)
}

/// The digest of the canonical bytes of `value`
pub fn digest<T: Serialize>(value: &T) -> Result<Digest, NotCanonical> {
    Ok(Digest::of(&to_vec(value)?))
}
