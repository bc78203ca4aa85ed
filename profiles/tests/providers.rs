//! Walks fixtures/providers: every profile of the catalogue has an accepted delivery, three refused ones,
//! and one whose evidence is known, all signed by other implementations than ours. Beside it: properties
//! that hold for all profiles, and faults that users of other gateways met.

#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::panic,
    reason = "a fixture that cannot be read must fail the test"
)]

#[path = "providers/explain.rs"]
mod explain;
#[path = "providers/generic.rs"]
mod generic;
#[path = "providers/network.rs"]
mod network;
#[path = "providers/properties.rs"]
mod properties;
#[path = "providers/reports.rs"]
mod reports;
#[path = "providers/sources.rs"]
mod sources;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use postern_contract::request::HeaderValues;
use postern_contract::{CapturedRequest, Secret, Timestamp};
use postern_profiles::sign::NotSigned;
use postern_profiles::{
    BindError, Catalogue, Key, KeyMaterial, Options, Outcome, Params, Profile, RequestParts,
    SignaturePlace, Then, VerifiedEvidence, vectors,
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
    /// The key's id by the provider
    key_id: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, Texts>,
    event: Option<String>,
    delivery: Option<String>,
    signed_at_ms: Option<i64>,
    /// Of a batch
    items: Option<Vec<ExpectItem>>,
}

/// Event of an item, and what canonical events call it
#[derive(Deserialize)]
struct ExpectItem {
    event: String,
    delivery: String,
}

/// One text or several
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Many(Vec<String>),
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
                key_id: None,
                params: BTreeMap::new(),
                event: None,
                delivery: None,
                signed_at_ms: None,
                items: None,
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
    fn sign(&mut self, profile: &Profile, body: &Bytes, at: Timestamp) -> Bytes {
        self.try_sign(profile, body, at).unwrap()
    }

    /// The same; an error where the signer has no private key, or the body lacks what is signed
    fn try_sign(
        &mut self,
        profile: &Profile,
        body: &Bytes,
        at: Timestamp,
    ) -> Result<Bytes, NotSigned> {
        let secret = (self.expect.secret.clone()).unwrap_or_else(|| SEED.to_owned());
        let secret = Secret::new(secret.into_bytes());
        let signed = profile.sign(&self.request, body, &secret, &self.params(), at)?;
        self.request = signed.request;
        Ok(signed.body)
    }

    fn params(&self) -> Params {
        let texts = |texts: &Texts| match texts {
            Texts::One(text) => vec![text.clone()],
            Texts::Many(texts) => texts.clone(),
        };
        (self.expect.params.iter())
            .map(|(name, value)| (name.clone(), texts(value)))
            .collect()
    }

    fn options(&self) -> Options {
        Options {
            params: self.params(),
            ..Options::default()
        }
    }

    /// Where it is signed, and the text there
    fn signature(&self, profile: &'static Profile) -> (SignaturePlace<'static>, String) {
        let mut places = profile.signature_places();
        places
            .find_map(|place| Some((place, self.signature_at(place)?)))
            .unwrap_or_else(|| panic!("{}: no signature", profile.id()))
    }

    fn signature_at(&self, place: SignaturePlace<'_>) -> Option<String> {
        match place {
            SignaturePlace::Header(name) => {
                let mut headers = self.request.headers.iter();
                let (_, values) = headers.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
                values.iter().next().map(str::to_owned)
            }
            SignaturePlace::Query(name) => {
                let url = url::Url::parse(&self.request.url).unwrap();
                let (_, value) = url.query_pairs().find(|(known, _)| known == name)?;
                Some(value.into_owned())
            }
            SignaturePlace::Body { each, at } => {
                if let Some(form) = self.form() {
                    let name = at.tokens().last()?.text();
                    let (_, value) = form.into_iter().find(|(known, _)| known == name)?;
                    return Some(value);
                }
                let (_, json, _) = self.json_within();
                let value: serde_json::Value = serde_json::from_str(&json).ok()?;
                let item = match each {
                    Some(each) => value.pointer(&format!("{each}/0"))?,
                    None => &value,
                };
                item.pointer(&at.to_string())?.as_str().map(str::to_owned)
            }
        }
    }

    /// The JSON of the body and what stands around it, where the body is multipart
    fn json_within(&self) -> (String, String, String) {
        let body = String::from_utf8(self.body().to_vec()).unwrap();
        let (start, end) = if body.starts_with("--") {
            (
                body.find("\r\n\r\n").unwrap() + 4,
                body.rfind("\r\n--").unwrap(),
            )
        } else {
            (0, body.len())
        };
        let part = |text: &str| text.to_owned();
        (
            part(&body[..start]),
            part(&body[start..end]),
            part(&body[end..]),
        )
    }

    /// The fields, where the body is a form
    fn form(&self) -> Option<Vec<(String, String)>> {
        let body = self.body();
        let json = body.starts_with(b"{") || body.starts_with(b"[") || body.starts_with(b"--");
        (!json).then(|| url::form_urlencoded::parse(&body).into_owned().collect())
    }

    /// Replaces the signature by these texts; several in a body are none of ours to write
    fn set_signature(&mut self, place: SignaturePlace<'_>, values: &[&str]) {
        match place {
            SignaturePlace::Header(name) => self.set(name, values),
            SignaturePlace::Query(name) => {
                let mut url = url::Url::parse(&self.request.url).unwrap();
                let kept: Vec<_> = url.query_pairs().into_owned().collect();
                let kept = kept.into_iter().filter(|(known, _)| known != name);
                let mut query = url::form_urlencoded::Serializer::new(String::new());
                query.extend_pairs(kept);
                values
                    .iter()
                    .for_each(|value| _ = query.append_pair(name, value));
                url.set_query(Some(&query.finish()));
                self.request.url = url.to_string();
            }
            SignaturePlace::Body { each, at } => {
                let body = if let Some(form) = self.form() {
                    let name = at.tokens().last().unwrap().text();
                    let kept = form.into_iter().filter(|(known, _)| known != name);
                    let mut form = url::form_urlencoded::Serializer::new(String::new());
                    form.extend_pairs(kept);
                    values
                        .iter()
                        .for_each(|value| _ = form.append_pair(name, value));
                    form.finish()
                } else {
                    let (before, json, after) = self.json_within();
                    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
                    let at = format!(
                        "{}{at}",
                        each.map_or(String::new(), |each| format!("{each}/0"))
                    );
                    let (parent, name) = at.rsplit_once('/').unwrap();
                    let parent = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                    parent.remove(name);
                    if let Some(text) = values.first() {
                        parent.insert(name.to_owned(), (*text).into());
                    }
                    format!("{before}{value}{after}")
                };
                self.request.body = Some(body);
                self.request.body_base64 = None;
            }
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
        id: expect.key_id.clone(),
        material,
        not_after: None,
    }
}

