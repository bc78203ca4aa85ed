//! `postern compile`

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::{in_repository, postern, repository};

const TRIAGE: &str = "triage-labeled-issue.md";

/// A repository of its own with copies of example workflows
fn with_workflows(names: &[&str]) -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let workflows = dir.path().join(".github/workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let copied = names.iter().map(|name| {
        let path = workflows.join(name);
        std::fs::copy(repository("fixtures/workflows").join(name), &path).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let copied = copied.collect();
    (dir, copied)
}

fn files(dir: &Path) -> Vec<String> {
    let Ok(entries) = dir.read_dir() else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn cs_8_04_out_holds_frozen_documents_under_their_digests() {
    let (dir, paths) = with_workflows(&[TRIAGE]);
    let out = dir.path().join("plans");
    let out_text = out.to_str().unwrap();
    let ran = postern(&[
        "compile",
        &paths[0],
        "--out",
        out_text,
        "--repository",
        "octo/hello",
        "--json",
    ])
    .run();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let json = ran.json();
    assert_eq!(
        files(&out.join("subscriptions")),
        [
            "triage-labeled-issue.github.issue-labeled.json",
            "triage-labeled-issue.github.issue-reopened.json"
        ],
    );
    for (n, name) in files(&out.join("subscriptions")).iter().enumerate() {
        let bytes = std::fs::read(out.join("subscriptions").join(name)).unwrap();
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        let line = &json["subscriptions"][n];
        assert_eq!(line["digest"], format!("sha256:{}", sha256(&bytes)));
        assert_eq!(line["subscription"], document);
        assert_eq!(
            document["workflow"],
            ".github/workflows/triage-labeled-issue.md"
        );
        assert_eq!(document["repository"], "octo/hello");
        // The trigger that it names lies beside it, under its digest
        let hex = document["triggerDigest"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .unwrap();
        let trigger = std::fs::read(out.join(format!("triggers/{hex}.json"))).unwrap();
        assert_eq!(sha256(&trigger), hex);
    }
    assert_eq!(
        files(&out.join("triggers")).len(),
        2,
        "and nothing else, temporary files included"
    );
}

#[test]
fn cs_8_07_compiling_claims_nothing_live() {
    let ran = postern(&[
        "compile",
        &in_repository(&format!("fixtures/workflows/{TRIAGE}")),
        "--json",
    ])
    .run();
    let json = ran.json();
    assert_eq!((ran.code, &json["operational"]), (0, &false.into()));
    let subscriptions = json["subscriptions"].as_array().unwrap();
    assert_eq!(subscriptions.len(), 2);
    for line in subscriptions {
        assert_eq!(line["subscription"]["operational"], false);
    }
    let human = postern(&[
        "compile",
        &in_repository(&format!("fixtures/workflows/{TRIAGE}")),
    ])
    .run();
    assert!(human.err.contains("nothing is live by it"), "{}", human.err);
    for claim in ["enrolled", "installed", "activated", "is live\n"] {
        assert!(!human.out.contains(claim), "{claim}: {}", human.out);
    }
}

#[test]
fn cs_8_07_a_profile_that_no_receiver_supports_does_not_compile() {
    let (dir, paths) = with_workflows(&[TRIAGE]);
    let connectors = dir.path().join(".github/workflows/connectors");
    std::fs::create_dir_all(&connectors).unwrap();
    let shipped = std::fs::read_to_string(repository("connectors/github.md")).unwrap();
    let unsupported = shipped.replace(
        "verificationProfile: github",
        "verificationProfile: carrier-pigeon",
    );
    std::fs::write(connectors.join("github.md"), unsupported).unwrap();
    let out = dir.path().join("plans");
    let ran = postern(&[
        "compile",
        &paths[0],
        "--out",
        out.to_str().unwrap(),
        "--json",
    ])
    .run();
    assert_eq!(ran.code, 1);
    let json = ran.json();
    assert_eq!(json["subscriptions"], serde_json::json!([]));
    assert_eq!(json["diagnostics"][0]["code"], "no-profile");
    assert_eq!(
        json["diagnostics"][0]["file"],
        ".github/workflows/connectors/github.md"
    );
    assert!(!out.exists());
}

#[test]
fn compiling_twice_changes_no_file() {
    let (dir, paths) = with_workflows(&[TRIAGE, "stripe-dispute.md"]);
    let out = dir.path().join("plans");
    let args = [
        "compile",
        &paths[0],
        &paths[1],
        "--repository",
        "octo/hello",
        "--out",
        out.to_str().unwrap(),
        "--json",
    ];
    let first = postern(&args).run().json();
    let count = first["written"]["files"].as_array().unwrap().len();
    assert_eq!(
        count,
        files(&out.join("subscriptions")).len() + files(&out.join("triggers")).len()
    );
    let old = |name: &str| {
        std::fs::metadata(out.join(name))
            .unwrap()
            .modified()
            .unwrap()
    };
    let name = first["written"]["files"][0].as_str().unwrap().to_owned();
    let before = old(&name);
    let second = postern(&args).run().json();
    assert_eq!(
        (&second["written"]["files"], &second["written"]["unchanged"]),
        (&serde_json::json!([]), &count.into())
    );
    assert_eq!(old(&name), before);
    // A file that was changed by hand is put right
    std::fs::write(out.join(&name), "{}").unwrap();
    let third = postern(&args).run().json();
    assert_eq!(third["written"]["files"], serde_json::json!([name]));
}

#[test]
fn one_error_keeps_everything_from_being_written() {
    let (dir, paths) = with_workflows(&[
        TRIAGE,
        "invalid-filter-type.md",
        "invalid-unknown-trigger.md",
    ]);
    let out = dir.path().join("plans");
    let ran = postern(&[
        "compile",
        &paths[0],
        &paths[1],
        &paths[2],
        "--out",
        out.to_str().unwrap(),
    ])
    .run();
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(!out.exists(), "nothing is written");
    // Both findings, each drawn on its source
    for name in ["invalid-filter-type.md", "invalid-unknown-trigger.md"] {
        let line = ran
            .err
            .lines()
            .find(|line| line.contains(name) && line.contains(": error["));
        assert!(line.is_some(), "{name}: {}", ran.err);
    }
    assert!(
        ran.err
            .lines()
            .filter(|line| line.trim_end().ends_with("| ^") || line.trim_end().ends_with('^'))
            .count()
            >= 2,
        "{}",
        ran.err
    );
}

#[test]
fn every_example_workflow_does_what_its_expectation_says() {
    let expect: Value = serde_json::from_str(
        &std::fs::read_to_string(repository("fixtures/workflows/expect.json")).unwrap(),
    )
    .unwrap();
    for (name, expect) in expect.as_object().unwrap() {
        let ran = postern(&[
            "compile",
            &in_repository(&format!("fixtures/workflows/{name}")),
            "--json",
        ])
        .run();
        let valid = expect["valid"] == true;
        assert_eq!(ran.code, i32::from(!valid), "{name}: {}", ran.out);
        let json = ran.json();
        let got = json["subscriptions"].as_array().unwrap();
        let wanted = expect["subscriptions"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        assert_eq!(got.len(), wanted.len(), "{name}");
        for (got, wanted) in got.iter().zip(wanted) {
            let got = &got["subscription"];
            assert_eq!(
                (&got["connector"], &got["trigger"]),
                (&wanted["connector"], &wanted["trigger"]),
                "{name}"
            );
            let filters = wanted
                .get("filters")
                .cloned()
                .unwrap_or_else(|| serde_json::json!({}));
            assert_eq!(got["filters"], filters, "{name}");
        }
    }
}

#[test]
fn the_repository_is_the_flags_then_the_environments_then_the_remotes() {
    let (dir, paths) = with_workflows(&[TRIAGE]);
    let name = |args: &[&str], env: Option<&str>| {
        let call = postern(&[&["compile", &paths[0], "--json"][..], args].concat());
        let call = match env {
            Some(env) => call.env("GITHUB_REPOSITORY", env),
            None => call,
        };
        call.run().json()["repository"].clone()
    };
    assert_eq!(name(&[], None), Value::Null);
    for args in [
        &["init", "-q"][..],
        &["remote", "add", "origin", "git@github.com:octo/remote.git"],
    ] {
        let done = Command::new("git")
            .arg("-C")
            .arg(dir.path())
            .args(args)
            .status()
            .unwrap();
        assert!(done.success());
    }
    assert_eq!(name(&[], None), "octo/remote");
    assert_eq!(name(&[], Some("octo/environment")), "octo/environment");
    assert_eq!(
        name(&["--repository", "octo/flag"], Some("octo/environment")),
        "octo/flag"
    );
    let ran = postern(&["compile", &paths[0], "--repository", "no-slash"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
}

#[test]
fn without_a_repository_there_is_a_warning() {
    let (_dir, paths) = with_workflows(&[TRIAGE]);
    let ran = postern(&["compile", &paths[0]]).run();
    assert_eq!(ran.code, 0);
    assert!(ran.err.contains("warning[no-repository]"), "{}", ran.err);
    assert!(ran.out.contains("\"repository\": null"), "{}", ran.out);
}

#[test]
fn workflows_of_one_name_in_two_directories_get_two_files() {
    let (dir, paths) = with_workflows(&["stripe-dispute.md"]);
    let inner = dir.path().join(".github/workflows/inner");
    std::fs::create_dir_all(&inner).unwrap();
    let second = inner.join("stripe-dispute.md");
    std::fs::copy(&paths[0], &second).unwrap();
    let out = dir.path().join("plans");
    let ran = postern(&[
        "compile",
        &paths[0],
        second.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ])
    .run();
    assert_eq!(ran.code, 0, "{}", ran.err);
    let names = files(&out.join("subscriptions"));
    let twice = names
        .iter()
        .filter(|name| name.ends_with(".2.json"))
        .count();
    assert_eq!((names.len(), twice), (2 * twice, twice), "{names:?}");
    assert!(twice > 0);
}

#[test]
fn an_import_cannot_leave_the_repository() {
    let (dir, paths) = with_workflows(&[TRIAGE]);
    let text = std::fs::read_to_string(&paths[0]).unwrap();
    let outside = dir.path().join(".github/workflows/linked.md");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", &outside).unwrap();
    for target in ["../../../outside.md", "linked.md"] {
        std::fs::write(
            &paths[0],
            text.replace("imports:\n", &format!("imports:\n  - {target}\n")),
        )
        .unwrap();
        let ran = postern(&["compile", &paths[0], "--json"]).run();
        assert_eq!(ran.code, 1, "{target}: {}", ran.out);
    }
}

#[test]
fn what_is_no_source_is_a_wrong_call() {
    assert_eq!(postern(&["compile"]).run().code, 2);
    assert_eq!(postern(&["compile", "no-such.md"]).run().code, 2);
    let ran = postern(&["compile", "triage.lock.yml", "--json"]).run();
    assert_eq!(
        (ran.code, &ran.json()["error"]["code"]),
        (2, &"not-a-source".into())
    );
    let (_one, first) = with_workflows(&[TRIAGE]);
    let (_two, second) = with_workflows(&["stripe-dispute.md"]);
    let ran = postern(&["compile", &first[0], &second[0], "--json"]).run();
    assert_eq!(
        (ran.code, &ran.json()["error"]["code"]),
        (2, &"other-repository".into())
    );
}

#[test]
fn cs_2_05_a_connector_that_cannot_be_taken_is_not_replaced_by_the_shipped_one() {
    let workflow = "---\non: {gateway-dispatch: {github: [issue-opened]}}\nimports:\n  - uses: .github/workflows/connectors/github.md\n    with: {repositories: [o/r]}\n---\nx\n";
    let put = |bent: &dyn Fn(&std::path::Path)| {
        let dir = tempfile::tempdir().unwrap();
        let connectors = dir.path().join(".github/workflows/connectors");
        std::fs::create_dir_all(&connectors).unwrap();
        std::fs::write(dir.path().join(".github/workflows/w.md"), workflow).unwrap();
        bent(&connectors.join("github.md"));
        let args = ["compile", ".github/workflows/w.md", "--repository", "o/r"];
        let ran = postern(&args).dir(dir.path()).run();
        (ran.code, ran.err)
    };
    // Nothing there: the shipped one counts
    assert_eq!(put(&|_| {}).0, 0);
    for bent in [
        &(|file: &std::path::Path| std::os::unix::fs::symlink("/etc/hostname", file).unwrap())
            as &dyn Fn(&std::path::Path),
        &|file| std::fs::write(file, [0xff, 0xfe]).unwrap(),
        &|file| std::fs::write(file, " ".repeat((1 << 20) + 1)).unwrap(),
    ] {
        let (code, err) = put(bent);
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("github.md"), "{err}");
    }
}
