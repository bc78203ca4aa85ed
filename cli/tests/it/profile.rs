//! `postern profile`

use crate::support::{postern, with_file};

/// GitHub's documented test values: "Validating webhook deliveries"
const PUBLISHED: &str = r#"{"id":"published","scheme":"github","request":{"method":"POST","url":"https://hooks.example.com/in","headers":{"X-Hub-Signature-256":"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17","X-GitHub-Event":"ping","X-GitHub-Delivery":"72d3162e"},"body":"Hello, World!"},"secret":"It's a Secret to Everybody","now":1750000000,"expect":"accept"}"#;

#[test]
fn list_and_show_agree_on_the_digest() {
    let listed = postern(&["profile", "list", "--json"]).run();
    assert_eq!((listed.code, listed.err.as_str()), (0, ""));
    let listed = listed.json();
    let profiles = listed["profiles"].as_array().unwrap();
    let github = profiles.iter().find(|p| p["id"] == "github").unwrap();
    assert_eq!(github["integrity"], "full");
    let shown = postern(&["profile", "show", "github", "--json"])
        .run()
        .json();
    assert_eq!(shown["digest"], github["digest"]);
    assert_eq!(shown["document"]["kind"], "VerificationProfile");
    let human = postern(&["profile", "show", "github"]).run();
    assert!(
        human.out.contains(github["digest"].as_str().unwrap()),
        "{}",
        human.out
    );
}

#[test]
fn show_knows_aliases_and_suggests_what_is_near() {
    let ran = postern(&["profile", "show", "bitbucket", "--json"]).run();
    assert_eq!(ran.json()["id"], "bitbucket_cloud");
    let ran = postern(&["profile", "show", "gitub"]).run();
    assert_eq!(ran.code, 2);
    assert_eq!(
        ran.err,
        "error[unknown-profile]: there is no profile `gitub`\nhint: did you mean `github`?\n"
    );
}

#[test]
fn check_ends_with_the_count_and_names_what_failed() {
    let wrong = PUBLISHED
        .replace("published", "one-digit-off")
        .replace("8b043e17", "8b043e18");
    let (_dir, path) = with_file("vectors.jsonl", &format!("{PUBLISHED}\n\n{wrong}\n"));
    let ran = postern(&["profile", "check", &path]).run();
    assert_eq!(
        (ran.code, ran.last_line()),
        (1, "1 passed, 1 failed"),
        "{}",
        ran.err
    );
    assert!(
        ran.out.starts_with("FAIL one-digit-off (line 3): "),
        "{}",
        ran.out
    );
    let json = postern(&["profile", "check", &path, "--json"]).run().json();
    assert_eq!(
        (&json["passed"], &json["failed"], &json["knownGaps"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert_eq!(json["failures"][0]["id"], "one-digit-off");
}

#[test]
fn known_gaps_count_in_neither() {
    let wrong = PUBLISHED
        .replace("published", "gap")
        .replace("8b043e17", "8b043e18");
    let (dir, path) = with_file("vectors.jsonl", &format!("{PUBLISHED}\n{wrong}\n"));
    std::fs::write(
        dir.path().join("known-gaps.txt"),
        "# reasons\ngap  a made-up signature\n",
    )
    .unwrap();
    let ran = postern(&["profile", "check", &path]).dir(dir.path()).run();
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "1 passed, 0 failed, 1 known gaps\n")
    );
    assert_eq!(ran.err, "");
}

#[test]
fn a_gap_that_passes_is_named() {
    let (dir, path) = with_file("vectors.jsonl", PUBLISHED);
    std::fs::write(dir.path().join("known-gaps.txt"), "published once broken\n").unwrap();
    let ran = postern(&["profile", "check", &path]).dir(dir.path()).run();
    assert_eq!(
        (ran.code, ran.last_line()),
        (0, "0 passed, 0 failed, 1 known gaps")
    );
    assert!(ran.err.contains("`published` passes"), "{}", ran.err);
}

#[test]
fn a_file_without_lines_proves_nothing() {
    let (_dir, path) = with_file("vectors.jsonl", "\n\n");
    let ran = postern(&["profile", "check", &path]).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.starts_with("error[no-lines]"), "{}", ran.err);
}

#[test]
fn a_line_that_is_no_vector_fails() {
    let (_dir, path) = with_file("vectors.jsonl", "{\"id\":\"odd\"}\nnot json\n");
    let ran = postern(&["profile", "check", &path]).run();
    assert_eq!((ran.code, ran.last_line()), (1, "0 passed, 2 failed"));
    assert!(
        ran.out.contains("FAIL odd (line 1)") && ran.out.contains("FAIL ? (line 2)"),
        "{}",
        ran.out
    );
}