fn verify(profile: &'static Profile, case: &Case, body: &Bytes) -> Outcome {
    let verifier = profile
        .bind(vec![key(&case.expect)], case.options())
        .unwrap();
    let parts = RequestParts {
        method: &case.request.method,
        url: &case.request.url,
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
        Outcome::Handshake(..) => "handshake",
        Outcome::Malformed(why) => why.code(),
        Outcome::Refused(refusal) => refusal.step.code(),
        Outcome::Wanted(_) => "wanted",
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
        let items = evidence
            .items()
            .iter()
            .map(|item| (item.event(), item.delivery()));
        let items: Vec<(&str, &str)> = items.collect();
        if let Some(expected) = &case.expect.items {
            let expected = (expected.iter()).map(|e| (e.event.as_str(), e.delivery.as_str()));
            assert_eq!(items, expected.collect::<Vec<_>>(), "{id}");
        } else {
            assert_eq!(items.len(), 1, "{id}");
            assert_eq!(Some(items[0].0), case.expect.event.as_deref(), "{id}");
            assert_eq!(items[0].1, evidence.delivery_name(), "{id}");
        }
        assert_eq!(evidence.delivery(), case.expect.delivery.as_deref(), "{id}");
        let signed_at = evidence.signed_at().map(|at| at.unix_ms());
        assert_eq!(signed_at, case.expect.signed_at_ms, "{id}");
        assert_eq!(evidence.key_name(), "k", "{id}");
        // What is read without a key, for trials, is the same
        let body = case.body();
        let unverified = profile.read_unverified(&RequestParts {
            method: "POST",
            url: &case.request.url,
            headers: &case.request,
            body: &body,
        });
        let events = unverified.iter().map(|item| item.event.as_deref());
        let expected = evidence.items().iter().map(|item| Some(item.event()));
        assert!(events.eq(expected), "{id}");
        // A claim is believed of a verified token alone
        if case.expect.items.is_none() && id != "messagebird_jwt" {
            assert_eq!(
                unverified[0].delivery.as_deref(),
                evidence.delivery(),
                "{id}"
            );
        }
    }
}

#[test]
fn a_key_that_has_an_id_verifies_the_deliveries_that_name_it_alone() {
    let mut case = Case::read("pusher", "evidence");
    for (id, header, step) in [
        (None, "key1", "verified"),
        (Some("key1"), "key1", "verified"),
        (Some("key1"), "otherkey", "signature-mismatch"),
        (Some("otherkey"), "key1", "signature-mismatch"),
    ] {
        case.expect.key_id = id.map(str::to_owned);
        case.set("X-Pusher-Key", &[header]);
        let outcome = verify(profile("pusher"), &case, &case.body());
        assert_eq!(said(&outcome), step, "{id:?} {header}");
    }
}
