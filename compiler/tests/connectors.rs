//! Every shipped connector compiles, and every fixture of fixtures/connectors gives what it expects.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a fixture that cannot be read must fail the test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use postern_compiler::{Compiler, Connector, Sources, shipped, trial};
use postern_contract::{CapturedRequest, Document, FilterChoice, Timestamp};
use postern_predicates::{Binding, Decision};
use postern_profiles::{Catalogue, RequestParts, vectors};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/connectors")
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What the trigger says of one fixture, in the fixture's own shape
fn run(connector: &Connector, trigger: &str, dir: &Path) -> (Value, Value) {
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).unwrap();
    let expect: Value = serde_json::from_str(&read("expect.json")).unwrap();
    let request: CapturedRequest = serde_json::from_str(&read("request.json")).unwrap();
    let binding = Document::parse(Bytes::from(expect["binding"].to_string())).unwrap();
    let grants = Binding::parse(&binding).unwrap();
    let trigger = connector.compile(trigger, grants).unwrap();
    let body = vectors::body(&request).unwrap();
    let profile = Catalogue::embedded().get(trigger.profile()).unwrap();
    let parts = RequestParts {
        method: &request.method,
        url: &request.url,
        headers: &request,
        body: &body,
    };
    let read = profile.read_unverified(&parts).swap_remove(0);
    let delivery = trial::Delivery {
        event: read.event.as_deref().unwrap_or_default(),
        id: read.delivery.as_deref(),
        body: &body,
        evidence: read.evidence.clone(),
        received_at: Timestamp::EPOCH,
    };
    let trial = trial::run(&trigger, &delivery);
    let mut got = serde_json::json!({ "match": trial.matched });
    if let Some(event) = &trial.event {
        got["variant"] = event.variant.clone().into();
        got["fields"] = serde_json::to_value(&event.fields).unwrap();
    }
    let mut nonmatch = trial.nonmatch.clone();
    if let (true, Some(filters)) = (trial.matched, expect.get("filters")) {
        let filters: BTreeMap<String, FilterChoice> =
            serde_json::from_value(filters.clone()).unwrap();
        let chosen = trigger.choose(&filters).unwrap();
        let document = Document::parse(read.evidence).unwrap();
        if let Decision::Match(found) = trigger.decide(delivery.event, &document)
            && let Err(why) = chosen.admit(&document, &found)
        {
            nonmatch = Some(why);
            got = serde_json::json!({ "match": false });
        }
    }
    if let Some(why) = nonmatch {
        got["reason"] = why.reason.as_str().into();
        if let Some(at) = why.at {
            got["at"] = at.into();
        }
    }
    let mut wanted = serde_json::Map::new();
    for key in ["match", "variant", "fields", "reason", "at"] {
        if let Some(value) = expect.get(key) {
            wanted.insert(key.to_owned(), value.clone());
        }
    }
    (got, wanted.into())
}

#[test]
fn cs_8_01_cs_8_03_every_trigger_has_fixtures_that_match_and_near_misses_and_they_agree() {
    let (mut cases, mut matches) = (0, 0);
    let ids: Vec<_> = shipped().map(|(id, _)| id.to_owned()).collect();
    assert_eq!(names(&fixtures()), ids);
    for (id, text) in shipped() {
        let connector = Connector::read(&format!("{id}.md"), text).unwrap();
        for trigger in connector.triggers() {
            let dir = fixtures().join(id).join(trigger);
            let (mut hit, mut miss) = (0, 0);
            for case in names(&dir) {
                let (got, wanted) = run(&connector, trigger, &dir.join(&case));
                assert_eq!(got, wanted, "{id}/{trigger}/{case}");
                if got["match"] == true {
                    hit += 1
                } else {
                    miss += 1
                }
            }
            assert!(
                hit > 0 && miss > 0,
                "{id}/{trigger}: {hit} match, {miss} do not"
            );
            cases += hit + miss;
            matches += hit;
        }
        // No fixture without a trigger
        let mut declared: Vec<String> = connector
            .triggers()
            .iter()
            .map(|t| (*t).to_owned())
            .collect();
        declared.sort();
        assert_eq!(names(&fixtures().join(id)), declared);
    }
    println!("{cases} cases, {matches} match");
}

/// What stands after the frontmatter
fn body(text: &str) -> &str {
    let rest = text.strip_prefix("---\n").unwrap();
    rest.split_once("\n---\n").unwrap().1
}

