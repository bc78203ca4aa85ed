//! The published cases, all of them (event-predicates/v1, section 10).

use postern_predicates::conformance::{Verdict, check};

#[test]
fn cs_8_02_every_published_case_passes() {
    let lines = include_str!("../conformance/cases.jsonl");
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        match check(line) {
            Verdict::Pass => passed += 1,
            Verdict::Fail { id, expected, got } => {
                failed.push(format!("{id}: expected {expected}, got {got}"));
            }
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(passed, 986);
}

#[test]
fn a_wrong_expectation_fails() {
    let line = r#"{"id":"x","kind":"predicate","predicate":{"exists":{"pointer":"/a"}},"document":"{}","expect":"true"}"#;
    assert!(matches!(check(line), Verdict::Fail { .. }));
}
