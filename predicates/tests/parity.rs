//! This evaluator against the JavaScript one, which shares no code with it, on generated predicates,
//! triggers and documents: every answer compared, and the invariants that the cases carry
//! (event-predicates/v1, section 9).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot run must fail"
)]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use postern_contract::{Document, Value};
use postern_predicates::conformance::{answer, same_answer};

/// For each of two seeds
const PAIRS: usize = 12_000;

/// What a program of `conformance/` prints
fn node(program: &str, args: &[&str], input: String) -> (bool, String) {
    let mut child = Command::new("node")
        .arg(program)
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the second evaluator needs `node` 20 or newer: `./check tools` installs it");
    let mut stdin = child.stdin.take().unwrap();
    // A program that has seen enough may close its input, and its answer tells
    let feed = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let mut output = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    feed.join().unwrap();
    (child.wait().unwrap().success(), output)
}

fn parsed(text: &str) -> Document {
    Document::parse(text.to_owned().into()).unwrap()
}

fn text<'a>(holder: Value<'a>, key: &str) -> Option<&'a str> {
    holder.member(key)?.as_str()
}

/// What is wrong with the answers to generated cases
fn faults(cases: &[&str], here: &[String], there: &[&str]) -> Vec<String> {
    assert_eq!(cases.len(), there.len(), "an answer a case");
    let mut faults = Vec::new();
    let mut earlier: HashMap<String, Document> = HashMap::new();
    for ((case, here), there) in cases.iter().zip(here).zip(there) {
        let mut fault = |what: &str| {
            faults.push(format!(
                "{what}\n  case  {case}\n  here  {here}\n  there {there}"
            ))
        };
        if !same_answer(here, there) {
            fault("the two differ");
        }
        let (line, mine) = (parsed(case), parsed(here));
        let line = line.root();
        let result = mine.root().member("result").unwrap();
        let named = |key| text(line, key).and_then(|id| earlier.get(id));
        let matches = |answer: &Document| {
            let result = answer.root().member("result").unwrap();
            result.member("match").and_then(Value::as_bool) == Some(true)
        };
        if let Some(other) = named("same_as") {
            let id = text(line, "id").unwrap();
            let as_other = here.replacen(id, text(line, "same_as").unwrap(), 1);
            if !same_answer(&as_other, std::str::from_utf8(other.text()).unwrap()) {
                fault("not as the case that it restates");
            }
        }
        if named("never_match_unless").is_some_and(|wide| matches(&mine) && !matches(wide)) {
            fault("it matches, and the wider case does not");
        }
        if let Some(must) = text(line, "must_be") {
            let found = text(result, "evidence").or_else(|| text(result, "reason"));
            // An event that is not listed is no candidate, and that is decided first
            if found != Some(must) && found != Some("event-not-listed") {
                fault("not what it must be");
            }
        }
        earlier.insert(text(line, "id").unwrap().to_owned(), mine);
    }
    faults
}

fn generate(seed: u64, count: usize) -> String {
    let args = ["--seed", &seed.to_string(), "--count", &count.to_string()];
    let (made, cases) = node("generate.mjs", &args, String::new());
    assert!(made, "generate.mjs fails for seed {seed}");
    cases
}

/// What the tests print
fn compare(seed: u64) -> String {
    let cases = generate(seed, PAIRS);
    let feed = cases.clone();
    let there = std::thread::spawn(move || node("evaluator.mjs", &[], feed));
    let lines: Vec<&str> = cases.lines().collect();
    assert_eq!(lines.len(), PAIRS);
    let here: Vec<String> = lines.iter().map(|line| answer(line)).collect();
    let (ended, there) = there.join().unwrap();
    assert!(ended, "evaluator.mjs fails for seed {seed}");
    let faults = faults(&lines, &here, &there.lines().collect::<Vec<_>>());
    let shown: Vec<_> = faults
        .iter()
        .take(10)
        .map(|f| f.chars().take(3_000).collect::<String>())
        .collect();
    assert!(
        faults.is_empty(),
        "seed {seed}: {} faults\n{}",
        faults.len(),
        shown.join("\n")
    );
    format!("seed {seed}: {PAIRS} pairs agreed")
}

#[test]
fn cs_8_02_cs_8_03_two_evaluators_agree_on_a_fixed_seed() {
    println!("{}", compare(20_240_229));
}

#[test]
fn cs_8_02_cs_8_03_two_evaluators_agree_on_a_fresh_seed() {
    // The standard library's hasher is keyed anew in each process; a seed has at most nine digits
    println!(
        "{}",
        compare(RandomState::new().hash_one(0) % 1_000_000_000)
    );
}

#[test]
fn a_wrong_answer_and_each_broken_invariant_are_caught() {
    let case =
        |id: &str, more: &str| format!(r#"{{"id":"{id}","kind":"document","document":"1"{more}}}"#);
    let answer = |id: &str, result: &str| format!(r#"{{"id":"{id}","result":{result}}}"#);
    let (yes, no) = (
        r#"{"match":true}"#,
        r#"{"match":false,"reason":"no-variant"}"#,
    );
    let found = |more: &str, first: &str, second: &str, there: &str| {
        let cases = [case("a", ""), case("b", more)];
        let here = [answer("a", first), answer("b", second)];
        let there = [answer("a", first), answer("b", there)];
        faults(
            &cases.each_ref().map(String::as_str),
            &here,
            &there.each_ref().map(String::as_str),
        )
        .len()
    };
    assert_eq!(found("", yes, no, no), 0);
    assert_eq!(found("", yes, no, yes), 1);
    assert_eq!(found(r#","same_as":"a""#, yes, yes, yes), 0);
    assert_eq!(found(r#","same_as":"a""#, yes, no, no), 1);
    assert_eq!(found(r#","never_match_unless":"a""#, yes, yes, yes), 0);
    assert_eq!(found(r#","never_match_unless":"a""#, no, yes, yes), 1);
    assert_eq!(found(r#","must_be":"no-variant""#, no, no, no), 0);
    assert_eq!(found(r#","must_be":"ambiguous-evidence""#, no, no, no), 1);
}

/// The tool for other implementations
#[test]
fn the_parity_program_tells_an_evaluator_from_an_echo() {
    let args = ["--seed", "1", "--count", "400", "--other"];
    let with = |other: &[&str]| node("parity.mjs", &[&args[..], other].concat(), String::new());
    let (agreed, said) = with(&["node", "evaluator.mjs"]);
    assert!(
        agreed && said.contains("400 pairs agreed, 0 differ"),
        "{said}"
    );
    assert!(!with(&["cat"]).0);
}
