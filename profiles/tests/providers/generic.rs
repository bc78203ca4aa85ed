//! The generic profile: parameters that say what other profiles' files say verify those profiles' deliveries.

use super::*;

/// A recorded delivery of `id`, held to the generic profile with these parameters
fn held(id: &str, name: &str, params: &[(&str, &str)]) -> &'static str {
    let mut case = Case::read(id, name);
    case.expect.params = (params.iter())
        .map(|(name, value)| ((*name).to_owned(), Texts::One((*value).to_owned())))
        .collect();
    said(&verify(profile("body_mac"), &case, &case.body()))
}

/// What each provider's documentation says, as parameters
const SPELLED: &[(&str, &[(&str, &str)])] = &[
    (
        "github",
        &[("header", "X-Hub-Signature-256"), ("prefix", "sha256=")],
    ),
    (
        "shopify",
        &[("header", "X-Shopify-Hmac-Sha256"), ("encoding", "base64")],
    ),
    (
        "vercel",
        &[("header", "x-vercel-signature"), ("algorithm", "sha1")],
    ),
    (
        "tfc",
        &[
            ("header", "X-TFE-Notification-Signature"),
            ("algorithm", "sha512"),
        ],
    ),
    (
        "stripe",
        &[
            ("header", "Stripe-Signature"),
            ("signature_key", "v1"),
            ("timestamp_key", "t"),
            ("content", "{timestamp}.{body}"),
        ],
    ),
    (
        "slack",
        &[
            ("header", "X-Slack-Signature"),
            ("prefix", "v0="),
            ("content", "v0:{timestamp}:{body}"),
            ("timestamp_header", "X-Slack-Request-Timestamp"),
        ],
    ),
    (
        "standard_webhooks",
        &[
            ("header", "webhook-signature"),
            ("separator", " "),
            ("prefix", "v1,"),
            ("encoding", "base64"),
            ("key_encoding", "whsec"),
            ("content", "{id}.{timestamp}.{body}"),
            ("id_header", "webhook-id"),
            ("timestamp_header", "webhook-timestamp"),
        ],
    ),
];

#[test]
fn parameters_say_what_a_data_file_says() {
    for (id, params) in SPELLED {
        let cases = ["empty-signature", "truncated-signature", "wrong-signature"];
        let accepted = held(id, "accept", params);
        // Of some the published body is no JSON: authentic, and no evidence
        let authentic = ["verified", "malformed-body"].contains(&accepted);
        assert!(authentic, "{id}: {accepted}");
        for case in cases {
            let refused = held(id, case, params);
            assert!(refused.starts_with("signature-"), "{id} {case}: {refused}");
        }
        // And what they do not say is not taken as said
        assert_eq!(held(id, "accept", &[]), "signature-missing", "{id}");
    }
}

#[test]
fn event_and_delivery_stand_where_the_parameters_say() {
    let mut case = Case::read("github", "evidence");
    let params = [
        ("header", "X-Hub-Signature-256"),
        ("prefix", "sha256="),
        ("form_field", "payload"),
        ("event_header", "X-GitHub-Event"),
        ("delivery_header", "X-GitHub-Delivery"),
    ];
    for (name, value) in params {
        (case.expect.params).insert(name.to_owned(), Texts::One(value.to_owned()));
    }
    let seen = evidence(verify(profile("body_mac"), &case, &case.body()));
    let items = seen.items();
    assert_eq!(
        Some(items.first().unwrap().event()),
        case.expect.event.as_deref()
    );
    assert_eq!(seen.delivery(), case.expect.delivery.as_deref());
}

#[test]
fn parameters_that_make_no_profile_do_not_bind() {
    let fault = |params: &[(&str, &str)]| {
        let params = (params.iter())
            .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]))
            .collect();
        let options = Options {
            params,
            ..Options::default()
        };
        let key = Key {
            name: "k".to_owned(),
            id: None,
            material: KeyMaterial::Secret(Secret::new(b"key".to_vec())),
            not_after: None,
        };
        match profile("body_mac").bind(vec![key], options) {
            Ok(_) => "binds".to_owned(),
            Err(BindError::Generic(why)) => why,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(fault(&[]), "binds");
    assert_eq!(fault(&[("content", "{body}x\\n")]), "binds");
    for (params, says) in [
        (&[("algorithm", "md5")][..], "`algorithm` is `sha256`"),
        (&[("encoding", "base32")], "`encoding` is"),
        (&[("separator", ", ")], "one character"),
        (
            &[("content", "{timestamp}.{body}")],
            "needs `timestamp_header`",
        ),
        (&[("content", "{body")], "without its `}`"),
        (
            &[("content", "{secret}{body}")],
            "no part of a signed content",
        ),
        // Nothing of the body would be signed
        (&[("content", "x")], "nothing of the delivery"),
        (&[("content", "{method}")], "`integrity` is `none`"),
        (&[("content", "{id}.{body}")], "`id-header` goes with"),
        // A timestamp that is not signed proves nothing
        (&[("timestamp_header", "X-T")], "not signed"),
        (
            &[("event_header", "X-E"), ("event_pointer", "/e")],
            "goes without",
        ),
        (&[("event_pointer", "e")], "`event_pointer`"),
        (&[("prefix", "x"), ("timestamp_key", "t")], "without pairs"),
    ] {
        let why = fault(params);
        assert!(why.contains(says), "{params:?}: {why}");
    }
}
