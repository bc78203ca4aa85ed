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
    let gaps = include_str!("../../known-gaps.txt").lines();
    let gaps: Vec<&str> = (gaps.filter(|line| !line.starts_with('#')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|id| lines.contains(&format!("\"{id}\"")))
        .collect();
    let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
    let ids = (failed.iter()).filter_map(|line| line.split(':').next());
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    assert_eq!(ids, gaps, "{}", failed.join("\n"));
    assert!(gaps.len() <= 10, "{gaps:?}");
    assert!(passed >= 600, "only {passed} lines");
}

/// Made by another implementation than ours, from what each provider documents, for the schemes that have no
/// recorded request
#[test]
fn every_constructed_line_passes() {
    let lines = include_str!("../../fixtures/vectors/constructed-vectors.jsonl");
    let failed: Vec<String> = (lines.lines())
        .filter_map(|line| match check(line, Catalogue::embedded()) {
            Verdict::Pass => None,
            Verdict::Fail { id, why } => Some(format!("{id}: {why}")),
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(lines.lines().count() > 900);
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
