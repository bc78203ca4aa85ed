//! What `explain` finds: each mistake of the list, made on a delivery that verified without it; and what it
//! never shows.

use postern_profiles::explain::{Explanation, Mistake, Said, Trial};

use super::*;

fn trial(case: &Case, body: &Bytes) -> Trial {
    Trial {
        request: case.request.clone(),
        body: body.clone(),
        keys: vec![key(&case.expect)],
        options: case.options(),
        now: case.now(),
    }
}

/// A delivery that is signed with `secret`, as captured
fn signed(id: &str, secret: &str, body: &str) -> Trial {
    let mut case = Case::bare();
    case.request.url = "https://hooks.example.com/in?a=1".to_owned();
    case.expect.secret = Some(secret.to_owned());
    let now = case.now();
    let body = case.sign(profile(id), &Bytes::from(body.to_owned()), now);
    trial(&case, &body)
}

fn with_secret(mut trial: Trial, secret: &str) -> Trial {
    for key in &mut trial.keys {
        key.material = KeyMaterial::Secret(Secret::new(secret.as_bytes().to_vec()));
    }
    trial
}

fn explain(id: &str, trial: &Trial) -> Explanation {
    profile(id).explain(trial, Catalogue::embedded())
}

/// What it finds beside other profiles, in order
fn found(id: &str, trial: &Trial) -> Vec<Mistake> {
    let explanation = explain(id, trial);
    assert!(!explanation.said.is_authentic());
    assert!(explanation.tried > 0);
    let mistakes = explanation.mistakes.iter().map(|found| found.mistake);
    mistakes.filter(|m| *m != Mistake::OtherProfile).collect()
}

const BODY: &str = r#"{"type":"ping","id":"1"}"#;

#[test]
fn a_delivery_that_verifies_needs_no_explanation() {
    let trial = signed("github", "a long secret", BODY);
    let explanation = explain("github", &trial);
    assert!(matches!(
        &explanation.said,
        Said::Malformed(_) | Said::Verified(_)
    ));
    assert_eq!(explanation.tried, 0);
    assert_eq!(explanation.contents, [format!("{BODY:?}")]);
}

#[test]
fn mistakes_in_the_secret_are_found() {
    let good = "a long secret";
    let cases = [
        (format!(" {good}"), Mistake::SecretBlanks),
        (format!("{good}\n"), Mistake::SecretBlanks),
        (format!("\"{good}\""), Mistake::SecretQuotes),
        (format!("'{good}'"), Mistake::SecretQuotes),
        (format!("whsec_{good}"), Mistake::SecretPrefix),
    ];
    let trial = signed("github", good, BODY);
    for (given, mistake) in cases {
        let given = with_secret(trial.clone(), &given);
        assert_eq!(found("github", &given), [mistake]);
    }
    let prefixed = signed("stripe", "whsec_a_long_secret", BODY);
    let given = with_secret(prefixed, "a_long_secret");
    assert_eq!(found("stripe", &given), [Mistake::SecretPrefix]);
    // The provider signs with the newline, which no key here has. HMAC keys are padded with zeros, not newlines
    let mut newline = signed("github", good, BODY);
    let signature = mac(b"a long secret\n", BODY);
    let header = HeaderValues::One(format!("sha256={signature}"));
    newline
        .request
        .headers
        .insert("X-Hub-Signature-256".to_owned(), header);
    assert_eq!(found("github", &newline), [Mistake::SecretNewline]);
    // Base64 of a profile that decodes it, of which the provider uses the text
    let text = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let as_text = signed("github", text, BODY);
    let decoded: &[u8] = &[
        0x0b, 0x61, 0x55, 0xb0, 0x14, 0x08, 0x86, 0xbb, 0x1c, 0x0a, 0x19, 0x50, 0x20, 0xc5, 0x7e,
        0x6f, 0x9b, 0x12, 0x62, 0xca, 0x68, 0x6f, 0xba, 0x03,
    ];
    let signature = mac(decoded, BODY);
    let mut decoded = as_text;
    let header = HeaderValues::One(format!("sha256={signature}"));
    decoded
        .request
        .headers
        .insert("X-Hub-Signature-256".to_owned(), header);
    assert_eq!(found("github", &decoded), [Mistake::SecretEncoding]);
}

#[test]
fn the_right_one_of_several_secrets_is_named() {
    let mut trial = signed("github", "a long secret", BODY);
    let mut other = trial.keys.first().unwrap().clone();
    other.name = "other".to_owned();
    other.material = KeyMaterial::Secret(Secret::new(b"another".to_vec()));
    trial.keys.insert(0, other);
    trial.request.headers.insert(
        "X-GitHub-Event".to_owned(),
        HeaderValues::One("ping".to_owned()),
    );
    trial.request.headers.insert(
        "X-GitHub-Delivery".to_owned(),
        HeaderValues::One("1".to_owned()),
    );
    assert!(matches!(explain("github", &trial).said, Said::Verified(name) if name == "k"));
}

