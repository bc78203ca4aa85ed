//! Faults that users of other gateways reported about filters and types, each with the right answer here.
//! CS-8-02.

#![expect(clippy::unwrap_used, reason = "a declaration that must compile")]

use postern_contract::Document;
use postern_predicates::{Predicate, Truth};

fn document(text: &str) -> Document {
    Document::parse(text.to_owned().into()).unwrap()
}

fn truth(predicate: &str, body: &str) -> Truth {
    let declared = document(predicate);
    let predicate = Predicate::compile(declared.root()).unwrap();
    predicate.evaluate(document(body).root())
}

fn compiles(predicate: &str) -> bool {
    Predicate::compile(document(predicate).root()).is_ok()
}

fn equals(value: &str, body: &str) -> Truth {
    truth(
        &format!(r#"{{"equals":{{"pointer":"/v","value":{value}}}}}"#),
        &format!(r#"{{"v":{body}}}"#),
    )
}

#[test]
fn cs_8_02_report_f1_a_missing_key_is_no_match() {
    let both = r#"{"all":[{"equals":{"pointer":"/action","value":"opened"}},{"equals":{"pointer":"/repo","value":"x/y"}}]}"#;
    assert_eq!(truth(both, r#"{"action":"opened"}"#), Truth::Unknown);
}

#[test]
fn cs_8_02_report_f3_strings_are_never_numbers() {
    assert_eq!(equals(r#""0012""#, r#""12""#), Truth::False);
    assert_eq!(equals(r#""1e3""#, r#""1000""#), Truth::False);
    assert_eq!(equals("1000", r#""1000""#), Truth::False);
    assert_eq!(equals(r#""nan""#, r#""nan""#), Truth::True);
}

#[test]
fn cs_8_02_report_f5_a_string_is_no_pattern() {
    let equals = r#"{"equals":{"pointer":"/ref","value":"main"}}"#;
    assert_eq!(truth(equals, r#"{"ref":"not-main-x"}"#), Truth::False);
    let dotted = r#"{"equals":{"pointer":"/ref","value":"a.c"}}"#;
    assert_eq!(truth(dotted, r#"{"ref":"abc"}"#), Truth::False);
}

#[test]
fn cs_8_02_report_f6_f7_nothing_is_true_of_missing_evidence() {
    assert_eq!(equals("1", "{}"), Truth::False);
    let missing = r#"{"equals":{"pointer":"/gone","value":1}}"#;
    let shown = r#"{"equals":{"pointer":"/v","value":1}}"#;
    let other = r#"{"equals":{"pointer":"/v","value":2}}"#;
    assert_eq!(truth(missing, "{}"), Truth::Unknown);
    assert_eq!(
        truth(&format!(r#"{{"any":[{missing},{shown}]}}"#), r#"{"v":1}"#),
        Truth::True
    );
    assert_eq!(
        truth(&format!(r#"{{"any":[{missing},{other}]}}"#), r#"{"v":1}"#),
        Truth::Unknown
    );
    assert_eq!(
        truth(&format!(r#"{{"not":{missing}}}"#), "{}"),
        Truth::Unknown
    );
}

#[test]
fn cs_8_02_report_f9_siblings_count_lists_are_whole_and_a_missing_parent_shows_nothing() {
    let range = r#"{"all":[{"any":[{"compare":{"pointer":"/a","op":"gte","value":5}}]},{"compare":{"pointer":"/a","op":"lt","value":3}}]}"#;
    assert_eq!(truth(range, r#"{"a":10}"#), Truth::False);
    let paid = r#"{"in":{"pointer":"/s","values":["paid"]}}"#;
    assert_eq!(truth(paid, r#"{"s":"unpaid"}"#), Truth::False);
    assert_eq!(
        truth(r#"{"absent":{"pointer":"/p/q"}}"#, "{}"),
        Truth::Unknown
    );
}

#[test]
fn cs_8_02_report_f12_f13_what_is_no_predicate_is_refused_when_compiled() {
    for bad in [
        r#"{"equals":{"pointer":"/n","value":{"times":3}}}"#,
        r#"{"compare":{"pointer":"/n","op":"gt","value":"3"}}"#,
        r#"{"lower":{"pointer":"/type"}}"#,
        r#""true""#,
        "true",
    ] {
        assert!(!compiles(bad), "{bad}");
    }
    // An empty string is evidence, not a missing attribute
    assert_eq!(equals(r#""""#, r#""""#), Truth::True);
}

#[test]
fn cs_8_02_report_f16_numbers_keep_every_digit() {
    assert_eq!(
        equals("9007199254740991", "9007199254740991.0"),
        Truth::True
    );
    let same = r#"{"same":{"left":"/a","right":"/b"}}"#;
    let pair = |a: &str, b: &str| truth(same, &format!(r#"{{"a":{a},"b":{b}}}"#));
    assert_eq!(pair("9007199254740993", "9007199254740992"), Truth::False);
    assert_eq!(
        pair("8202522731445525542", "8202522731445525542"),
        Truth::True
    );
    assert_eq!(pair("1e400", "10e399"), Truth::True);
    assert!(!compiles(r#"{"equals":{"pointer":"/n","value":1e400}}"#));
}
