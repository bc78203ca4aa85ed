//! Walks fixtures/providers: every profile of the catalogue has an accepted delivery and three refused
//! ones, signed by other implementations than ours; and properties that hold for all of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a fixture that cannot be read must fail the test"
)]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use postern_contract::{CapturedRequest, Secret, Timestamp};
use postern_profiles::{
    Catalogue, Integrity, Key, KeyMaterial, Outcome, Profile, RequestParts, Tolerance, vectors,
};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expect {
    now: i64,
    expect: String,
    secret: Option<String>,
    public_key: Option<String>,
}

struct Case {
    request: CapturedRequest,
    expect: Expect,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/providers")
}

fn case(id: &str, name: &str) -> Case {
    let dir = fixtures().join(id).join(name);
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).unwrap();
    Case {
        request: serde_json::from_str(&read("request.json")).unwrap(),
        expect: serde_json::from_str(&read("expect.json")).unwrap(),
    }
}

fn key(expect: &Expect) -> Key {
    let material = match (&expect.secret, &expect.public_key) {
        (Some(secret), None) => KeyMaterial::Secret(Secret::new(secret.clone().into_bytes())),
        (None, Some(public)) => KeyMaterial::Public(public.clone()),
        _ => panic!("one of secret and publicKey"),
    };
    Key {
        name: "k".to_owned(),
        material,
        not_after: None,
    }
}

fn verify(profile: &'static Profile, case: &Case, body: &Bytes) -> Outcome {
    let verifier = profile
        .bind(vec![key(&case.expect)], Tolerance::default())
        .unwrap();
    let parts = RequestParts {
        method: &case.request.method,
        headers: &case.request,
        body,
    };
    verifier.verify(&parts, Timestamp::from_unix(case.expect.now).unwrap())
}

fn authentic(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Refused(_))
}

#[test]
fn cs_8_06_every_profile_has_its_four_cases_and_they_hold() {
    let mut walked = 0;
    for profile in Catalogue::embedded().iter() {
        for name in [
            "accept",
            "wrong-signature",
            "empty-signature",
            "truncated-signature",
        ] {
            let case = case(profile.id(), name);
            let body = vectors::body(&case.request).unwrap();
            let got = authentic(&verify(profile, &case, &body));
            assert_eq!(
                got,
                case.expect.expect == "accept",
                "{}/{name}",
                profile.id()
            );
            assert_eq!(got, name == "accept", "{}/{name}", profile.id());
            walked += 1;
        }
    }
    assert_eq!(walked, std::fs::read_dir(fixtures()).unwrap().count() * 4);
}

#[test]
fn one_flipped_bit_of_a_covered_body_is_refused() {
    for profile in Catalogue::embedded().iter() {
        if profile.integrity() != Integrity::Full {
            continue;
        }
        let case = case(profile.id(), "accept");
        let body = vectors::body(&case.request).unwrap();
        for at in 0..body.len() {
            let mut bent = body.to_vec();
            bent[at] ^= 1;
            assert!(
                !authentic(&verify(profile, &case, &bent.into())),
                "{} byte {at}",
                profile.id()
            );
        }
    }
}

#[test]
fn what_is_signed_here_verifies_here() {
    for profile in Catalogue::embedded().iter() {
        let mut case = case(profile.id(), "accept");
        let Some(secret) = &case.expect.secret else {
            continue;
        };
        let body = vectors::body(&case.request).unwrap();
        let secret = Secret::new(secret.clone().into_bytes());
        let now = Timestamp::from_unix(case.expect.now).unwrap();
        let signed = profile.sign(&case.request, &body, &secret, now).unwrap();
        for (name, value) in signed {
            case.request
                .headers
                .retain(|key, _| !key.eq_ignore_ascii_case(&name));
            case.request
                .headers
                .insert(name, postern_contract::request::HeaderValues::One(value));
        }
        assert!(
            authentic(&verify(profile, &case, &body)),
            "{}",
            profile.id()
        );
    }
}

/// The refusal's code for the github profile with one header replaced; `None` takes it away
fn github(header: &str, values: &[&str], body: &str, now_after: i64) -> String {
    let mut case = case("github", "accept");
    case.request
        .headers
        .retain(|key, _| !key.eq_ignore_ascii_case(header));
    let many = values.iter().map(|v| (*v).to_owned()).collect();
    case.request.headers.insert(
        header.to_owned(),
        postern_contract::request::HeaderValues::Many(many),
    );
    case.expect.now += now_after;
    match verify(
        Catalogue::embedded().get("github").unwrap(),
        &case,
        &Bytes::from(body.to_owned()),
    ) {
        Outcome::Refused(refusal) => refusal.step.code().to_owned(),
        Outcome::Malformed(why) => why.code().to_owned(),
        Outcome::Verified(_) => "verified".to_owned(),
        Outcome::Handshake(_) => "handshake".to_owned(),
    }
}

#[test]
fn cs_8_06_headers_that_are_bent_are_refused_with_the_step() {
    let name = "X-Hub-Signature-256";
    let hex = "0".repeat(64);
    for (values, step) in [
        (&[][..], "signature-missing"),
        (&[""], "signature-malformed"),
        (&["sha256="], "signature-malformed"),
        (&["sha1=0"], "signature-malformed"),
        (&["sha256=é"], "signature-undecodable"),
        (&["sha256=00"], "signature-undecodable"),
        (
            &[&format!("sha256={hex}"), &format!("sha256={hex}")],
            "signature-repeated",
        ),
        (&[&format!("sha256={hex}")], "signature-mismatch"),
        // report A12: this profile's parser is no list
        (
            &[&format!("sha256={hex},sha256={hex}")],
            "signature-undecodable",
        ),
    ] {
        assert_eq!(github(name, values, "{}", 0), step, "{values:?}");
    }
}