/// The tags of a block without CDATA, comments and declarations, checked to be balanced
fn tags(id: &str, mut text: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    while let Some((before, rest)) = text.split_once('<') {
        assert!(
            !before.contains(['>', '&']),
            "{id}: bare `>` or `&`: {before}"
        );
        assert!(!rest.starts_with(['!', '?']), "{id}: a declaration");
        let (tag, rest) = rest.split_once('>').unwrap();
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name.to_owned()), "{id}"),
            None => {
                assert_eq!(tag.matches('"').count() % 2, 0, "{id}: {tag}");
                let name = tag.split(' ').next().unwrap();
                open.push(name.to_owned());
                all.push(tag.to_owned());
            }
        }
        text = rest;
    }
    assert_eq!(open, Vec::<String>::new(), "{id}: not closed");
    all
}

#[test]
fn cs_10_01_each_shipped_connector_documents_itself_in_one_comment() {
    for (id, text) in shipped() {
        let body = body(text).trim();
        let inner = (body.strip_prefix("<!--").unwrap())
            .strip_suffix("-->")
            .unwrap();
        assert!(!inner.contains("--"), "{id}: a double hyphen");
        // What a scanner of comments refuses
        let lower = inner.to_lowercase();
        for word in [
            "curl ",
            "wget ",
            "eval(",
            "base64",
            "exec(",
            "<script",
            "javascript:",
            "data:text/",
            "require(",
            "document.",
            "window.",
            "fetch(",
            "ignore previous",
            "you are now",
            "act as",
        ] {
            assert!(!lower.contains(word), "{id}: {word}");
        }
        let (before, rest) = inner.split_once("<![CDATA[").unwrap();
        let (example, after) = rest.split_once("]]>").unwrap();
        let tags = tags(id, &format!("{before}{after}"));
        assert_eq!(
            tags[0],
            format!("connector-documentation id=\"{id}\" version=\"1\"")
        );
        assert_eq!(
            tags.iter()
                .filter(|tag| tag.starts_with("connector-doc"))
                .count(),
            1
        );
        // Every trigger is documented, and nothing else is
        let mut documented: Vec<&str> = tags
            .iter()
            .filter_map(|tag| tag.strip_prefix("trigger name=\"")?.strip_suffix('"'))
            .flat_map(|names| names.split(", "))
            .collect();
        documented.sort_unstable();
        let connector = Connector::read(&format!("{id}.md"), text).unwrap();
        let mut declared = connector.triggers();
        declared.sort_unstable();
        assert_eq!(documented, declared, "{id}");
        // Its example compiles as it stands
        let mut sources = Sources::default();
        sources.insert("w.md", format!("---{example}---\n"));
        let compiler = Compiler {
            sources: &sources,
            repository: Some("octo-org/octo-repo"),
        };
        let compiled = compiler.compile("w.md");
        assert_eq!(compiled.diagnostics, [], "{id}");
        assert!(!compiled.selected.is_empty(), "{id}");
    }
}

#[test]
fn cs_8_08_an_event_holds_only_what_was_in_the_delivery() {
    // Every projected string stands in the body, or is a canonical spelling of what does: nothing is fetched
    let connector = shipped().find(|(id, _)| *id == "github").unwrap();
    let connector = Connector::read("github.md", connector.1).unwrap();
    let dir = fixtures().join("github/issue-opened/match-opened");
    let (got, _) = run(&connector, "issue-opened", &dir);
    let request = std::fs::read_to_string(dir.join("request.json")).unwrap();
    for (name, value) in got["fields"].as_object().unwrap() {
        let texts: Vec<String> = match value {
            Value::Array(items) => items
                .iter()
                .map(|i| i.as_str().unwrap().to_owned())
                .collect(),
            Value::String(text) => vec![text.clone()],
            other => vec![other.to_string()],
        };
        for text in texts {
            assert!(request.contains(&text), "{name}: {text}");
        }
    }
}

#[test]
fn cs_8_04_a_different_profile_or_grant_is_a_different_digest() {
    let (_, text) = shipped().find(|(id, _)| *id == "github").unwrap();
    let connector = Connector::read("github.md", text).unwrap();
    let grants = |name: &str| {
        BTreeMap::from([(
            "repositories".to_owned(),
            vec![postern_contract::Scalar::String(name.to_owned())],
        )])
    };
    let one = connector.compile("issue-opened", grants("a/b")).unwrap();
    let two = connector.compile("issue-opened", grants("a/c")).unwrap();
    assert_ne!(one.digest(), two.digest());
    assert_ne!(one.binding_digest(), two.binding_digest());
    assert_eq!(
        one.digest(),
        connector
            .compile("issue-opened", grants("a/b"))
            .unwrap()
            .digest()
    );
}
