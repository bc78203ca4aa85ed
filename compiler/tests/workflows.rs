//! Walks fixtures/workflows: what compiles gives the expected subscriptions, and what must not says why.

use std::path::{Path, PathBuf};

use postern_compiler::{Compiler, Severity, Sources};
use proptest::prelude::*;
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/workflows")
}

fn compile(name: &str, text: &str) -> postern_compiler::Compiled {
    let mut sources = Sources::default();
    let file = format!(".github/workflows/{name}");
    sources.insert(file.clone(), text);
    let compiler = Compiler {
        sources: &sources,
        repository: Some("octo-org/octo-repo"),
    };
    compiler.compile(&file)
}

/// The code that each broken workflow is refused with, and the line of the entry at fault
const REFUSED: &[(&str, &str, usize)] = &[
    ("invalid-binding-type.md", "import-binding", 12),
    ("invalid-duplicate-trigger.md", "selected-twice", 7),
    ("invalid-empty-filter.md", "filter", 8),
    ("invalid-empty-resources.md", "nothing-granted", 5),
    ("invalid-filter-type.md", "filter", 8),
    ("invalid-not-imported.md", "not-imported", 5),
    ("invalid-unknown-filter.md", "filter", 8),
    ("invalid-unknown-trigger.md", "no-trigger", 5),
    ("invalid-wildcard.md", "no-trigger", 5),
];

#[test]
fn cs_8_04_cs_8_07_workflows_compile_to_the_expected_subscriptions() {
    let text = std::fs::read_to_string(fixtures().join("expect.json")).unwrap();
    let expect: Value = serde_json::from_str(&text).unwrap();
    let expect = expect.as_object().unwrap();
    let on_disk = std::fs::read_dir(fixtures()).unwrap().count() - 1;
    assert_eq!(expect.len(), on_disk);
    for (name, expect) in expect {
        let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
        let compiled = compile(name, &text);
        let errors: Vec<_> = compiled
            .diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .collect();
        if expect["valid"] == false {
            let (_, code, line) = REFUSED.iter().find(|(n, _, _)| n == name).unwrap();
            let got: Vec<_> = errors.iter().map(|d| (d.code, d.place.line)).collect();
            assert_eq!(got, [(*code, *line)], "{name}: {errors:?}");
            continue;
        }
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let wanted = expect["subscriptions"].as_array().unwrap();
        assert_eq!(compiled.selected.len(), wanted.len(), "{name}");
        for (got, wanted) in compiled.selected.iter().zip(wanted) {
            let s = &got.subscription;
            assert_eq!(s.connector.as_str(), wanted["connector"], "{name}");
            assert_eq!(s.trigger.as_str(), wanted["trigger"], "{name}");
            assert_eq!(
                serde_json::to_value(&s.filters).unwrap(),
                wanted["filters"],
                "{name}"
            );
            let resources = serde_json::to_value(got.trigger.binding().resources()).unwrap();
            assert_eq!(resources, wanted["binding"]["resources"], "{name}");
            assert!(!s.operational);
            assert_eq!(s.trigger_digest, got.trigger.digest());
            assert_eq!(s.binding, got.trigger.binding_digest());
            assert_eq!(s.profile_digest, got.trigger.profile_digest());
            // The digest is of the RFC 8785 form, and a frozen trigger loads again
            let bytes = postern_contract::canonical::to_vec(s).unwrap();
            assert_eq!(got.digest, postern_contract::Digest::of(&bytes));
            let again = postern_predicates::Trigger::load(got.trigger.document().clone()).unwrap();
            assert_eq!(again.digest(), got.trigger.digest());
        }
    }
}

#[test]
fn the_same_bytes_give_the_same_digests() {
    let text = std::fs::read_to_string(fixtures().join("failed-ci.md")).unwrap();
    let digests = || -> Vec<_> {
        compile("a.md", &text)
            .selected
            .iter()
            .map(|s| (s.digest, s.trigger.digest()))
            .collect()
    };
    assert_eq!(digests(), digests());
    // One more granted repository is another binding, trigger and subscription
    let wider = text.replace("[octo-org/octo-repo, ", "[octo-org/octo-repo, x/y, ");
    assert_ne!(wider, text);
    let other = compile("a.md", &wider);
    assert_ne!(other.selected[0].digest, digests()[0].0);
    assert_ne!(other.selected[0].trigger.digest(), digests()[0].1);
}

/// A connector with one trigger, `part` of which is replaced
fn connector(from: &str, to: &str) -> Vec<&'static str> {
    let declared = r#"---
connectors:
  mine:
    resources: {repositories: [o/r]}
    triggers:
      opened:
        verificationProfile: github
        nativeEvents: [issues]
        match: {/action: opened}
        normalize: {repository: /repository/full_name, url: {pointer: /issue/html_url, type: url}}
        resources: {repository: repositories}
        resourceOrigins: ["https://github.com"]
