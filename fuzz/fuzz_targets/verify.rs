//! Any header value and body at every profile: refused, or a handshake that its profile lets through
//! unsigned. The key is nobody's, so that nothing verifies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_contract::{Secret, Timestamp};
use postern_profiles::{Catalogue, Key, KeyMaterial, Options, Outcome, RequestParts, SignaturePlace};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |b| *b == 0);
    let (Some(value), Some(body)) = (parts.next(), parts.next()) else {
        return;
    };
    let Ok(value) = http::HeaderValue::from_bytes(value) else {
        return;
    };
    let body = bytes::Bytes::copy_from_slice(body);
    for profile in Catalogue::embedded().iter() {
        let key = Key {
            name: "k".to_owned(),
            id: None,
            material: KeyMaterial::Secret(Secret::new(b"whsec_bm9ib2R5IGhhcyB0aGlzIGtleSBhdCBhbGw=".to_vec())),
            not_after: None,
        };
        let Ok(verifier) = profile.bind(vec![key], Options::default()) else {
            continue;
        };
        let mut headers = http::HeaderMap::new();
        for place in profile.signature_places() {
            if let SignaturePlace::Header(name) = place
                && let Ok(name) = http::HeaderName::try_from(name) {
                headers.insert(name, value.clone());
            }
        }
        let parts = RequestParts { method: "POST", url: "https://hooks.example/", headers: &headers, body: &body };
        let now = Timestamp::from_unix(1_800_000_000).unwrap_or(Timestamp::EPOCH);
        assert!(matches!(verifier.verify(&parts, now), Outcome::Refused(_)), "{}", profile.id());
    }
});
