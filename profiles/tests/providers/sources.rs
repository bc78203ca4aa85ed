//! What an operator gives a source: keys with their ends, tolerances, setup, and the answers to handshakes.

use std::time::Duration;

use bytes::Bytes;
use postern_contract::fault::Fault;
use postern_contract::{Secret, Timestamp};
use postern_profiles::{
    BindError, Key, KeyMaterial, Options, Outcome, RequestParts, Tolerance, Verifier,
};

use super::{Case, evidence, key, profile, said, verify};

fn secret(name: &str, text: &str, end: Option<i64>) -> Key {
    Key {
        name: name.to_owned(),
        id: None,
        material: KeyMaterial::Secret(Secret::new(text.as_bytes().to_vec())),
        not_after: end.map(|end| Timestamp::from_unix(end).unwrap()),
    }
}

fn say(verifier: &Verifier<'_>, case: &Case, body: &Bytes) -> Outcome {
    let parts = RequestParts {
        method: "POST",
        url: &case.request.url,
        headers: &case.request,
        body,
    };
    verifier.verify(&parts, case.now())
}

#[test]
fn a_key_past_its_end_never_matches() {
    let case = Case::read("github", "evidence");
    let text = case.expect.secret.clone().unwrap();
    let now = case.expect.now;
    let bind = |keys| profile("github").bind(keys, Options::default()).unwrap();
    let alone = |end| {
        said(&say(
            &bind(vec![secret("a", &text, end)]),
            &case,
            &case.body(),
        ))
    };
    assert_eq!(alone(None), "verified");
    assert_eq!(alone(Some(now + 1)), "verified");
    assert_eq!(alone(Some(now)), "no-live-key");
    // Beside a live key that did not sign it, the one that has ended is no match either
    let keys = vec![
        secret("old", &text, Some(now)),
        secret("new", "other", None),
    ];
    let outcome = say(&bind(keys), &case, &case.body());
    assert_eq!(said(&outcome), "signature-mismatch");
}

#[test]
fn any_of_the_live_keys_may_have_signed_and_is_named() {
    let case = Case::read("stripe", "evidence");
    let text = case.expect.secret.clone().unwrap();
    for at in 0..3 {
        let keys = (0..3)
            .map(|n| {
                secret(
                    &format!("key {n}"),
                    if n == at { &text } else { "other" },
                    None,
                )
            })
            .collect();
        let verifier = profile("stripe").bind(keys, Options::default()).unwrap();
        let evidence = evidence(say(&verifier, &case, &case.body()));
        assert_eq!(evidence.key_name(), format!("key {at}"));
    }
}

#[test]
fn report_a25_a_tolerance_of_nothing_is_a_mistake() {
    let bind = |id: &str, past, future| {
        let case = Case::read(id, "evidence");
        let options = Options {
            tolerance: Tolerance { past, future },
            ..Options::default()
        };
        profile(id)
            .bind(vec![key(&case.expect)], options)
            .map(|_| ())
    };
    let zero = Some(Duration::ZERO);
    assert_eq!(bind("stripe", zero, None), Err(BindError::Tolerance));
    assert_eq!(bind("stripe", None, zero), Err(BindError::Tolerance));
    let minute = Some(Duration::from_secs(60));
    assert_eq!(bind("stripe", minute, None), Ok(()));
    // There is no signed timestamp that it could hold
    assert_eq!(bind("github", minute, None), Err(BindError::NoTimestamp));
}

#[test]
fn a_source_has_its_own_tolerance_on_either_side() {
    let case = Case::read("stripe", "evidence");
    let body = case.body();
    let at = case.expect.signed_at_ms.unwrap();
    let tolerance = Tolerance {
        past: Some(Duration::from_secs(20)),
        future: Some(Duration::from_millis(1_500)),
    };
    let options = Options {
        tolerance,
        ..Options::default()
    };
    let verifier = profile("stripe")
        .bind(vec![key(&case.expect)], options)
        .unwrap();
    assert_eq!(verifier.tolerated(), Duration::from_millis(21_500));
    for (shift, wanted) in [
        (20_000, "verified"),
        (20_001, "timestamp-old"),
        (-1_500, "verified"),
        (-1_501, "timestamp-ahead"),
    ] {
        let parts = RequestParts {
            method: "POST",
            url: &case.request.url,
            headers: &case.request,
            body: &body,
        };
        let now = Timestamp::from_unix_ms(at + shift).unwrap();
        assert_eq!(said(&verifier.verify(&parts, now)), wanted, "{shift}");
    }
}

