//! Walks fixtures/workflows: what compiles gives the expected subscriptions, and what must not says why,
//! where, and drawn as `tests/drawn` holds it (`UPDATE_EXPECT=1` rewrites the drawings alone).

use std::path::{Path, PathBuf};

use postern_compiler::{Compiled, Compiler, Severity, Sources};
use serde_json::{Value, json};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn fixtures() -> PathBuf {
    here("../fixtures/workflows")
}

fn compile(name: &str, text: &str) -> Compiled {
    let mut sources = Sources::default();
    let file = format!(".github/workflows/{name}");
    sources.insert(file.clone(), text);
    let compiler = Compiler {
        sources: &sources,
        repository: Some("octo-org/octo-repo"),
    };
    compiler.compile(&file)
}

fn errors(compiled: &Compiled) -> Vec<Value> {
    (compiled.diagnostics.iter())
        .filter(|d| d.severity == Severity::Error)
        .map(|d| json!({ "code": d.code, "line": d.place.line }))
        .collect()
}

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
        if expect["valid"] == false {
            assert_eq!(json!(errors(&compiled)), expect["errors"], "{name}");
            assert!(compiled.selected.is_empty(), "{name}");
            continue;
        }
        assert_eq!(expect["valid"], true, "{name}");
        assert_eq!(compiled.diagnostics, [], "{name}");
        let wanted = expect["subscriptions"].as_array().unwrap();
        assert_eq!(compiled.selected.len(), wanted.len(), "{name}");
        for (got, wanted) in compiled.selected.iter().zip(wanted) {
            let s = &got.subscription;
            assert_eq!(s.connector.as_str(), wanted["connector"], "{name}");
            assert_eq!(s.trigger.as_str(), wanted["trigger"], "{name}");
            assert_eq!(json!(s.filters), wanted["filters"], "{name}");
            let resources = json!(got.trigger.binding().resources());
            assert_eq!(resources, wanted["binding"]["resources"], "{name}");
            assert!(!s.operational);
            assert_eq!(got.connector_file, format!("shipped/{}.md", s.connector));
            // A frozen trigger loads again, and is what the subscription names
            let again = postern_predicates::Trigger::load(got.trigger.document().clone()).unwrap();
            assert_eq!(again.digest(), s.trigger_digest);
            assert_eq!(again.binding_digest(), s.binding);
            assert_eq!(again.profile_digest(), s.profile_digest);
        }
    }
}

#[test]
fn what_is_refused_is_drawn_on_its_source() {
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("invalid-") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let compiled = compile(&name, &text);
        // Whatever a drawing says, this workflow is refused
        assert!(compiled.has_errors(), "{name}");
        assert!(compiled.selected.is_empty(), "{name}");
        let drawn: String = (compiled.diagnostics.iter())
            .map(|d| d.draw(Some(&text)) + "\n")
            .collect();
        let golden = here("tests/drawn").join(name.replace(".md", ".txt"));
        #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
        let update = std::env::var_os("UPDATE_EXPECT").is_some();
        if update {
            std::fs::write(&golden, &drawn).unwrap();
        }
        let wanted = std::fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(drawn, wanted, "{name}: UPDATE_EXPECT=1 rewrites drawings");
    }
}

#[test]
fn cs_8_04_a_subscription_is_digest_bound_data() {
    // Written by hand: RFC 8785 of what the workflow says
    let text = "---\non: {gateway-dispatch: {github: [{issue-opened: {filters: {label: [bug, b], author: é}}}]}}\nimports:\n  - {uses: .github/workflows/connectors/github.md, with: {repositories: [o/r]}}\n---\n";
    let compiled = compile("w.md", text);
    let [got] = compiled.selected.as_slice() else {
        panic!("{:?}", compiled.diagnostics);
    };
    let profile = postern_profiles::Catalogue::embedded()
        .get("github")
        .unwrap();
    let binding =
        r#"{"resourceOrigins":["https://github.com"],"resources":{"repositories":["o/r"]}}"#;
    let digest = |text: &str| postern_contract::Digest::of(text.as_bytes());
    let wanted = format!(
        concat!(
            r#"{{"apiVersion":"github.com/gh-aw/connectors/v1","binding":"{}","connector":"github","#,
            r#""filters":{{"author":"é","label":["bug","b"]}},"kind":"Subscription","operational":false,"#,
            r#""profile":"github","profileDigest":"{}","repository":"octo-org/octo-repo","#,
            r#""trigger":"issue-opened","triggerDigest":"{}","workflow":".github/workflows/w.md"}}"#
        ),
        digest(binding),
        digest(std::str::from_utf8(profile.document()).unwrap()),
        digest(std::str::from_utf8(got.trigger.document()).unwrap()),
    );
    let bytes = postern_contract::canonical::to_vec(&got.subscription).unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), wanted);
    assert_eq!(got.digest, digest(&wanted));
}

