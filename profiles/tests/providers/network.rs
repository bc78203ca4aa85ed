//! Keys from the network: what the verifier asks for, what it makes of an answer, and for how long.

use postern_profiles::certificate::NotTrusted;
use postern_profiles::{FetchedKey, FetchedKeys, KeyFault, KeyRequest};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, TrustAnchor};

use super::*;

const ROOT: &str = include_str!("../../../fixtures/certificates/root.pem");
const ISSUER: &str = include_str!("../../../fixtures/certificates/issuer.pem");
const SNS: &str = include_str!("../../../fixtures/certificates/sns.pem");
const SNS_KEY: &str = include_str!("../../../fixtures/certificates/sns.key");
const PAYPAL: &str = include_str!("../../../fixtures/certificates/paypal.pem");
const PAYPAL_KEY: &str = include_str!("../../../fixtures/certificates/paypal.key");
const EVIL: &str = include_str!("../../../fixtures/certificates/evil.pem");
/// 2027-06-01T00:00:00Z, within the time of the certificates
const NOW: i64 = 1_811_808_000;

fn at(unix: i64) -> Timestamp {
    Timestamp::from_unix(unix).unwrap()
}

fn anchors() -> Vec<TrustAnchor<'static>> {
    let root = CertificateDer::from_pem_slice(ROOT.as_bytes()).unwrap();
    vec![webpki::anchor_from_trusted_cert(&root).unwrap().to_owned()]
}

/// Verifies without a key that is bound
fn hold(
    profile: &'static Profile,
    case: &Case,
    body: &Bytes,
    options: Options,
    fetched: &FetchedKeys,
    now: Timestamp,
) -> Outcome {
    let verifier = profile.bind(Vec::new(), options).unwrap();
    let parts = RequestParts {
        method: &case.request.method,
        url: &case.request.url,
        headers: &case.request,
        body,
    };
    verifier.verify_with(&parts, fetched, now)
}

fn wanted(outcome: Outcome) -> Box<KeyRequest> {
    match outcome {
        Outcome::Wanted(request) => request,
        other => panic!("{}", said(&other)),
    }
}

fn holding(request: &KeyRequest, key: FetchedKey) -> FetchedKeys {
    let mut keys = FetchedKeys::default();
    keys.insert(request, key, 8);
    keys
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    request: CapturedRequest,
    now: i64,
    #[serde(default)]
    params: BTreeMap<String, Texts>,
    public_key: Option<VectorKey>,
}

#[derive(Deserialize)]
struct VectorKey {
    value: serde_json::Value,
}

/// The line of a vector as a case, with its key's text
fn vector(id: &str) -> (Case, String) {
    let lines = include_str!("../../../fixtures/vectors/verification-vectors.jsonl");
    let mut parsed = lines
        .lines()
        .map(|line| serde_json::from_str::<Vector>(line).unwrap());
    let line = parsed.find(|line| line.id == id).unwrap();
    let mut case = Case::bare();
    case.request = line.request;
    case.expect.now = line.now;
    case.expect.params = line.params;
    (case, line.public_key.unwrap().value.to_string())
}

/// A notification of now, signed with the certificate's key
fn notification() -> (Case, Bytes) {
    let mut case = Case::read("aws_sns", "accept");
    let body = String::from_utf8(case.body().to_vec()).unwrap();
    let body = body.replace("2025-06-15T15:06:40.000Z", "2027-06-01T00:00:00.000Z");
    case.expect.secret = Some(SNS_KEY.to_owned());
    let body = case.sign(profile("aws_sns"), &Bytes::from(body), at(NOW));
    (case, body)
}

#[test]
fn a_certificate_is_asked_for_where_the_delivery_says_and_its_key_verifies() {
    let (case, body) = notification();
    let profile = profile("aws_sns");
    let none = FetchedKeys::default();
    let verify = |fetched: &FetchedKeys, body: &Bytes| {
        hold(profile, &case, body, Options::default(), fetched, at(NOW))
    };
    let request = wanted(verify(&none, &body));
    let address = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem";
    assert_eq!(request.url.as_str(), address);
    assert!(request.body.is_none() && request.headers.is_empty());
    let key = request.read(SNS.as_bytes(), &[], at(NOW)).unwrap();
    let fetched = holding(&request, key);
    let seen = evidence(verify(&fetched, &body));
    assert_eq!(seen.key_name(), "sns.us-west-2.amazonaws.com");
    // The same key does not make another's body right
    let other = String::from_utf8(body.to_vec()).unwrap();
    let other = other.replace("Hello world!", "Hello wor1d!");
    let outcome = verify(&fetched, &Bytes::from(other));
    assert_eq!(said(&outcome), "signature-mismatch");
    // Nor is a key taken from an address outside of the list
    let evil = String::from_utf8(body.to_vec()).unwrap();
    let evil = evil.replace("amazonaws.com/Simple", "amazonaws.com.evil.example/Simple");
    let outcome = verify(&fetched, &Bytes::from(evil));
    assert_eq!(said(&outcome), "certificate-url");
}