#[test]
fn report_a17_a18_a19_mistakes_in_secrets_are_named_when_the_source_is_bound() {
    let bind = |id: &str, text: &str| match profile(id)
        .bind(vec![secret("MAIN", text, None)], Options::default())
    {
        Ok(_) => panic!("bound"),
        Err(why) => {
            assert!(why.to_string().contains("`MAIN`"), "{why}");
            let near = text
                .trim()
                .trim_start_matches("v1,")
                .trim_start_matches("whsec_");
            assert!(near.is_empty() || !why.to_string().contains(near), "{why}");
            why.code()
        }
    };
    let good = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    assert_eq!(
        bind("standard_webhooks", &format!("v1,{good}")),
        "bind-version"
    );
    assert_eq!(bind("standard_webhooks", "whsec_xyz!"), "bind-encoding");
    assert_eq!(bind("standard_webhooks", "whsec_"), "bind-encoding");
    // Cut by a character, or with unused bits set
    assert_eq!(
        bind("standard_webhooks", &good[..good.len() - 1]),
        "bind-encoding"
    );
    assert_eq!(bind("standard_webhooks", "whsec_YWJj=="), "bind-encoding");
    for id in ["github", "standard_webhooks", "gitlab_token"] {
        assert_eq!(bind(id, ""), "bind-empty-key");
        assert_eq!(bind(id, " "), "bind-empty-key");
        assert_eq!(bind(id, "\r\n"), "bind-empty-key");
        assert_eq!(bind(id, "c2VjcmV0\n"), "bind-blanks");
        assert_eq!(bind(id, " c2VjcmV0"), "bind-blanks");
    }
    // A secret where a public key is wanted, and the other way round
    assert_eq!(bind("discord_interactions", "secret"), "bind-other-kind");
    let public = Key {
        name: "MAIN".to_owned(),
        id: None,
        material: KeyMaterial::Public("00".repeat(32)),
        not_after: None,
    };
    let bound = profile("github").bind(vec![public.clone()], Options::default());
    assert_eq!(bound.unwrap_err().code(), "bind-other-kind");
    // The point of order 4 (y = 0) signs everything
    let bound = profile("discord_interactions").bind(vec![public], Options::default());
    assert_eq!(bound.unwrap_err().code(), "bind-encoding");
    // One secret that is wrong spoils the source, however good the others are
    let keys = vec![secret("A", good, None), secret("B", "", None)];
    let bound = profile("standard_webhooks").bind(keys, Options::default());
    assert_eq!(bound.unwrap_err(), BindError::Empty("B".to_owned()));
}