#[test]
fn the_same_bytes_give_the_same_digests() {
    let text = std::fs::read_to_string(fixtures().join("failed-ci.md")).unwrap();
    let digests = |text: &str| -> Vec<_> {
        let compiled = compile("a.md", text);
        assert!(!compiled.selected.is_empty(), "{:?}", compiled.diagnostics);
        (compiled.selected.iter())
            .map(|s| (s.digest, s.trigger.digest()))
            .collect()
    };
    let first = digests(&text);
    assert_eq!(digests(&text), first);
    // Spelling is no meaning
    let spelled = text
        .replace("attempt: 1", "attempt: 1.0")
        .replace("workflow: test", "'workflow': \"test\"");
    assert_ne!(spelled, text);
    assert_eq!(digests(&spelled), first);
    // One more granted repository is another binding, trigger and subscription
    let wider = text.replace("[octo-org/octo-repo, ", "[octo-org/octo-repo, x/y, ");
    assert_ne!(wider, text);
    assert_ne!(digests(&wider)[0].0, first[0].0);
    assert_ne!(digests(&wider)[0].1, first[0].1);
    // Another filter is another subscription to the same trigger
    let other = text.replace("attempt: 1", "attempt: 2");
    assert_ne!(digests(&other)[0].0, first[0].0);
    assert_eq!(digests(&other)[0].1, first[0].1);
}

/// Code, line and column of everything that is found
fn found(text: &str) -> Vec<(&'static str, usize, usize)> {
    let compiled = compile("w.md", text);
    (compiled.diagnostics.iter())
        .map(|d| (d.code, d.place.line, d.place.column))
        .collect()
}

#[test]
fn every_fault_is_reported_not_only_the_first() {
    let text = "---
on:
  gateway-dispatch:
    github:
      - issue-opend
      - issue-opened: {filters: {label: [], colour: red, author: [a, 1]}}
      - issue-closed: {filter: {}}
      - [issue-labeled]
    gitlab: [x]
    stripe: []
imports:
  - uses: .github/workflows/connectors/github.md
    with: {repositories: [o/r]}
  - uses: .github/workflows/connectors/linear.md
    with: {teams: [1], team: [x], organizations: x}
  - {use: x.md}
---
";
    assert_eq!(
        found(text),
        [
            ("no-trigger", 5, 9),
            ("filter", 6, 34),
            ("filter", 6, 45),
            ("filter", 6, 58),
            ("selection", 7, 24),
            ("selection", 8, 9),
            ("not-imported", 9, 14),
            ("selection", 10, 5),
            ("import-binding", 15, 20),
            ("import-binding", 15, 24),
            ("import-binding", 15, 35),
            ("import", 16, 5),
            ("import", 16, 6),
        ]
    );
    let compiled = compile("w.md", text);
    let hints: Vec<_> = (compiled.diagnostics.iter())
        .filter_map(|d| d.hint.as_deref())
        .filter(|hint| hint.starts_with("did you mean"))
        .collect();
    assert_eq!(
        hints,
        [
            "did you mean `issue-opened`?",
            "did you mean `filters`?",
            "did you mean `teams`?",
            "did you mean `uses`?"
        ]
    );
}

#[test]
fn a_diagnostic_is_json_with_its_place() {
    let compiled = compile("w.md", "---\non: {gateway-dispatch: {github: [a]}}\n---\n");
    assert_eq!(
        serde_json::to_value(&compiled.diagnostics).unwrap(),
        json!([{
            "code": "not-imported", "severity": "error", "file": ".github/workflows/w.md",
            "line": 2, "column": 34, "path": "/on/gateway-dispatch/github/0",
            "message": "the workflow imports no connector `github`",
            "hint": "add to `imports`: {uses: .github/workflows/connectors/github.md, with: …}",
        }])
    );
}

