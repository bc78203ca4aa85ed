//! Faults that users of other gateways met, each as a small delivery with the right answer. MACs are HMAC
//! by python's `hmac` with the key `key`, unless said otherwise.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use postern_contract::Pointer;
use postern_contract::Resolution;
use postern_contract::Secret;
use postern_contract::Timestamp;
use postern_profiles::{Catalogue, KeyMaterial, Options, Outcome, RequestParts, SignaturePlace};

use super::{Case, evidence, key, profile, said, verify};

/// A delivery of the github profile signed with `mac`
fn github(mac: &str, body: &'static [u8], content_type: &str) -> Outcome {
    let mut case = Case::bare();
    case.set("X-Hub-Signature-256", &[&format!("sha256={mac}")]);
    case.set("X-GitHub-Event", &["push"]);
    case.set("Content-Type", &[content_type]);
    verify(profile("github"), &case, &Bytes::from_static(body))
}

const JSON: &str = "application/json";

#[test]
fn report_a1_the_bytes_are_signed_and_not_their_value() {
    let mac = "74cd220626128109cec0705e1d5f39d2a2f502985d3bae27b0e2bda0a86aa58e";
    let read = evidence(github(mac, br#"{"a":"\u001B"}"#, JSON));
    let at: Pointer = "/a".parse().unwrap();
    match read.items()[0].document().resolve(&at) {
        Resolution::Resolved(value) => assert_eq!(value.as_str(), Some("\u{1b}")),
        _ => panic!("nothing at /a"),
    }
    // The same value in the spelling that a serializer gives it
    let outcome = github(mac, br#"{"a":"\u001b"}"#, JSON);
    assert_eq!(said(&outcome), "signature-mismatch");
}

#[test]
fn report_a4_the_form_is_signed_and_not_the_json_in_it() {
    let form = "application/x-www-form-urlencoded";
    let of_json = "a777724d943eb48dc69bca8a4a6d57a04db3f9ec7e1de4e581e860265bdf3032";
    let of_form = "9f008b3fc75535874d10b08c7135906155ba15447ebb227e368e9e232bbcba8b";
    let body = b"payload=%7B%7D";
    assert_eq!(said(&github(of_json, body, form)), "signature-mismatch");
    assert_eq!(said(&github(of_form, body, form)), "verified");
    // The JSON itself, sent as what was signed, is another delivery and no form
    assert_eq!(said(&github(of_json, b"{}", form)), "verified");
}

#[test]
fn report_a8_bytes_that_are_no_text_are_refused_or_no_evidence() {
    let zeros = "0".repeat(64);
    assert_eq!(
        said(&github(&zeros, b"\xff\xfe", JSON)),
        "signature-mismatch"
    );
    let of_fffe = "491f1abad6b55bf1cac88aa1357e26f61e3d9bcf43a3dbd63b7c9322175b7039";
    assert_eq!(said(&github(of_fffe, b"\xff\xfe", JSON)), "malformed-body");
    let mac = "fbaf5533b68db001346e34353ce7f34397d3fb6e41bedfc58302e8f8dd130325";
    let body = "{\"a\":\"é\"}".as_bytes();
    assert_eq!(said(&github(mac, body, JSON)), "verified");
    // Its copy in Latin-1
    let latin = b"{\"a\":\"\xe9\"}";
    assert_eq!(said(&github(mac, latin, JSON)), "signature-mismatch");
}

#[test]
fn report_a11_a_line_end_behind_the_body_is_signed() {
    let mac = "e977d04bb83db33b73a939384ce3533299a2007c9aa7bf49a0142929368b0c0b";
    let whole = b"[{\"n\":1},{\"n\":2}]\r\n";
    assert_eq!(said(&github(mac, whole, JSON)), "verified");
    let cut = b"[{\"n\":1},{\"n\":2}]";
    assert_eq!(said(&github(mac, cut, JSON)), "signature-mismatch");
}

#[test]
fn report_a12_any_signature_of_a_list_may_be_right() {
    let good = "6fbf94de3ea14826e6b2d7ebfbc5d19198b88b117f22bd492e51cadec096e3e9";
    let bad = "0".repeat(64);
    let body = Bytes::from_static(br#"{"event":{"id":"1","event_type":"incident.triggered"}}"#);
    let say = |header: &str| {
        let mut case = Case::bare();
        case.set("X-PagerDuty-Signature", &[header]);
        said(&verify(profile("pagerduty_v3"), &case, &body))
    };
    assert_eq!(say(&format!("v1={bad},v1={good}")), "verified");
    assert_eq!(say(&format!("v1={bad}, v1={good}")), "verified");
    assert_eq!(say(&format!("v1={good},v1={bad}")), "verified");
    assert_eq!(say(&format!("v1=x,v1=,v2={bad},v1={good}")), "verified");
    assert_eq!(say(&format!("v1={bad},v1={bad}")), "signature-mismatch");
    assert_eq!(say(&format!("v2={good}")), "signature-malformed");
    assert_eq!(say(&format!("v1={bad};v1={good}")), "signature-undecodable");
    // No list, where the provider sends none
    let mac = "74cd220626128109cec0705e1d5f39d2a2f502985d3bae27b0e2bda0a86aa58e";
    let outcome = github(&format!("{bad},sha256={mac}"), br#"{"a":"\u001B"}"#, JSON);
    assert_eq!(said(&outcome), "signature-undecodable");
}

#[test]
fn report_a13_upper_case_counts_where_the_profile_says_hex() {
    let mac = "fe4fd26737169aad6404a649460b107b6372bed3f9afa5fb5299bdb8e6f902cc";
    let body = Bytes::from_static(br#"{"id":"1","type":"page.created"}"#);
    let say = |mac: &str| {
        let mut case = Case::bare();
        case.set("X-Notion-Signature", &[&format!("sha256={mac}")]);
        said(&verify(profile("notion"), &case, &body))
    };
    assert_eq!(say(mac), "verified");
    assert_eq!(say(&mac.to_uppercase()), "verified");
    assert_eq!(say(&mac[..63]), "signature-undecodable");
    let mac = "74cd220626128109cec0705e1d5f39d2a2f502985d3bae27b0e2bda0a86aa58e";
    let body = br#"{"a":"\u001B"}"#;
    assert_eq!(said(&github(mac, body, JSON)), "verified");
    let upper = github(&mac.to_uppercase(), body, JSON);
    assert_eq!(said(&upper), "signature-undecodable");
    assert_eq!(
        said(&github(&mac[..63], body, JSON)),
        "signature-undecodable"
    );
}

#[test]
fn report_a15_a_header_that_is_no_text_is_refused() {
    for profile in Catalogue::embedded().iter() {
        let case = Case::read(profile.id(), "evidence");
        let (SignaturePlace::Header(name), good) = case.signature(profile) else {
            continue;
        };
        let verifier = profile
            .bind(vec![key(&case.expect)], case.options())
            .unwrap();
        let body = case.body();
        for bytes in [
            [good.as_bytes(), b"\xe9"].concat(),
            [b"\xff", good.as_bytes()].concat(),
            "sha256=é".as_bytes().to_vec(),
            vec![0xff; 64],
        ] {
            let mut headers = HeaderMap::new();
            for (name, values) in &case.request.headers {
                let name = HeaderName::try_from(name.as_str()).unwrap();
                headers.insert(name, values.iter().next().unwrap().parse().unwrap());
            }
            let value = HeaderValue::from_bytes(&bytes).unwrap();
            headers.insert(HeaderName::try_from(name).unwrap(), value);
            let parts = RequestParts {
                method: "POST",
                url: &case.request.url,
                headers: &headers,
                body: &body,
            };
            let outcome = verifier.verify(&parts, case.now());
            assert!(
                matches!(outcome, Outcome::Refused(_)),
                "{}: {}",
                profile.id(),
                said(&outcome)
            );
        }
    }
}

#[test]
fn report_a16_the_secret_is_decoded_and_its_prefix_is_not_part_of_it() {
    // Published with the report, and recomputed there
    let mut case = Case::bare();
    case.expect.now = 1_649_367_553;
    case.set("webhook-id", &["msg_27UH4WbU6Z5A5EzD8u03UvzRbpk"]);
    case.set("webhook-timestamp", &["1649367553"]);
    let signature = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
    case.set("webhook-signature", &[signature]);
    let body = br#"{"email":"test@example.com","username":"test_user"}"#;
    let mut say = |secret: &str| {
        case.expect.secret = Some(secret.to_owned());
        let outcome = verify(
            profile("standard_webhooks"),
            &case,
            &Bytes::from_static(body),
        );
        said(&outcome)
    };
    // Authentic; these early examples name no type
    let good = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    assert_eq!(say(&format!("whsec_{good}")), "no-event");
    assert_eq!(say(good), "no-event");
    assert_eq!(
        say("whsec_AAFVsBQIhrscChlQIMV+b5sSYspob7oD"),
        "signature-mismatch"
    );
}

#[test]
fn report_a21_a_header_that_is_there_is_not_a_signature() {
    let mut case = Case::read("slack", "evidence");
    case.set("X-Slack-Signature", &["x"]);
    let say = |case: &Case| said(&verify(profile("slack"), case, &case.body()));
    assert_eq!(say(&case), "signature-malformed");
    case.set("X-Slack-Signature", &["v0=x"]);
    assert_eq!(say(&case), "signature-undecodable");
    // Without keys nothing is let through
    assert!(
        profile("slack")
            .bind(Vec::new(), Options::default())
            .is_err()
    );
}

#[test]
fn report_a24_an_empty_body_is_authentic_and_no_evidence() {
    let mac = "5d5d139563c95b5967b9bd9a8c9b233a9dedb45072794cd232dc1b74832607d0";
    assert_eq!(said(&github(mac, b"", JSON)), "malformed-body");
    assert_eq!(said(&github(mac, b"{}", JSON)), "signature-mismatch");
}

#[test]
fn report_a25_a26_times_are_held_on_both_sides_and_in_their_unit() {
    let stripe = |at: i64| {
        let mut case = Case::read("stripe", "evidence");
        let body = case.body();
        case.sign(profile("stripe"), &body, Timestamp::from_unix(at).unwrap());
        said(&verify(profile("stripe"), &case, &body))
    };
    let now = Case::read("stripe", "evidence").expect.now;
    assert_eq!(stripe(now), "verified");
    assert_eq!(stripe(now + 86_400), "timestamp-ahead");
    assert_eq!(stripe(now - 86_400), "timestamp-old");
    // Milliseconds where seconds are wanted lie far ahead
    assert_eq!(stripe(now * 100), "timestamp-ahead");
    // Seconds where milliseconds are wanted lie far back; HMAC by python
    let mut case = Case::bare();
    case.set("Linear-Signature", &[LINEAR_SECONDS]);
    let body = Bytes::from_static(br#"{"type":"Issue","webhookTimestamp":1750000000}"#);
    assert_eq!(
        said(&verify(profile("linear"), &case, &body)),
        "timestamp-old"
    );
}

const LINEAR_SECONDS: &str = "e611798e25a2ba6f0479f170ffa70c3ae83bd342ae66073442b486c0e8551602";

#[test]
fn a_time_that_nobody_signed_counts_for_nothing() {
    // The header beside the signed time says now, and the signed time is a day old
    let mut case = Case::read("linear", "evidence");
    case.expect.now += 86_400;
    case.set(
        "Linear-Timestamp",
        &[&(case.expect.now * 1_000).to_string()],
    );
    let say = |case: &Case| said(&verify(profile("linear"), case, &case.body()));
    assert_eq!(say(&case), "timestamp-old");
    case.expect.now -= 86_400;
    case.set("Linear-Timestamp", &["1"]);
    assert_eq!(say(&case), "verified");
}

#[test]
fn report_a29_a30_an_unsigned_id_does_not_hide_a_copy() {
    let keys = |id: &str| {
        let mut case = Case::read("github", "evidence");
        case.set("X-GitHub-Delivery", &[id]);
        let outcome = verify(profile("github"), &case, &case.body());
        evidence(outcome).replay_keys().to_vec()
    };
    let (a, b) = (keys("one"), keys("two"));
    assert_eq!(a.len(), 2);
    assert_ne!(a[0], b[0]);
    assert_eq!(a[1], b[1]);
    assert_eq!(a, keys("one"));
    // A signed id is the identity alone: its retry has another time and so another content
    let at = |seconds: i64| {
        let mut case = Case::read("standard_webhooks", "evidence");
        let (body, at) = (case.body(), case.expect.now + seconds);
        case.sign(
            profile("standard_webhooks"),
            &body,
            Timestamp::from_unix(at).unwrap(),
        );
        evidence(verify(profile("standard_webhooks"), &case, &body))
            .replay_keys()
            .to_vec()
    };
    assert_eq!(at(0), at(9));
    assert_eq!(at(0).len(), 1);
}

#[test]
fn nothing_that_is_shown_holds_a_secret() {
    let case = Case::read("github", "wrong-signature");
    let secret = case.expect.secret.clone().unwrap();
    let key = key(&case.expect);
    assert!(matches!(&key.material, KeyMaterial::Secret(s) if s.expose() == secret.as_bytes()));
    let verifier = profile("github")
        .bind(vec![key.clone()], Options::default())
        .unwrap();
    // HMAC-SHA256 of the body under the fixture's secret, as GitHub publishes it
    let right = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let refusal = match verify(profile("github"), &case, &case.body()) {
        Outcome::Refused(refusal) => refusal,
        other => panic!("{}", said(&other)),
    };
    let shown = format!(
        "{key:?} {verifier:?} {refusal:?} {refusal} {:?}",
        Secret::new(Vec::new())
    );
    assert!(
        !shown.contains(&secret) && !shown.contains(right),
        "{shown}"
    );
}
