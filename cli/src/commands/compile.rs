//! Placeholder.
use crate::failure::Failure;
use crate::output::{Exit, Output};
/// x
#[derive(clap::Args)]
pub struct Args {}
/// x
pub fn run(_args: Args, _output: &Output) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
