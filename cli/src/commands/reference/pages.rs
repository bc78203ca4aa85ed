//! The pages of what is no document: the commands, and the catalogue of profiles.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::Page;
use super::shapes::GENERATED;
use crate::arguments::Arguments;
use crate::commands::profile;
use crate::failure::Failure;
use postern_profiles::{GENERIC_PARAMS, Profile};

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

/// The catalogue: a table, and a section a profile
pub(super) fn profiles() -> Result<Page, Failure> {
    let catalogue = profile::catalogue()?;
    let count = catalogue.iter().count();
    let mut text = format!(
        "{GENERATED}\n# Verification profiles\n\n{count} profiles. What the authentication covers cannot be \
         changed on the way; what it does not cover can be, by whoever passes a delivery on. Below the table \
         each profile has what an operator must know.\n\n\
         | id | provider | by | covers | does not cover | timestamp tolerance | replays are recognised by | known from |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for profile in catalogue.iter() {
        let tolerance = profile.tolerance().map_or_else(
            || "none".to_owned(),
            |(past, future)| format!("{} s old, {} s ahead", past.as_secs(), future.as_secs()),
        );
        let covered = match profile.covered() {
            covered if covered.is_empty() => "nothing".to_owned(),
            covered => covered.join(", "),
        };
        let uncovered = match profile.uncovered() {
            uncovered if uncovered.is_empty() => "nothing that is read".to_owned(),
            uncovered => uncovered.join("; "),
        };
        // Writing to a string cannot fail
        let _ = writeln!(
            text,
            "| [`{id}`](#{id}) | [{}]({}) | {} | {covered} | {} | {tolerance} | {} | {} |",
            profile.title(),
            profile.docs(),
            profile.methods().join(", "),
            uncovered,
            profile.replay(),
            profile.confidence().as_str(),
            id = profile.id(),
        );
    }
    for profile in catalogue.iter() {
        section(profile, &mut text);
    }
    Ok(Page {
        name: "profiles.md".to_owned(),
        text,
    })
}

/// What the table has no room for
fn section(profile: &Profile, text: &mut String) {
    let mut lines = Vec::new();
    let mut places: Vec<String> = profile.signature_places().map(|p| p.to_string()).collect();
    let mut known = BTreeSet::new();
    places.retain(|place| known.insert(place.clone()));
    lines.push(format!("Signature or token: {}.", places.join(", ")));
    if !profile.aliases().is_empty() {
        lines.push(format!("Also known as {}.", profile.aliases().join(", ")));
    }
    if profile.fetches_keys() {
        let with = match profile.needs_credential() {
            true => ", with the source's `credential`",
            false => "",
        };
        lines.push(format!("Keys that are not bound are fetched{with}."));
    }
    if profile.is_generic() {
        lines.extend(
            GENERIC_PARAMS
                .iter()
                .map(|(name, says)| format!("Parameter `{name}`: {says}.")),
        );
    } else {
        lines.extend(profile.params().iter().map(|(name, needed)| {
            let needed = if *needed { "needed" } else { "optional" };
            match profile.advised().get(name) {
                Some(why) => format!("Parameter `{name}`, advised: {why}."),
                None => format!("Parameter `{name}`, {needed}."),
            }
        }));
    }
    let batch = profile.batch_places();
    if !batch.is_empty() {
        lines.push(format!(
            "Carries several events: each item of `{}` is one.",
            batch.join("` or `")
        ));
    }
    lines.extend(
        profile
            .handshakes()
            .iter()
            .map(|told| format!("Handshake: {told}.")),
    );
    if let Some(retry) = profile.retry() {
        lines.push(format!("Sends again: {retry}."));
    }
    lines.extend(
        profile
            .to_check()
            .iter()
            .map(|what| format!("**To check**: {what}.")),
    );
    lines.extend(profile.note().map(str::to_owned));
    // Writing to a string cannot fail
    let _ = write!(text, "\n## {}\n\n", profile.id());
    for line in lines {
        let _ = writeln!(text, "- {}", line.replace("..", "."));
    }
}
