//! `import-schema`: the inputs of an import and their types. Defaults are held to them, nothing is coerced.

use std::collections::BTreeMap;

use postern_contract::pointer::escape;

use super::{Fault, is_credential};
use crate::diagnostic::did_you_mean;
use crate::yaml::Node;

/// The types of inputs
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    String,
    Number,
    Boolean,
    Choice(Vec<String>),
    Array(Box<Kind>),
    Object(BTreeMap<String, Input>),
}

/// One input
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) default: Option<Node>,
}

/// What may be bound
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema(pub(super) BTreeMap<String, Input>);

const KEYS: &[&str] = &[
    "type",
    "description",
    "required",
    "default",
    "options",
    "items",
    "properties",
];

/// The path of an entry
pub(super) fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", escape(key))
}

impl Schema {
    /// Reads the section; every fault is found
    pub(crate) fn read(node: Option<&Node>) -> Result<Self, Vec<Fault>> {
        let Some(node) = node.filter(|n| !n.is_null()) else {
            return Ok(Self::default());
        };
        let mut faults = Vec::new();
        let inputs = inputs(node, "", true, &mut faults);
        if faults.is_empty() {
            Ok(Self(inputs))
        } else {
            Err(faults)
        }
    }
}

fn inputs(
    node: &Node,
    path: &str,
    outermost: bool,
    faults: &mut Vec<Fault>,
) -> BTreeMap<String, Input> {
    let mut inputs = BTreeMap::new();
    let Some(members) = node.mapping() else {
        faults.push(Fault::new(path, "want a mapping"));
        return inputs;
    };
    for (key, value) in members {
        let path = below(path, &key.text);
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if key.text.is_empty() || !key.text.bytes().all(plain) {
            faults.push(Fault::new(
                &path,
                "an input's name holds letters, digits, `-` and `_`",
            ));
        }
        if let Some(input) = input(value, &path, outermost, faults) {
            inputs.insert(key.text.clone(), input);
        }
    }
    inputs
}

fn input(value: &Node, path: &str, outermost: bool, faults: &mut Vec<Fault>) -> Option<Input> {
    let Some(members) = value.mapping() else {
        faults.push(Fault::new(path, "want a mapping with a `type`"));
        return None;
    };
    for (member, _) in members {
        if !KEYS.contains(&member.text.as_str()) {
            faults.push(Fault {
                hint: did_you_mean(&member.text, KEYS.iter().copied()),
                ..Fault::new(
                    &below(path, &member.text),
                    format!("unknown key `{}`", member.text),
                )
            });
        }
    }
    let required = match value.get("required").map(Node::to_json).as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            faults.push(Fault::new(
                &format!("{path}/required"),
                "want true or false",
            ));
            false
        }
    };
    let kind = kind(value, path, outermost, faults)?;
    let default = value.get("default").cloned();
    if let Some(default) = &default {
        let path = format!("{path}/default");
        kind.fits(default, &path, faults);
        default.scalars(&path, &mut |path, text| {
            if is_credential(text) {
                faults.push(Fault {
                    secret: true,
                    ..Fault::new(path, "the default looks like a credential")
                });
            }
        });
    }
    Some(Input {
        kind,
        required,
        default,
    })
}

fn kind(value: &Node, path: &str, outermost: bool, faults: &mut Vec<Fault>) -> Option<Kind> {
    let given = value.get("type").and_then(Node::text);
    let mut fail = |key: &str, message: &str| {
        faults.push(Fault::new(&format!("{path}{key}"), message));
        None
    };
    match given {
        Some("string") => Some(Kind::String),
        Some("number") => Some(Kind::Number),
        Some("boolean") => Some(Kind::Boolean),
        Some("choice") => {
            let options = value.get("options").and_then(Node::sequence);
            let texts = options
                .unwrap_or_default()
                .iter()
                .map(|o| o.text().map(str::to_owned));
            match texts.collect::<Option<Vec<String>>>() {
                Some(texts) if !texts.is_empty() => Some(Kind::Choice(texts)),
                _ => fail("", "a choice has `options`, a nonempty list of strings"),
            }
        }
        Some("array") => match value.get("items") {
            None => fail("", "an array has `items` with their `type`"),
            Some(items) => match kind(items, &format!("{path}/items"), false, faults)? {
                Kind::Array(_) | Kind::Object(_) => {
                    faults.push(Fault::new(
                        &format!("{path}/items"),
                        "items are strings, numbers, booleans or choices",
                    ));
                    None
                }
                item => Some(Kind::Array(Box::new(item))),
            },
        },
        Some("object") if outermost => match value.get("properties") {
            None => fail("", "an object has `properties`"),
            Some(node) => {
                let path = format!("{path}/properties");
                Some(Kind::Object(inputs(node, &path, false, faults)))
            }
        },
        Some("object") => fail("/type", "an object stands in no other type"),
        given => {
            let known = ["string", "number", "boolean", "choice", "array", "object"];
            let message = match given {
                Some(given) => format!("the type `{given}`: want one of {}", known.join(", ")),
                None => format!("want `type`, one of {}", known.join(", ")),
            };
            faults.push(Fault {
                hint: given.and_then(|given| did_you_mean(given, known.into_iter())),
                ..Fault::new(&format!("{path}/type"), message)
            });
            None
        }
    }
}

impl Kind {
    /// Whether a value has the type, without coercion
    pub(crate) fn fits(&self, value: &Node, path: &str, faults: &mut Vec<Fault>) {
        let json = value.to_json();
        let wanted = match self {
            Self::String if value.text().is_some() => return,
            Self::Boolean if json == "true" || json == "false" => return,
            Self::Number if json.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => return,
            Self::Choice(options) => match value.text() {
                Some(text) if options.iter().any(|o| o == text) => return,
                _ => format!("one of {}", options.join(", ")),
            },
            Self::Array(item) => match value.sequence() {
                Some(items) => {
                    for (n, value) in items.iter().enumerate() {
                        item.fits(value, &format!("{path}/{n}"), faults);
                    }
                    return;
                }
                None => "a list".to_owned(),
            },
            Self::Object(properties) => match value.mapping() {
                Some(members) => return object(properties, members, path, faults),
                None => "a mapping".to_owned(),
            },
            Self::String => "a string".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Number => "a number".to_owned(),
        };
        faults.push(Fault::new(path, format!("want {wanted}")));
    }
}

fn object(
    properties: &BTreeMap<String, Input>,
    members: &[(crate::yaml::Key, Node)],
    path: &str,
    faults: &mut Vec<Fault>,
) {
    for (key, value) in members {
        let at = below(path, &key.text);
        match properties.get(&key.text) {
            Some(input) => input.kind.fits(value, &at, faults),
            None => faults.push(Fault {
                hint: did_you_mean(&key.text, properties.keys().map(String::as_str)),
                ..Fault::new(&at, format!("the input has no property `{}`", key.text))
            }),
        }
    }
    for (name, input) in properties {
        let given = members.iter().any(|(key, _)| &key.text == name);
        if input.required && input.default.is_none() && !given {
            faults.push(Fault::new(path, format!("`{name}` is required")));
        }
    }
}
