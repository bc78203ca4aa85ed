//! `postern profile`: the catalogue of verification profiles, vectors held against it, and what helps who
//! cannot get a delivery to verify.

mod explain;
mod key;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use postern_contract::Digest;
use postern_profiles::{Catalogue, Profile, vectors};
use serde::Serialize;

use crate::conformance;
use crate::failure::{Failure, did_you_mean};
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern profile list
  postern profile show github
  postern profile check vectors.jsonl
  SECRET=… postern profile explain github delivery.json --secret-env SECRET
  postern profile key telnyx --out private.key";

/// Verification profiles: how each provider proves that a delivery is its own
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List every profile of the catalogue
    #[command(after_help = "Examples:\n  postern profile list\n  postern profile list --json")]
    List,
    /// Show one profile: what it covers, what replays are recognised by, and its frozen document
    #[command(after_help = "Examples:\n  postern profile show stripe")]
    Show {
        /// The profile's id, or an alias
        id: String,
    },
    /// Hold the catalogue to a file of vectors; ends with `N passed, M failed`
    ///
    /// Lines that `known-gaps.txt` of the current directory names (`<id> <reason>`) count in neither.
    #[command(after_help = "Examples:\n  postern profile check vectors.jsonl")]
    Check {
        /// One vector a line
        vectors: PathBuf,
    },
    /// Say why a captured delivery does not verify, and which usual mistake explains it
    ///
    /// Exits 0 where it verifies, and 1 where it does not. Shows neither secrets nor signatures.
    #[command(
        after_help = "Examples:\n  SECRET=… postern profile explain stripe delivery.json --secret-env SECRET\n  OLD=… NEW=… postern profile explain slack request.http --secret-env OLD --secret-env NEW"
    )]
    Explain(explain::Args),
    /// Make a secret, or a key pair, to try a profile out with `postern send`
    #[command(after_help = "Examples:\n  postern profile key sendgrid --out private.key")]
    Key(key::Args),
}

/// Runs it
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let catalogue = catalogue()?;
    match args.action {
        Action::List => list(catalogue, output),
        Action::Show { id } => show(find(&id)?, output),
        Action::Check { vectors } => {
            let judge = |line: &str| match vectors::check(line, catalogue) {
                vectors::Verdict::Pass => Ok(()),
                vectors::Verdict::Fail { why, .. } => Err(why),
            };
            conformance::check(&vectors, judge, output)
        }
        Action::Explain(args) => {
            let profile = find(args.id())?;
            explain::run(args, catalogue, profile, output)
        }
        Action::Key(args) => {
            let profile = find(args.id())?;
            key::run(args, profile, output)
        }
    }
}

/// The catalogue; one that does not load must not pass for an empty one
pub fn catalogue() -> Result<&'static Catalogue, Failure> {
    match Catalogue::fault() {
        None => Ok(Catalogue::embedded()),
        Some(fault) => Err(Failure::around("catalogue", fault.to_string())),
    }
}

/// The profile of an id or alias
pub fn find(id: &str) -> Result<&'static Profile, Failure> {
    let catalogue = catalogue()?;
    catalogue.get(id).ok_or_else(|| {
        let near = did_you_mean(id, catalogue.iter().map(Profile::id));
        Failure::call("unknown-profile", format!("there is no profile `{id}`"))
            .hint(near.unwrap_or_else(|| "see `postern profile list`".to_owned()))
    })
}

#[derive(Serialize)]
struct Listed {
    profiles: Vec<Summary>,
}

#[derive(Serialize)]
struct Summary {
    id: &'static str,
    title: &'static str,
    integrity: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    aliases: &'static [String],
    digest: Digest,
}

impl Summary {
    fn of(profile: &'static Profile) -> Self {
        Self {
            id: profile.id(),
            title: profile.title(),
            integrity: profile.integrity().as_str(),
            aliases: profile.aliases(),
            digest: profile.digest(),
        }
    }
}

fn list(catalogue: &'static Catalogue, output: &Output) -> Result<Exit, Failure> {
    let profiles: Vec<Summary> = catalogue.iter().map(Summary::of).collect();
    let width = profiles
        .iter()
        .map(|p| p.id.len())
        .max()
        .unwrap_or_default();
    let listed = Listed { profiles };
    output.result(&listed, || {
        let lines = listed.profiles.iter();
        lines.fold(String::new(), |mut text, p| {
            // Writing to a string cannot fail
            let _ = writeln!(text, "{:width$}  {:7}  {}", p.id, p.integrity, p.title);
            text
        })
    })?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    #[serde(flatten)]
    summary: Summary,
    docs: &'static str,
    replay: &'static str,
    confidence: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    to_check: &'static [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<&'static str>,
    signature: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    params: BTreeMap<String, bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerance: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    document: serde_json::Value,
}

/// How old and how far ahead a signed timestamp may be
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Seconds {
    past_seconds: u64,
    future_seconds: u64,
}

fn show(profile: &'static Profile, output: &Output) -> Result<Exit, Failure> {
    // Our own canonical document: serde reads it
    let document = serde_json::from_slice(profile.document())
        .map_err(|e| Failure::around("catalogue", e.to_string()))?;
    let shown = Shown {
        summary: Summary::of(profile),
        docs: profile.docs(),
        replay: profile.replay(),
        confidence: profile.confidence().as_str(),
        to_check: profile.to_check(),
        retry: profile.retry(),
        signature: profile
            .signature_places()
            .map(|place| place.to_string())
            .collect(),
        params: profile.params(),
        tolerance: profile.tolerance().map(|(past, future)| Seconds {
            past_seconds: past.as_secs(),
            future_seconds: future.as_secs(),
        }),
        note: profile.note(),
        document,
    };
    output.result(&shown, || describe(&shown))?;
    Ok(Exit::Done)
}

fn describe(shown: &Shown) -> String {
    let summary = &shown.summary;
    let tolerance = shown.tolerance.map_or_else(
        || "none: no timestamp is signed".to_owned(),
        |t| format!("{} s old, {} s ahead", t.past_seconds, t.future_seconds),
    );
    let mut rows = vec![
        ("id", summary.id.to_owned()),
        ("provider", summary.title.to_owned()),
        ("integrity", summary.integrity.to_owned()),
        ("signature", shown.signature.join(", ")),
        ("tolerance", tolerance),
        ("replays by", shown.replay.to_owned()),
        ("docs", shown.docs.to_owned()),
        ("digest", summary.digest.to_string()),
    ];
    if !summary.aliases.is_empty() {
        rows.insert(1, ("aliases", summary.aliases.join(", ")));
    }
    if !shown.params.is_empty() {
        let one = |(name, needed): (&String, &bool)| {
            format!("{name}{}", if *needed { "" } else { " (optional)" })
        };
        let params: Vec<String> = shown.params.iter().map(one).collect();
        rows.push(("parameters", params.join(", ")));
    }
    rows.push(("confidence", shown.confidence.to_owned()));
    rows.extend(shown.to_check.iter().map(|what| ("to check", what.clone())));
    if let Some(retry) = shown.retry {
        rows.push(("retries", retry.to_owned()));
    }
    if let Some(note) = shown.note {
        rows.push(("note", note.to_owned()));
    }
    let mut text = String::new();
    for (name, value) in rows {
        // Writing to a string cannot fail
        let _ = writeln!(text, "{name:10}  {value}");
    }
    let document = serde_json::to_string_pretty(&shown.document).unwrap_or_default();
    text + "\n" + &document
}
