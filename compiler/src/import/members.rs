//! The exact members of a collection: a list, or an input's whole value. No wildcard, no expression, no
//! number that would be rounded.

use postern_contract::{Document, Scalar, pointer::escape};
use postern_predicates::Binding;

use super::{Bindings, EXPRESSION, input_name, is_credential, no_value};
use crate::yaml::Node;

/// Where a value stands
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// At a pointer into the declaring file
    Declared(String),
    /// At a pointer below the import's `with`
    Given(String),
}

impl At {
    pub(super) fn below(&self, key: &str) -> Self {
        let below = |path: &str| format!("{path}/{}", escape(key));
        match self {
            Self::Declared(path) => Self::Declared(below(path)),
            Self::Given(path) => Self::Given(below(path)),
        }
    }
}

/// What is no member, and where it stands
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) at: At,
    pub(crate) message: String,
    pub(crate) secret: bool,
}

impl Misfit {
    fn new(at: &At, message: impl Into<String>) -> Self {
        Self {
            at: at.clone(),
            message: message.into(),
            secret: false,
        }
    }
}

impl Bindings {
    /// The members of the collection that `node` declares at `path`; every misfit is found
    pub(crate) fn members(&self, path: &str, node: &Node) -> Result<Vec<Scalar>, Vec<Misfit>> {
        let (node, at) = self
            .stands_for(node, At::Declared(path.to_owned()))
            .map_err(|e| vec![e])?;
        let Some(items) = node.sequence() else {
            return Err(vec![Misfit::new(&at, "want a list of exact members")]);
        };
        let (mut members, mut misfits) = (Vec::with_capacity(items.len()), Vec::new());
        for (n, item) in items.iter().enumerate() {
            let found = self
                .stands_for(item, at.below(&n.to_string()))
                .and_then(|(item, at)| member(item, &at));
            match found {
                Ok(member) => members.push(member),
                Err(misfit) => misfits.push(misfit),
            }
        }
        if misfits.is_empty() {
            Ok(members)
        } else {
            Err(misfits)
        }
    }

    fn stands_for<'n>(&'n self, node: &'n Node, at: At) -> Result<(&'n Node, At), Misfit> {
        match node.text().and_then(input_name) {
            Some(name) => match self.0.get(name) {
                Some(bound) => Ok((&bound.node, bound.at.clone())),
                None => Err(Misfit::new(&at, no_value(name))),
            },
            None => Ok((node, at)),
        }
    }
}

fn member(node: &Node, at: &At) -> Result<Scalar, Misfit> {
    if let Some(text) = node.text() {
        if is_credential(text) {
            return Err(Misfit {
                secret: true,
                ..Misfit::new(at, "the member looks like a credential")
            });
        }
        if text.contains("${{") {
            return Err(Misfit::new(at, EXPRESSION));
        }
        if text.is_empty() {
            return Err(Misfit::new(at, "an empty member grants nothing"));
        }
        if text.contains('*') {
            let message = format!("`{text}`: members are exact, there are no wildcards");
            return Err(Misfit::new(at, message));
        }
    }
    // The one reader of bindings judges numbers by their exact value
    let text = format!(r#"{{"resources":{{"members":[{}]}}}}"#, node.to_json());
    let document = Document::parse(text.into_bytes().into());
    let document = document.map_err(|e| Misfit::new(at, e.to_string()))?;
    let read = Binding::parse(&document).map_err(|e| Misfit::new(at, e.message))?;
    let mut members = read.into_values().flatten();
    match (members.next(), members.next()) {
        (Some(member), None) => Ok(member),
        _ => Err(Misfit::new(at, "want a scalar")),
    }
}
