//! Strict decoding of signatures and keys: one spelling a value, as its provider writes it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};

/// Padding is required and unused bits are zero, so that no two texts decode alike
const STRICT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
    .with_decode_allow_trailing_bits(false);
/// Some providers leave padding out: then there is none
const UNPADDED: GeneralPurposeConfig = STRICT
    .with_encode_padding(false)
    .with_decode_padding_mode(DecodePaddingMode::RequireNone);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, STRICT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, STRICT);
const URL_SAFE_UNPADDED: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, UNPADDED);

/// How bytes are written as text
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Hex of either case
    Hex,
    /// Hex in lower case alone
    HexLower,
    /// Base64 with padding
    Base64,
    /// URL-safe Base64 with padding
    Base64url,
    /// URL-safe Base64 without padding
    Base64urlUnpadded,
}

impl Encoding {
    /// The bytes, or nothing where the text is not their one spelling
    pub fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Hex => hex::decode(text).ok(),
            Self::HexLower => {
                if text.iter().any(u8::is_ascii_uppercase) {
                    return None;
                }
                hex::decode(text).ok()
            }
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Base64url => URL_SAFE.decode(text).ok(),
            Self::Base64urlUnpadded => URL_SAFE_UNPADDED.decode(text).ok(),
        }
    }

    /// The text
    pub fn encode(self, bytes: &[u8]) -> String {
        match self {
            Self::Hex | Self::HexLower => hex::encode(bytes),
            Self::Base64 => STANDARD.encode(bytes),
            Self::Base64url => URL_SAFE.encode(bytes),
            Self::Base64urlUnpadded => URL_SAFE_UNPADDED.encode(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_a13_one_spelling_a_value() {
        assert_eq!(Encoding::Hex.decode(b"0aFF"), Some(vec![10, 255]));
        assert_eq!(Encoding::HexLower.decode(b"0aff"), Some(vec![10, 255]));
        assert_eq!(Encoding::HexLower.decode(b"0aFF"), None);
        assert_eq!(Encoding::Hex.decode(&[b'a'; 63]), None);
        // RFC 4648, section 10
        assert_eq!(Encoding::Base64.decode(b"Zm8="), Some(b"fo".to_vec()));
        for lenient in ["Zm8", "Zm9=", "Zm8=\n", " Zm8=", "Zm8==", "Zm-8"] {
            assert_eq!(
                Encoding::Base64.decode(lenient.as_bytes()),
                None,
                "{lenient}"
            );
        }
        assert_eq!(Encoding::Base64url.decode(b"-_8="), Some(vec![251, 255]));
        assert_eq!(Encoding::Base64.decode(b"-_8="), None);
        assert_eq!(
            Encoding::Base64urlUnpadded.decode(b"-_8"),
            Some(vec![251, 255])
        );
        for lenient in ["-_8=", "-_9", "+/8"] {
            let text = lenient.as_bytes();
            assert_eq!(Encoding::Base64urlUnpadded.decode(text), None, "{lenient}");
        }
        assert_eq!(Encoding::Base64urlUnpadded.encode(&[251, 255]), "-_8");
    }
}
