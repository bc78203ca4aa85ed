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

/// GitHub's documented delivery as it stands on the wire, with a newline that an editor has put behind it
fn on_the_wire() -> String {
    "POST /hooks/github HTTP/1.1\r\nHost: hooks.example.com\r\nX-GitHub-Event: ping\r\nX-GitHub-Delivery: 72d3162e\r\n\
     X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17\r\n\r\nHello, World!\n"
        .to_owned()
}

#[test]
fn explain_names_the_step_the_bytes_and_the_mistake_and_shows_no_secret() {
    let (_dir, path) = with_file("request.http", &on_the_wire());
    let args = [
        "profile",
        "explain",
        "github",
        &path,
        "--secret-env",
        "OLD",
        "--secret-env",
        "NEW",
    ];
    let ran = postern(&args)
        .env("OLD", "an older secret")
        .env("NEW", "It's a Secret to Everybody")
        .run();
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert_eq!(
        ran.out,
        "does not verify: no signature is right under any live key (signature-mismatch)\n\
         signed, as the profile has it: \"Hello, World!\\n\"\n\
         it would verify: a newline at the body's end was added or taken away: pass the bytes on as they came\n"
    );
    let json = postern(&[&args[..], &["--json"]].concat())
        .env("OLD", "an older secret")
        .env("NEW", "It's a Secret to Everybody")
        .run();
    let explained = json.json();
    assert_eq!(explained["verifies"], false);
    assert_eq!(explained["mistakes"][0]["mistake"], "body-newline");
    for shown in [&ran.out, &json.out] {
        assert!(
            !shown.contains("Everybody") && !shown.contains("757107ea"),
            "{shown}"
        );
    }
    // As JSON, whole: it verifies, and the exit code says so
    let whole: serde_json::Value = serde_json::from_str(PUBLISHED).unwrap();
    let (_dir, path) = with_file("request.json", &whole["request"].to_string());
    let args = ["profile", "explain", "github", &path, "--secret-env", "S"];
    let ran = postern(&args).env("S", "It's a Secret to Everybody").run();
    // Its body is no JSON: authentic, and no evidence
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.starts_with("verifies: "), "{}", ran.out);
}

#[test]
fn explain_wants_a_key_and_a_request() {
    let (_dir, path) = with_file("request.http", &on_the_wire());
    let ran = postern(&["profile", "explain", "github", &path]).run();
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error[no-key]"), "{}", ran.err);
    let (_dir, path) = with_file("request.http", "nothing of the kind");
    let args = ["profile", "explain", "github", &path, "--secret-env", "S"];
    let ran = postern(&args).env("S", "x").run();
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("error[not-a-request]"), "{}", ran.err);
    let cut = on_the_wire().replace("\r\n\r\n", "\r\ncontent-length: 99\r\n\r\n");
    let (_dir, path) = with_file("request.http", &cut);
    let args = ["profile", "explain", "github", &path, "--secret-env", "S"];
    let ran = postern(&args).env("S", "x").run();
    assert!(ran.err.contains("Content-Length is 99"), "{}", ran.err);
}

#[test]
fn a_made_key_goes_into_a_new_file_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let made = postern(&["profile", "key", "circle_usdc", "--out", "private.key"])
        .dir(dir.path())
        .run();
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    assert!(
        made.out.contains("-----BEGIN PUBLIC KEY-----"),
        "{}",
        made.out
    );
    let file = dir.path().join("private.key");
    let private = std::fs::read_to_string(&file).unwrap();
    assert!(private.starts_with("-----BEGIN PRIVATE KEY-----"));
    assert!(!made.out.contains(private.lines().nth(1).unwrap()));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = postern(&["profile", "key", "circle_usdc", "--out", "private.key"])
        .dir(dir.path())
        .run();
    assert_eq!(again.code, 2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), private);
}