#[test]
fn a_certificate_of_another_name_time_or_root_is_no_key() {
    let (case, body) = notification();
    let none = FetchedKeys::default();
    let profile = profile("aws_sns");
    let request = wanted(hold(
        profile,
        &case,
        &body,
        Options::default(),
        &none,
        at(NOW),
    ));
    let read = |pem: &str, anchors: &[TrustAnchor<'static>], now: i64| match request.read(
        pem.as_bytes(),
        anchors,
        at(now),
    ) {
        Ok(_) => "trusted",
        Err(KeyFault::Certificate(NotTrusted::NotPem)) => "no pem",
        Err(KeyFault::Certificate(NotTrusted::Name)) => "name",
        Err(KeyFault::Certificate(NotTrusted::Time)) => "time",
        Err(KeyFault::Certificate(NotTrusted::Chain(_))) => "chain",
        Err(KeyFault::NoKey) => "no key",
    };
    let chain = format!("{SNS}{ISSUER}");
    assert_eq!(read(SNS, &[], NOW), "trusted");
    assert_eq!(read(&chain, &anchors(), NOW), "trusted");
    assert_eq!(read(&chain, &[], NOW), "chain");
    assert_eq!(read(&format!("{SNS}{SNS}"), &anchors(), NOW), "chain");
    assert_eq!(read(&format!("{EVIL}{ISSUER}"), &anchors(), NOW), "name");
    assert_eq!(read(EVIL, &anchors(), NOW), "name");
    assert_eq!(read(PAYPAL, &anchors(), NOW), "name");
    // 2025 and 2060: before and after all of them
    assert_eq!(read(SNS, &[], 1_750_000_000), "time");
    assert_eq!(read(SNS, &[], 2_850_000_000), "time");
    for nothing in [
        "",
        "x",
        ROOT.lines().next().unwrap(),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        assert_eq!(read(nothing, &[], NOW), "no pem", "{nothing}");
    }
}

#[test]
fn where_the_profile_wants_a_chain_a_certificate_alone_is_none() {
    let profile = profile("paypal");
    let mut case = Case::read("paypal", "accept");
    case.expect.secret = Some(PAYPAL_KEY.to_owned());
    let body = case.body();
    let body = case.sign(profile, &body, at(NOW));
    let none = FetchedKeys::default();
    let request = wanted(hold(profile, &case, &body, case.options(), &none, at(NOW)));
    let alone = request.read(PAYPAL.as_bytes(), &anchors(), at(NOW));
    assert!(matches!(
        alone,
        Err(KeyFault::Certificate(NotTrusted::Chain(_)))
    ));
    let chain = format!("{PAYPAL}{ISSUER}");
    let key = request.read(chain.as_bytes(), &anchors(), at(NOW)).unwrap();
    let fetched = holding(&request, key);
    let outcome = hold(profile, &case, &body, case.options(), &fetched, at(NOW));
    assert_eq!(said(&outcome), "verified");
}

fn credential() -> Options {
    Options {
        credential: Some(Secret::new(b"hunter2".to_vec())),
        ..Options::default()
    }
}

