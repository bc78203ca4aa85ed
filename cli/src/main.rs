//! The one binary, `postern`: reads the arguments, runs one command, answers with its exit code. What a
//! command does stands in `commands/<verb>.rs`.

mod arguments;
mod captured;
mod commands;
mod configuration;
mod conformance;
mod environment;
mod failure;
mod files;
mod input;
mod logging;
mod output;
mod repository;

fn main() -> std::process::ExitCode {
    arguments::run(std::env::args_os().collect())
}