---
"#;
    assert!(declared.contains(from), "{from}");
    let mut sources = Sources::default();
    sources.insert(
        ".github/workflows/connectors/mine.md",
        declared.replace(from, to),
    );
    sources.insert(
        ".github/workflows/w.md",
        "---\non: {gateway-dispatch: {mine: [opened]}}\nimports: [.github/workflows/connectors/mine.md]\n---\n",
    );
    let compiler = Compiler {
        sources: &sources,
        repository: Some("o/r"),
    };
    let compiled = compiler.compile(".github/workflows/w.md");
    assert_eq!(compiled.selected.is_empty(), compiled.has_errors());
    compiled.diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn cs_8_01_every_required_part_of_a_trigger_is_required() {
    assert!(connector("[o/r]", "[o/r]").is_empty());
    for (part, code) in [
        ("        verificationProfile: github\n", "no-profile"),
        ("        nativeEvents: [issues]\n", "trigger"),
        ("        match: {/action: opened}\n", "trigger"),
    ] {
        assert_eq!(connector(part, ""), [code], "{part}");
    }
    assert_eq!(
        connector("nativeEvents: [issues]", "nativeEvents: []"),
        ["trigger"]
    );
    assert_eq!(
        connector("match: {/action: opened}", "match: {}"),
        ["trigger"]
    );
    assert_eq!(connector("normalize: {", "normalise: {"), ["trigger"]);
    // Types are primitive
    assert_eq!(connector("type: url", "type: object"), ["trigger"]);
    assert_eq!(
        connector("{repositories: [o/r]}", "{repositories: [\"o/*\"]}"),
        ["collection"]
    );
    assert_eq!(
        connector("{repositories: [o/r]}", "{others: [o/r]}"),
        ["no-collection"]
    );
}

#[test]
fn cs_8_10_a_selected_trigger_without_fixed_origins_fails() {
    let origins = "        resourceOrigins: [\"https://github.com\"]\n";
    assert_eq!(connector(origins, ""), ["no-origins"]);
    assert_eq!(connector("[\"https://github.com\"]", "[]"), ["trigger"]);
    assert_eq!(
        connector("[\"https://github.com\"]", "[\"https://github.com/\"]"),
        ["trigger"]
    );
}

#[test]
fn cs_8_07_an_unknown_profile_activates_nothing() {
    assert_eq!(
        connector("verificationProfile: github", "verificationProfile: githib"),
        ["no-profile"]
    );
}

#[test]
fn every_fault_is_reported_not_only_the_first() {
    let text = "---\non:\n  gateway-dispatch:\n    github: [issue-opend, issue-opened]\n    gitlab: [x]\nimports:\n  - uses: .github/workflows/connectors/github.md\n    with: {repositories: [o/r], repos: [x]}\n---\n";
    let compiled = compile("w.md", text);
    let codes: Vec<_> = compiled
        .diagnostics
        .iter()
        .map(|d| (d.code, d.place.line))
        .collect();
    assert_eq!(
        codes,
        [
            ("no-trigger", 4),
            ("not-imported", 5),
            ("import-binding", 8)
        ]
    );
    let drawn = compiled.diagnostics[2].draw(Some(text));
    assert!(
        drawn.contains("w.md:8:33: error[import-binding]"),
        "{drawn}"
    );
    assert!(
        drawn.ends_with("                                ^"),
        "{drawn}"
    );
}

#[test]
fn imports_stay_inside_the_repository() {
    for (target, code) in [
        ("../../../etc/passwd", "import"),
        ("/etc/passwd", "import"),
        ("owner/repo/connectors/x.md@v1", "import"),
        ("https://example.com/x.md", "import"),
        ("x.lock.yml", "import"),
        (".github/workflows/connectors/nope.md", "no-file"),
        ("shared/nope.md", "no-file"),
    ] {
        let text = format!("---\non: {{}}\nimports: ['{target}']\n---\n");
        let compiled = compile("w.md", &text);
        let codes: Vec<_> = compiled.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, [code], "{target}");
    }
    assert!(
        compile("w.md", "---\non: {}\nimports: ['shared/nope.md?']\n---\n")
            .diagnostics
            .is_empty()
    );
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,200}", yaml in "[a-z:{}\\[\\]\\-&*!|>'\"\n ,#?@%0-9.]{0,200}") {
        compile("w.md", &text);
        compile("w.md", &format!("---\n{yaml}\n---\n"));
        compile("w.md", &format!("---\non:\n  gateway-dispatch: {yaml}\nimports: [{yaml}]\n---\n"));
    }
}
