//! Whether a declaration is one: its sections, and every trigger. Every fault is found, not only the first.

use std::collections::{BTreeMap, BTreeSet};

use postern_contract::{Digest, Name, pointer::escape};
use postern_predicates::Resources;

use super::declaration::{OPTIONAL, REQUIRED, kept, of_parts, whole};
use super::{Connector, freeze};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::frontmatter::Page;
use crate::yaml::Node;

/// The sections that the specification gives a connector
const SECTIONS: &[&str] = &[
    "experimental",
    "docs",
    "endpoints",
    "credentials",
    "resources",
    "triggers",
    "tools",
    "mcp-servers",
    "safe-outputs",
];
/// Those that make it good for something
const CAPABILITIES: &[&str] = &["triggers", "tools", "mcp-servers", "safe-outputs"];

/// The one connector of a file, and what is wrong with its sections
pub(super) fn sections(page: &Page) -> (Option<Name>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let mut error = |code, path: &str, message: String, hint: Option<String>| {
        found.push(page.error(code, path, message).hint(hint));
    };
    let connectors = page.root.get("connectors").and_then(Node::mapping);
    let Some([(key, declared)]) = connectors else {
        let message = match connectors {
            None => "want `connectors`, a mapping of one connector".to_owned(),
            Some(some) => format!("a file declares one connector, this one {}", some.len()),
        };
        error("connector", "/connectors", message, None);
        return (None, found);
    };
    let base = format!("/connectors/{}", escape(&key.text));
    let id = match key.text.parse::<Name>() {
        Ok(id) => Some(id),
        Err(e) => {
            error("connector-id", &base, e.to_string(), None);
            None
        }
    };
    let Some(members) = declared.mapping() else {
        let message = "want a mapping of the connector's sections".to_owned();
        error("connector", &base, message, None);
        return (None, found);
    };
    for (key, value) in members {
        let path = format!("{base}/{}", escape(&key.text));
        match key.text.as_str() {
            "experimental" if !matches!(value.to_json().as_str(), "true" | "false") => {
                let message = "`experimental` is true or false".to_owned();
                error("connector-section", &path, message, None);
            }
            "docs" => {
                for (path, message) in docs(value, &path) {
                    error("connector-section", &path, message, None);
                }
            }
            "resources" | "triggers" if value.mapping().is_none() => {
                let message = format!("`{}` is a mapping", key.text);
                error("connector-section", &path, message, None);
            }
            name if !SECTIONS.contains(&name) => {
                let hint = did_you_mean(name, SECTIONS.iter().copied());
                let message = format!("unknown section `{name}`");
                error("connector-section", &path, message, hint);
            }
            _ => {}
        }
    }
    let holds = |name: &&str| {
        let members = declared.get(name).and_then(Node::mapping);
        members.is_some_and(|members| !members.is_empty())
    };
    if !CAPABILITIES.iter().any(holds) {
        let message = format!(
            "it declares nothing: want one of {}",
            CAPABILITIES.join(", ")
        );
        error("connector", &base, message, None);
    }
    (id, found)
}

/// `docs`: unique literal HTTPS addresses. They are never fetched.
fn docs(node: &Node, path: &str) -> Vec<(String, String)> {
    let Some(items) = node.sequence() else {
        return vec![(path.to_owned(), "`docs` is a list of addresses".to_owned())];
    };
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let text = item.text().unwrap_or_default();
        let rest = text.strip_prefix("https://").unwrap_or_default();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let literal = !text.contains("${{") && text.chars().all(|c| c.is_ascii_graphic());
        let message = if authority.is_empty() || authority.contains('@') || !literal {
            "want a literal `https://` address without credentials"
        } else if seen.insert(text) {
            continue;
        } else {
            "the address stands twice"
        };
        found.push((format!("{path}/{n}"), message.to_owned()));
    }
    found
}