#[test]
fn a_source_without_keys_answers_its_setup_and_nothing_else() {
    let bound = profile("github").bind(Vec::new(), Options::default());
    assert_eq!(bound.unwrap_err(), BindError::NoKey);
    let case = Case::read("notion", "evidence");
    let setup = profile("notion")
        .bind(Vec::new(), Options::default())
        .unwrap();
    let token = Bytes::from_static(br#"{"verification_token":"secret_x"}"#);
    match say(&setup, &case, &token) {
        Outcome::Handshake(reply, _) => {
            assert_eq!((reply.status, reply.body.as_str()), (200, ""));
        }
        other => panic!("{}", said(&other)),
    }
    assert_eq!(said(&say(&setup, &case, &case.body())), "no-live-key");
    let other = Bytes::from_static(br#"{"verification_token":1}"#);
    assert_eq!(said(&say(&setup, &case, &other)), "no-live-key");
    // It is not read past what such a request can be
    let long = format!(
        r#"{{"verification_token":"secret_x","x":"{}"}}"#,
        "x".repeat(5_000)
    );
    assert_eq!(said(&say(&setup, &case, &long.into())), "no-live-key");
    // Once there is a key the request is a delivery like any other, and has to be signed
    let keyed = profile("notion")
        .bind(vec![key(&case.expect)], Options::default())
        .unwrap();
    assert_eq!(said(&say(&keyed, &case, &token)), "signature-mismatch");
    let mut case = case;
    let now = case.now();
    case.sign(profile("notion"), &token, now);
    assert_eq!(said(&say(&keyed, &case, &token)), "no-event");
}

#[test]
fn a_handshake_is_answered_only_when_it_is_signed_and_whole() {
    let mut case = Case::read("slack", "evidence");
    let answer = |case: &mut Case, body: String| {
        let body = Bytes::from(body);
        let now = case.now();
        case.sign(profile("slack"), &body, now);
        verify(profile("slack"), case, &body)
    };
    let asks =
        |challenge: &str| format!(r#"{{"type":"url_verification","challenge":"{challenge}"}}"#);
    match answer(&mut case, asks("<b>&é")) {
        Outcome::Handshake(reply, _) => {
            assert_eq!((reply.status, reply.body.as_str()), (200, "<b>&é"));
            assert_eq!(reply.content_type, "text/plain; charset=utf-8");
        }
        other => panic!("{}", said(&other)),
    }
    let incomplete = "handshake-incomplete";
    assert_eq!(
        said(&answer(&mut case, asks(&"x".repeat(1_025)))),
        incomplete
    );
    let without = r#"{"type":"url_verification","challenge":7}"#;
    assert_eq!(said(&answer(&mut case, without.to_owned())), incomplete);
    let unsigned = Bytes::from(asks("x"));
    assert_eq!(
        said(&verify(profile("slack"), &case, &unsigned)),
        "signature-mismatch"
    );
}

#[test]
fn an_id_that_is_none_is_refused_and_not_passed_over() {
    // Unsigned, in a header
    let mut case = Case::read("github", "evidence");
    let mut say = |values: &[&str]| {
        case.set("x-github-delivery", values);
        said(&verify(profile("github"), &case, &case.body()))
    };
    assert_eq!(say(&["a"]), "verified");
    assert_eq!(say(&[]), "verified");
    assert_eq!(say(&["a", "a"]), "delivery-id");
    assert_eq!(say(&["é"]), "delivery-id");
    assert_eq!(say(&[&"a".repeat(257)]), "delivery-id");
    // Signed, in a header
    let mut case = Case::read("standard_webhooks", "evidence");
    let id = case.header("webhook-id");
    case.set("webhook-id", &[&id, &id]);
    let outcome = verify(profile("standard_webhooks"), &case, &case.body());
    assert_eq!(said(&outcome), "id-missing");
    case.set("webhook-id", &["é"]);
    let (body, now) = (case.body(), case.now());
    case.sign(profile("standard_webhooks"), &body, now);
    let outcome = verify(profile("standard_webhooks"), &case, &body);
    assert_eq!(said(&outcome), "delivery-id");
    // Signed, in the body
    let mut case = Case::read("stripe", "evidence");
    for (id, wanted) in [
        ("\"evt\"", "verified"),
        ("{}", "delivery-id"),
        ("\"\"", "delivery-id"),
    ] {
        let body = Bytes::from(format!(r#"{{"type":"a","id":{id}}}"#));
        let now = case.now();
        case.sign(profile("stripe"), &body, now);
        assert_eq!(
            said(&verify(profile("stripe"), &case, &body)),
            wanted,
            "{id}"
        );
    }
}

#[test]
fn more_candidates_than_a_provider_sends_are_refused() {
    let most = |id: &str, one: &str, separator: &str, count: usize| {
        let mut case = Case::read(id, "evidence");
        let (place, good) = case.signature(profile(id));
        let many: Vec<&str> = std::iter::repeat_n(one, count - 1)
            .chain([good.as_str()])
            .collect();
        case.set_signature(place, &[&many.join(separator)]);
        said(&verify(profile(id), &case, &case.body()))
    };
    let zeros = format!("v1,{}=", "A".repeat(43));
    assert_eq!(most("standard_webhooks", &zeros, " ", 32), "verified");
    assert_eq!(
        most("standard_webhooks", &zeros, " ", 33),
        "signature-malformed"
    );
    let zeros = format!("v1a,{}==", "A".repeat(86));
    assert_eq!(most("standard_webhooks_v1a", &zeros, " ", 4), "verified");
    assert_eq!(
        most("standard_webhooks_v1a", &zeros, " ", 5),
        "signature-malformed"
    );
}
