//! `postern man`: a manual page a command, for whoever packages postern.

use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern man --out target/man";

/// Write the manual pages
#[derive(clap::Args)]
#[command(hide = true, after_help = EXAMPLES)]
pub struct Args {
    /// The directory
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Writes them
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let fail = |e: std::io::Error| Failure::unwritable(&args.out, &e);
    std::fs::create_dir_all(&args.out).map_err(fail)?;
    clap_mangen::generate_to(Arguments::command(), &args.out).map_err(fail)?;
    output.note(&format!("wrote the pages to `{}`", args.out.display()));
    Ok(Exit::Done)
}