/// What is wrong with one trigger, whatever it will be bound to
pub(super) fn trigger(connector: &Connector, name: &str, declared: &Node) -> Vec<Diagnostic> {
    let page = &connector.page;
    let base = connector.base(name);
    let error = |path: &str, message: String| page.error("trigger", path, message);
    if let Err(e) = name.parse::<Name>() {
        return vec![error(&base, e.to_string())];
    }
    let Some(members) = declared.mapping() else {
        return vec![error(&base, "a trigger is a mapping".to_owned())];
    };
    let mut found = Vec::new();
    let known = || REQUIRED.iter().chain(OPTIONAL).copied();
    let mut meant = Vec::new();
    for (key, _) in members {
        if !known().any(|k| k == key.text) {
            let path = format!("{base}/{}", escape(&key.text));
            let message = format!("unknown key `{}`", key.text);
            let hint = did_you_mean(&key.text, known());
            meant.extend(hint.clone());
            found.push(error(&path, message).hint(hint));
        }
    }
    for key in REQUIRED {
        // A misspelt key is one fault, not two
        let misspelt = meant.iter().any(|hint| hint.contains(&format!("`{key}`")));
        if declared.get(key).is_none() && !misspelt {
            found.push(error(&base, format!("the key `{key}` is missing")));
        }
    }
    declared.scalars(&base, &mut |path, text| {
        if text.contains("${{") {
            let message = "expressions stand in `resources` alone: here its text would be compared";
            found.push(error(path, message.to_owned()));
        }
    });
    let text = whole(connector.id.as_str(), name, declared, None);
    if let Err((path, message)) = compiles(text) {
        let mut parts = parts(declared);
        // No part is at fault: what is, shows only in the whole
        if parts.is_empty() && found.is_empty() {
            parts.push((path, message));
        }
        for (path, message) in parts {
            let finding = error(&format!("{base}{path}"), message);
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    let collections = connector.section("resources");
    let resources = declared.get("resources").and_then(Node::mapping);
    for (field, collection) in resources.unwrap_or_default() {
        let Some(collection) = collection.text() else {
            continue;
        };
        if collections.is_none_or(|c| c.get(collection).is_none()) {
            let path = format!("{base}/resources/{}", escape(&field.text));
            let message = format!("`resources` declares no collection `{collection}`");
            let known = collections.and_then(Node::mapping).unwrap_or_default();
            let hint = did_you_mean(collection, known.iter().map(|(key, _)| key.text.as_str()));
            found.push(page.error("no-collection", &path, message).hint(hint));
        }
    }
    found
}

type Fault = (String, String);

/// The most faults of one projection that are sought
const MAX_ROUNDS: usize = 100;

fn compiles(text: String) -> Result<(), Fault> {
    // Only its shape counts here: no profile, no grants
    freeze(text, Digest::of(b""), Resources::new()).map(|_| ())
}

/// The faults of each part on its own
fn parts(declared: &Node) -> Vec<Fault> {
    let mut found = Vec::new();
    for key in ["verificationProfile", "nativeEvents", "when"] {
        if let Some(node) = declared.get(key) {
            found.extend(compiles(of_parts(&[(key, node.to_json())])).err());
        }
    }
    for key in ["match", "filters"] {
        if let Some(node) = declared.get(key) {
            found.append(&mut entries(key, node));
        }
    }
    // What rests on the fields is not at fault where there are none
    if declared.get("normalize").is_some() {
        found.append(&mut projection(declared));
    }
    found
}

/// The faults of each entry on its own, or else of all together
fn entries(key: &str, node: &Node) -> Vec<Fault> {
    let members = node.mapping().unwrap_or_default();
    let alone = |name: &str| compiles(of_parts(&[(key, kept(node, |k, _| k == name))])).err();
    let found: Vec<Fault> = (members.iter())
        .filter_map(|(name, _)| alone(&name.text))
        .collect();
    if found.is_empty() {
        let whole = compiles(of_parts(&[(key, node.to_json())]));
        return whole.err().into_iter().collect();
    }
    found
}

/// The faults of the projection: a field at fault is taken out, with what rests on it, and the rest is
/// judged again
fn projection(declared: &Node) -> Vec<Fault> {
    let mut out: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut found = Vec::new();
    let build = |out: &BTreeMap<&str, BTreeSet<String>>, variants: Option<String>| {
        let mut parts = Vec::new();
        for key in ["normalize", "types", "resources"] {
            if let Some(node) = declared.get(key) {
                let gone = |name: &str| out.get(key).is_some_and(|gone| gone.contains(name));
                parts.push((key, kept(node, |name, _| !gone(name))));
            }
        }
        if let Some(origins) = declared.get("resourceOrigins") {
            parts.push(("resourceOrigins", origins.to_json()));
        }
        parts.extend(variants.map(|variants| ("variants", variants)));
        compiles(of_parts(&parts)).err()
    };
    while let (Some((path, message)), ..MAX_ROUNDS) = (build(&out, None), found.len()) {
        let mut tokens = path.split('/').skip(1);
        let (key, name) = (tokens.next(), tokens.next());
        found.push((path.clone(), message));
        let (Some(key), Some(name)) = (key, name) else {
            return found;
        };
        let Some(keys) = resting(declared, key, &name.replace("~1", "/").replace("~0", "~")) else {
            return found;
        };
        let before: usize = out.values().map(BTreeSet::len).sum();
        for (key, name) in keys {
            out.entry(key).or_default().insert(name);
        }
        // Each round takes something out, so that this ends
        if out.values().map(BTreeSet::len).sum::<usize>() == before {
            return found;
        }
    }
    // Variants replace fields by name: they are judged where all of those stand
    if let (Some(variants), true) = (declared.get("variants"), found.is_empty()) {
        let each = variants.sequence().unwrap_or_default().iter().enumerate();
        found.extend(each.filter_map(|(n, variant)| {
            let (path, message) = build(&out, Some(format!("[{}]", variant.to_json())))?;
            let rest = path.strip_prefix("/variants/0").map(str::to_owned);
            let path = rest.map_or(path, |rest| format!("/variants/{n}{rest}"));
            Some((path, message))
        }));
        if found.is_empty() {
            found.extend(build(&out, Some(variants.to_json())));
        }
    }
    found
}

/// An entry of the projection and all that cannot be judged without it
fn resting(declared: &Node, key: &str, name: &str) -> Option<Vec<(&'static str, String)>> {
    match key {
        "resources" => Some(vec![("resources", name.to_owned())]),
        "normalize" | "types" => {
            let mut names = vec![name.to_owned()];
            let fields = declared.get("normalize").and_then(Node::mapping);
            for (field, value) in fields.unwrap_or_default() {
                let prefix = value.get("prefix").and_then(Node::text).unwrap_or_default();
                if prefix.contains(&format!("{{{name}}}"))
                    || prefix.contains(&format!("{{+{name}}}"))
                {
                    names.push(field.text.clone());
                }
            }
            let all = names.into_iter().flat_map(|name| {
                ["normalize", "types", "resources"].map(|key| (key, name.clone()))
            });
            Some(all.collect())
        }
        _ => None,
    }
}
