//! `postern doctor`: what an operator should look at, before it is a fault.

use std::fmt::Write as _;
use std::path::PathBuf;

use postern_gateway::config::Period;
use postern_gateway::doctor::{self, Finding};
use serde::Serialize;

use crate::configuration;
use crate::environment;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern doctor --config postern.toml
  postern doctor --unused-for 90d";

/// Look over configuration, secrets and event log, and say what to mend
///
/// Exits 0 where there is nothing to say, and 1 where there is. Needs the secrets that `serve` needs; touches
/// neither the network nor a running gateway.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "postern.toml")]
    config: PathBuf,
    /// How long a key may verify nothing before it is told
    #[arg(long, value_name = "PERIOD", default_value = "30d")]
    unused_for: Period,
}

#[derive(Serialize)]
struct Examined {
    findings: Vec<Finding>,
}

/// Examines it
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let config = configuration::read(&args.config)?;
    let loaded = configuration::load(&config, output)?;
    let findings = doctor::examine(&config, loaded.state(), args.unused_for, environment::now())
        .map_err(|e| Failure::around("log-io", format!("the event log cannot be read: {e}")))?;
    let well = findings.is_empty();
    let examined = Examined { findings };
    output.result(&examined, || match well {
        true => "nothing to mend".to_owned(),
        false => (examined.findings.iter()).fold(String::new(), |mut text, finding| {
            // Writing to a string cannot fail
            let _ = writeln!(
                text,
                "{}: {} ({})",
                finding.about, finding.message, finding.code
            );
            text
        }),
    })?;
    Ok(Exit::answer(well))
}
