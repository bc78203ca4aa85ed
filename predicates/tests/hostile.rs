//! Every parser on input of any kind: it answers, it never panics, and what it takes stands to what it says.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the published cases are read as they are"
)]

use std::sync::LazyLock;

use bytes::Bytes;
use postern_contract::{Digest, Document};
use postern_predicates::conformance::{Verdict, answer, check};
use postern_predicates::instant::Instant;
use postern_predicates::number::Number;
use postern_predicates::pattern::Pattern;
use postern_predicates::url::CanonicalUrl;
use postern_predicates::{Binding, NotATrigger, Predicate, Resources, Trigger};
use proptest::prelude::*;
use proptest::sample::Index;

fn cases() -> Vec<&'static str> {
    let lines = include_str!("../conformance/cases.jsonl").lines();
    lines.filter(|line| !line.trim().is_empty()).collect()
}

/// What a case declares, as its own text
fn declarations() -> Vec<String> {
    let mut found = Vec::new();
    for case in cases() {
        let line = Document::parse(case.into()).unwrap();
        for name in ["predicate", "trigger"] {
            let text = line.root().member(&format!("{name}_text"));
            found.extend(text.and_then(|text| text.as_str()).map(str::to_owned));
            // Members are cut out of the line by the parser of another crate: their spelling is no matter here
            if line.root().member(name).is_some()
                && let Ok(value) = serde_json::from_str::<serde_json::Value>(case)
            {
                found.extend(value.get(name).map(ToString::to_string));
            }
        }
    }
    assert!(found.len() > 300, "{}", found.len());
    found
}

/// Takes a piece out, and puts another in
fn bent(text: &str, at: &Index, cut: usize, put: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = at.index(chars.len() + 1);
    let end = (at + cut).min(chars.len());
    let kept = |part: &[char]| part.iter().collect::<String>();
    kept(&chars[..at]) + put + &kept(&chars[end..])
}

const PIECES: &[&str] = &[
    "",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "1e99999999999999999999",
    "-",
    "{}",
    "[]",
    "\"\"",
    "\"a\":",
    "{\"not\":",
    "\"*\"",
    "/*",
    "~",
    "\\ud800",
    "\u{0}",
    "é",
    "9007199254740993",
];

fn every_reader(document: &Document) {
    let _ = Predicate::compile(document.root()).map(|p| p.explain(document.root()));
    let _ = Binding::parse(document).map(|resources| Binding::new(resources, Vec::new()));
    if let Ok(trigger) = Trigger::compile(document, Digest::of(b""), Resources::new()) {
        let _ = trigger.explain("e", document);
        let _ = trigger.choose_declared(document.root());
        let loaded = Trigger::load(trigger.document().clone()).unwrap();
        assert_eq!(loaded.digest(), trigger.digest());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn declarations_that_are_bent_never_panic(
        which in any::<Index>(), at in any::<Index>(), cut in 0..6_usize, put in prop::sample::select(PIECES),
    ) {
        static ALL: LazyLock<Vec<String>> = LazyLock::new(declarations);
        if let Ok(document) = Document::parse(bent(&ALL[which.index(ALL.len())], &at, cut, put).into()) {
            every_reader(&document);
        }
    }

    #[test]
    fn an_answer_is_one_line_of_json(
        which in any::<Index>(), at in any::<Index>(), cut in 0..6_usize, put in prop::sample::select(PIECES),
    ) {
        static ALL: LazyLock<Vec<&str>> = LazyLock::new(cases);
        let line = bent(ALL[which.index(ALL.len())], &at, cut, put);
        let said = answer(&line);
        assert!(!said.contains('\n'), "{line}");
        assert!(Document::parse(said.clone().into()).is_ok(), "{line}: {said}");
        if let Verdict::Fail { expected, got, .. } = check(&line) {
            assert!(expected.chars().count() <= 300 && got.chars().count() <= 300);
        }
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = (answer(&text), check(&text));
        let _ = Pattern::new(&text).map(|pattern| pattern.is_match(&text));
        let _ = (Instant::read(&text), CanonicalUrl::read(&text));
        let _ = Number::read(&text).plain(100);
        let _ = Trigger::load(Bytes::from(bytes.clone())).is_ok();
        if let Ok(document) = Document::parse(bytes.into()) {
            every_reader(&document);
        }
    }

    /// A frozen trigger with one byte changed is another trigger, or none
    #[test]
    fn a_changed_byte_never_loads_under_the_same_digest(at in any::<Index>(), to in any::<u8>()) {
        let declared = r#"{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],"match":{"/a":[1,0.5,null]},"when":{"matches":{"pointer":"/b","pattern":"^[a-c]{2}$"}},"normalize":{"u":{"pointer":"/u","type":"url","prefix":"https://a/{+r}"},"r":"/r"},"resourceOrigins":["https://a"],"resources":{"r":"rs"}}"#;
        let declared = Document::parse(declared.into()).unwrap();
        let trigger = Trigger::compile(&declared, Digest::of(b"p"), Resources::new()).unwrap();
        let mut bytes = trigger.document().to_vec();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        if let Ok(other) = Trigger::load(bytes.clone().into()) {
            prop_assert_ne!(other.digest(), trigger.digest());
            prop_assert_eq!(&other.document()[..], &bytes[..]);
        }
    }
}

/// Numbers of the evidence are compared where they stand: a long one costs its length once, and no more
#[test]
fn cs_8_02_a_number_of_a_million_digits_is_evidence() {
    let declared = r#"{"all":[{"compare":{"pointer":"/n","op":"gt","value":9007199254740991}},{"type":{"pointer":"/n","is":"integer"}},{"not":{"equals":{"pointer":"/n","value":1}}},{"same":{"left":"/n","right":"/m"}}]}"#;
    let declared = Document::parse(declared.into()).unwrap();
    let predicate = Predicate::compile(declared.root()).unwrap();
    let digits = "7".repeat(1_000_000);
    let body = format!(r#"{{"n":{digits},"m":0.{digits}e1000000}}"#);
    let body = Document::parse(body.into()).unwrap();
    assert_eq!(predicate.evaluate(body.root()).as_str(), "true");
}

/// Bytes that mean the same and are as many, but are not the ones that were frozen
#[test]
fn another_spelling_of_a_frozen_trigger_is_refused() {
    let declared = r#"{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],"match":{"/a":100},"normalize":{}}"#;
    let declared = Document::parse(declared.into()).unwrap();
    let trigger = Trigger::compile(&declared, Digest::of(b"p"), Resources::new()).unwrap();
    let text = std::str::from_utf8(trigger.document()).unwrap();
    assert!(Trigger::load(text.to_owned().into()).is_ok());
    let kind = r#","kind":"Trigger""#;
    let reordered = text
        .replacen(kind, "", 1)
        .replacen('{', r#"{"kind":"Trigger","#, 1);
    for (name, other) in [
        ("keys in another order", reordered),
        (
            "a number in another spelling",
            text.replacen("100", "1e2", 1),
        ),
    ] {
        assert_ne!(other, text, "{name}");
        assert_eq!(other.len(), text.len(), "{name}");
        let refused = Trigger::load(other.into());
        assert!(
            matches!(refused, Err(NotATrigger::NotCanonical)),
            "{name}: {refused:?}"
        );
    }
}