#[test]
fn report_a24_an_empty_body_is_authentic_and_no_evidence() {
    // HMAC-SHA256 of nothing with the key `key`: RFC 2104 by python hmac
    let digest = "5d5d139563c95b5967b9bd9a8c9b233a9dedb45072794cd232dc1b74832607d0";
    let mut case = case("github", "accept");
    case.expect.secret = Some("key".to_owned());
    case.request.headers.insert(
        "X-Hub-Signature-256".to_owned(),
        postern_contract::request::HeaderValues::One(format!("sha256={digest}")),
    );
    let profile = Catalogue::embedded().get("github").unwrap();
    let outcome = verify(profile, &case, &Bytes::new());
    assert!(matches!(outcome, Outcome::Malformed(why) if why.code() == "malformed-body"));
}

#[test]
fn report_a25_a26_timestamps_are_held_on_both_sides_and_in_their_unit() {
    let profile = Catalogue::embedded().get("stripe").unwrap();
    let step = |shift: i64, scale: i64| {
        let mut case = case("stripe", "accept");
        let body = vectors::body(&case.request).unwrap();
        let secret = Secret::new(case.expect.secret.clone().unwrap().into_bytes());
        let at = Timestamp::from_unix((case.expect.now + shift) * scale).unwrap();
        for (name, value) in profile.sign(&case.request, &body, &secret, at).unwrap() {
            case.request
                .headers
                .insert(name, postern_contract::request::HeaderValues::One(value));
        }
        match verify(profile, &case, &body) {
            Outcome::Refused(refusal) => refusal.step.code(),
            _ => "authentic",
        }
    };
    assert_eq!(step(-300, 1), "authentic");
    assert_eq!(step(-301, 1), "timestamp-old");
    assert_eq!(step(300, 1), "authentic");
    assert_eq!(step(301, 1), "timestamp-ahead");
    assert_eq!(step(86_400, 1), "timestamp-ahead");
    // Milliseconds where seconds are wanted lie far ahead
    assert_eq!(step(0, 100), "timestamp-ahead");
}

#[test]
fn report_a25_a_tolerance_of_nothing_is_refused() {
    let zero = Tolerance {
        past: Some(std::time::Duration::ZERO),
        future: None,
    };
    let bind = |id: &str, tolerance| {
        let case = case(id, "accept");
        let profile = Catalogue::embedded().get(id).unwrap();
        profile.bind(vec![key(&case.expect)], tolerance).map(|_| ())
    };
    assert!(bind("stripe", zero).is_err());
    let minute = Tolerance {
        past: Some(std::time::Duration::from_secs(60)),
        future: None,
    };
    assert!(bind("stripe", minute).is_ok());
    // There is no signed timestamp that it could hold
    assert!(bind("github", minute).is_err());
}

#[test]
fn a_key_past_its_end_never_matches() {
    let case = case("github", "accept");
    let body = vectors::body(&case.request).unwrap();
    let profile = Catalogue::embedded().get("github").unwrap();
    let step = |end: i64| {
        let mut key = key(&case.expect);
        key.not_after = Some(Timestamp::from_unix(case.expect.now + end).unwrap());
        let verifier = profile.bind(vec![key], Tolerance::default()).unwrap();
        let parts = RequestParts {
            method: "POST",
            headers: &case.request,
            body: &body,
        };
        match verifier.verify(&parts, Timestamp::from_unix(case.expect.now).unwrap()) {
            Outcome::Refused(refusal) => refusal.step.code(),
            _ => "authentic",
        }
    };
    assert_eq!(step(1), "authentic");
    assert_eq!(step(0), "no-live-key");
}

#[test]
fn report_a29_a30_an_unsigned_id_does_not_hide_a_copy() {
    let profile = Catalogue::embedded().get("github").unwrap();
    let keys = |id: &str| {
        let mut case = case("github", "accept");
        let body = Bytes::from_static(b"{}");
        let secret = Secret::new(case.expect.secret.clone().unwrap().into_bytes());
        let now = Timestamp::from_unix(case.expect.now).unwrap();
        let mut set = profile.sign(&case.request, &body, &secret, now).unwrap();
        set.push(("X-GitHub-Delivery".to_owned(), id.to_owned()));
        set.push(("X-GitHub-Event".to_owned(), "push".to_owned()));
        for (name, value) in set {
            case.request
                .headers
                .retain(|key, _| !key.eq_ignore_ascii_case(&name));
            case.request
                .headers
                .insert(name, postern_contract::request::HeaderValues::One(value));
        }
        match verify(profile, &case, &body) {
            Outcome::Verified(evidence) => evidence.replay_keys().to_vec(),
            _ => panic!("not verified"),
        }
    };
    let (a, b) = (keys("one"), keys("two"));
    assert_eq!(a.len(), 2);
    assert_ne!(a[0], b[0]);
    assert_eq!(a[1], b[1]);
}

proptest! {
    #[test]
    fn never_panics(header in "\\PC{0,80}", body in proptest::collection::vec(any::<u8>(), 0..200), now in any::<i32>()) {
        for profile in Catalogue::embedded().iter() {
            let mut case = case(profile.id(), "accept");
            let names: Vec<String> = case.request.headers.keys().cloned().collect();
            for name in names {
                case.request.headers.insert(name, postern_contract::request::HeaderValues::One(header.clone()));
            }
            case.expect.now = i64::from(now);
            let _ = verify(profile, &case, &Bytes::from(body.clone()));
        }
    }
}
