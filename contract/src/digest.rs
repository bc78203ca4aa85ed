//! SHA-256 digests and their two spellings: `sha256:<hex>` for frozen documents, bare lower-case hex for
//! bodies and event ids. Nothing here compares secrets.

use std::fmt;
use std::str::FromStr;

use sha2::Digest as _;

/// A SHA-256, written `sha256:` and 64 lower-case hex digits
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A SHA-256, written as 64 lower-case hex digits
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Hex([u8; 32]);

/// What is not a digest
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: `{0}`: {1}")]
pub struct NotADigest(String, &'static str);

fn parse_hex(text: &str, whole: &str) -> Result<[u8; 32], NotADigest> {
    let fail = || {
        NotADigest(
            whole.chars().take(80).collect(),
            "want 64 lower-case hex digits",
        )
    };
    if text
        .bytes()
        .any(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        return Err(fail());
    }
    let mut out = [0; 32];
    hex::decode_to_slice(text, &mut out).map_err(|_| fail())?;
    Ok(out)
}

impl Digest {
    /// The digest of `bytes`
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }
    /// The raw 32 bytes
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
    /// From 32 raw bytes, as a store keeps them
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
    /// 64 lower-case hex digits without the prefix, as file names use them
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl Sha256Hex {
    /// The digest of `bytes`
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }
    /// From 32 raw bytes, as a store keeps them
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
    /// The raw 32 bytes
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex::encode(self.0))
    }
}
impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
impl FromStr for Digest {
    type Err = NotADigest;
    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hex = text.strip_prefix("sha256:").ok_or_else(|| {
            NotADigest(
                text.chars().take(80).collect(),
                "want `sha256:` and 64 hex digits",
            )
        })?;
        parse_hex(hex, text).map(Self)
    }
}
impl FromStr for Sha256Hex {
    type Err = NotADigest;
    fn from_str(text: &str) -> Result<Self, NotADigest> {
        parse_hex(text, text).map(Self)
    }
}

macro_rules! as_text {
    ($type:ty, $name:literal, $pattern:literal) => {
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}
as_text!(Digest, "Digest", "^sha256:[0-9a-f]{64}$");
as_text!(Sha256Hex, "Sha256Hex", "^[0-9a-f]{64}$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_string_has_its_published_digest() {
        // FIPS 180-4 example values
        assert_eq!(
            Digest::of(b"").to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            Sha256Hex::of(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn upper_case_a_missing_prefix_and_a_wrong_length_are_refused() {
        let good = Digest::of(b"").to_string();
        assert_eq!(good.parse::<Digest>().unwrap(), Digest::of(b""));
        for bad in [
            good.to_uppercase(),
            good.replace("sha256:", ""),
            good.chars().take(70).collect(),
            format!("{good}0"),
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
