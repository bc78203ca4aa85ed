//! The command line as it is typed, and the way from it to one command and its exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::commands::Command;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern profile list
  postern connector github test --phase trigger --trigger issue-opened --fixture delivery.json
  postern compile .github/workflows/triage.md --out plans

Exit codes: 0 done; 1 the answer is no; 2 the call was wrong; 3 something around it failed.";

/// The guarded gate between webhook providers and agentic workflows
#[derive(Parser)]
#[command(name = "postern", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Arguments {
    /// Results, and errors too, as JSON on standard output
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

/// Runs the command that `args` names
pub fn run(args: Vec<OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(&args) {
        Ok(arguments) => arguments,
        Err(error) => return misread(&error, &args).into(),
    };
    let output = Output::new(arguments.json);
    match arguments.command.run(&output) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output.failure(&failure);
            failure.exit.into()
        }
    }
}

/// Help and version are results; everything else is a wrong call
fn misread(error: &clap::Error, args: &[OsString]) -> Exit {
    let asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if asked || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // clap picks the stream and the colours; nobody is left to tell where it cannot write
        let _ = error.print();
        return if asked { Exit::Done } else { Exit::Call };
    }
    // The arguments did not parse, so that `--json` has to be looked for by hand
    let words = args.iter().take_while(|arg| *arg != "--");
    let json = words.into_iter().any(|arg| arg == "--json");
    Output::new(json).failure(&usage(error));
    Exit::Call
}

/// clap's message without its own label, its tips as the hint
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let message = text.strip_prefix("error: ").unwrap_or(&text);
    let (message, rest) = message.split_once("\n\n").unwrap_or((message, ""));
    let message: Vec<&str> = message.lines().map(str::trim).collect();
    let mut hints: Vec<String> = Vec::new();
    for kind in [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ] {
        match error.get(kind) {
            Some(ContextValue::String(near)) => hints.push(format!("did you mean `{near}`?")),
            Some(ContextValue::Strings(near)) => {
                hints.extend(near.first().map(|near| format!("did you mean `{near}`?")));
            }
            _ => {}
        }
    }
    let usage = rest.lines().find_map(|line| line.strip_prefix("Usage: "));
    hints.extend(usage.map(|usage| format!("usage: {usage}")));
    let failure = Failure::call("usage", message.join(" "));
    if hints.is_empty() {
        failure.hint("see `postern --help`")
    } else {
        failure.hint(hints.join("\n"))
    }
}
