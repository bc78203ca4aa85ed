//! Standard Webhooks: signs what leaves, once for every live secret, over the bytes that are sent.

use base64::Engine as _;
use hmac::{Hmac, KeyInit, Mac};
use postern_contract::{Secret, Timestamp};
use sha2::Sha256;

/// A signing secret
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

/// A text that is no signing secret
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret is `whsec_` and the Base64 of 24 to 64 bytes")]
pub struct NotASigningKey;

impl SigningKey {
    /// Reads `whsec_…`
    pub fn new(secret: &Secret) -> Result<Self, NotASigningKey> {
        let text = secret
            .expose()
            .strip_prefix(b"whsec_")
            .ok_or(NotASigningKey)?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|_| NotASigningKey)?;
        if !(24..=64).contains(&bytes.len()) {
            return Err(NotASigningKey);
        }
        Hmac::new_from_slice(&bytes)
            .map(Self)
            .map_err(|_| NotASigningKey)
    }

    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        let mac = mac.finalize().into_bytes();
        format!(
            "v1,{}",
            base64::engine::general_purpose::STANDARD.encode(mac)
        )
    }
}

/// The three headers of one attempt
pub fn headers(
    keys: &[SigningKey],
    id: &str,
    now: Timestamp,
    body: &[u8],
) -> [(&'static str, String); 3] {
    let timestamp = now.unix().to_string();
    let signatures: Vec<String> = keys.iter().map(|k| k.sign(id, &timestamp, body)).collect();
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signatures.join(" ")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Result<SigningKey, NotASigningKey> {
        SigningKey::new(&Secret::new(text.as_bytes().to_vec()))
    }

    #[test]
    fn report_a16_the_published_signature_comes_out() {
        let keys = [key("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap()];
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        let now = Timestamp::from_unix(1_649_367_553).unwrap();
        let headers = headers(&keys, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", now, body);
        assert_eq!(
            headers[2].1,
            "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="
        );
    }

    #[test]
    fn report_b35_every_live_secret_signs() {
        let keys = [
            key("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap(),
            key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap(),
        ];
        let now = Timestamp::from_unix(1_614_265_330).unwrap();
        let both = headers(
            &keys,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            now,
            br#"{"test": 2432232314}"#,
        );
        let mut parts = both[2].1.split(' ');
        parts.next().unwrap();
        // The published signature of the second secret
        assert_eq!(
            parts.next(),
            Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        );
        assert_eq!(parts.next(), None);
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for bad in [
            "",
            "whsec_",
            "C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
            "v1,whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
            "whsec_c2hvcnQ=",
        ] {
            assert_eq!(key(bad).unwrap_err(), NotASigningKey, "{bad}");
        }
    }
}
