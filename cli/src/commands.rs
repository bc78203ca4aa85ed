//! Every command, one file a verb, each of the same shape: `Args` and `run(args, output)`. A new command
//! is a file and a line here; the help snapshot asks for its example.

mod completions;
mod man;
mod predicate;
pub mod profile;
mod reference;
mod send;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::{Exit, Output};

/// What postern does
#[derive(Subcommand)]
pub enum Command {
    Profile(profile::Args),
    Predicate(predicate::Args),
    Send(send::Args),
    Completions(completions::Args),
    Man(man::Args),
    Reference(reference::Args),
}

impl Command {
    /// Runs it
    pub fn run(self, output: &Output) -> Result<Exit, Failure> {
        match self {
            Self::Profile(args) => profile::run(args, output),
            Self::Predicate(args) => predicate::run(args, output),
            Self::Send(args) => send::run(args, output),
            Self::Completions(args) => completions::run(args, output),
            Self::Man(args) => man::run(args, output),
            Self::Reference(args) => reference::run(args, output),
        }
    }
}
