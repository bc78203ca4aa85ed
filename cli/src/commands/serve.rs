//! `postern serve`: the gateway. SIGTERM and SIGINT drain it, SIGHUP reloads what comes from files. Secret
//! files that change are read again by themselves.

use std::path::PathBuf;
use std::sync::Arc;

use postern_gateway::clock::SystemClock;
use postern_gateway::store::Options;
use postern_gateway::{Faults, Gateway, Loaded};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::configuration;
use crate::environment;
use crate::failure::Failure;
use crate::logging;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern serve --config postern.toml
  postern serve --config postern.toml --check";

/// Run the gateway
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The configuration
    #[arg(long, value_name = "FILE", default_value = "postern.toml")]
    config: PathBuf,
    /// Check the configuration, the secrets and the frozen documents, and start nothing
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct Checked {
    sources: usize,
    destinations: usize,
    subscriptions: usize,
    admitted: usize,
}

/// Serves until it is told to stop
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let config = configuration::read(&args.config)?;
    let loaded = configuration::load(&config, output)?;
    if args.check {
        let standings = postern_gateway::review::standings(&config, &loaded.state().plans);
        let checked = Checked {
            sources: config.sources.len(),
            destinations: config.destinations.len(),
            subscriptions: loaded.state().plans.subscriptions.len(),
            admitted: standings.iter().filter(|s| s.why.is_none()).count(),
        };
        output.result(&checked, || {
            format!(
                "{} sources, {} destinations, {} subscriptions, {} admitted",
                checked.sources, checked.destinations, checked.subscriptions, checked.admitted
            )
        })?;
        return Ok(Exit::Done);
    }
    logging::start(output.json(), false);
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|e| Failure::around("runtime", format!("no runtime: {e}")))?;
    let ended = runtime.block_on(async {
        let listen = config.server.listen;
        let gateway = Gateway::open(config, loaded, Arc::new(SystemClock), Options::default())
            .map_err(|faults| configuration::first(faults, output))?;
        let listener = TcpListener::bind(listen)
            .await
            .map_err(|e| Failure::around("listen", format!("`{listen}`: {e}")))?;
        let stop = CancellationToken::new();
        tracing::info!(%listen, "serving");
        let signals = signals(&gateway, &args.config, output, stop.clone());
        tokio::select! {
            () = gateway.serve(listener, stop.clone()) => {}
            ended = signals => {
                ended?;
                // Signals end only where they cannot be heard any more
                stop.cancel();
            }
        }
        tracing::info!("stopped");
        Ok(Exit::Done)
    });
    // Only a reload can still wait for its files: nobody waits for it
    runtime.shutdown_background();
    ended
}

/// Drains on SIGTERM and SIGINT, reloads on SIGHUP; never ends while signals can be heard
async fn signals(
    gateway: &Gateway,
    file: &std::path::Path,
    output: &Output,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let hear = |kind| signal(kind).map_err(|e| Failure::around("signals", e.to_string()));
    let mut terminate = hear(SignalKind::terminate())?;
    let mut interrupt = hear(SignalKind::interrupt())?;
    let mut hangup = hear(SignalKind::hangup())?;
    let stops = async {
        loop {
            tokio::select! {
                _ = terminate.recv() => stop.cancel(),
                _ = interrupt.recv() => stop.cancel(),
            }
        }
    };
    // Beside each other: a disk that keeps a reload waiting must not keep a stop waiting
    let reloads = async {
        loop {
            tokio::select! {
                _ = hangup.recv() => reload(gateway, file, output).await,
                () = gateway.secrets_changed() => rotate(gateway, output).await,
            }
        }
    };
    tokio::select! {
        ended = stops => ended,
        ended = reloads => ended,
    }
}

/// Why a reload keeps the old state
enum NotLoaded {
    Unread(Failure),
    Refused(Faults),
}

/// Puts new secrets in place, or says what is wrong with them and goes on with the old
async fn rotate(gateway: &Gateway, output: &Output) {
    let failure = match gateway.reload_secrets(environment::bytes).await {
        Ok(Ok(())) => {
            tracing::info!("a secret file has changed: secrets are read again");
            return;
        }
        Ok(Err(faults)) => configuration::first(faults, output),
        Err(e) => Failure::around("reload", format!("reading broke off: {e}")),
    };
    output.failure(&failure);
    tracing::error!(code = failure.code, "the old secrets go on");
}

/// Puts new files in place, or says what is wrong with them and goes on with the old
async fn reload(gateway: &Gateway, file: &std::path::Path, output: &Output) {
    let file = file.to_owned();
    let load = move || {
        let config = configuration::read(&file).map_err(NotLoaded::Unread)?;
        Loaded::new(&config, &environment::bytes).map_err(NotLoaded::Refused)
    };
    let failure = match gateway.reload(load).await {
        Ok(Ok(())) => {
            tracing::info!("reloaded sources, destinations, plans and admissions");
            return;
        }
        Ok(Err(NotLoaded::Unread(failure))) => failure,
        Ok(Err(NotLoaded::Refused(faults))) => configuration::first(faults, output),
        Err(e) => Failure::around("reload", format!("reading broke off: {e}")),
    };
    output.failure(&failure);
    tracing::error!(code = failure.code, "not reloaded: the old state goes on");
}
