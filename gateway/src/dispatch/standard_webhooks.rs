//! Standard Webhooks: signs what leaves, once for every live secret, over the bytes that are sent.

use base64::Engine as _;
use hmac::{Hmac, KeyInit, Mac};
use postern_contract::{Secret, Timestamp};
use sha2::Sha256;

/// A signing secret
#[derive(Clone)]
pub struct SigningKey {
    mac: Hmac<Sha256>,
    not_after: Option<Timestamp>,
}

/// Every signing secret has ended: what cannot be signed is not sent
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no signing secret is live any more")]
pub struct NoLiveKey;

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
    /// Reads `whsec_…`, which signs until `not_after`
    pub fn new(secret: &Secret, not_after: Option<Timestamp>) -> Result<Self, NotASigningKey> {
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
        let mac = Hmac::new_from_slice(&bytes).map_err(|_| NotASigningKey)?;
        Ok(Self { mac, not_after })
    }

    fn live(&self, now: Timestamp) -> bool {
        self.not_after.is_none_or(|end| now < end)
    }

    fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut mac = self.mac.clone();
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

/// The three headers of one attempt: a signature for every secret that is live at `now`
pub fn headers(
    keys: &[SigningKey],
    id: &str,
    now: Timestamp,
    body: &[u8],
) -> Result<[(&'static str, String); 3], NoLiveKey> {
    let timestamp = now.unix().to_string();
    let signatures: Vec<String> = (keys.iter())
        .filter(|key| key.live(now))
        .map(|key| key.sign(id, &timestamp, body))
        .collect();
    if signatures.is_empty() {
        return Err(NoLiveKey);
    }
    Ok([
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signatures.join(" ")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Result<SigningKey, NotASigningKey> {
        SigningKey::new(&Secret::new(text.as_bytes().to_vec()), None)
    }

    #[test]
    fn report_a16_the_published_signature_comes_out() {
        let keys = [key("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap()];
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        let now = Timestamp::from_unix(1_649_367_553).unwrap();
        let headers = headers(&keys, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", now, body).unwrap();
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
        )
        .unwrap();
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
    fn report_b35_a_secret_that_has_ended_signs_no_more() {
        let at = |seconds| Timestamp::from_unix(seconds).unwrap();
        let ending = |text: &str, seconds| {
            SigningKey::new(&Secret::new(text.as_bytes().to_vec()), Some(at(seconds))).unwrap()
        };
        // Rotated twice: the first secret ends at 100, the second at 200
        let keys = [
            key("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap(),
            ending("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 200),
            ending("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", 100),
        ];
        let count = |keys: &[SigningKey], now| {
            headers(keys, "x", at(now), b"").map(|signed| signed[2].1.split(' ').count())
        };
        for (now, live) in [(99, 3), (100, 2), (199, 2), (200, 1)] {
            assert_eq!(count(&keys, now), Ok(live), "{now}");
        }
        assert_eq!(count(&keys[1..2], 200), Err(NoLiveKey));
        assert_eq!(count(&[], 0), Err(NoLiveKey));
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
