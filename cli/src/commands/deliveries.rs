//! `postern deliveries`: what is owed, what was delivered, and what is dead and why.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use postern_gateway::store::reader::{Reader, State, StoredDelivery};
use serde::Serialize;

use crate::configuration;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern deliveries list --config postern.toml
  postern deliveries list --state dead --json";

/// What events are owed to destinations
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
        /// Only in this state
        #[arg(long)]
        state: Option<Wanted>,
        /// The most lines
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Wanted {
    Queued,
    Delivered,
    Dead,
}

#[derive(Serialize)]
struct Listed {
    deliveries: Vec<StoredDelivery>,
}

/// Lists them
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let Action::List {
        config,
        state,
        limit,
    } = args.action;
    let config = configuration::read(&config)?;
    let state = state.map(|wanted| match wanted {
        Wanted::Queued => State::Queued,
        Wanted::Delivered => State::Delivered,
        Wanted::Dead => State::Dead,
    });
    // A gateway that has never run owes nothing
    let deliveries = if config.store.path.join("index.sqlite").exists() {
        let fail = |e: postern_gateway::store::StoreFault| Failure::of(Exit::Around, &e);
        let reader = Reader::open(&config.store.path).map_err(fail)?;
        reader.deliveries(state, limit).map_err(fail)?
    } else {
        Vec::new()
    };
    let listed = Listed { deliveries };
    output.result(&listed, || {
        let lines: Vec<String> = listed.deliveries.iter().map(line).collect();
        lines.join("\n")
    })?;
    Ok(Exit::Done)
}

/// One delivery and its last attempts
pub fn line(delivery: &StoredDelivery) -> String {
    let state = match delivery.state {
        State::Queued => "queued",
        State::Delivered => "delivered",
        State::Dead => "dead",
    };
    let mut out = format!(
        "{}  {state}  to {}  {} attempts  event {}",
        delivery.id, delivery.destination, delivery.attempts, delivery.event
    );
    if let Some(reason) = &delivery.reason {
        let _ = write!(out, "  {reason}");
    }
    if let Some(due) = delivery.due {
        let _ = write!(out, "  due {due}");
    }
    for attempt in &delivery.log {
        let _ = write!(
            out,
            "\n    {}  attempt {}: {}",
            attempt.ended_at, attempt.number, attempt.detail
        );
    }
    out
}
