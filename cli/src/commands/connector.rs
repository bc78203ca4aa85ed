//! `postern connector`: the declarations at hand, and one of their triggers on a recorded delivery,
//! offline.

mod declaration;
mod evidence;
mod test;

use std::fmt::Write as _;

use clap::Subcommand;
use serde::Serialize;

use self::declaration::Declaration;
use crate::failure::Failure;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern connector list
  postern connector github show
  postern connector github test --phase trigger --trigger issue-opened --fixture delivery.json";

/// Connectors: what each declares, and a trigger tested on a recorded delivery
///
/// `<ID>` is `.github/workflows/connectors/<ID>.md` of the repository where that exists, else the shipped
/// declaration.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "postern connector list\n       postern connector <ID> <show|test> [OPTIONS]")]
pub struct Args {
    /// The connector's id, before `show` and `test`
    id: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the connectors and their triggers
    #[command(after_help = "Examples:\n  postern connector list\n  postern connector list --json")]
    List,
    /// Print a connector's declaration
    #[command(
        after_help = "Examples:\n  postern connector github show",
        override_usage = "postern connector <ID> show"
    )]
    Show,
    /// Test one trigger on a recorded delivery, offline
    ///
    /// Exits 0 on a match, 1 on a nonmatch or where the secret does not hold.
    #[command(
        after_help = test::EXAMPLES,
        override_usage = "postern connector <ID> test --phase trigger --trigger <NAME> --fixture <FILE> [OPTIONS]"
    )]
    Test(test::Args),
}

/// Runs it
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    match (args.action, args.id.as_deref()) {
        (Action::List, None) => list(output),
        (Action::List, Some(id)) => Err(Failure::call(
            "usage",
            format!("`list` takes no connector: `{id}`"),
        )),
        (Action::Show | Action::Test(_), None) => Err(Failure::call("usage", "which connector?")
            .hint("its id stands before the verb: `postern connector <ID> test …`")),
        (Action::Show, Some(id)) => show(&Declaration::find(id)?, output),
        (Action::Test(args), Some(id)) => test::run(args, &Declaration::find(id)?, output),
    }
}

#[derive(Serialize)]
struct Listed {
    connectors: Vec<Connector>,
}

#[derive(Serialize)]
struct Connector {
    id: String,
    triggers: Vec<String>,
}

fn list(output: &Output) -> Result<Exit, Failure> {
    let mut listed = Listed {
        connectors: Vec::new(),
    };
    let mut sound = true;
    for declaration in declaration::all()? {
        match declaration.triggers() {
            Ok(triggers) => listed.connectors.push(Connector {
                id: declaration.id().to_owned(),
                triggers,
            }),
            Err(failure) => {
                sound = false;
                output.warning(&failure.message);
            }
        }
    }
    output.result(&listed, || {
        listed
            .connectors
            .iter()
            .fold(String::new(), |mut text, connector| {
                // Writing to a string cannot fail
                let _ = writeln!(text, "{}", connector.id);
                for trigger in &connector.triggers {
                    let _ = writeln!(text, "  {trigger}");
                }
                text
            })
    })?;
    Ok(Exit::answer(sound))
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    declaration: String,
    text: &'a str,
}

fn show(declaration: &Declaration, output: &Output) -> Result<Exit, Failure> {
    let shown = Shown {
        id: declaration.id(),
        declaration: declaration.place(),
        text: declaration.text(),
    };
    if !output.json() {
        output.note(&format!("the declaration is {}", shown.declaration));
    }
    output.result(&shown, || declaration.text().to_owned())?;
    Ok(Exit::Done)
}
