//! A workflow's `on.gateway-dispatch`: which triggers of which imported connectors it wants, narrowed by
//! which filters. Each selection becomes one frozen subscription. Compiling activates nothing.

mod imports;
mod selection;

use std::collections::{BTreeMap, BTreeSet};

use postern_contract::{API_VERSION, Digest, FilterChoice, Subscription, pointer::escape};
use postern_predicates::{Resources, Trigger};

use crate::Sources;
use crate::connector::{Connector, Ungranted, shipped};
use crate::diagnostic::{Diagnostic, Place, Severity, did_you_mean};
use crate::frontmatter::Page;
use crate::import::Bindings;
use crate::yaml::Node;

use self::imports::Importer;
use self::selection::Selection;

/// Where connectors stand in a repository
pub const CONNECTORS: &str = ".github/workflows/connectors/";

/// What a workflow compiles to
#[derive(Debug, Default)]
pub struct Compiled {
    /// One a selection, in the order of the file; none where there is an error
    pub selected: Vec<Selected>,
    /// Everything that was found
    pub diagnostics: Vec<Diagnostic>,
}

/// One frozen selection
#[derive(Debug)]
pub struct Selected {
    /// The subscription
    pub subscription: Subscription,
    /// Its digest
    pub digest: Digest,
    /// The trigger that it names
    pub trigger: Trigger,
    /// The file that declares the connector; a shipped one stands in `shipped`
    pub connector_file: String,
}

impl Compiled {
    /// Whether anything forbids writing
    pub fn has_errors(&self) -> bool {
        (self.diagnostics.iter()).any(|d| d.severity == Severity::Error)
    }
}

/// Compiles workflows of one repository
pub struct Compiler<'s> {
    /// The repository's files
    pub sources: &'s Sources,
    /// `owner/name`, where it is known
    pub repository: Option<&'s str>,
}

/// An imported connector and what was bound
struct Imported {
    connector: Connector,
    /// Nothing where `with` is at fault: the selections are judged all the same, as far as they can be
    bindings: Option<Bindings>,
    /// The file whose import it is
    from: String,
    /// Its `with` there
    with: Node,
    /// The path of it
    path: String,
}

/// One workflow under way
struct Run<'s> {
    page: &'s Page,
    imported: BTreeMap<String, Imported>,
    /// Connectors whose import is at fault: that was said already
    broken: BTreeSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Compiler<'_> {
    /// Compiles the workflow at `file`
    pub fn compile(&self, file: &str) -> Compiled {
        let first = Place { line: 1, column: 1 };
        let only = |found| Compiled {
            selected: Vec::new(),
            diagnostics: vec![found],
        };
        let Some(text) = self.sources.get(file) else {
            let message = match self.sources.refused(file) {
                Some(why) => format!("`{file}`: {why}"),
                None => "there is no such file".to_owned(),
            };
            return only(Diagnostic::error("no-file", file, first, "", message));
        };
        let page = match Page::read(file, text) {
            Ok(page) => page,
            Err(found) => return only(*found),
        };
        let mut importer = Importer::new(self.sources, file);
        importer.follow(&page, Some(&Bindings::default()));
        let mut run = Run {
            page: &page,
            imported: importer.imported,
            broken: importer.broken,
            diagnostics: importer.diagnostics,
        };
        run.not_compiled();
        let selections = run.selections();
        let mut selected = Vec::new();
        for selection in &selections {
            selected.extend(run.select(selection, self.repository));
        }
        run.experimental(&selections);
        let mut diagnostics = run.diagnostics;
        if self.repository.is_none() && !selected.is_empty() {
            let message = "the repository is not known, so that no admission can name it";
            let found = Diagnostic::error("no-repository", file, first, "", message).warning();
            diagnostics.push(found.hint("pass --repository OWNER/NAME".to_owned()));
        }
        diagnostics
            .sort_by(|a, b| (a.severity, &a.file, a.place).cmp(&(b.severity, &b.file, b.place)));
        let mut once: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len());
        for found in diagnostics {
            let mut beside = (once.iter().rev())
                .take_while(|other| (&other.file, other.place) == (&found.file, found.place));
            if !beside.any(|other| *other == found) {
                once.push(found);
            }
        }
        let mut compiled = Compiled {
            selected,
            diagnostics: once,
        };
        // All of a workflow or nothing: a part of it is not what its author wrote
        if compiled.has_errors() {
            compiled.selected.clear();
        }
        compiled
    }
}

