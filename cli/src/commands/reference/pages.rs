//! The pages of what is no document: the commands, and the catalogue of profiles.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::Page;
use super::shapes::GENERATED;
use crate::arguments::Arguments;
use crate::commands::profile;
use crate::failure::Failure;

/// Every command's help
pub(super) fn commands() -> Page {
    let mut text = format!("{GENERATED}\n# Commands\n");
    // A fixed width, so that the page does not depend on whose terminal wrote it
    let mut root = Arguments::command().term_width(100);
    // Hands the global arguments down to every command
    root.build();
    describe(&mut text, &mut root, "postern");
    Page {
        name: "commands.md".to_owned(),
        text,
    }
}

fn describe(text: &mut String, command: &mut clap::Command, path: &str) {
    let help = command.render_long_help().to_string();
    // Writing to a string cannot fail
    let _ = write!(text, "\n## {path}\n\n```text\n{}\n```\n", help.trim_end());
    for inner in command.get_subcommands_mut() {
        if inner.is_hide_set() || inner.get_name() == "help" {
            continue;
        }
        let path = format!("{path} {}", inner.get_name());
        describe(text, inner, &path);
    }
}

/// The catalogue as a table
pub(super) fn profiles() -> Result<Page, Failure> {
    let mut text = format!(
        "{GENERATED}\n# Verification profiles\n\n| id | provider | integrity | timestamp tolerance | replays are recognised by |\n| --- | --- | --- | --- | --- |\n"
    );
    for profile in profile::catalogue()?.iter() {
        let tolerance = profile.tolerance().map_or_else(
            || "none".to_owned(),
            |(past, future)| format!("{} s old, {} s ahead", past.as_secs(), future.as_secs()),
        );
        // Writing to a string cannot fail
        let _ = writeln!(
            text,
            "| `{}` | [{}]({}) | {} | {tolerance} | {} |",
            profile.id(),
            profile.title(),
            profile.docs(),
            profile.integrity().as_str(),
            profile.replay(),
        );
    }
    Ok(Page {
        name: "profiles.md".to_owned(),
        text,
    })
}