#[test]
fn a_key_is_asked_for_by_the_id_that_the_delivery_names() {
    let profile = profile("circle_usdc");
    let mut case = Case::read("circle_usdc", "accept");
    let body = case.body();
    let now = case.now();
    let verify =
        |case: &Case, fetched: &FetchedKeys| hold(profile, case, &body, credential(), fetched, now);
    let none = FetchedKeys::default();
    let request = wanted(verify(&case, &none));
    let address = "https://api.circle.com/v2/notifications/publicKey/k1";
    assert_eq!(request.url.as_str(), address);
    let (name, value) = &request.headers[0];
    assert_eq!(
        (name.as_str(), value.expose()),
        ("Authorization", &b"Bearer hunter2"[..])
    );
    assert!(!format!("{request:?}").contains("hunter2"));
    // The key of the fixture, as the API gives it
    let public = case.expect.public_key.clone().unwrap();
    let base64: String = public
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    let answer = serde_json::json!({"data": {"id": "k1", "publicKey": base64}}).to_string();
    let key = request.read(answer.as_bytes(), &[], now).unwrap();
    let fetched = holding(&request, key);
    let seen = evidence(verify(&case, &fetched));
    assert_eq!(seen.key_name(), "api.circle.com/k1");
    for answer in [
        "",
        "{}",
        "[]",
        r#"{"data":{}}"#,
        r#"{"data":{"publicKey":"x"}}"#,
        r#"{"data":{"publicKey":1}}"#,
        r#"{"data":{"publicKey":null}}"#,
    ] {
        assert!(
            matches!(
                request.read(answer.as_bytes(), &[], now),
                Err(KeyFault::NoKey)
            ),
            "{answer}"
        );
    }
    // The server's word that there is none counts for half a minute
    let unknown = holding(&request, FetchedKey::none(now));
    assert_eq!(said(&verify(&case, &unknown)), "key-unknown");
    let later = now.plus_ms(30_000);
    let outcome = hold(profile, &case, &body, credential(), &unknown, later);
    assert_eq!(said(&outcome), "wanted");
    // Another key's id asks for another key
    case.set("X-Circle-Key-Id", &["k2"]);
    assert_eq!(said(&verify(&case, &fetched)), "wanted");
    let long = "x".repeat(129);
    for id in [
        "", "..", ".", "../k1", "k/1", "k?1", "k%31", "k 1", "k#1", "é", &long,
    ] {
        case.set("X-Circle-Key-Id", &[id]);
        assert_eq!(said(&verify(&case, &none)), "key-unnamed", "{id}");
    }
}

#[test]
fn a_key_that_is_bound_keeps_the_network_out_of_it() {
    let case = Case::read("circle_usdc", "accept");
    assert_eq!(
        said(&verify(profile("circle_usdc"), &case, &case.body())),
        "verified"
    );
    let error = |keys: Vec<Key>, options: Options| {
        profile("circle_usdc")
            .bind(keys, options)
            .map(|_| ())
            .unwrap_err()
    };
    assert_eq!(
        error(Vec::new(), Options::default()),
        BindError::NoCredential
    );
    assert_eq!(
        error(vec![key(&case.expect)], credential()),
        BindError::UnusedCredential
    );
    let plaid = profile("plaid").bind(Vec::new(), credential()).map(|_| ());
    assert_eq!(
        plaid.unwrap_err(),
        BindError::NoParam("client_id".to_owned())
    );
}

