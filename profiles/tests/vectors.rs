//! Recorded and published requests of many providers, with what their own verifiers say of them.

use postern_profiles::Catalogue;
use postern_profiles::vectors::{Verdict, check};

#[test]
fn every_vector_line_passes() {
    let lines = include_str!("../../fixtures/vectors/verification-vectors.jsonl");
    let mut passed = 0;
    let mut failed = Vec::new();
    for line in lines.lines() {
        match check(line, Catalogue::embedded()) {
            Verdict::Pass => passed += 1,
            Verdict::Fail { id, why } => failed.push(format!("{id}: {why}")),
        }
    }
    println!("{passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(passed >= 200, "only {passed} lines");
}

#[test]
fn a_line_of_an_unknown_scheme_or_with_a_wrong_expectation_fails() {
    let lines = include_str!("../../fixtures/vectors/verification-vectors.jsonl");
    let first = lines.lines().next().unwrap_or_default();
    for bad in [
        first.replace("\"accept\"", "\"reject\""),
        first
            .replace("\"scheme\": \"", "\"scheme\": \"x")
            .replace("\"scheme\":\"", "\"scheme\":\"x"),
    ] {
        assert_ne!(bad, first);
        assert!(
            matches!(check(&bad, Catalogue::embedded()), Verdict::Fail { .. }),
            "{bad}"
        );
    }
}
