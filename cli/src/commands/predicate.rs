//! `postern predicate`: conformance cases held against the evaluator, one predicate on one document with
//! its trace, and the line protocol by which implementations are compared.

use std::fmt::Write as _;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Subcommand;
use postern_contract::Document;
use postern_predicates::conformance as cases;
use postern_predicates::{Predicate, Reason, TraceLine, Truth};
use serde::Serialize;

use crate::conformance;
use crate::failure::Failure;
use crate::input;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern predicate check predicates/conformance/cases.jsonl
  postern predicate eval --predicate '{\"exists\":{\"pointer\":\"/issue\"}}' --document body.json";

/// Event predicates: conformance cases, and one predicate on one document
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run conformance cases; ends with `N passed, M failed`
    ///
    /// Lines that `known-gaps.txt` of the current directory names (`<id> <reason>`) count in neither.
    #[command(
        after_help = "Examples:\n  postern predicate check predicates/conformance/cases.jsonl"
    )]
    Check {
        /// One case a line
        cases: PathBuf,
    },
    /// Evaluate one predicate on one document: `true`, `false` or `unknown`, and what every node gave
    ///
    /// Exits 0 where it is true, else 1.
    #[command(after_help = EVAL)]
    Eval(Eval),
}

const EVAL: &str = "\
Examples:
  postern predicate eval --predicate predicate.json --document body.json
  postern predicate eval --predicate '{\"exists\":{\"pointer\":\"/issue\"}}' --document - < body.json
  postern predicate eval --lines < cases.jsonl";

#[derive(clap::Args)]
struct Eval {
    /// The predicate: a file, `-`, or its text where that begins with `{`
    #[arg(long, value_name = "FILE|TEXT", required_unless_present = "lines")]
    predicate: Option<String>,
    /// The document: a file, or `-` for standard input
    #[arg(long, value_name = "FILE|-", required_unless_present = "lines")]
    document: Option<PathBuf>,
    /// Answer case lines from standard input, one JSON object a line (predicates/conformance/README.md)
    #[arg(long, conflicts_with_all = ["predicate", "document"])]
    lines: bool,
}

/// Runs it
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    match args.action {
        Action::Check { cases } => {
            let judge = |line: &str| match cases::check(line) {
                cases::Verdict::Pass => Ok(()),
                cases::Verdict::Fail { expected, got, .. } => {
                    Err(format!("want {expected}, got {got}"))
                }
            };
            conformance::check(&cases, judge, output)
        }
        Action::Eval(Eval { lines: true, .. }) => answer_lines(output),
        Action::Eval(Eval {
            predicate: Some(predicate),
            document: Some(document),
            ..
        }) => eval(&predicate, &document, output),
        // The arguments' own rules leave nothing else
        Action::Eval(_) => Err(Failure::call(
            "usage",
            "want `--predicate` and `--document`, or `--lines`",
        )),
    }
}

fn answer_lines(output: &Output) -> Result<Exit, Failure> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| Failure::unreadable(Path::new("-"), &e))?;
        if line.trim().is_empty() {
            continue;
        }
        output.raw(format!("{}\n", cases::answer(&line)).as_bytes())?;
        if output.gone() {
            break;
        }
    }
    Ok(Exit::Done)
}

/// What evaluating came to
#[derive(Serialize)]
#[serde(untagged)]
enum Evaluated {
    Value {
        value: Truth,
        trace: Vec<TraceLine>,
    },
    /// The document is no evidence, so that no predicate is asked
    NoEvidence {
        value: Truth,
        reason: Reason,
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<String>,
        detail: String,
        trace: Vec<TraceLine>,
    },
}

fn eval(predicate: &str, document: &Path, output: &Output) -> Result<Exit, Failure> {
    if predicate == "-" && document == Path::new("-") {
        let why = "standard input is either the predicate or the document";
        return Err(Failure::call("usage", why));
    }
    let text = if predicate.trim_start().starts_with('{') {
        Bytes::copy_from_slice(predicate.as_bytes())
    } else {
        input::bytes(Path::new(predicate))?
    };
    let declared = Document::parse(text)
        .map_err(|e| Failure::call("not-json", format!("the predicate: {e}")))?;
    if let Some(at) = declared.repeated_key() {
        let why = format!("the predicate: the key at `{at}` stands twice");
        return Err(Failure::no("repeated-key", why));
    }
    let predicate = Predicate::compile(declared.root())
        .map_err(|e| Failure::refused(&e).about("the predicate"))?;
    let evaluated = judge(&predicate, input::bytes(document)?);
    output.result(&evaluated, || human(&evaluated))?;
    let held = matches!(
        evaluated,
        Evaluated::Value {
            value: Truth::True,
            ..
        }
    );
    Ok(Exit::answer(held))
}

fn judge(predicate: &Predicate, body: Bytes) -> Evaluated {
    let no_evidence = |reason, at, detail| Evaluated::NoEvidence {
        value: Truth::Unknown,
        reason,
        at,
        detail,
        trace: Vec::new(),
    };
    let document = match Document::parse(body) {
        Ok(document) => document,
        Err(e) => return no_evidence(Reason::MalformedBody, None, e.to_string()),
    };
    if let Some(at) = document.repeated_key() {
        let detail = "an object repeats this key".to_owned();
        return no_evidence(Reason::AmbiguousEvidence, Some(at.to_owned()), detail);
    }
    let (value, trace) = predicate.explain(document.root());
    Evaluated::Value { value, trace }
}

fn human(evaluated: &Evaluated) -> String {
    match evaluated {
        Evaluated::Value { value, trace } => format!("{}\n{}", value.as_str(), lines(trace)),
        Evaluated::NoEvidence {
            reason, at, detail, ..
        } => {
            let at = at
                .as_ref()
                .map(|at| format!(" at `{at}`"))
                .unwrap_or_default();
            format!("unknown\n  {}{at}: {detail}", reason.as_str())
        }
    }
}

/// A trace as people read it: a node a line, the value first
pub fn lines(trace: &[TraceLine]) -> String {
    trace.iter().fold(String::new(), |mut text, line| {
        let path = if line.path.is_empty() {
            "(root)"
        } else {
            &line.path
        };
        // Writing to a string cannot fail
        let _ = writeln!(text, "  {:7}  {path}", line.value.as_str());
        text
    })
}
