//! Every command, one file a verb, each of the same shape: `Args` and `run(args, output)`. A new command
//! is a file and a line here; the help snapshot asks for its example.

mod admit;
mod compile;
mod completions;
mod connector;
mod deliveries;
mod demo;
mod doctor;
mod events;
mod man;
pub mod predicate;
pub mod profile;
mod reference;
mod send;
mod serve;
mod subscriptions;

use clap::Subcommand;

use crate::failure::Failure;
use crate::output::{Exit, Output};

/// What postern does
#[derive(Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    Doctor(doctor::Args),
    Admit(admit::Args),
    Subscriptions(subscriptions::Args),
    Events(events::Args),
    Deliveries(deliveries::Args),
    Profile(profile::Args),
    Predicate(predicate::Args),
    Connector(connector::Args),
    Compile(compile::Args),
    Send(send::Args),
    Completions(completions::Args),
    Man(man::Args),
    Reference(reference::Args),
}

impl Command {
    /// Runs it
    pub fn run(self, output: &Output) -> Result<Exit, Failure> {
        match self {
            Self::Demo(args) => demo::run(args, output),
            Self::Serve(args) => serve::run(args, output),
            Self::Doctor(args) => doctor::run(args, output),
            Self::Admit(args) => admit::run(args, output),
            Self::Subscriptions(args) => subscriptions::run(args, output),
            Self::Events(args) => events::run(args, output),
            Self::Deliveries(args) => deliveries::run(args, output),
            Self::Profile(args) => profile::run(args, output),
            Self::Predicate(args) => predicate::run(args, output),
            Self::Connector(args) => connector::run(args, output),
            Self::Compile(args) => compile::run(args, output),
            Self::Send(args) => send::run(args, output),
            Self::Completions(args) => completions::run(args, output),
            Self::Man(args) => man::run(args, output),
            Self::Reference(args) => reference::run(args, output),
        }
    }
}
