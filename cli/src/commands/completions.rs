//! `postern completions`: the completion script of a shell, made from the arguments themselves.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern completions bash > ~/.local/share/bash-completion/completions/postern
  postern completions zsh > ~/.zfunc/_postern";

/// Print the completion script of a shell
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints it
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut Arguments::command(),
        "postern",
        &mut script,
    );
    output.raw(&script)?;
    Ok(Exit::Done)
}
