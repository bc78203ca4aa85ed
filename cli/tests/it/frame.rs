//! What holds for every command: exit codes, streams, errors as text and as JSON, a reader that goes.

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::support::postern;

#[test]
fn no_arguments_is_a_wrong_call_and_help_is_not() {
    let ran = postern(&[]).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("Usage:"), "{}", ran.err);
    for args in [["--help"], ["--version"]] {
        let ran = postern(&args).run();
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
        assert!(ran.out.contains("postern"));
    }
}

#[test]
fn a_wrong_call_is_an_error_with_a_code_and_a_hint_of_its_own_line() {
    let ran = postern(&["profile", "shw", "github"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let lines: Vec<&str> = ran.err.lines().collect();
    assert!(lines[0].starts_with("error[usage]: "), "{}", ran.err);
    assert!(lines.contains(&"hint: did you mean `show`?"), "{}", ran.err);
    assert!(
        !ran.err.contains('\x1b'),
        "colours without a terminal: {}",
        ran.err
    );
}

#[test]
fn with_json_errors_are_json_on_standard_output() {
    for args in [
        &["--json", "profile", "shw"][..],
        &["profile", "show", "nobody", "--json"],
        &["profile", "check", "no-such-file.jsonl", "--json"],
    ] {
        let ran = postern(args).run();
        assert_eq!((ran.code, ran.err.as_str()), (2, ""), "{args:?}");
        let error = &ran.json()["error"];
        assert!(
            error["code"].is_string() && error["message"].is_string(),
            "{}",
            ran.out
        );
    }
}

#[test]
fn json_after_two_hyphens_is_no_flag() {
    let ran = postern(&["profile", "shw", "--", "--json"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
}

#[test]
fn a_missing_file_is_a_wrong_call() {
    let ran = postern(&["predicate", "check", "no-such-file.jsonl"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err
            .starts_with("error[unreadable]: `no-such-file.jsonl`: "),
        "{}",
        ran.err
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(["predicate", "eval", "--lines"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds, so that the command has to write before it has read everything
    let line = b"{\"id\":\"x\",\"kind\":\"document\",\"document\":\"1\"}\n".repeat(10_000);
    // It ends before it has read everything
    let _ = std::io::Write::write_all(&mut stdin, &line);
    drop(stdin);
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn completions_and_manual_pages_come_from_the_arguments() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = postern(&["completions", shell]).run();
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{shell}");
        assert!(ran.out.contains("predicate"), "{shell}");
    }
    let dir = tempfile::tempdir().unwrap();
    let ran = postern(&["man", "--out", dir.path().to_str().unwrap()]).run();
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(dir.path().join("postern-profile-check.1")).unwrap();
    assert!(page.contains("vectors"), "{page}");
}
