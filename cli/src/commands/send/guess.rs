//! Which profile a recorded delivery is of: the one that reads every header that any of them reads. Of
//! several, the one that the others are variants of by their names.
//! For signing alone: verification never guesses.

use std::collections::BTreeSet;

use postern_contract::CapturedRequest;
use postern_profiles::Profile;
use serde_json::Value;

use crate::commands::profile;
use crate::failure::Failure;

/// The profile that reads all of the request's headers that any profile reads
pub(super) fn profile(request: &CapturedRequest) -> Result<&'static Profile, Failure> {
    let has = |name: &String| {
        let mut known = request.headers.keys();
        known.any(|key| key.eq_ignore_ascii_case(name))
    };
    let all: Vec<(&Profile, BTreeSet<String>)> = (profile::catalogue()?.iter())
        .map(|profile| (profile, headers(profile).into_iter().filter(has).collect()))
        .filter(|(_, names): &(_, BTreeSet<String>)| !names.is_empty())
        .collect();
    let reads_all = |names: &BTreeSet<String>| all.iter().all(|(_, other)| other.is_subset(names));
    let mut fitting: Vec<&Profile> = (all.iter())
        .filter(|(_, names)| reads_all(names))
        .map(|(profile, _)| *profile)
        .collect();
    if fitting.is_empty() {
        fitting = all.iter().map(|(profile, _)| *profile).collect();
    }
    let variants = |base: &Profile| fitting.iter().all(|p| p.id().starts_with(base.id()));
    if let Some(base) = fitting.iter().copied().find(|profile| variants(profile)) {
        fitting = vec![base];
    }
    match fitting.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::call(
            "unknown-provider",
            "no profile reads any of the fixture's headers",
        )
        .hint("name the profile with `--profile`; see `postern profile list`")),
        several => {
            let ids: Vec<String> = several.iter().map(|p| format!("`{}`", p.id())).collect();
            let why = format!(
                "the fixture's headers fit several profiles: {}",
                ids.join(", ")
            );
            Err(Failure::call("ambiguous-provider", why).hint("name one with `--profile`"))
        }
    }
}

/// The headers that a profile reads, in lower case, as its frozen document names them
fn headers(profile: &Profile) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // Our own canonical document: serde reads it
    if let Ok(document) = serde_json::from_slice(profile.document()) {
        collect(&document, &mut names);
    }
    // Every client may send these
    names.remove("authorization");
    names.remove("content-type");
    names
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(name) if key == "header" || key == "id-header" => {
                        names.insert(name.to_ascii_lowercase());
                    }
                    other => collect(other, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
