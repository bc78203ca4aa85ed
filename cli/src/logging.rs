//! Where the gateway's own log goes: standard error, as text or as JSON, by `POSTERN_LOG`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::environment;

/// Starts logging; `quiet` shows warnings alone where `POSTERN_LOG` says nothing else
pub fn start(json: bool, quiet: bool) {
    let wanted = environment::text("POSTERN_LOG");
    let filter =
        EnvFilter::try_new(
            wanted
                .as_deref()
                .unwrap_or(if quiet { "warn" } else { "info" }),
        )
        .unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal() && environment::text("NO_COLOR").is_none())
        .with_writer(std::io::stderr);
    // A second start, as tests make, leaves the first in place
    let _ = if json {
        log.json().try_init()
    } else {
        log.try_init()
    };
}
