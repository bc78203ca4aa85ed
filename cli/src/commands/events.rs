//! `postern events`: the log of deliveries and decisions, so that "why did this (not) fire?" has an answer.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use postern_contract::{EventId, Name};
use postern_gateway::config::Config;
use postern_gateway::journal::{self, LogCandidate, LogLine, LogOutcome};
use postern_gateway::store::reader::{Reader, StoredEvent};
use serde::Serialize;

use crate::configuration;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern events list --config postern.toml
  postern events list --outcome refused --limit 5
  postern events show 0198c0de-…";

/// What was delivered, what was decided, and why
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List deliveries, the newest first
    #[command(after_help = EXAMPLES)]
    List {
        /// The gateway's configuration
        #[arg(long, value_name = "FILE", default_value = "postern.toml")]
        config: PathBuf,
        /// The most lines
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// Only of this source
        #[arg(long)]
        source: Option<Name>,
        /// Only with this outcome, such as `refused` or `nothing-owed`
        #[arg(long)]
        outcome: Option<String>,
    },
    /// Show one delivery: its evidence, what every trigger said, and what became of its events
    #[command(after_help = EXAMPLES)]
    Show {
        /// The id of the line, of the provider's delivery, or of an event
        id: String,
        /// The gateway's configuration
        #[arg(long, value_name = "FILE", default_value = "postern.toml")]
        config: PathBuf,
        /// Print the body too, while it is kept
        #[arg(long)]
        body: bool,
    },
}

#[derive(Serialize)]
struct Listed {
    events: Vec<LogLine>,
}

#[derive(Serialize)]
struct Shown {
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<LogLine>,
    events: Vec<ShownEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

#[derive(Serialize)]
struct ShownEvent {
    #[serde(flatten)]
    stored: StoredEvent,
    event: serde_json::Value,
}

/// Lists or shows
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    match args.action {
        Action::List {
            config,
            limit,
            source,
            outcome,
        } => {
            let config = configuration::read(&config)?;
            let outcome = outcome.map(|text| parse_outcome(&text)).transpose()?;
            let wanted = |line: &LogLine| {
                source.as_ref().is_none_or(|s| *s == line.source)
                    && outcome.is_none_or(|o| o == line.outcome)
            };
            let listed = Listed {
                events: log(&config, limit, wanted)?,
            };
            output.result(&listed, || {
                let lines: Vec<String> = listed.events.iter().map(summary).collect();
                lines.join("\n")
            })?;
            Ok(Exit::Done)
        }
        Action::Show { id, config, body } => {
            let config = configuration::read(&config)?;
            let shown = show(&config, &id, body)?;
            output.result(&shown, || text(&shown))?;
            Ok(Exit::Done)
        }
    }
}

fn parse_outcome(text: &str) -> Result<LogOutcome, Failure> {
    serde_json::from_value(text.into()).map_err(|_| {
        Failure::call("usage", format!("no outcome `{text}`")).hint(
            "accepted, replay, nothing-owed, handshake, malformed, refused, not-received or unavailable",
        )
    })
}

fn log(
    config: &Config,
    limit: usize,
    wanted: impl Fn(&LogLine) -> bool,
) -> Result<Vec<LogLine>, Failure> {
    match journal::read(&config.log.path, limit, wanted) {
        Ok(lines) => Ok(lines),
        // A gateway that has never run has no log
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Failure::unreadable(&config.log.path, &e)),
    }
}

fn show(config: &Config, id: &str, with_body: bool) -> Result<Shown, Failure> {
    let event: Option<EventId> = id.parse().ok();
    let lines = log(config, 1, |line| {
        line.id == id
            || line.delivery.as_deref() == Some(id)
            || event.is_some_and(|event| line.events.contains(&event))
    })?;
    let delivery = lines.into_iter().next();
    let mut ids = delivery
        .as_ref()
        .map(|line| line.events.clone())
        .unwrap_or_default();
    ids.extend(event.filter(|event| !ids.contains(event)));
    let mut events = Vec::new();
    let mut kept = None;
    if !ids.is_empty() {
        let reader = Reader::open(&config.store.path)
            .map_err(|e| Failure::around("store", e.to_string()))?;
        let fail = |e: postern_gateway::store::StoreFault| Failure::of(Exit::Around, &e);
        for id in ids {
            let (Some(stored), Some((document, body))) = (
                reader.event(id).map_err(fail)?,
                reader.documents(id).map_err(fail)?,
            ) else {
                continue;
            };
            kept = Some(body);
            let event = serde_json::from_slice(&document)
                .map_err(|e| Failure::around("store", e.to_string()))?;
            events.push(ShownEvent { stored, event });
        }
    }
    if delivery.is_none() && events.is_empty() {
        return Err(
            Failure::no("no-event", format!("nothing in the log has the id `{id}`"))
                .hint("`postern events list` shows what is there"),
        );
    }
    if kept.is_none()
        && let Some(line) = &delivery
    {
        kept = journal::body(&config.log.path, &line.id).unwrap_or_default();
    }
    let body = kept
        .filter(|_| with_body)
        .map(|b| String::from_utf8_lossy(&b).into_owned());
    Ok(Shown {
        delivery,
        events,
        body,
    })
}

fn summary(line: &LogLine) -> String {
    let mut out = format!(
        "{}  {}  {}  {}",
        line.received_at,
        line.id,
        line.source,
        line.outcome.as_str()
    );
    if let Some(event) = &line.event {
        let _ = write!(out, "  {event}");
    }
    if let Some(delivery) = &line.delivery {
        let _ = write!(out, "  {delivery}");
    }
    if let Some(detail) = &line.detail {
        let _ = write!(out, "  {detail}");
    }
    for candidate in &line.candidates {
        let _ = write!(out, "\n    {}", said(candidate));
    }
    out
}

/// What one trigger said, and what became of it at its subscriptions
pub fn said(candidate: &LogCandidate) -> String {
    let name = format!("{}.{}", candidate.connector, candidate.trigger);
    if !candidate.matched {
        let at = candidate.at.as_ref().map(|at| format!(" at `{at}`"));
        let others = match candidate.others {
            0 => String::new(),
            n => format!(" (and {n} more bindings of it)"),
        };
        return format!(
            "{name}: no match: {}{}{others}",
            candidate.reason.as_deref().unwrap_or("-"),
            at.unwrap_or_default()
        );
    }
    let to: Vec<String> = (candidate.subscriptions.iter())
        .map(|s| match (&s.destination, &s.why) {
            (Some(to), _) => format!("owed to {to}"),
            (None, why) => {
                let at =
                    s.at.as_ref()
                        .map(|at| format!(" at `{at}`"))
                        .unwrap_or_default();
                format!("not owed: {}{at}", why.as_deref().unwrap_or("-"))
            }
        })
        .collect();
    format!("{name}: match, {}", to.join("; "))
}

fn text(shown: &Shown) -> String {
    let mut out = shown.delivery.as_ref().map(summary).unwrap_or_default();
    for event in &shown.events {
        let pretty = serde_json::to_string_pretty(&event.event).unwrap_or_default();
        let _ = write!(out, "\n\nevent {}\n{pretty}", event.stored.id);
        for delivery in &event.stored.deliveries {
            let _ = write!(out, "\n{}", super::deliveries::line(delivery));
        }
    }
    if let Some(body) = &shown.body {
        let _ = write!(out, "\n\nbody\n{body}");
    }
    out
}
