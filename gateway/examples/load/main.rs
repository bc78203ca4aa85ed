//! The load report: server CPU time per request of the gateway's paths beside baseline routes in the same
//! process, in alternating rounds, on payloads of 1, 8, 10 and 100 KB. On loopback, bounded in count and time.
//!
//! `cargo run --release -p postern-gateway --example load [-- --json] [--rounds N] [--seconds S]`

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the bench: it prints, and what it cannot do ends it"
)]

mod client;
mod payload;
mod report;
mod server;

use std::process::ExitCode;
use std::time::Duration;

/// What the command line says
pub struct Options {
    /// Print JSON instead of a table
    pub json: bool,
    /// Alternating rounds
    pub rounds: usize,
    /// Time of one target in one round
    pub slice: Duration,
    /// Only these targets and sizes, where any are given
    pub only: Vec<String>,
    /// Connections of the generator
    pub connections: usize,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        json: false,
        rounds: 5,
        slice: Duration::from_secs(1),
        only: Vec::new(),
        connections: 32,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--only" {
            let text = args
                .next()
                .ok_or("--only wants targets and sizes, with commas")?;
            options.only = text.split(',').map(str::to_owned).collect();
            continue;
        }
        let mut number = || -> Result<f64, String> {
            let text = args.next().ok_or(format!("{arg} wants a number"))?;
            text.parse().map_err(|_| format!("{arg} wants a number"))
        };
        match arg.as_str() {
            "--json" => options.json = true,
            "--rounds" => options.rounds = number()?.max(1.0) as usize,
            "--seconds" => options.slice = Duration::from_secs_f64(number()?.clamp(0.05, 600.0)),
            "--connections" => options.connections = number()?.clamp(1.0, 1024.0) as usize,
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    // The child is this program again, so that both sides are of one build
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return server::run();
    }
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            eprintln!("load: {why}");
            return ExitCode::from(2);
        }
    };
    match report::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("load: {why}");
            ExitCode::FAILURE
        }
    }
}
