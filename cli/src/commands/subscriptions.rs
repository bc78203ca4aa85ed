//! `postern subscriptions`: every compiled subscription, and whether it is admitted or why not.

use std::path::PathBuf;

use postern_gateway::plans::Plans;
use postern_gateway::review::{self, Standing};
use serde::Serialize;

use crate::configuration;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern subscriptions --config postern.toml
  postern subscriptions --json";

/// List the compiled subscriptions and where each stands
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The gateway's configuration
    #[arg(long, value_name = "FILE", default_value = "postern.toml")]
    config: PathBuf,
}

#[derive(Serialize)]
struct Listed {
    subscriptions: Vec<Standing>,
}

/// Lists them
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let config = configuration::read(&args.config)?;
    let plans = Plans::load(&config.plans.path, &config.plans.admissions).map_err(|faults| {
        let faults = faults.into_iter().map(|f| Box::new(f) as Box<_>).collect();
        configuration::first(postern_gateway::Faults(faults), output)
    })?;
    let listed = Listed {
        subscriptions: review::standings(&config, &plans),
    };
    output.result(&listed, || {
        let lines: Vec<String> = listed.subscriptions.iter().map(line).collect();
        lines.join("\n")
    })?;
    if listed.subscriptions.is_empty() && !output.json() {
        output.note("there are no subscriptions: `postern compile --out` makes them");
    }
    Ok(Exit::Done)
}

fn line(one: &Standing) -> String {
    let source = one.source.as_ref().map_or("-", |name| name.as_str());
    let to: Vec<&str> = one.destinations.iter().map(|name| name.as_str()).collect();
    let standing = match one.why {
        None => format!("admitted to {}", to.join(", ")),
        Some(why) => format!("not admitted: {why}"),
    };
    format!(
        "{}  {}.{}  {}  {}  from {source}  {standing}",
        one.digest,
        one.connector,
        one.trigger,
        one.repository.as_deref().unwrap_or("-"),
        one.workflow
    )
}
