//! Bytes that must never be printed: `Debug` shows nothing, there is no `Display` and no `Serialize`, and
//! memory is wiped on drop. Equality is constant-time and only through [`Secret::equals`].

use secrecy::{ExposeSecret, SecretSlice};
use subtle::ConstantTimeEq;

/// A key, a token or a password
#[derive(Clone)]
pub struct Secret(SecretSlice<u8>);

impl Secret {
    /// Takes the bytes as they are: nothing is trimmed or decoded
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
    /// The bytes, for the one place that signs, verifies or sends them
    pub fn expose(&self) -> &[u8] {
        self.0.expose_secret()
    }
    /// Whether `other` holds the same bytes; the time taken tells only the lengths
    pub fn equals(&self, other: &[u8]) -> subtle::Choice {
        self.expose().ct_eq(other)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        // CS-4-11
        assert_eq!(
            format!("{:?}", Some(Secret::new(b"hunter2".to_vec()))),
            "Some(Secret(…))"
        );
    }
}
