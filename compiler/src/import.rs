//! Typed bindings of an import: `import-schema` says what may be given, `with` gives it, and
//! `${{ github.aw.import-inputs.NAME }}` stands for it as a whole scalar. Values are put in place after
//! parsing, so that no binding can add syntax.

use std::collections::BTreeMap;

use postern_contract::{FilterChoice, Scalar};

use crate::diagnostic::did_you_mean;
use crate::yaml::Node;

/// The types of inputs
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    String,
    Number,
    Boolean,
    Choice(Vec<String>),
    Array(Box<Kind>),
}

#[derive(Clone, Debug)]
struct Input {
    kind: Kind,
    required: bool,
    default: Option<Node>,
}

/// What may be bound
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema(BTreeMap<String, Input>);

/// A path below the holder, and what is wrong there
pub(crate) type Fault = (String, String);

impl Schema {
    pub(crate) fn read(node: Option<&Node>) -> Result<Self, Fault> {
        let mut inputs = BTreeMap::new();
        let Some(node) = node.filter(|n| !n.is_null()) else {
            return Ok(Self::default());
        };
        let members = node
            .mapping()
            .ok_or((String::new(), "want a mapping".to_owned()))?;
        for (key, value) in members {
            let path = format!("/{}", key.text);
            for (member, _) in value.mapping().unwrap_or_default() {
                let known = [
                    "type",
                    "description",
                    "required",
                    "default",
                    "options",
                    "items",
                ];
                if !known.contains(&member.text.as_str()) {
                    return Err((path, format!("unknown key `{}`", member.text)));
                }
            }
            let kind = kind(value).map_err(|message| (path.clone(), message))?;
            let required = value.get("required").map(Node::to_json);
            let input = Input {
                kind,
                required: required.as_deref() == Some("true"),
                default: value.get("default").cloned(),
            };
            if let Some(default) = &input.default {
                fits(&input.kind, default).map_err(|why| (format!("{path}/default"), why))?;
            }
            inputs.insert(key.text.clone(), input);
        }
        Ok(Self(inputs))
    }
}

fn kind(value: &Node) -> Result<Kind, String> {
    match value.get("type").and_then(Node::text) {
        Some("string") => Ok(Kind::String),
        Some("number") => Ok(Kind::Number),
        Some("boolean") => Ok(Kind::Boolean),
        Some("choice") => {
            let options = value
                .get("options")
                .and_then(Node::sequence)
                .unwrap_or_default();
            let texts: Option<Vec<String>> = options
                .iter()
                .map(|o| o.text().map(str::to_owned))
                .collect();
            texts
                .filter(|texts| !texts.is_empty())
                .map(Kind::Choice)
                .ok_or_else(|| "a choice has `options`, a list of strings".to_owned())
        }
        Some("array") => {
            let items = value.get("items").ok_or("an array has `items`")?;
            match kind(items)? {
                Kind::Array(_) => Err("an array of arrays is not taken".to_owned()),
                item => Ok(Kind::Array(Box::new(item))),
            }
        }
        other => Err(format!(
            "the type `{}`: want string, number, boolean, choice or array",
            other.unwrap_or_default()
        )),
    }
}

/// Whether a value has the type, without coercion
fn fits(kind: &Kind, value: &Node) -> Result<(), String> {
    let json = value.to_json();
    let ok = match kind {
        Kind::String => value.text().is_some(),
        Kind::Boolean => json == "true" || json == "false",
        Kind::Number => json.starts_with(|c: char| c == '-' || c.is_ascii_digit()),
        Kind::Choice(options) => value.text().is_some_and(|t| options.iter().any(|o| o == t)),
        Kind::Array(item) => {
            let items = value.sequence().ok_or("want a list")?;
            return items.iter().try_for_each(|value| fits(item, value));
        }
    };
    let wanted = match kind {
        Kind::String => "a string",
        Kind::Boolean => "true or false",
        Kind::Number => "a number",
        Kind::Choice(_) => "one of the options",
        Kind::Array(_) => "a list",
    };
    if ok {
        Ok(())
    } else {
        Err(format!("want {wanted}"))
    }
}

/// What an import has bound
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings(BTreeMap<String, Node>);

impl Bindings {
    /// The defaults alone
    pub(crate) fn defaults(schema: &Schema) -> Self {
        let defaults = schema.0.iter();
        Self(
            defaults
                .filter_map(|(n, i)| Some((n.clone(), i.default.clone()?)))
                .collect(),
        )
    }

    /// Checks `with` against the schema
    pub(crate) fn read(schema: &Schema, with: Option<&Node>) -> Result<Self, Vec<Fault>> {
        let mut bound = Self::defaults(schema);
        let mut faults = Vec::new();
        let given = with.filter(|n| !n.is_null());
        match given.map(|node| node.mapping()) {
            Some(None) => faults.push((String::new(), "want a mapping".to_owned())),
            Some(Some(members)) => {
                for (key, value) in members {
                    let path = format!("/{}", key.text);
                    match schema.0.get(&key.text) {
                        None => {
                            let similar =
                                did_you_mean(&key.text, schema.0.keys().map(String::as_str));
                            let similar = similar.map(|s| format!(": {s}")).unwrap_or_default();
                            faults.push((
                                path,
                                format!("the import takes no `{}`{similar}", key.text),
                            ));
                        }
                        Some(input) => match fits(&input.kind, value) {
                            Ok(()) => drop(bound.0.insert(key.text.clone(), value.clone())),
                            Err(why) => faults.push((path, format!("`{}`: {why}", key.text))),
                        },
                    }
                }
            }
            None => {}
        }
        for (name, input) in &schema.0 {
            if input.required && !bound.0.contains_key(name) {
                faults.push((String::new(), format!("`{name}` is required")));
            }
        }
        if faults.is_empty() {
            Ok(bound)
        } else {
            Err(faults)
        }
    }

    /// The members of a collection: a list, or one input's whole value
    pub(crate) fn members(&self, node: &Node) -> Result<Vec<Scalar>, String> {
        let node = match node.text().and_then(input_name) {
            Some(name) => match self.0.get(name) {
                Some(bound) => bound,
                None => {
                    return Err(format!(
                        "the import input `{name}` has no value and no default"
                    ));
                }
            },
            None => node,
        };
        let items = node.sequence().ok_or("want a list of exact members")?;
        items
            .iter()
            .map(|item| match item.text() {
                Some(text) if text.contains('*') => Err(format!(
                    "`{text}`: members are exact, there are no wildcards"
                )),
                _ => match serde_json::from_str(&item.to_json()) {
                    Ok(FilterChoice::One(scalar)) => Ok(scalar),
                    _ => Err("want scalars".to_owned()),
                },
            })
            .collect()
    }
}

/// The input that a whole scalar stands for
fn input_name(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("${{")?.strip_suffix("}}")?.trim();
    let name = inner.strip_prefix("github.aw.import-inputs.")?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}