const IMPORTS: &str = "imports: [{uses: connectors/github.md, with: {repositories: [o/r]}}]\n---\n";

#[test]
fn cs_3_05_a_qualified_root_lowers_to_the_same_route() {
    let digests = |on: &str| -> Vec<_> {
        let compiled = compile("w.md", &format!("---\non: {on}\n{IMPORTS}"));
        assert_eq!(compiled.diagnostics, [], "{on}");
        compiled.selected.iter().map(|s| s.digest).collect()
    };
    let listed = digests("{gateway-dispatch: {github: [issue-opened]}}");
    assert_eq!(listed.len(), 1);
    assert_eq!(digests("{github-issue-opened: null}"), listed);
    assert_eq!(digests("{github-issue-opened: {}, push: {}}"), listed);
    let filtered = "{github-issue-opened: {filters: {label: bug}}}";
    assert_ne!(digests(filtered), listed);
    for (on, code) in [
        // A misspelt selection is no foreign event
        ("{github-issue-opend: {}}", "no-trigger"),
        ("{github-issue-opened: [x]}", "selection"),
        (
            "{github-issue-opened: {}, gateway-dispatch: {github: [issue-opened]}}",
            "selected-twice",
        ),
    ] {
        let got = found(&format!("---\non: {on}\n{IMPORTS}"));
        assert_eq!(got.iter().map(|f| f.0).collect::<Vec<_>>(), [code], "{on}");
    }
    // Not ours to judge
    for on in [
        "push",
        "[push, issues]",
        "{github-token: x, push: {branches: [a]}}",
    ] {
        assert_eq!(found(&format!("---\non: {on}\n{IMPORTS}")), [], "{on}");
    }
}

#[test]
fn cs_3_01_importing_selects_nothing() {
    let compiled = compile("w.md", &format!("---\non: push\n{IMPORTS}"));
    assert_eq!(compiled.diagnostics, []);
    assert!(compiled.selected.is_empty());
}

#[test]
fn filters_are_held_to_their_bounds() {
    let list = |n: usize| format!("[{}]", vec!["x"; n].join(", "));
    for (filters, sound) in [
        (format!("label: {}", list(1)), true),
        (format!("label: {}", list(100)), true),
        (format!("label: {}", list(101)), false),
        ("label: []".to_owned(), false),
        ("label: null".to_owned(), false),
        ("label: {a: b}".to_owned(), false),
        ("label: [[a]]".to_owned(), false),
        ("label: 1".to_owned(), false),
        ("label: '1'".to_owned(), true),
        (format!("label: {}", "x".repeat(1024)), true),
        (format!("label: {}", "x".repeat(1025)), false),
        // Its own text would be compared
        ("label: '${{ github.actor }}'".to_owned(), false),
    ] {
        let text = format!(
            "---\non: {{gateway-dispatch: {{github: [{{issue-opened: {{filters: {{{filters}}}}}}}]}}}}\n{IMPORTS}"
        );
        let compiled = compile("w.md", &text);
        let shown: String = filters.chars().take(40).collect();
        assert_eq!(compiled.selected.len(), usize::from(sound), "{shown}");
        let codes: Vec<_> = compiled.diagnostics.iter().map(|d| d.code).collect();
        let wanted: &[&str] = if sound { &[] } else { &["filter"] };
        assert_eq!(codes, wanted, "{shown}");
    }
}

#[test]
fn a_number_is_judged_by_its_exact_value() {
    for (attempt, sound) in [
        ("1", true),
        ("1e0", true),
        ("9007199254740991", true),
        ("9007199254740992", false),
        ("1.5", false),
        ("1.0000000000000000000001", false),
        ("01", false),
        ("0x1", false),
        ("'1'", false),
    ] {
        let text = format!(
            "---\non: {{gateway-dispatch: {{github: [{{workflow-run-failed: {{filters: {{attempt: {attempt}}}}}}}]}}}}\n{IMPORTS}"
        );
        let compiled = compile("w.md", &text);
        assert_eq!(compiled.selected.len(), usize::from(sound), "{attempt}");
    }
}
