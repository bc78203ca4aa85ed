//! `postern connector`

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ran, in_repository, postern, repository, with_file};

const OPENED: &str = "fixtures/connectors/github/issue-opened/match-opened/request.json";
const GRANTED: &str = r#"{"resources":{"repositories":["Codertocat/Hello-World"]}}"#;

fn test(fixture: &str, more: &[&str]) -> Ran {
    in_env(fixture, more, None)
}

fn in_env(fixture: &str, more: &[&str], secret: Option<&str>) -> Ran {
    let base = [
        "connector",
        "github",
        "test",
        "--phase",
        "trigger",
        "--trigger",
        "issue-opened",
        "--fixture",
        fixture,
    ];
    let call = postern(&[&base[..], more].concat());
    match secret {
        Some(secret) => call.env("HOOK", secret).run(),
        None => call.run(),
    }
}

/// A repository with one connector of its own
fn with_connector(id: &str, text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let connectors = dir.path().join(".github/workflows/connectors");
    std::fs::create_dir_all(&connectors).unwrap();
    std::fs::write(connectors.join(format!("{id}.md")), text).unwrap();
    dir
}

const OWN: &str = "---
connectors:
  github:
    resources:
      repositories: [octo/own]
    triggers:
      starred:
        verificationProfile: github
        nativeEvents: [star]
        match: {/action: created}
        normalize: {repository: /repository/full_name}
        types: {repository: string}
        resources: {repository: repositories}
        resourceOrigins: [\"https://github.com\"]
---
";

#[test]
fn list_gives_every_trigger_of_every_connector() {
    let outside = tempfile::tempdir().unwrap();
    let ran = postern(&["connector", "list", "--json"])
        .dir(outside.path())
        .run();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let json = ran.json();
    let ids: Vec<&Value> = json["connectors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["id"])
        .collect();
    assert_eq!(ids, ["github", "gitlab", "linear", "slack", "stripe"]);
    // Each trigger has a folder of fixtures
    for connector in json["connectors"].as_array().unwrap() {
        let dir = repository("fixtures/connectors").join(connector["id"].as_str().unwrap());
        let mut folders: Vec<String> = (dir.read_dir().unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        folders.sort();
        let triggers = connector["triggers"].as_array().unwrap().iter();
        let mut triggers: Vec<&str> = triggers.map(|t| t.as_str().unwrap()).collect();
        triggers.sort_unstable();
        assert_eq!(triggers, folders);
    }
}

#[test]
fn the_repositorys_own_declaration_comes_first() {
    let dir = with_connector("github", OWN);
    let inside = dir.path().join("deep/inside");
    std::fs::create_dir_all(&inside).unwrap();
    let listed = postern(&["connector", "list", "--json"])
        .dir(&inside)
        .run()
        .json();
    assert_eq!(
        listed["connectors"][0],
        json!({ "id": "github", "triggers": ["starred"] })
    );
    let shown = postern(&["connector", "github", "show"]).dir(&inside).run();
    assert_eq!((shown.code, shown.out.as_str()), (0, OWN));
    assert!(
        shown.err.contains(".github/workflows/connectors/github.md"),
        "{}",
        shown.err
    );
    let shown = postern(&["connector", "stripe", "show"]).dir(&inside).run();
    assert!(shown.err.contains("shipped/stripe.md"), "{}", shown.err);
    // Its own literal resources count without a binding
    let body = dir.path().join("body.json");
    for (repository, code) in [("octo/own", 0), ("octo/other", 1)] {
        std::fs::write(
            &body,
            json!({ "action": "created", "repository": { "full_name": repository } }).to_string(),
        )
        .unwrap();
        let args = [
            "connector",
            "github",
            "test",
            "--phase",
            "trigger",
            "--trigger",
            "starred",
            "--event",
            "star",
            "--fixture",
        ];
        let ran = postern(&[&args[..], &[body.to_str().unwrap(), "--json"]].concat())
            .dir(&inside)
            .run();
        assert_eq!(ran.code, code, "{}", ran.out);
        assert!(
            ran.json()["declaration"]
                .as_str()
                .unwrap()
                .ends_with(".github/workflows/connectors/github.md")
        );
    }
}

#[test]
fn a_broken_declaration_never_falls_back_to_the_shipped_one() {
    for text in [
        "no frontmatter",
        "---\nconnectors: {other: {triggers: {}}}\n---\n",
    ] {
        let dir = with_connector("github", text);
        let ran = postern(&["connector", "list", "--json"])
            .dir(dir.path())
            .run();
        assert_eq!(ran.code, 1, "{}", ran.out);
        let json = ran.json();
        assert!(
            json["connectors"]
                .as_array()
                .unwrap()
                .iter()
                .all(|c| c["id"] != "github")
        );
        let args = [
            "connector",
            "github",
            "test",
            "--phase",
            "trigger",
            "--trigger",
            "issue-opened",
            "--fixture",
        ];
        let ran = postern(&[&args[..], &[&in_repository(OPENED)]].concat())
            .dir(dir.path())
            .run();
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    }
}

#[test]
fn an_id_is_a_name_and_never_a_path() {
    for id in ["../../../etc/passwd", "GitHub", "a/b"] {
        let ran = postern(&["connector", id, "show"]).run();
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{id}");
        assert!(ran.err.starts_with("error[not-a-connector]"), "{}", ran.err);
    }
    let ran = postern(&["connector", "gitub", "show"]).run();
    assert!(
        ran.err.ends_with("hint: did you mean `github`?\n"),
        "{}",
        ran.err
    );
    assert_eq!(postern(&["connector", "show"]).run().code, 2);
    assert_eq!(postern(&["connector", "github", "list"]).run().code, 2);
}

#[test]
fn a_match_gives_the_canonical_event_and_claims_nothing_live() {
    // CS-8-07
    let (_dir, binding) = with_file("binding.json", GRANTED);
    let args = ["--binding", &binding, "--now", "2026-01-31T12:00:00Z"];
    let ran = test(&in_repository(OPENED), &[&args[..], &["--json"]].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let json = ran.json();
    assert_eq!(
        (&json["match"], &json["authenticated"], &json["operational"]),
        (&true.into(), &false.into(), &false.into())
    );
    let event = &json["event"];
    assert_eq!(
        (&event["connector"], &event["trigger"]),
        (&"github".into(), &"issue-opened".into())
    );
    assert_eq!(
        event["fields"]["url"],
        "https://github.com/Codertocat/Hello-World/issues/1"
    );
    assert_eq!(event["source"]["receivedAt"], "2026-01-31T12:00:00Z");
    assert_eq!(event["source"]["event"], "issues");
    assert_eq!(
        json["trace"][0],
        json!({ "path": "/match", "value": "true" })
    );
    let human = test(&in_repository(OPENED), &args);
    assert!(
        human.out.starts_with("match: github.issue-opened\n"),
        "{}",
        human.out
    );
    assert!(
        human.out.ends_with("authenticated: no\noperational: no\n"),
        "{}",
        human.out
    );
    assert!(
        human.err.contains("shipped/github.md") || human.err.contains("github.md"),
        "{}",
        human.err
    );
}

#[test]
fn without_a_binding_nothing_is_granted_and_the_hint_says_so() {
    let ran = test(&in_repository(OPENED), &["--json"]);
    assert_eq!(ran.code, 1);
    let json = ran.json();
    assert_eq!(
        (&json["match"], &json["reason"], &json["at"]),
        (
            &false.into(),
            &"resource-not-granted".into(),
            &"repository".into()
        )
    );
    assert!(
        json["hint"].as_str().unwrap().contains("--binding"),
        "{}",
        ran.out
    );
    assert!(json.get("event").is_none());
    let human = test(&in_repository(OPENED), &[]);
    assert!(
        human.err.contains("hint: ") && human.err.contains("--binding"),
        "{}",
        human.err
    );
}

#[test]
fn every_fixture_gives_what_its_expectation_says() {
    let mut count = 0;
    let dirs = |path: &Path| -> Vec<_> {
        path.read_dir()
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    // One trigger a connector: the whole corpus is the compiler's
    for trigger in [
        "github/pull-request-merged",
        "gitlab",
        "linear",
        "slack",
        "stripe",
    ] {
        let path = repository("fixtures/connectors").join(trigger);
        let trigger = if trigger.contains('/') {
            path
        } else {
            dirs(&path).into_iter().min().unwrap()
        };
        for case in dirs(&trigger) {
            let expect: Value =
                serde_json::from_slice(&std::fs::read(case.join("expect.json")).unwrap()).unwrap();
            let (_dir, binding) = with_file("binding.json", &expect["binding"].to_string());
            let connector = trigger
                .parent()
                .unwrap()
                .file_name()
                .unwrap()
                .to_str()
                .unwrap();
            let name = trigger.file_name().unwrap().to_str().unwrap();
            let fixture = case.join("request.json");
            let fixture = fixture.to_str().unwrap();
            let args = [
                "connector",
                connector,
                "test",
                "--phase",
                "trigger",
                "--trigger",
                name,
                "--binding",
                &binding,
                "--fixture",
                fixture,
                "--json",
            ];
            let ran = postern(&args).run();
            let json = ran.json();
            // Filters are a subscription's: the trigger itself matches
            let matches = expect["match"] == true || expect["reason"] == "filter-not-true";
            assert_eq!(
                (ran.code, &json["match"]),
                (i32::from(!matches), &matches.into()),
                "{}",
                case.display()
            );
            if expect["match"] == true {
                assert_eq!(
                    json["event"]["fields"],
                    expect["fields"],
                    "{}",
                    case.display()
                );
            } else if !matches {
                assert_eq!(
                    (&json["reason"], json.get("at")),
                    (&expect["reason"], expect.get("at")),
                    "{}",
                    case.display()
                );
            }
            count += 1;
        }
    }
    assert!(count >= 15, "{count} cases");
}

#[test]
fn a_bare_body_needs_the_events_name() {
    let (_dir, body) = with_file("body.json", r#"{"action":"opened"}"#);
    let ran = test(&body, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert_eq!(
        ran.err.lines().last(),
        Some("hint: name it with `--event`"),
        "{}",
        ran.err
    );
    let json = test(&body, &["--event", "issues", "--json"]).json();
    assert_eq!(
        (&json["reason"], &json["at"]),
        (&"missing-evidence".into(), &"/issue/number".into())
    );
    let json = test(&body, &["--event", "push", "--json"]).json();
    assert_eq!(json["reason"], "event-not-listed");
    let args = [
        "connector",
        "github",
        "test",
        "--phase",
        "trigger",
        "--trigger",
        "issue-opened",
        "--fixture",
        "-",
        "--event",
        "push",
        "--json",
    ];
    let json = postern(&args).input("{}").run().json();
    assert_eq!(json["reason"], "event-not-listed");
    let (_dir, body) = with_file("body.json", "{\"action\":");
    let ran = test(&body, &["--event", "issues", "--json"]);
    assert_eq!(
        (ran.code, &ran.json()["reason"]),
        (1, &"malformed-body".into())
    );
}

/// GitHub's documented test values, whose body is no JSON, and the same body and secret with one digit off
fn signed(signature: &str) -> String {
    json!({
        "method": "POST",
        "url": "https://hooks.example.com/in",
        "headers": { "X-Hub-Signature-256": signature, "X-GitHub-Event": "issues", "X-GitHub-Delivery": "1" },
        "body": "Hello, World!",
    })
    .to_string()
}

#[test]
fn authenticated_is_true_only_where_the_secret_holds() {
    let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let wrong = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e18";
    let secret = "It's a Secret to Everybody";
    let (_dir, fixture) = with_file("signed.json", &signed(right));
    // Authentic, and then no evidence
    let ran = in_env(&fixture, &["--secret-env", "HOOK", "--json"], Some(secret));
    let json = ran.json();
    assert_eq!(
        (ran.code, &json["authenticated"], &json["reason"]),
        (1, &true.into(), &"malformed-body".into())
    );
    // Another secret, another signature: the trigger never sees it
    let (_other, tampered) = with_file("signed.json", &signed(wrong));
    for (fixture, secret) in [(&fixture, "another secret"), (&tampered, secret)] {
        let ran = in_env(fixture, &["--secret-env", "HOOK", "--json"], Some(secret));
        let json = ran.json();
        assert_eq!(
            (ran.code, &json["authenticated"], &json["match"]),
            (1, &false.into(), &false.into())
        );
        assert_eq!(
            (&json["refused"], &json["trace"]),
            (&"signature-mismatch".into(), &json!([]))
        );
        assert!(
            json.get("reason").is_none() && json.get("event").is_none(),
            "{}",
            ran.out
        );
    }
    // Unsigned: a secret was given, and nothing was proved
    let ran = in_env(
        &in_repository(OPENED),
        &["--secret-env", "HOOK", "--json"],
        Some(secret),
    );
    assert_eq!(
        (ran.code, &ran.json()["refused"]),
        (1, &"signature-missing".into())
    );
    // No secret given: read, and not authenticated
    let json = test(&tampered, &["--json"]).json();
    assert_eq!(
        (&json["authenticated"], &json["reason"]),
        (&false.into(), &"malformed-body".into())
    );
    let ran = test(&fixture, &["--secret-env", "HOOK"]);
    assert_eq!(ran.code, 2, "the variable is not set");
}

#[test]
fn a_recorded_timestamp_is_held_to_the_given_time() {
    // Stripe's scheme: HMAC-SHA256 of `<t>.<body>` with the secret's text. Made by
    // `printf '1700000000.{}' | openssl dgst -sha256 -hmac whsec_test`
    let fixture = json!({
        "method": "POST",
        "url": "https://hooks.example.com/in",
        "headers": { "Stripe-Signature": "t=1700000000,v1=SIGNATURE" },
        "body": "{}",
    });
    let fixture = fixture.to_string().replace("SIGNATURE", STRIPE);
    let (_dir, fixture) = with_file("stripe.json", &fixture);
    let trigger = postern(&["connector", "list", "--json"]).run().json();
    let stripe = trigger["connectors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["id"] == "stripe")
        .unwrap();
    let trigger = stripe["triggers"][0].as_str().unwrap();
    let at = |now: &str| {
        postern(&[
            "connector",
            "stripe",
            "test",
            "--phase",
            "trigger",
            "--trigger",
            trigger,
            "--fixture",
            &fixture,
            "--secret-env",
            "HOOK",
            "--now",
            now,
            "--json",
        ])
        .env("HOOK", "whsec_test")
        .run()
    };
    // 1700000000 is 2023-11-14T22:13:20Z; the tolerance is 300 s
    let ran = at("2023-11-14T22:18:21Z");
    assert_eq!(
        (ran.code, &ran.json()["refused"]),
        (1, &"timestamp-old".into()),
        "{}",
        ran.out
    );
    // In time it is authentic, and names no event, which is a fault of the fixture
    let ran = at("2023-11-14T22:18:20Z");
    assert_eq!(
        (ran.code, &ran.json()["error"]["code"]),
        (2, &"no-event".into()),
        "{}",
        ran.out
    );
}

const STRIPE: &str = "35495024f4ef3f94e5a93e22221544c4b75e9a42300cd965ab81cb85cd994e91";

#[test]
fn phases_that_are_not_built_are_refused_by_name() {
    for (phase, why) in [
        ("agent", "this version tests phase `trigger` alone"),
        ("safe-output", "this version tests phase `trigger` alone"),
        ("other", "want `trigger`"),
    ] {
        let args = [
            "connector",
            "github",
            "test",
            "--phase",
            phase,
            "--trigger",
            "t",
            "--fixture",
            "f",
        ];
        let ran = postern(&args).run();
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(
            ran.err.contains(phase) && ran.err.contains(why),
            "{}",
            ran.err
        );
    }
}

#[test]
fn wrong_names_are_wrong_calls_with_what_is_near() {
    let args = [
        "connector",
        "github",
        "test",
        "--phase",
        "trigger",
        "--trigger",
        "issue-openned",
        "--fixture",
    ];
    let ran = postern(&[&args[..], &[&in_repository(OPENED)]].concat()).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err.ends_with("hint: did you mean `issue-opened`?\n"),
        "{}",
        ran.err
    );
    let (_dir, binding) = with_file("binding.json", r#"{"resources":{"repos":["a/b"]}}"#);
    let ran = test(&in_repository(OPENED), &["--binding", &binding]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.ends_with("hint: it is bound to: repositories\n"),
        "{}",
        ran.err
    );
}
