//! Typed bindings of an import: `import-schema` says what may be given, `with` gives it, and
//! `${{ github.aw.import-inputs.NAME }}` stands for it as a whole scalar. Values are put in place after
//! parsing, so that no binding can add syntax. A value that looks like a credential is refused unshown.

mod members;
mod schema;

use std::collections::BTreeMap;

use crate::diagnostic::did_you_mean;
use crate::yaml::{Node, Value};

pub(crate) use members::{At, Misfit};
pub(crate) use schema::{Input, Kind, Schema};

/// What is wrong at a path below the holder
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault {
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The value may be a secret
    pub(crate) secret: bool,
}

impl Fault {
    fn new(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }
}

/// The value of an input, and where it was given
#[derive(Clone, Debug)]
struct Bound {
    node: Node,
    at: At,
}

/// What an import has bound; a property of an object stands under `NAME.PROPERTY` too
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings(BTreeMap<String, Bound>);

impl Bindings {
    /// The defaults alone
    pub(crate) fn defaults(schema: &Schema) -> Self {
        let mut bound = Self::default();
        for (name, input) in &schema.0 {
            let path = schema::below("/import-schema", name);
            let Some(default) = &input.default else {
                bound.properties(name, input, None, &path);
                continue;
            };
            let at = At::Declared(format!("{path}/default"));
            bound.bind(name, input, default.clone(), at);
        }
        bound
    }

    /// Checks `with` against the schema. `outer` is what the importing file itself was given.
    pub(crate) fn read(
        schema: &Schema,
        with: Option<&Node>,
        outer: &Self,
    ) -> Result<Self, Vec<Fault>> {
        let mut bound = Self::defaults(schema);
        let mut faults = Vec::new();
        let given = with.filter(|n| !n.is_null());
        match given.map(|node| node.mapping()) {
            Some(None) => faults.push(Fault::new("", "want a mapping")),
            Some(Some(members)) => {
                for (key, value) in members {
                    let path = schema::below("", &key.text);
                    let Some(input) = schema.0.get(&key.text) else {
                        let known = schema.0.keys().map(String::as_str);
                        faults.push(Fault {
                            hint: did_you_mean(&key.text, known),
                            ..Fault::new(&path, format!("the import takes no `{}`", key.text))
                        });
                        continue;
                    };
                    let before = faults.len();
                    let value = outer.put(value, &path, &mut faults);
                    if faults.len() == before {
                        input.kind.fits(&value, &path, &mut faults);
                        for fault in faults.iter_mut().skip(before) {
                            fault.message = format!("`{}`: {}", key.text, fault.message);
                        }
                    }
                    if faults.len() == before {
                        bound.bind(&key.text, input, value, At::Given(path));
                    }
                }
            }
            None => {}
        }
        let given = |name: &str| given.is_some_and(|with| with.get(name).is_some());
        for (name, input) in &schema.0 {
            if input.required && input.default.is_none() && !given(name) {
                faults.push(Fault::new("", format!("`{name}` is required")));
            }
        }
        if faults.is_empty() {
            Ok(bound)
        } else {
            Err(faults)
        }
    }

    fn bind(&mut self, name: &str, input: &Input, node: Node, at: At) {
        let path = schema::below("/import-schema", name);
        self.properties(name, input, Some((&node, &at)), &path);
        self.0.insert(name.to_owned(), Bound { node, at });
    }

    fn properties(&mut self, name: &str, input: &Input, given: Option<(&Node, &At)>, path: &str) {
        let Kind::Object(properties) = &input.kind else {
            return;
        };
        for (property, inner) in properties {
            let here = given.and_then(|(node, at)| Some((node.get(property)?, at)));
            let bound = match (here, &inner.default) {
                (Some((node, at)), _) => Bound {
                    node: node.clone(),
                    at: at.below(property),
                },
                (None, Some(default)) => Bound {
                    node: default.clone(),
                    at: At::Declared(format!("{path}/properties/{property}/default")),
                },
                (None, None) => {
                    self.0.remove(&format!("{name}.{property}"));
                    continue;
                }
            };
            self.0.insert(format!("{name}.{property}"), bound);
        }
    }

    /// The JSON text of a value with what its scalars stand for
    pub(crate) fn resolved(&self, value: &Node) -> String {
        self.put(value, "", &mut Vec::new()).to_json()
    }

    /// The value with what its whole scalars stand for, at the place where they stand
    fn put(&self, value: &Node, path: &str, faults: &mut Vec<Fault>) -> Node {
        let put = match &value.value {
            Value::Scalar { text, .. } => match (input_name(text), text.contains("${{")) {
                (Some(name), _) => match self.0.get(name) {
                    Some(bound) => bound.node.value.clone(),
                    None => {
                        faults.push(Fault::new(path, no_value(name)));
                        return value.clone();
                    }
                },
                (None, true) => {
                    faults.push(Fault::new(path, EXPRESSION));
                    return value.clone();
                }
                (None, false) => {
                    if is_credential(text) {
                        faults.push(Fault {
                            hint: Some("a binding names a secret, it never holds one".to_owned()),
                            secret: true,
                            ..Fault::new(path, "the value looks like a credential")
                        });
                    }
                    return value.clone();
                }
            },
            Value::Sequence(items) => Value::Sequence(
                (items.iter().enumerate())
                    .map(|(n, item)| self.put(item, &format!("{path}/{n}"), faults))
                    .collect(),
            ),
            Value::Mapping(members) => Value::Mapping(
                (members.iter())
                    .map(|(key, item)| {
                        let path = schema::below(path, &key.text);
                        (key.clone(), self.put(item, &path, faults))
                    })
                    .collect(),
            ),
        };
        Node {
            place: value.place,
            value: put,
        }
    }
}

const EXPRESSION: &str =
    "an expression is not known when this is compiled: its text would be taken for the value";

fn no_value(name: &str) -> String {
    format!("the import input `{name}` has no value and no default")
}

/// The input that a whole scalar stands for
fn input_name(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("${{")?.strip_suffix("}}")?.trim();
    let name = inner
        .strip_prefix("github.aw.import-inputs.")
        .or_else(|| inner.strip_prefix("github.aw.inputs."))?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let word = |part: &str| !part.is_empty() && part.bytes().all(plain);
    let mut parts = name.split('.');
    let words = parts.clone().count() <= 2 && parts.all(word);
    words.then_some(name)
}

/// Prefixes by which issued tokens and keys are known
const TOKENS: &[&str] = &[
    "AIza",
    "AKIA",
    "ASIA",
    "SG.",
    "Bearer ",
    "basic ",
    "bearer ",
    "Basic ",
    "eyJ",
    "gho_",
    "ghp_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "lin_api_",
    "lin_oauth_",
    "lin_wh_",
    "npm_",
    "pypi-",
    "rk_live_",
    "rk_test_",
    "sk-",
    "sk_live_",
    "sk_test_",
    "whsec_",
    "xapp-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
];
/// Shorter texts are names that happen to begin alike
const MIN_TOKEN: usize = 20;

pub(crate) fn is_credential(text: &str) -> bool {
    let text = text.trim();
    let token = |prefix: &&str| text.starts_with(*prefix) && text.len() >= MIN_TOKEN;
    text.contains("-----BEGIN ") || TOKENS.iter().any(token)
}
