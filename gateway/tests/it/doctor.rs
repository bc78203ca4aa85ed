//! What `doctor` tells of keys: by the log of deliveries that a gateway really took.

use axum::body::Body;
use http::Request;
use postern_contract::Timestamp;
use postern_gateway::doctor::examine;
use serde_json::{Value, json};

use crate::world::{NOW, Setup, World, load, send, signature};

fn ping(id: &str) -> Request<Body> {
    Request::post("/hooks/github")
        .header("x-hub-signature-256", signature(b"{}"))
        .header("x-github-event", "ping")
        .header("x-github-delivery", id)
        .body(Body::from("{}"))
        .unwrap()
}

fn source(keys: Value) -> Setup {
    let mut setup = Setup::new();
    setup.source["keys"] = keys;
    setup
}

/// The codes of what is found `days` after a delivery that the key `SECRET` verified
async fn codes(keys: Value, days: i64) -> Vec<&'static str> {
    let mut setup = source(keys);
    setup.write_trigger = false;
    let world = World::open_without_plans(setup);
    assert_eq!(send(world.router.clone(), ping("1")).await.status, 204);
    let dir = world.dir().to_owned();
    let config = world.config.clone();
    // The line is whole once the gateway has ended
    let kept = world.end();
    let now = Timestamp::from_unix(NOW + days * 86_400).unwrap();
    let findings = examine(&config, load(&config).state(), "30d".parse().unwrap(), now).unwrap();
    assert!(dir.exists());
    drop(kept);
    findings.iter().map(|finding| finding.code).collect()
}

#[tokio::test]
async fn a_key_that_nobody_used_is_told_once_another_was() {
    let one = json!([{ "env": "SECRET" }]);
    assert_eq!(codes(one.clone(), 1).await, [""; 0]);
    // It was used, long ago
    assert_eq!(codes(one, 31).await, ["key-unused"]);
    let two = json!([{ "env": "SECRET" }, { "env": "SIGNING" }]);
    assert_eq!(codes(two.clone(), 1).await, ["key-unused"]);
    // Nobody used any: that says nothing of the one that never was
    assert_eq!(codes(two, 31).await, ["key-unused"]);
}

#[tokio::test]
async fn a_key_that_ends_is_told_before_and_after() {
    let key = |end: &str| json!([{ "env": "SECRET" }, { "env": "SIGNING", "not_after": end }]);
    // NOW is 2027-01-15T08:00:00Z
    assert_eq!(
        codes(key("2027-01-17T08:00:00Z"), 1).await,
        ["key-ends", "key-unused"]
    );
    assert_eq!(codes(key("2027-01-16T08:00:00Z"), 1).await, ["key-ended"]);
    assert_eq!(codes(key("2027-03-01T00:00:00Z"), 1).await, ["key-unused"]);
}

#[tokio::test]
async fn a_secret_that_others_can_read_and_a_profile_nobody_has_seen_are_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut setup = source(json!([{ "env": "SECRET" }, { "file": "secret" }]));
    setup.write_trigger = false;
    setup.source["profile"] = json!("azure_devops");
    let dir = tempfile::tempdir().unwrap();
    let (config, _) = crate::world::write(dir.path(), &setup);
    let file = dir.path().join("secret");
    std::fs::write(&file, "user:password").unwrap();
    let mut config = config;
    config.sources.values_mut().for_each(|source| {
        source.keys.remove(0);
    });
    config.plans.path.push("none");
    config.plans.admissions.push("none");
    let now = Timestamp::from_unix(NOW).unwrap();
    let found = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let state = load(&config);
        let findings = examine(&config, state.state(), "30d".parse().unwrap(), now).unwrap();
        findings
            .into_iter()
            .map(|f| (f.code, f.message))
            .collect::<Vec<_>>()
    };
    let findings = found(0o640);
    let codes: Vec<_> = findings.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["source-warning", "secret-readable"]);
    let (_, message) = findings.first().unwrap();
    assert!(message.contains("user name and a password"), "{message}");
    assert_eq!(found(0o600).len(), 1);
}