#[test]
fn what_became_of_the_body_on_its_way_is_found() {
    let check = |sent: &str, seen: &str, mistake: Mistake| {
        let mut trial = signed("github", "a long secret", sent);
        trial.body = Bytes::from(seen.to_owned());
        assert_eq!(found("github", &trial), [mistake], "{seen}");
    };
    // Pretty, and written again by JSON.stringify
    check(
        "{\n  \"a\": \"ä\"\n}",
        r#"{"a":"ä"}"#,
        Mistake::BodyRewritten,
    );
    // PHP's escapes, undone; Python's
    check(
        r#"{"a":"\u00e4","u":"https:\/\/x"}"#,
        r#"{"a":"ä","u":"https://x"}"#,
        Mistake::BodyRewritten,
    );
    check(
        r#"{"a": "\u00e4", "b": [1, 2.50]}"#,
        r#"{"a":"ä","b":[1,2.50]}"#,
        Mistake::BodyRewritten,
    );
    check("a\r\nb", "a\nb", Mistake::BodyLineEnds);
    check("a\nb", "a\r\nb", Mistake::BodyLineEnds);
    check(r#"{"a":1}"#, "{\"a\":1}\n", Mistake::BodyNewline);
    check("x\n", "x", Mistake::BodyNewline);
    check("payload=%7B%22a%22%3A1%7D", r#"{"a":1}"#, Mistake::BodyForm);
    check(r#"{"a":1}"#, "payload=%7B%22a%22%3A1%7D", Mistake::BodyForm);
}

#[test]
fn clocks_and_their_units_are_told_apart() {
    let mut late = signed("stripe", "whsec_a_long_secret", BODY);
    late.now = late.now.plus_ms(3_600_000);
    let explanation = explain("stripe", &late);
    let first = explanation.mistakes.first().unwrap();
    assert_eq!(
        (first.mistake, first.off_by_seconds),
        (Mistake::Clock, Some(3_600))
    );
    late.now = late.now.plus_ms(-7_200_000);
    let explanation = explain("stripe", &late);
    let first = explanation.mistakes.first().unwrap();
    assert_eq!(
        (first.mistake, first.off_by_seconds),
        (Mistake::Clock, Some(-3_600))
    );
    // Another fault is found behind an old timestamp, which is told beside
    late.body = Bytes::from(format!("{BODY}\n"));
    let explanation = explain("stripe", &late);
    let first = explanation.mistakes.first().unwrap();
    assert_eq!(
        (first.mistake, first.off_by_seconds),
        (Mistake::BodyNewline, Some(-3_600))
    );
    // Milliseconds where the profile has seconds
    let mut unit = signed("stripe", "whsec_a_long_secret", BODY);
    let stamp = "1750000000000";
    let signature = mac(b"whsec_a_long_secret", &format!("{stamp}.{BODY}"));
    let header = HeaderValues::One(format!("t={stamp},v1={signature}"));
    unit.request
        .headers
        .insert("Stripe-Signature".to_owned(), header);
    assert_eq!(found("stripe", &unit), [Mistake::ClockUnit]);
}

/// By another implementation than the profiles'
fn mac(key: &[u8], content: &str) -> String {
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, key);
    hex::encode(aws_lc_rs::hmac::sign(&key, content.as_bytes()).as_ref())
}

#[test]
fn the_url_as_registered_is_found() {
    let id = "square";
    let sent = signed(id, "a long secret", BODY);
    for seen in [
        "http://hooks.example.com/in?a=1",
        "http://hooks.example.com:8080/in?a=1",
        "https://hooks.example.com/in/?a=1",
    ] {
        let mut trial = sent.clone();
        trial.request.url = seen.to_owned();
        assert_eq!(found(id, &trial), [Mistake::Url], "{seen}");
    }
}

#[test]
fn encodings_and_prefixes_of_the_signature_are_found() {
    let trial = signed("github", "a long secret", BODY);
    let (name, text) = trial.request.headers.iter().next().unwrap();
    let (name, text) = (name.clone(), text.iter().next().unwrap().to_owned());
    let bare = text.strip_prefix("sha256=").unwrap().to_owned();
    let base64 = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(hex::decode(&bare).unwrap())
    };
    for (text, mistake) in [
        (bare.clone(), Mistake::SignaturePrefix),
        (
            format!("sha256={}", bare.to_uppercase()),
            Mistake::SignatureEncoding,
        ),
        (format!("sha256={base64}"), Mistake::SignatureEncoding),
    ] {
        let mut trial = trial.clone();
        trial
            .request
            .headers
            .insert(name.clone(), HeaderValues::One(text.clone()));
        assert_eq!(found("github", &trial), [mistake], "{text}");
    }
}

#[test]
fn a_delivery_of_another_profile_is_told_by_name() {
    let trial = signed("github_sha1", "a long secret", BODY);
    let explanation = explain("github", &trial);
    let mut others = explanation
        .mistakes
        .iter()
        .filter_map(|found| found.detail.as_deref());
    assert!(others.any(|other| other == "`github_sha1`"));
}

#[test]
fn a_wrong_secret_is_explained_by_nothing() {
    let given = with_secret(signed("github", "a long secret", BODY), "another secret");
    let explanation = explain("github", &given);
    assert!(
        explanation.mistakes.is_empty(),
        "{:?}",
        explanation.mistakes
    );
    assert!(
        matches!(&explanation.said, Said::Refused(why) if why.step.code() == "signature-mismatch")
    );
}

/// Whatever is wrong: neither the secret nor a right signature is in what is said
#[test]
fn no_secret_and_no_signature_is_ever_shown() {
    for profile in Catalogue::embedded().iter() {
        let case = Case::read(profile.id(), "accept");
        let (place, signature) = case.signature(profile);
        for cut in [true, false] {
            let mut case = Case::read(profile.id(), "accept");
            if cut {
                case.set_signature(place, &["AAAA"]);
            } else {
                case.expect.now += 1_000_000;
            }
            let body = case.body();
            let explanation = profile.explain(&trial(&case, &body), Catalogue::embedded());
            let shown = format!("{explanation:?}");
            let secret = case.expect.secret.clone().unwrap_or_default();
            for hidden in [&secret, &signature] {
                let short = hidden.len() < 6;
                assert!(
                    short || !shown.contains(hidden.as_str()),
                    "{}: {shown}",
                    profile.id()
                );
            }
        }
    }
}
