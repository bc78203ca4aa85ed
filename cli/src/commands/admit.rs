//! `postern admit`: writes the file in which an operator, having reviewed a subscription, says where its
//! events may go.

use std::path::PathBuf;

use postern_contract::{Admission, Name, OptIn, Subscription, Timestamp, canonical};

use crate::configuration;
use crate::environment;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern admit plans/subscriptions/triage.github.issue-labeled.json \\
    --source github --destination agent --by alice@example.com --config postern.toml";

/// Admit a reviewed subscription
///
/// The file that this writes is the admission: remove it and reload the gateway to revoke.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The compiled subscription
    subscription: PathBuf,
    /// The source whose deliveries may match
    #[arg(long)]
    source: Name,
    /// Where its events go
    #[arg(long)]
    destination: Name,
    /// Who opted the repository in
    #[arg(long, value_name = "WHO")]
    by: String,
    /// When they did (RFC 3339); absent: now
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// The GitHub App's id, where source or destination is an App's
    #[arg(long, requires = "installation")]
    app: Option<u64>,
    /// The App's installation
    #[arg(long, requires = "app")]
    installation: Option<u64>,
    /// When the admission ends (RFC 3339)
    #[arg(long, value_name = "TIME")]
    expires: Option<Timestamp>,
    /// The gateway's configuration, which says where admissions stand
    #[arg(long, value_name = "FILE", default_value = "postern.toml")]
    config: PathBuf,
    /// Write the admission here instead of where the configuration says
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Writes the admission
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let bytes = std::fs::read(&args.subscription)
        .map_err(|e| Failure::unreadable(&args.subscription, &e))?;
    let shown = args.subscription.display();
    let invalid = |why: String| Failure::no("not-a-subscription", format!("`{shown}`: {why}"));
    let subscription: Subscription =
        serde_json::from_slice(&bytes).map_err(|e| invalid(e.to_string()))?;
    subscription.check().map_err(|e| invalid(e.to_string()))?;
    let canonical = canonical::to_vec(&subscription).map_err(|e| invalid(e.to_string()))?;
    if canonical != bytes {
        return Err(invalid("it was changed after it was compiled".to_owned())
            .hint("compile it again and review what comes out"));
    }
    let digest = subscription.digest().map_err(|e| invalid(e.to_string()))?;
    let repository = subscription.repository.clone().ok_or_else(|| {
        invalid("it names no repository".to_owned()).hint("compile it with --repository OWNER/NAME")
    })?;
    if args.by.trim().is_empty() {
        return Err(Failure::call(
            "usage",
            "`--by` says who opted the repository in",
        ));
    }
    let admission = Admission {
        subscription_digest: digest,
        repository,
        app: args.app,
        installation: args.installation,
        source: args.source,
        destination: args.destination,
        opt_in: OptIn {
            by: args.by,
            at: args.at.unwrap_or_else(environment::now),
        },
        expires: args.expires,
    };
    let dir = match args.out {
        Some(dir) => dir,
        None => configuration::read(&args.config)?.plans.admissions,
    };
    let short: String = digest.hex().chars().take(16).collect();
    let file = dir.join(format!(
        "{short}.{}.{}.json",
        admission.source, admission.destination
    ));
    let mut text = serde_json::to_vec_pretty(&admission)
        .map_err(|e| Failure::around("admission", e.to_string()))?;
    text.push(b'\n');
    crate::files::write(&file, &text)?;
    output.result(&admission, || {
        format!(
            "admitted {digest}\n  workflow    {}\n  repository  {}\n  trigger     {}.{}\n  from        {}\n  to          {}\n  file        {}",
            subscription.workflow,
            admission.repository,
            subscription.connector,
            subscription.trigger,
            admission.source,
            admission.destination,
            file.display()
        )
    })?;
    if !output.json() {
        output.hint("a running gateway takes it on SIGHUP");
    }
    Ok(Exit::Done)
}
