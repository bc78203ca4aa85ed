//! `postern compile`: workflows to frozen triggers and subscriptions. Compiling activates nothing; where
//! there is an error nothing is written.

mod sources;
mod write;

use std::fmt::Write as _;
use std::path::PathBuf;

use postern_compiler::{Compiler, Diagnostic, Selected, Severity, Sources, shipped};
use postern_contract::{Digest, Subscription};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{Exit, Output};
use crate::repository;

const EXAMPLES: &str = "\
Examples:
  postern compile .github/workflows/triage.md
  postern compile .github/workflows/*.md --out plans --repository octo-org/octo-repo";

/// Compile workflows to frozen triggers and subscriptions
///
/// Prints every finding at once, drawn on its source. Compiling enrols, installs and activates nothing: an
/// operator admits each subscription by its digest.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The workflows; `.lock.yml` files are no sources
    #[arg(required = true, value_name = "WORKFLOW.md")]
    workflows: Vec<PathBuf>,
    /// Write `subscriptions/` and `triggers/` here, instead of printing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// `owner/name` of the workflows' repository; absent: GITHUB_REPOSITORY, else the remote `origin`
    #[arg(long, value_name = "OWNER/REPO")]
    repository: Option<String>,
}

#[derive(Serialize)]
struct Report<'a> {
    repository: Option<&'a str>,
    subscriptions: Vec<Line<'a>>,
    diagnostics: &'a [Diagnostic],
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<&'a write::Written>,
    /// Whatever was compiled, nothing is live by it
    operational: bool,
}

/// A subscription and the digest that an admission names
#[derive(Serialize)]
struct Line<'a> {
    digest: Digest,
    subscription: &'a Subscription,
}

/// Compiles them
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let tree = sources::load(&args.workflows)?;
    let repository = repository::name(args.repository.as_deref(), Some(&tree.root))?;
    let compiler = Compiler {
        sources: &tree.sources,
        repository: repository.as_deref(),
    };
    let (mut selected, mut diagnostics): (Vec<Selected>, Vec<Diagnostic>) = Default::default();
    for workflow in &tree.workflows {
        let mut compiled = compiler.compile(workflow);
        if compiled.selected.is_empty() && !compiled.has_errors() && !output.json() {
            output.note(&format!("`{workflow}` selects no trigger"));
        }
        selected.append(&mut compiled.selected);
        // A connector that two workflows import is at fault once
        for found in compiled.diagnostics {
            if !diagnostics.contains(&found) {
                diagnostics.push(found);
            }
        }
    }
    let errors = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .count();
    let written = match &args.out {
        Some(out) if errors == 0 => Some(write::write(out, &selected)?),
        _ => None,
    };
    if !output.json() {
        for found in &diagnostics {
            output.drawn(&found.draw(source(&tree.sources, &found.file)));
        }
    }
    let kept: &[Selected] = if errors == 0 { &selected } else { &[] };
    let report = Report {
        repository: repository.as_deref(),
        subscriptions: kept.iter().map(Line::of).collect(),
        diagnostics: &diagnostics,
        written: written.as_ref(),
        operational: false,
    };
    output.result(&report, || human(&report))?;
    if !output.json() {
        conclude(errors, kept.len(), output);
    }
    Ok(Exit::answer(errors == 0))
}

impl<'a> Line<'a> {
    fn of(selected: &'a Selected) -> Self {
        Self {
            digest: selected.digest,
            subscription: &selected.subscription,
        }
    }
}

fn conclude(errors: usize, subscriptions: usize, output: &Output) {
    if errors > 0 {
        let s = if errors == 1 { "" } else { "s" };
        output.note(&format!("{errors} error{s}: nothing was written"));
    } else if subscriptions > 0 {
        output.note("compiled, and nothing is live by it: an operator admits each subscription by its digest");
    }
}

/// The text of a file that a finding names; a shipped connector's stands in the program
fn source<'s>(sources: &'s Sources, file: &str) -> Option<&'s str> {
    sources.get(file).or_else(|| {
        let id = file.strip_prefix("shipped/")?.strip_suffix(".md")?;
        shipped()
            .find(|(shipped, _)| *shipped == id)
            .map(|(_, text)| text)
    })
}

fn human(report: &Report<'_>) -> String {
    let mut text = String::new();
    for Line {
        digest,
        subscription,
    } in &report.subscriptions
    {
        let (connector, trigger) = (&subscription.connector, &subscription.trigger);
        // Writing to a string cannot fail
        let _ = writeln!(
            text,
            "{digest}  {connector}.{trigger}  {}",
            subscription.workflow
        );
        if report.written.is_none() {
            let document = serde_json::to_string_pretty(subscription).unwrap_or_default();
            let _ = writeln!(text, "{document}");
        }
    }
    if let Some(written) = report.written {
        for file in &written.files {
            let _ = writeln!(text, "wrote {file}");
        }
        let _ = writeln!(text, "{} unchanged", written.unchanged);
    }
    text
}