#[test]
fn the_key_of_a_token_is_asked_for_with_what_its_server_wants() {
    let (mut case, jwk) = vector("plaid-01");
    let profile = profile("plaid");
    case.expect
        .params
        .insert("client_id".to_owned(), Texts::One("c-1".to_owned()));
    let options = || Options {
        params: case.params(),
        ..credential()
    };
    let body = case.body();
    let none = FetchedKeys::default();
    let request = wanted(hold(profile, &case, &body, options(), &none, case.now()));
    let posted: serde_json::Value =
        serde_json::from_slice(request.body.as_ref().unwrap().expose()).unwrap();
    let wants = serde_json::json!({
        "client_id": "c-1", "secret": "hunter2", "key_id": "bfbd5111-8e33-4643-8ced-b2e642a72f3c",
    });
    assert_eq!(posted, wants);
    let answer = format!(r#"{{"key": {jwk}, "request_id": "r"}}"#);
    let key = request.read(answer.as_bytes(), &[], case.now()).unwrap();
    let fetched = holding(&request, key);
    let outcome = hold(profile, &case, &body, options(), &fetched, case.now());
    assert_eq!(said(&outcome), "verified");
    // Another credential is another request: what was fetched with the old one is not taken for its own
    let other = Options {
        credential: Some(Secret::new(b"other".to_vec())),
        ..options()
    };
    let outcome = hold(profile, &case, &body, other, &fetched, case.now());
    assert_eq!(said(&outcome), "wanted");
}

#[test]
fn a_set_without_the_key_is_asked_for_again_but_not_at_once() {
    let (case, set) = vector("gcp_pubsub_oidc-01");
    let profile = profile("gcp_pubsub_oidc");
    let now = case.now();
    let verify = |fetched: &FetchedKeys, now: Timestamp| {
        hold(profile, &case, &case.body(), case.options(), fetched, now)
    };
    let request = wanted(verify(&FetchedKeys::default(), now));
    assert_eq!(
        request.url.as_str(),
        "https://www.googleapis.com/oauth2/v3/certs"
    );
    let key = request.read(set.as_bytes(), &[], now).unwrap();
    assert_eq!(said(&verify(&holding(&request, key), now)), "verified");
    // The key has rotated: this set is of before
    let old = set.replace("\"kid\":\"k1\"", "\"kid\":\"k0\"");
    assert_ne!(old, set);
    let key = request.read(old.as_bytes(), &[], now).unwrap();
    let fetched = holding(&request, key);
    assert_eq!(said(&verify(&fetched, now.plus_ms(29_999))), "key-unknown");
    assert_eq!(said(&verify(&fetched, now.plus_ms(30_000))), "wanted");
}

#[test]
fn what_was_fetched_counts_for_an_hour_and_for_a_day_where_nothing_newer_can_be_had() {
    const HOUR: i64 = 3_600_000;
    let (mut case, body) = notification();
    let profile = profile("aws_sns");
    let none = FetchedKeys::default();
    let request = wanted(hold(
        profile,
        &case,
        &body,
        Options::default(),
        &none,
        at(NOW),
    ));
    let key = request.read(SNS.as_bytes(), &[], at(NOW)).unwrap();
    let mut when = |key: &FetchedKey, ms: i64| {
        let now = at(NOW).plus_ms(ms);
        // A delivery of that time
        let text = String::from_utf8(body.to_vec()).unwrap();
        let text = text.replace("2027-06-01T00:00:00.000Z", &now.to_string());
        let body = case.sign(profile, &Bytes::from(text), now);
        let fetched = holding(&request, key.clone());
        said(&hold(
            profile,
            &case,
            &body,
            Options::default(),
            &fetched,
            now,
        ))
    };
    assert_eq!(when(&key, HOUR - 1), "verified");
    assert_eq!(when(&key, HOUR), "wanted");
    let longer = key.prolonged(at(NOW).plus_ms(HOUR)).unwrap();
    assert_eq!(when(&longer, HOUR), "verified");
    assert_eq!(when(&longer, HOUR + 30_000), "wanted");
    assert!(key.prolonged(at(NOW).plus_ms(24 * HOUR)).is_none());
    assert!(key.prolonged(at(NOW).plus_ms(24 * HOUR - 1)).is_some());
    // A clock that went back does not make a key count for ever
    assert_eq!(when(&key, -301_000), "wanted");
    assert_eq!(when(&key, -299_000), "verified");
    assert!(FetchedKey::none(at(NOW)).prolonged(at(NOW)).is_none());
}

#[test]
fn a_subscription_is_confirmed_only_for_topics_that_the_operator_names() {
    let profile = profile("aws_sns");
    let (mut case, _) = notification();
    let own = "arn:aws:sns:us-west-2:123456789012:MyTopic";
    let confirmation = |url: &str| {
        let body = serde_json::json!({
            "Type": "SubscriptionConfirmation", "MessageId": "m", "Token": "t", "TopicArn": own,
            "Message": "You have chosen to subscribe", "SubscribeURL": url,
            "Timestamp": "2027-06-01T00:00:00.000Z", "SignatureVersion": "2",
            "SigningCertURL": "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem",
        });
        Bytes::from(body.to_string())
    };
    let good = "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=x&Token=t";
    let mut then = |url: &str, topics: Option<&str>| {
        let body = case.sign(profile, &confirmation(url), at(NOW));
        let options = Options {
            params: (topics.into_iter())
                .map(|topic| {
                    (
                        "topics".to_owned(),
                        vec!["other".to_owned(), topic.to_owned()],
                    )
                })
                .collect(),
            ..Options::default()
        };
        let none = FetchedKeys::default();
        let request = wanted(hold(profile, &case, &body, options.clone(), &none, at(NOW)));
        let key = request.read(SNS.as_bytes(), &[], at(NOW)).unwrap();
        let fetched = holding(&request, key);
        match hold(profile, &case, &body, options, &fetched, at(NOW)) {
            Outcome::Handshake(reply, Then::Visit(url)) => format!("{} {url}", reply.status),
            Outcome::Handshake(reply, Then::NoVisit(param)) => {
                format!("{} no {param}", reply.status)
            }
            other => said(&other).to_owned(),
        }
    };
    assert_eq!(then(good, Some(own)), format!("200 {good}"));
    // Anybody with an account can have a confirmation signed for a topic of theirs
    assert_eq!(then(good, None), "200 no topics");
    assert_eq!(
        then(good, Some("arn:aws:sns:us-west-2:666:Theirs")),
        "condition"
    );
    for bad in [
        "https://sns.us-west-2.amazonaws.com.evil.example/?Action=ConfirmSubscription",
        "http://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription",
        "https://169.254.169.254/latest/meta-data",
        "https://sns.us-west-2.amazonaws.com@evil.example/",
    ] {
        assert_eq!(then(bad, Some(own)), "handshake-incomplete", "{bad}");
    }
}
