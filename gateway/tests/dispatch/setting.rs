//! What a destination's settings must be, before anything runs.

use serde_json::{Value, json};

use crate::stage::destination;

/// The faults of one HTTP destination, with `changes` laid over a sound one
fn faults(changes: Value, allow: &[&str]) -> Vec<String> {
    let mut config = json!({
        "kind": "http",
        "url": "https://sink.example/hook",
        "signing": [{ "env": "NEW" }],
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    match destination("sink", config, allow) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn clear_text_goes_only_where_the_operator_says() {
    for url in [
        "http://sink.example/",
        "http://127.0.0.1:9/",
        "http://10.0.0.1/",
    ] {
        assert_eq!(faults(json!({ "url": url }), &[]).len(), 1, "{url}");
    }
    assert!(faults(json!({ "url": "http://10.0.0.1/" }), &["10.0.0.0/8"]).is_empty());
    assert!(
        faults(
            json!({ "url": "http://sink.example/" }),
            &["sink.example:80"]
        )
        .is_empty()
    );
    assert!(
        !faults(
            json!({ "url": "http://sink.example/" }),
            &["sink.example:81"]
        )
        .is_empty()
    );
}

#[test]
fn a_url_holds_no_credentials_and_the_fault_does_not_echo_them() {
    let found = faults(json!({ "url": "https://user:hunter2@sink.example/" }), &[]);
    assert_eq!(found.len(), 1);
    assert!(!found[0].contains("hunter2"), "{found:?}");
}

#[test]
fn report_d48_a_header_stands_once_in_any_case() {
    let twice = json!({ "headers": { "User-Agent": "a", "user-agent": "b" } });
    assert_eq!(
        faults(twice, &[]),
        ["destinations.sink.headers: `user-agent` stands twice"]
    );
}

#[test]
fn headers_that_are_ours_are_refused_in_any_case() {
    for ours in [
        "Content-Type",
        "webhook-id",
        "Webhook-Signature",
        "CE-Id",
        "Host",
        "Connection",
    ] {
        let mut headers = json!({});
        headers[ours] = json!("x");
        assert_eq!(
            faults(json!({ "headers": headers }), &[]).len(),
            1,
            "{ours}"
        );
    }
    let injected = json!({ "headers": { "x": "a\r\nhost: b" } });
    assert_eq!(faults(injected, &[]).len(), 1);
}

#[test]
fn every_fault_is_told_at_once() {
    let changes = json!({
        "url": "ftp://sink.example/",
        "signing": [{ "env": "UNSET" }, { "env": "SEEN" }],
        "concurrency": 0,
        "app": 1,
        "argv": ["/bin/true"],
    });
    let found = faults(changes, &[]);
    for setting in [
        "kind",
        "url",
        "signing[0]",
        "signing[1]",
        "concurrency",
        "app",
    ] {
        let start = format!("destinations.sink.{setting}:");
        assert!(
            found.iter().any(|f| f.starts_with(&start)),
            "{setting}: {found:?}"
        );
    }
    assert_eq!(found.len(), 6);
}

#[test]
fn unsigned_destinations_are_refused() {
    assert_eq!(faults(json!({ "signing": [] }), &[]).len(), 1);
}

#[test]
fn a_command_has_a_program_and_what_it_may_see() {
    let codes = |config: Value| match destination("run", config, &[]) {
        Ok(_) => 0,
        Err(faults) => faults.len(),
    };
    assert_eq!(
        codes(json!({ "kind": "command", "argv": ["/bin/true"], "env": ["SEEN"] })),
        0
    );
    assert_eq!(codes(json!({ "kind": "command", "argv": [] })), 1);
    assert_eq!(
        codes(json!({ "kind": "command", "argv": ["x"], "env": ["UNSET"] })),
        1
    );
    assert_eq!(
        codes(json!({ "kind": "command", "argv": ["x"], "env": ["A=B"] })),
        1
    );
    assert_eq!(
        codes(json!({ "kind": "command", "argv": ["x"], "url": "https://x.example/" })),
        1
    );
}

#[test]
fn secrets_of_a_destination_are_not_printed() {
    let config = json!({
        "kind": "http",
        "url": "https://sink.example/hook",
        "signing": [{ "env": "NEW" }],
        "headers": { "Authorization": "Bearer hunter2" },
    });
    let http = format!("{:?}", destination("sink", config, &[]).unwrap());
    assert!(http.contains("authorization"), "{http}");
    assert!(
        !http.contains("hunter2") && !http.contains("C2FVsBQI"),
        "{http}"
    );
    let config = json!({ "kind": "command", "argv": ["/bin/true"], "env": ["SEEN"] });
    let command = format!("{:?}", destination("run", config, &[]).unwrap());
    assert!(
        command.contains("SEEN") && !command.contains("b=c"),
        "{command}"
    );
    // Bytes as a list of numbers would be no better: `a` is 97
    assert!(!command.contains("97"), "{command}");
}
