//! A connector's declaration: its triggers, the collections that they are bound to, and the typed bindings
//! that an import may give. Sections of the specification that this version does not compile are kept out
//! of the way and not judged.

mod check;
mod declaration;

use std::collections::BTreeMap;

use postern_contract::{Digest, Document, Name, pointer::escape};
use postern_predicates::{Resources, Trigger};
use postern_profiles::Catalogue;

use crate::diagnostic::{Diagnostic, Place, did_you_mean};
use crate::frontmatter::Page;
use crate::import::{At, Bindings, Misfit, Schema};
use crate::yaml::Node;

static SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/connectors.rs"));

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
    page: Page,
    schema: Schema,
}

/// What is no member of a collection: at fault is the declaration, or who bound it
pub(crate) enum Ungranted {
    /// The declaration, with the finding
    Declared(Diagnostic),
    /// The import's `with`, at a path below it
    Given(String, Misfit),
}

impl Connector {
    /// Reads the one connector of a file, and judges every trigger, selected or not
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let page = Page::read(file, text).map_err(|found| vec![*found])?;
        let (id, mut found) = check::sections(&page);
        let schema = Schema::read(page.root.get("import-schema")).unwrap_or_else(|faults| {
            found.extend(faults.into_iter().map(|fault| {
                let path = format!("/import-schema{}", fault.path);
                (page.error("import-schema", &path, fault.message))
                    .hint(fault.hint)
                    .conceal(fault.secret)
            }));
            Schema::default()
        });
        let Some(id) = id else { return Err(found) };
        let connector = Self {
            id,
            file: file.to_owned(),
            page,
            schema,
        };
        for (key, declared) in connector.declared() {
            found.append(&mut check::trigger(&connector, &key.text, declared));
        }
        if found.is_empty() {
            Ok(connector)
        } else {
            Err(found)
        }
    }

    /// What an import may bind
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Node> {
        self.page
            .root
            .get("connectors")?
            .get(self.id.as_str())?
            .get(name)
    }

    fn declared(&self) -> &[(crate::yaml::Key, Node)] {
        let triggers = self.section("triggers").and_then(Node::mapping);
        triggers.unwrap_or_default()
    }

    /// The names of its triggers, in the order of the file
    pub fn triggers(&self) -> Vec<&str> {
        self.declared()
            .iter()
            .map(|(key, _)| key.text.as_str())
            .collect()
    }

    /// Whether it says of itself that it may change
    pub fn experimental(&self) -> bool {
        self.section("experimental").map(Node::to_json).as_deref() == Some("true")
    }

    /// Where a trigger is declared
    fn base(&self, trigger: &str) -> String {
        format!("/connectors/{}/triggers/{}", self.id, escape(trigger))
    }

    /// Compiles one trigger with the members that its collections are bound to
    pub fn compile(&self, trigger: &str, grants: Resources) -> Result<Trigger, Box<Diagnostic>> {
        let base = self.base(trigger);
        let error = |code, path: &str, message: String| self.page.error(code, path, message);
        let declared = self.section("triggers").and_then(|t| t.get(trigger));
        let Some(declared) = declared else {
            let path = format!("/connectors/{}/triggers", self.id);
            let message = format!("`{}` declares no trigger `{trigger}`", self.id);
            let hint = did_you_mean(trigger, self.triggers().into_iter());
            return Err(Box::new(error("no-trigger", &path, message).hint(hint)));
        };
        let given = (declared.get("verificationProfile"))
            .and_then(Node::text)
            .unwrap_or_default();
        let Some(profile) = Catalogue::embedded().get(given) else {
            let path = format!("{base}/verificationProfile");
            let message = format!("no verification profile `{given}`: nothing could activate this");
            let known = Catalogue::embedded().iter().map(|p| p.id());
            let found = error("no-profile", &path, message).hint(did_you_mean(given, known));
            return Err(Box::new(found));
        };
        if declared.get("resourceOrigins").is_none() {
            let message = "a trigger that the gateway dispatches fixes its `resourceOrigins`";
            return Err(Box::new(error("no-origins", &base, message.to_owned())));
        }
        // A profile has one name in what is frozen, whichever alias was written
        let text = declaration::whole(self.id.as_str(), trigger, declared, Some(profile.id()));
        freeze(text, profile.digest(), grants).map_err(|(path, message)| {
            Box::new(error("trigger", &format!("{base}{path}"), message))
        })
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
    ) -> Result<Resources, Vec<Ungranted>> {
        let mut grants = BTreeMap::new();
        let mut found = Vec::new();
        for name in self.collections(trigger) {
            let path = format!("/connectors/{}/resources/{}", self.id, escape(&name));
            let Some(node) = self.section("resources").and_then(|r| r.get(&name)) else {
                continue;
            };
            match bindings.members(&path, node) {
                Ok(members) => drop(grants.insert(name, members)),
                Err(misfits) => found.extend(misfits.into_iter().map(|misfit| {
                    match &misfit.at {
                        At::Given(path) => Ungranted::Given(path.clone(), misfit),
                        At::Declared(path) => Ungranted::Declared(
                            (self.page.error("collection", path, &*misfit.message))
                                .conceal(misfit.secret),
                        ),
                    }
                })),
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
        let grants = self.grants(trigger, &Bindings::defaults(&self.schema));
        grants.map_err(|found| {
            (found.into_iter())
                .map(|ungranted| match ungranted {
                    Ungranted::Declared(found) => found,
                    // Nothing is given here
                    Ungranted::Given(path, misfit) => {
                        self.page.error("collection", &path, misfit.message)
                    }
                })
                .collect()
        })
    }

    /// Where the connector's triggers stand
    pub fn place(&self) -> Place {
        self.page
            .root
            .locate(&format!("/connectors/{}/triggers", self.id))
    }
}

/// Compiles a declaration's text; a fault with its path below the declaration
fn freeze(text: String, profile: Digest, grants: Resources) -> Result<Trigger, (String, String)> {
    let document =
        Document::parse(text.into_bytes().into()).map_err(|e| (String::new(), e.to_string()))?;
    Trigger::compile(&document, profile, grants).map_err(|e| (e.path, e.message))
}
