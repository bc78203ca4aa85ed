//! `postern demo`: the whole path on embedded defaults. A gateway and a sink on loopback, real recorded
//! deliveries signed and posted over HTTP, what matched and what did not and why, a replay and a forgery.

mod play;
mod stage;

use std::io::Write as _;

use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::logging;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern demo
  postern demo --once";

/// Show real deliveries going through a running gateway
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// End when everything has been shown, instead of staying up
    #[arg(long)]
    once: bool,
}

/// Plays it
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    logging::start(false, true);
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|e| Failure::around("runtime", format!("no runtime: {e}")))?;
    runtime.block_on(async {
        let stage = stage::Stage::set(output).await?;
        let stop = CancellationToken::new();
        let serving = stage.serve(stop.clone());
        let playing = async {
            let outcome = play::play(&stage, output).await;
            if let (Ok(Exit::Done), false) = (&outcome, args.once) {
                stay(&stage, output);
                let _ = tokio::signal::ctrl_c().await;
            }
            stop.cancel();
            outcome
        };
        let ((), outcome) = tokio::join!(serving, playing);
        outcome
    })
}

fn stay(stage: &stage::Stage, output: &Output) {
    let config = stage.config_file();
    let config = config.display();
    output.drawn(&format!(
        "\nThe gateway stays up at http://{}. Try, in another terminal:\n\n  \
         postern events list --config {config}\n  \
         postern subscriptions --config {config}\n  \
         postern deliveries list --config {config}\n  \
         POSTERN_DEMO_SECRET={} postern send <captured request> --to http://{}/hooks/github --secret-env POSTERN_DEMO_SECRET\n\n\
         Ctrl-C ends it and removes its files.\n",
        stage.gateway_at(),
        stage::SECRET,
        stage.gateway_at()
    ));
    let _ = std::io::stderr().flush();
}
