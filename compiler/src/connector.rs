//! A connector's declaration: its triggers, the collections that they are bound to, and the typed bindings
//! that an import may give. Other sections of the specification are kept out of the way and not judged.

use std::collections::BTreeMap;

use postern_contract::Name;
use postern_predicates::{Invalid, Resources, Trigger};
use postern_profiles::Catalogue;

use crate::diagnostic::{Diagnostic, Place, Severity, did_you_mean};
use crate::frontmatter;
use crate::import::{Bindings, Schema};
use crate::yaml::Node;

static SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/connectors.rs"));

/// The sections that the specification gives a connector
const SECTIONS: &[&str] = &[
    "bounds",
    "credentials",
    "docs",
    "endpoints",
    "experimental",
    "resources",
    "safe-outputs",
    "tools",
    "triggers",
];

/// The connectors that are compiled in: id and text
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.iter().copied()
}

/// A parsed declaration
#[derive(Debug)]
pub struct Connector {
    /// Its id
    pub id: Name,
    /// The file that it was read from
    pub file: String,
    root: Node,
    schema: Schema,
}

impl Connector {
    /// Reads the one connector of a file
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let error = |code, place, path: &str, message: String, hint| Diagnostic {
            code,
            severity: Severity::Error,
            file: file.to_owned(),
            place,
            path: path.to_owned(),
            message,
            hint,
        };
        let root = frontmatter::read(text)
            .map_err(|e| vec![error("frontmatter", e.place, "", e.message, None)])?;
        let Some(connectors) = root.get("connectors").and_then(Node::mapping) else {
            let message = "want `connectors`, a mapping of one connector".to_owned();
            return Err(vec![error(
                "connector",
                root.locate("/connectors"),
                "/connectors",
                message,
                None,
            )]);
        };
        let [(id, declared)] = connectors else {
            let message = format!(
                "a file declares one connector, this one {}",
                connectors.len()
            );
            return Err(vec![error(
                "connector",
                root.locate("/connectors"),
                "/connectors",
                message,
                None,
            )]);
        };
        let mut found = Vec::new();
        for (key, _) in declared.mapping().unwrap_or_default() {
            if !SECTIONS.contains(&key.text.as_str()) {
                found.push(error(
                    "connector-section",
                    key.place,
                    &format!("/connectors/{}/{}", id.text, key.text),
                    format!("unknown section `{}`", key.text),
                    did_you_mean(&key.text, SECTIONS.iter().copied()),
                ));
            }
        }
        let name = id.text.parse::<Name>().map_err(|e| {
            vec![error(
                "connector-id",
                id.place,
                "/connectors",
                e.to_string(),
                None,
            )]
        })?;
        let schema = match Schema::read(root.get("import-schema")) {
            Ok(schema) => schema,
            Err((path, message)) => {
                let path = format!("/import-schema{path}");
                found.push(error(
                    "import-schema",
                    root.locate(&path),
                    &path,
                    message,
                    None,
                ));
                Schema::default()
            }
        };
        if found.is_empty() {
            Ok(Self {
                id: name,
                file: file.to_owned(),
                root,
                schema,
            })
        } else {
            Err(found)
        }
    }

    /// What an import may bind
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    fn section(&self, name: &str) -> Option<&Node> {
        self.root
            .get("connectors")?
            .get(self.id.as_str())?
            .get(name)
    }

    /// The names of its triggers, in the order of the file
    pub fn triggers(&self) -> Vec<&str> {
        let triggers = self.section("triggers").and_then(Node::mapping);
        (triggers.unwrap_or_default().iter())
            .map(|(key, _)| key.text.as_str())
            .collect()
    }

    /// A diagnostic at a place of this file
    fn error(&self, code: &'static str, path: String, message: String) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            file: self.file.clone(),
            place: self.root.locate(&path),
            path,
            message,
            hint: None,
        }
    }

    /// Compiles one trigger with the members that its collections are bound to
    pub fn compile(&self, trigger: &str, grants: Resources) -> Result<Trigger, Box<Diagnostic>> {
        let base = format!(
            "/connectors/{}/triggers/{}",
            self.id,
            postern_contract::pointer::escape(trigger)
        );
        let declared = self.section("triggers").and_then(|t| t.get(trigger));
        let Some(declared) = declared else {
            let known = self.triggers();
            let mut found = self.error(
                "no-trigger",
                format!("/connectors/{}/triggers", self.id),
                format!("`{}` declares no trigger `{trigger}`", self.id),
            );
            found.hint = did_you_mean(trigger, known.into_iter());
            return Err(Box::new(found));
        };
        let profile = declared.get("verificationProfile").and_then(Node::text);
        let digest = match profile.and_then(|id| Catalogue::embedded().get(id)) {
            Some(profile) => profile.digest(),
            None => {
                let given = profile.unwrap_or_default();
                let mut found = self.error(
                    "no-profile",
                    format!("{base}/verificationProfile"),
                    format!("no verification profile `{given}`: nothing could activate this"),
                );
                let known = Catalogue::embedded().iter().map(|p| p.id());
                found.hint = did_you_mean(given, known);
                return Err(Box::new(found));
            }
        };
        if declared.get("resourceOrigins").is_none() {
            let message = "a trigger that the gateway dispatches fixes its `resourceOrigins`";
            return Err(Box::new(self.error("no-origins", base, message.to_owned())));
        }
        let text = self.declaration(trigger, declared);
        let document = postern_contract::Document::parse(text.into_bytes().into())
            .map_err(|e| Box::new(self.error("trigger", base.clone(), e.to_string())))?;
        Trigger::compile(&document, digest, grants).map_err(|invalid: Invalid| {
            let path = format!("{base}{}", invalid.path);
            Box::new(self.error("trigger", path, invalid.message))
        })
    }

    /// The declaration with the names that its place in the file gives it
    fn declaration(&self, trigger: &str, declared: &Node) -> String {
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        let body = declared.to_json();
        let rest = body.strip_prefix('{').unwrap_or("}");
        let comma = if rest == "}" { "" } else { "," };
        format!(
            "{{\"connector\":{},\"trigger\":{}{comma}{rest}",
            quote(self.id.as_str()),
            quote(trigger)
        )
    }

    /// The collections that a trigger's resources name
    pub fn collections(&self, trigger: &str) -> Vec<String> {
        let declared = self.section("triggers").and_then(|t| t.get(trigger));
        let resources = declared
            .and_then(|t| t.get("resources"))
            .and_then(Node::mapping);
        let mut names: Vec<String> = (resources.unwrap_or_default().iter())
            .filter_map(|(_, collection)| collection.text().map(str::to_owned))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// The members of the collections that a trigger names, with what an import has bound
    pub(crate) fn grants(
        &self,
        trigger: &str,
        bindings: &Bindings,
    ) -> Result<Resources, Vec<Diagnostic>> {
        let mut grants = BTreeMap::new();
        let mut found = Vec::new();
        for name in self.collections(trigger) {
            let path = format!("/connectors/{}/resources/{name}", self.id);
            let Some(node) = self.section("resources").and_then(|r| r.get(&name)) else {
                let message = format!("`resources` declares no collection `{name}`");
                let path = format!("/connectors/{}/resources", self.id);
                found.push(self.error("no-collection", path, message));
                continue;
            };
            match bindings.members(node) {
                Ok(members) => drop(grants.insert(name, members)),
                Err(message) => found.push(self.error("collection", path, message)),
            }
        }
        if found.is_empty() {
            Ok(grants)
        } else {
            Err(found)
        }
    }

    /// The grants of the declaration as it stands, with the defaults of its import schema
    pub fn own_grants(&self, trigger: &str) -> Result<Resources, Vec<Diagnostic>> {
        self.grants(trigger, &Bindings::defaults(&self.schema))
    }

    /// Where the connector's triggers stand
    pub fn place(&self) -> Place {
        self.root
            .locate(&format!("/connectors/{}/triggers", self.id))
    }
}
