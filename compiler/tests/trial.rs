//! A trial of a trigger: the shape of what it says, and that it claims no more than it knows.

#![expect(
    clippy::unwrap_used,
    reason = "a trigger that does not compile must fail the test"
)]

use bytes::Bytes;
use postern_compiler::{Connector, trial};
use postern_contract::{Scalar, Timestamp};
use postern_predicates::Trigger;
use serde_json::{Value, json};

const DECLARED: &str = "---
connectors:
  mine:
    resources: {repositories: [o/r]}
    triggers:
      opened:
        verificationProfile: github
        nativeEvents: [issues]
        match: {/action: opened}
        when: {exists: {pointer: /issue/number}}
        normalize: {repository: /repository/full_name, number: /issue/number}
        types: {number: integer}
        resources: {repository: repositories}
        resourceOrigins: ['https://github.com']
---
";
const BODY: &str = r#"{"action":"opened","issue":{"number":7},"repository":{"full_name":"o/r"}}"#;

fn trigger(grants: Option<&str>) -> Trigger {
    let connector = Connector::read("mine.md", DECLARED).unwrap();
    let grants = match grants {
        Some(name) => {
            let members = vec![Scalar::String(name.to_owned())];
            [("repositories".to_owned(), members)].into()
        }
        None => connector.own_grants("opened").unwrap(),
    };
    connector.compile("opened", grants).unwrap()
}

fn run(trigger: &Trigger, event: &str, body: &str) -> Value {
    let body = Bytes::from(body.to_owned());
    let delivery = trial::Delivery {
        event,
        id: None,
        body: &body,
        evidence: body.clone(),
        received_at: Timestamp::EPOCH,
    };
    serde_json::to_value(trial::run(trigger, &delivery)).unwrap()
}

#[test]
fn a_match_gives_the_event_and_the_trace() {
    let trigger = trigger(None);
    let got = run(&trigger, "issues", BODY);
    assert_eq!(got["match"], true);
    assert_eq!(got.get("reason"), None);
    let event = &got["event"];
    assert_eq!(event["fields"], json!({ "number": 7, "repository": "o/r" }));
    assert_eq!(event["variant"], Value::Null);
    // sha256sum of BODY
    let body = "7e437db83b519241439361ce2cfb78c36e3a3aaa3f2b2df9716283f914feb438";
    assert_eq!(event["source"]["bodySha256"], body);
    // Without a provider's id
    assert_eq!(event["source"]["delivery"], format!("sha256:{body}"));
    assert_eq!(
        event["source"]["binding"],
        trigger.binding_digest().to_string()
    );
    let trace = got["trace"].as_array().unwrap();
    assert!(
        trace.contains(&json!({ "path": "/when", "value": "true" })),
        "{trace:?}"
    );
}

#[test]
fn a_nonmatch_gives_one_reason_and_its_place() {
    let own = trigger(None);
    for (event, body, reason, at) in [
        ("push", BODY.to_owned(), "event-not-listed", None),
        (
            "issues",
            BODY.replace("opened", "closed"),
            "match-not-true",
            Some("/action"),
        ),
        (
            "issues",
            BODY.replace("number", "nummer"),
            "when-not-true",
            Some("/issue/number"),
        ),
        (
            "issues",
            BODY.replace("o/r", "o/s"),
            "resource-not-granted",
            Some("repository"),
        ),
        (
            "issues",
            BODY.replace('7', "\"7\""),
            "type-mismatch",
            Some("/issue/number"),
        ),
        (
            "issues",
            BODY.replace("{\"number\"", "{\"number\":7,\"number\""),
            "ambiguous-evidence",
            Some("/issue/number"),
        ),
        ("issues", "{".to_owned(), "malformed-body", None),
        ("issues", String::new(), "malformed-body", None),
        // Malformed whatever the event
        ("push", "{".to_owned(), "malformed-body", None),
    ] {
        let got = run(&own, event, &body);
        assert_eq!(got["match"], false, "{body}");
        assert_eq!(got["reason"], reason, "{body}");
        assert_eq!(got.get("at"), at.map(|at| json!(at)).as_ref(), "{body}");
        assert_eq!(got.get("event"), None, "{body}");
    }
}

#[test]
fn a_binding_takes_the_place_of_the_declarations_own() {
    let other = trigger(Some("o/s"));
    assert_eq!(
        run(&other, "issues", BODY)["reason"],
        "resource-not-granted"
    );
    assert_eq!(
        run(&other, "issues", &BODY.replace("o/r", "o/s"))["match"],
        true
    );
}
