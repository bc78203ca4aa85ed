//! The Rust evaluator against the JavaScript one, which shares no code with it: generated predicates,
//! triggers and documents over the line protocol, with the invariants of event-predicates/v1, section 9.
//! CS-8-02, CS-8-03 (a chosen filter never turns a nonmatch into a match: `never_match_unless`).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot run must fail"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

const PAIRS: usize = 12_000;

fn lines_program() -> PathBuf {
    // target/<profile>/deps/parity-… stands beside target/<profile>/examples/lines
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples").join("lines")
}

fn compare(seed: u64, other: &Path) -> (bool, String) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let output = Command::new("node")
        .arg(dir.join("parity.mjs"))
        .args([
            "--seed",
            &seed.to_string(),
            "--count",
            &PAIRS.to_string(),
            "--other",
        ])
        .arg(other)
        .output()
        .expect("node runs: `./check` installs it");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text)
}

#[test]
fn cs_8_02_cs_8_03_two_evaluators_agree_on_generated_cases() {
    let fresh = u64::from(std::process::id()) * 7919;
    for seed in [20_240_229, fresh] {
        let (agreed, text) = compare(seed, &lines_program());
        println!("seed {seed}: {}", text.lines().last().unwrap_or_default());
        assert!(
            agreed,
            "seed {seed}:\n{}",
            text.chars().take(6000).collect::<String>()
        );
        assert!(text.contains(&format!("{PAIRS} pairs agreed")), "{text}");
    }
}

#[test]
fn an_evaluator_that_answers_otherwise_is_caught() {
    // `cat` answers every case with the case itself
    let (agreed, _) = compare(1, Path::new("cat"));
    assert!(!agreed);
}
