//! `postern reference`

use crate::support::postern;

#[test]
fn check_finds_a_page_that_was_changed_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let check = ["reference", "--out", out, "--check"];
    assert_eq!(postern(&check).run().code, 1, "nothing is there yet");
    assert_eq!(postern(&["reference", "--out", out]).run().code, 0);
    assert_eq!(postern(&check).run().code, 0);
    let page = dir.path().join("subscription.md");
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::write(&page, text.replace("operational", "live")).unwrap();
    let ran = postern(&[&check[..], &["--json"]].concat()).run();
    assert_eq!(
        (ran.code, &ran.json()["stale"]),
        (1, &serde_json::json!(["subscription.md"]))
    );
    assert!(
        std::fs::read_to_string(&page).unwrap().contains("live"),
        "checking writes nothing"
    );
}

#[test]
fn schemas_are_closed_and_name_every_key() {
    let dir = tempfile::tempdir().unwrap();
    postern(&["reference", "--out", dir.path().to_str().unwrap()]).run();
    let text = std::fs::read_to_string(dir.path().join("captured-request.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["body", "body_base64", "headers", "method", "url"]);
}