impl Run<'_> {
    fn error(&mut self, code: &'static str, path: &str, message: String, hint: Option<String>) {
        (self.diagnostics).push(self.page.error(code, path, message).hint(hint));
    }

    fn select(&mut self, selection: &Selection, repository: Option<&str>) -> Option<Selected> {
        let Some(imported) = self.imported.get(&selection.connector) else {
            self.not_imported(selection);
            return None;
        };
        let connector = &imported.connector;
        let Ok(name) = selection.trigger.parse() else {
            let message = format!("`{}` is no trigger's name", selection.trigger);
            let hint = "triggers are selected one by one, by name".to_owned();
            self.error("no-trigger", &selection.path, message, Some(hint));
            return None;
        };
        if !connector.triggers().contains(&selection.trigger.as_str()) {
            let message = format!(
                "`{}` declares no trigger `{}`",
                connector.id, selection.trigger
            );
            let hint = did_you_mean(&selection.trigger, connector.triggers().into_iter());
            self.error("no-trigger", &selection.path, message, hint);
            return None;
        }
        let bindings = imported.bindings.as_ref()?;
        let grants = match connector.grants(&selection.trigger, bindings) {
            Ok(grants) => grants,
            Err(found) => {
                let found = found.into_iter().map(|at| imported.drawn(at));
                self.diagnostics.extend(found);
                return None;
            }
        };
        if let Some(empty) = empty(&grants) {
            let message = format!(
                "nothing of `{empty}` is granted, so that `{}` could never match",
                selection.trigger
            );
            let hint = format!("give the import of `{}` its `with`", connector.id);
            self.error("nothing-granted", &selection.path, message, Some(hint));
            return None;
        }
        let trigger = match connector.compile(&selection.trigger, grants) {
            Ok(trigger) => trigger,
            Err(found) => {
                self.diagnostics.push(*found);
                return None;
            }
        };
        let (connector, connector_file) = (connector.id.clone(), connector.file.clone());
        let filters = self.filters(selection, &trigger)?;
        let subscription = Subscription {
            api_version: API_VERSION.to_owned(),
            kind: "Subscription".to_owned(),
            workflow: self.page.file.clone(),
            repository: repository.map(str::to_owned),
            connector,
            trigger: name,
            trigger_digest: trigger.digest(),
            profile: trigger.profile().to_owned(),
            profile_digest: trigger.profile_digest(),
            binding: trigger.binding_digest(),
            filters,
            operational: false,
        };
        match subscription.digest() {
            Ok(digest) => Some(Selected {
                subscription,
                digest,
                trigger,
                connector_file,
            }),
            Err(e) => {
                self.error("subscription", &selection.path, e.to_string(), None);
                None
            }
        }
    }

    fn not_imported(&mut self, selection: &Selection) {
        let id = &selection.connector;
        if self.broken.contains(id) {
            return;
        }
        let known = self.imported.keys().chain(&self.broken);
        // A shipped connector is what was meant, however near another's name is
        let near = did_you_mean(id, known.map(String::as_str))
            .filter(|_| shipped().all(|(shipped, _)| shipped != id));
        let hint = near
            .unwrap_or_else(|| format!("add to `imports`: {{uses: {CONNECTORS}{id}.md, with: …}}"));
        let message = format!("the workflow imports no connector `{id}`");
        self.error("not-imported", &selection.path, message, Some(hint));
    }

    /// The chosen filters, held to what the trigger offers, each on its own
    fn filters(
        &mut self,
        selection: &Selection,
        trigger: &Trigger,
    ) -> Option<BTreeMap<String, FilterChoice>> {
        let mut chosen = BTreeMap::new();
        let mut sound = true;
        for (key, value) in &selection.filters {
            let path = format!("{}/{}", selection.filters_path, escape(&key.text));
            match filter(trigger, &key.text, value) {
                Ok(choice) => drop(chosen.insert(key.text.clone(), choice)),
                Err(message) => {
                    let unknown = !trigger.filters().any(|known| known == key.text);
                    let hint = unknown.then(|| did_you_mean(&key.text, trigger.filters()));
                    self.error("filter", &path, message, hint.flatten());
                    sound = false;
                }
            }
        }
        sound.then_some(chosen)
    }
}

/// One chosen filter
fn filter(trigger: &Trigger, name: &str, value: &Node) -> Result<FilterChoice, String> {
    let mut expression = false;
    value.scalars("", &mut |_, text| expression |= text.contains("${{"));
    if expression {
        return Err(
            "an expression is not known when this is compiled: its text would be compared"
                .to_owned(),
        );
    }
    let text = value.to_json();
    let declared = format!("{{{}:{text}}}", serde_json::Value::from(name));
    let document = postern_contract::Document::parse(declared.into_bytes().into())
        .map_err(|e| e.to_string())?;
    (trigger.choose_declared(document.root())).map_err(|invalid| invalid.message)?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

impl Imported {
    /// The finding, at the import that gave the value where it did
    fn drawn(&self, ungranted: Ungranted) -> Diagnostic {
        match ungranted {
            Ungranted::Declared(found) => found,
            Ungranted::Given(below, misfit) => {
                let place = self.with.locate(&below);
                let path = format!("{}{below}", self.path);
                Diagnostic::error("collection", &self.from, place, &path, misfit.message)
                    .conceal(misfit.secret)
            }
        }
    }
}

fn empty(grants: &Resources) -> Option<&str> {
    grants
        .iter()
        .find(|(_, members)| members.is_empty())
        .map(|(name, _)| name.as_str())
}
