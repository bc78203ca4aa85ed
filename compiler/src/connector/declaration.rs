//! The JSON text of a trigger's declaration, whole or in parts: parts that rest on nothing else can be
//! judged on their own, so that a fault in one hides none in another.

use crate::yaml::{Key, Node};

/// The required keys of a trigger (the two names come from its place in the file)
pub(super) const REQUIRED: &[&str] = &["verificationProfile", "nativeEvents", "match", "normalize"];
/// The others
pub(super) const OPTIONAL: &[&str] = &[
    "when",
    "variants",
    "types",
    "resources",
    "resourceOrigins",
    "filters",
];

/// What stands for a required part where another part is judged
const STAND_INS: &[(&str, &str)] = &[
    ("verificationProfile", r#""x""#),
    ("nativeEvents", r#"["x"]"#),
    ("match", r#"{"":null}"#),
    ("normalize", "{}"),
];

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An object of JSON texts
pub(super) fn object<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let members: Vec<String> = (members.into_iter())
        .map(|(key, value)| format!("{}:{value}", quote(key)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The declaration with the names that its place gives it, and `profile` in place of its own
pub(super) fn whole(
    connector: &str,
    trigger: &str,
    declared: &Node,
    profile: Option<&str>,
) -> String {
    let names = [("connector", quote(connector)), ("trigger", quote(trigger))];
    let members = declared.mapping().unwrap_or_default();
    let members = members.iter().map(|(key, value)| match profile {
        Some(profile) if key.text == "verificationProfile" => (key.text.as_str(), quote(profile)),
        _ => (key.text.as_str(), value.to_json()),
    });
    object(names.into_iter().chain(members))
}

/// A declaration of `parts` alone
pub(super) fn of_parts(parts: &[(&str, String)]) -> String {
    let names = [("connector", quote("x")), ("trigger", quote("x"))];
    let stand_ins = (STAND_INS.iter())
        .filter(|(key, _)| !parts.iter().any(|(part, _)| part == key))
        .map(|(key, json)| (*key, (*json).to_owned()));
    object((names.into_iter().chain(stand_ins)).chain(parts.iter().cloned()))
}

/// The members of a mapping that `keep` keeps
pub(super) fn kept(node: &Node, keep: impl Fn(&str, &Node) -> bool) -> String {
    match node.mapping() {
        Some(members) => object(
            (members.iter())
                .filter(|(key, value)| keep(&key.text, value))
                .map(|(Key { text, .. }, value)| (text.as_str(), value.to_json())),
        ),
        None => node.to_json(),
    }
}
