//! Walks fixtures/providers: every profile of the catalogue has an accepted delivery, three refused ones,
//! and one whose evidence is known, all signed by other implementations than ours. Beside it: properties
//! that hold for all profiles, and faults that users of other gateways met.

#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::panic,
    reason = "a fixture that cannot be read must fail the test"
)]

#[path = "providers/properties.rs"]
mod properties;
#[path = "providers/reports.rs"]
mod reports;
#[path = "providers/sources.rs"]
mod sources;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use postern_contract::request::HeaderValues;
use postern_contract::{CapturedRequest, Secret, Timestamp};
use postern_profiles::{
    Catalogue, Key, KeyMaterial, Outcome, Profile, RequestParts, Tolerance, VerifiedEvidence,
    vectors,
};
use serde::Deserialize;

/// What is known of a case
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expect {
    now: i64,
    expect: String,
    secret: Option<String>,
    public_key: Option<String>,
    event: Option<String>,
    delivery: Option<String>,
    signed_at_ms: Option<i64>,
}

struct Case {
    request: CapturedRequest,
    expect: Expect,
}

impl Case {
    /// A case of a profile
    fn read(id: &str, name: &str) -> Self {
        let dir = fixtures().join(id).join(name);
        let read = |file: &str| {
            std::fs::read_to_string(dir.join(file))
                .unwrap_or_else(|e| panic!("{id}/{name}/{file}: {e}"))
        };
        Self {
            request: serde_json::from_str(&read("request.json")).unwrap(),
            expect: serde_json::from_str(&read("expect.json")).unwrap(),
        }
    }

    /// A request of nothing but what the test sets, under the key `key`
    fn bare() -> Self {
        Self {
            request: CapturedRequest {
                method: "POST".to_owned(),
                ..CapturedRequest::default()
            },
            expect: Expect {
                now: 1_750_000_000,
                expect: "accept".to_owned(),
                secret: Some("key".to_owned()),
                public_key: None,
                event: None,
                delivery: None,
                signed_at_ms: None,
            },
        }
    }

    fn body(&self) -> Bytes {
        vectors::body(&self.request).unwrap()
    }

    /// Replaces a header, whatever its case
    fn set(&mut self, name: &str, values: &[&str]) {
        let headers = &mut self.request.headers;
        headers.retain(|key, _| !key.eq_ignore_ascii_case(name));
        let values = values.iter().map(|v| (*v).to_owned()).collect();
        headers.insert(name.to_owned(), HeaderValues::Many(values));
    }

    fn header(&self, name: &str) -> String {
        let (_, values) = (self.request.headers.iter())
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .unwrap_or_else(|| panic!("no header {name}"));
        values.iter().next().unwrap().to_owned()
    }

    /// Signs `body` with our own signer as of `at`
    fn sign(&mut self, profile: &Profile, body: &Bytes, at: Timestamp) {
        let secret = (self.expect.secret.clone()).unwrap_or_else(|| SEED.to_owned());
        let secret = Secret::new(secret.into_bytes());
        for (name, value) in profile.sign(&self.request, body, &secret, at).unwrap() {
            self.set(&name, &[&value]);
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_unix(self.expect.now).unwrap()
    }
}

/// The private half of every public key of the fixtures: RFC 8032, section 7.1, test 1
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/providers")
}

fn profile(id: &str) -> &'static Profile {
    Catalogue::embedded().get(id).unwrap()
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
    verifier.verify(&parts, case.now())
}

fn authentic(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Refused(_))
}

/// `verified`, `handshake`, or the code of what is wrong
fn said(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Verified(_) => "verified",
        Outcome::Handshake(_) => "handshake",
        Outcome::Malformed(why) => why.code(),
        Outcome::Refused(refusal) => refusal.step.code(),
    }
}

fn evidence(outcome: Outcome) -> Box<VerifiedEvidence> {
    match outcome {
        Outcome::Verified(evidence) => evidence,
        other => panic!("{}", said(&other)),
    }
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
            let case = Case::read(profile.id(), name);
            let got = authentic(&verify(profile, &case, &case.body()));
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
    assert!(walked > 0);
    assert_eq!(walked, std::fs::read_dir(fixtures()).unwrap().count() * 4);
}

#[test]
fn every_profile_reads_the_event_the_id_and_the_time_of_a_delivery() {
    for profile in Catalogue::embedded().iter() {
        let id = profile.id();
        let case = Case::read(id, "evidence");
        let evidence = match verify(profile, &case, &case.body()) {
            Outcome::Verified(evidence) => evidence,
            other => panic!("{id}: {}", said(&other)),
        };
        assert_eq!(Some(evidence.event()), case.expect.event.as_deref(), "{id}");
        assert_eq!(evidence.delivery(), case.expect.delivery.as_deref(), "{id}");
        let signed_at = evidence.signed_at().map(|at| at.unix_ms());
        assert_eq!(signed_at, case.expect.signed_at_ms, "{id}");
        assert_eq!(evidence.key_name(), "k", "{id}");
        // What is read without a key, for trials, is the same
        let body = case.body();
        let unverified = profile.read_unverified(&RequestParts {
            method: "POST",
            headers: &case.request,
            body: &body,
        });
        assert_eq!(unverified.event.as_deref(), Some(evidence.event()), "{id}");
        assert_eq!(unverified.delivery.as_deref(), evidence.delivery(), "{id}");
    }
}
