//! The one binary, `postern`: reads the arguments, runs one command, answers with its exit code. What a
//! command does stands in `commands/<verb>.rs`.

mod arguments;
mod captured;
mod commands;
mod conformance;
mod environment;
mod failure;
mod input;
mod output;

fn main() -> std::process::ExitCode {
    arguments::run(std::env::args_os().collect())
}
