//! A workflow's `on.gateway-dispatch`: which triggers of which imported connectors it wants, narrowed by
//! which filters. Each selection becomes one frozen subscription.

use std::collections::{BTreeMap, HashSet};

use postern_contract::{API_VERSION, Digest, FilterChoice, Subscription, pointer::escape};
use postern_predicates::{Resources, Trigger};

use crate::Sources;
use crate::connector::{Connector, shipped};
use crate::diagnostic::{Diagnostic, Place, Severity, did_you_mean};
use crate::frontmatter;
use crate::import::Bindings;
use crate::yaml::Node;

/// Where connectors stand in a repository
pub const CONNECTORS: &str = ".github/workflows/connectors/";
/// The deepest chain of imports
const MAX_IMPORTS: usize = 8;

/// What a workflow compiles to
#[derive(Debug, Default)]
pub struct Compiled {
    /// One a selection, in the order of the file
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
}

/// One workflow under way
struct Run<'s> {
    sources: &'s Sources,
    file: &'s str,
    root: &'s Node,
    imported: BTreeMap<String, Imported>,
    seen: HashSet<String>,
    diagnostics: Vec<Diagnostic>,
}

impl Compiler<'_> {
    /// Compiles the workflow at `file`
    pub fn compile(&self, file: &str) -> Compiled {
        let mut compiled = Compiled::default();
        let missing = |code, place, message: String| Diagnostic {
            code,
            severity: Severity::Error,
            file: file.to_owned(),
            place,
            path: String::new(),
            message,
            hint: None,
        };
        let first = Place { line: 1, column: 1 };
        let Some(text) = self.sources.get(file) else {
            let message = "there is no such file".to_owned();
            compiled
                .diagnostics
                .push(missing("no-file", first, message));
            return compiled;
        };
        let root = match frontmatter::read(text) {
            Ok(root) => root,
            Err(e) => {
                compiled
                    .diagnostics
                    .push(missing("frontmatter", e.place, e.message));
                return compiled;
            }
        };
        let mut run = Run {
            sources: self.sources,
            file,
            root: &root,
            imported: BTreeMap::new(),
            seen: HashSet::new(),
            diagnostics: Vec::new(),
        };
        run.imports(file, &root, "/imports", 1);
        let selections = run.selections();
        for selection in selections {
            if let Some(selected) = run.select(&selection, self.repository) {
                compiled.selected.push(selected);
            }
        }
        if self.repository.is_none() && !compiled.selected.is_empty() {
            run.diagnostics.push(Diagnostic {
                severity: Severity::Warning,
                hint: Some("pass --repository OWNER/NAME".to_owned()),
                ..missing(
                    "no-repository",
                    first,
                    "the repository is not known, so that no admission can name it".to_owned(),
                )
            });
        }
        compiled.diagnostics = run.diagnostics;
        compiled
            .diagnostics
            .sort_by(|a, b| (a.severity, &a.file, a.place).cmp(&(b.severity, &b.file, b.place)));
        compiled
    }
}

/// A trigger that a workflow selects
struct Selection {
    connector: String,
    trigger: String,
    /// The entry in the workflow
    path: String,
    filters: Option<Node>,
}

impl Run<'_> {
    fn error(&mut self, code: &'static str, path: &str, message: String, hint: Option<String>) {
        self.diagnostics.push(Diagnostic {
            code,
            severity: Severity::Error,
            file: self.file.to_owned(),
            place: self.root.locate(path),
            path: path.to_owned(),
            message,
            hint,
        });
    }

    /// Follows imports, the nearest first; `at` is their place in the workflow itself
    fn imports(&mut self, file: &str, holder: &Node, at: &str, depth: usize) {
        let Some(imports) = holder.get("imports") else {
            return;
        };
        let (list, base) = match (
            imports.sequence(),
            imports.get("aw").and_then(Node::sequence),
        ) {
            (Some(list), _) => (list, at.to_owned()),
            (None, Some(list)) => (list, format!("{at}/aw")),
            (None, None) => {
                return self.error("import", at, "want a list of imports".to_owned(), None);
            }
        };
        for (n, entry) in list.iter().enumerate() {
            // Below an imported file, the workflow's own import is the place to look at
            let path = if depth == 1 {
                format!("{base}/{n}")
            } else {
                at.to_owned()
            };
            self.import(file, entry, &path, depth);
        }
    }

    fn import(&mut self, from: &str, entry: &Node, path: &str, depth: usize) {
        let target = entry.text().or_else(|| {
            let uses = entry.get("uses").or_else(|| entry.get("path"));
            uses.and_then(Node::text)
        });
        for (key, _) in entry.mapping().unwrap_or_default() {
            if !["uses", "path", "with", "inputs"].contains(&key.text.as_str()) {
                self.error("import", path, format!("unknown key `{}`", key.text), None);
            }
        }
        let Some(target) = target else {
            return self.error(
                "import",
                path,
                "want a path, or `uses` and `with`".to_owned(),
                None,
            );
        };
        let optional = target.ends_with('?');
        let target = target
            .trim_end_matches('?')
            .split('#')
            .next()
            .unwrap_or_default();
        let file = match resolve(from, target) {
            Ok(file) => file,
            Err(message) => return self.error("import", path, message, None),
        };
        if !self.seen.insert(file.clone()) {
            let message = format!("`{file}` is imported twice, or imports itself");
            return self.error("import-twice", path, message, None);
        }
        if depth > MAX_IMPORTS {
            return self.error(
                "import",
                path,
                format!("imports deeper than {MAX_IMPORTS}"),
                None,
            );
        }
        let id = file
            .strip_prefix(CONNECTORS)
            .and_then(|f| f.strip_suffix(".md"));
        let (text, shown) = match (self.sources.get(&file), id) {
            (Some(text), _) => (text.to_owned(), file.clone()),
            (None, Some(id)) => match shipped().find(|(shipped, _)| *shipped == id) {
                Some((_, text)) => (text.to_owned(), format!("shipped/{id}.md")),
                None => {
                    let hint = did_you_mean(id, shipped().map(|(id, _)| id));
                    let message =
                        format!("there is no `{file}`, and no connector `{id}` is shipped");
                    return self.error("no-file", path, message, hint);
                }
            },
            (None, None) if optional => return,
            (None, None) => {
                return self.error("no-file", path, format!("there is no `{file}`"), None);
            }
        };
        let root = match frontmatter::read(&text) {
            Ok(root) => root,
            // A shared file may be Markdown alone; a connector is refused where it is read below
            Err(_) if id.is_none() => return,
            Err(e) => return self.error("import", path, format!("`{shown}`: {}", e.message), None),
        };
        if root.get("connectors").is_some() {
            self.connector(&shown, &text, entry, path);
        }
        self.imports(&file, &root, path, depth + 1);
    }

    fn connector(&mut self, file: &str, text: &str, entry: &Node, path: &str) {
        let connector = match Connector::read(file, text) {
            Ok(connector) => connector,
            Err(mut found) => return self.diagnostics.append(&mut found),
        };
        let key = if entry.get("with").is_some() {
            "with"
        } else {
            "inputs"
        };
        let bindings = match Bindings::read(connector.schema(), entry.get(key)) {
            Ok(bindings) => Some(bindings),
            Err(faults) => {
                for (below, message) in faults {
                    self.error(
                        "import-binding",
                        &format!("{path}/{key}{below}"),
                        message,
                        None,
                    );
                }
                None
            }
        };
        let id = connector.id.to_string();
        if self.imported.contains_key(&id) {
            let message = format!("the connector `{id}` is imported twice");
            return self.error("import-twice", path, message, None);
        }
        self.imported.insert(
            id,
            Imported {
                connector,
                bindings,
            },
        );
    }

    /// Everything under `on` that selects a trigger
    fn selections(&mut self) -> Vec<Selection> {
        let mut found = Vec::new();
        let Some(on) = self.root.get("on").and_then(Node::mapping) else {
            return found;
        };
        for (key, value) in on {
            if key.text == "gateway-dispatch" {
                self.gateway_dispatch(value, &mut found);
            } else if let Some((connector, trigger)) = self.qualified(&key.text) {
                let path = format!("/on/{}", escape(&key.text));
                let filters = self.filters_of(value, &path);
                if let Ok(filters) = filters {
                    found.push(Selection {
                        connector,
                        trigger,
                        path,
                        filters,
                    });
                }
            }
        }
        let mut seen = HashSet::new();
        let (kept, twice): (Vec<_>, Vec<_>) = (found.into_iter())
            .partition(|s| seen.insert((s.connector.clone(), s.trigger.clone())));
        for selection in twice {
            let message = format!(
                "`{}` of `{}` is selected twice",
                selection.trigger, selection.connector
            );
            self.error("selected-twice", &selection.path, message, None);
        }
        kept
    }

    /// `<id>-<trigger>` of an imported connector
    fn qualified(&self, key: &str) -> Option<(String, String)> {
        self.imported.values().find_map(|imported| {
            let id = imported.connector.id.as_str();
            let trigger = key.strip_prefix(id)?.strip_prefix('-')?;
            (imported.connector.triggers().contains(&trigger))
                .then(|| (id.to_owned(), trigger.to_owned()))
        })
    }

    fn gateway_dispatch(&mut self, node: &Node, found: &mut Vec<Selection>) {
        let base = "/on/gateway-dispatch";
        let Some(connectors) = node.mapping() else {
            return self.error(
                "selection",
                base,
                "want a mapping of connectors".to_owned(),
                None,
            );
        };
        for (connector, list) in connectors {
            let path = format!("{base}/{}", escape(&connector.text));
            let Some(items) = list.sequence().filter(|items| !items.is_empty()) else {
                self.error(
                    "selection",
                    &path,
                    "want a nonempty list of triggers".to_owned(),
                    None,
                );
                continue;
            };
            for (n, item) in items.iter().enumerate() {
                let path = format!("{path}/{n}");
                let (trigger, filters) = match (item.text(), item.mapping()) {
                    (Some(name), _) => (name.to_owned(), Ok(None)),
                    (None, Some([(key, value)])) => {
                        let inner = format!("{path}/{}", escape(&key.text));
                        (key.text.clone(), self.filters_of(value, &inner))
                    }
                    _ => {
                        let message =
                            "want a trigger's name, or one name with `filters`".to_owned();
                        self.error("selection", &path, message, None);
                        continue;
                    }
                };
                if let Ok(filters) = filters {
                    found.push(Selection {
                        connector: connector.text.clone(),
                        trigger,
                        path,
                        filters,
                    });
                }
            }
        }
    }

    /// The `filters` of a selection; a fault is noted
    fn filters_of(&mut self, value: &Node, path: &str) -> Result<Option<Node>, ()> {
        if value.is_null() {
            return Ok(None);
        }
        match value.mapping() {
            Some([(key, filters)]) if key.text == "filters" && filters.mapping().is_some() => {
                Ok(Some(filters.clone()))
            }
            _ => {
                self.error(
                    "selection",
                    path,
                    "want `filters`, a mapping".to_owned(),
                    None,
                );
                Err(())
            }
        }
    }

    fn select(&mut self, selection: &Selection, repository: Option<&str>) -> Option<Selected> {
        let Some(imported) = self.imported.get(&selection.connector) else {
            let message = format!(
                "the workflow imports no connector `{}`",
                selection.connector
            );
            let hint = format!(
                "add to `imports`: {{uses: {CONNECTORS}{}.md, with: …}}",
                selection.connector
            );
            self.error("not-imported", &selection.path, message, Some(hint));
            return None;
        };
        let connector = &imported.connector;
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
            Err(mut found) => {
                self.diagnostics.append(&mut found);
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
        let (id, file) = (connector.id.clone(), connector.file.clone());
        let filters = self.filters(selection, &trigger)?;
        let subscription = Subscription {
            api_version: API_VERSION.to_owned(),
            kind: "Subscription".to_owned(),
            workflow: self.file.to_owned(),
            repository: repository.map(str::to_owned),
            connector: id,
            trigger: selection.trigger.parse().ok()?,
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
                connector_file: file,
            }),
            Err(e) => {
                self.error("subscription", &selection.path, e.to_string(), None);
                None
            }
        }
    }

    /// The chosen filters, held to what the trigger offers
    fn filters(
        &mut self,
        selection: &Selection,
        trigger: &Trigger,
    ) -> Option<BTreeMap<String, FilterChoice>> {
        let Some(node) = &selection.filters else {
            return Some(BTreeMap::new());
        };
        let base = if self.root.locate(&format!("{}/filters", selection.path))
            == self.root.locate(&selection.path)
        {
            format!("{}/{}/filters", selection.path, escape(&selection.trigger))
        } else {
            format!("{}/filters", selection.path)
        };
        let document = match node.document() {
            Ok(document) => document,
            Err(e) => {
                self.error("filter", &base, e.message, None);
                return None;
            }
        };
        if let Err(invalid) = trigger.choose_declared(document.root()) {
            let below = invalid
                .path
                .strip_prefix("/filters_chosen")
                .unwrap_or_default();
            let given = below.strip_prefix('/').unwrap_or_default();
            let hint = (!trigger.filters().any(|f| f == given))
                .then(|| did_you_mean(given, trigger.filters()))
                .flatten();
            self.error("filter", &format!("{base}{below}"), invalid.message, hint);
            return None;
        }
        match serde_json::from_str(&node.to_json()) {
            Ok(filters) => Some(filters),
            Err(e) => {
                self.error("filter", &base, e.to_string(), None);
                None
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

/// The file that an import means, from the repository's root: never outside of it, never a network away
fn resolve(from: &str, target: &str) -> Result<String, String> {
    let remote = !target.starts_with(['.', '/']) && target.contains('@');
    if remote || target.contains("://") {
        return Err(format!(
            "`{target}`: this version resolves local imports alone"
        ));
    }
    if target.ends_with(".lock.yml") {
        return Err(format!("`{target}`: a compiled workflow is no source"));
    }
    let rooted = target.strip_prefix('/').unwrap_or(target);
    if target.starts_with('/') && !rooted.starts_with(".github/") && !rooted.starts_with(".agents/")
    {
        return Err(format!(
            "`{target}`: an absolute import begins with /.github/ or /.agents/"
        ));
    }
    let mut parts: Vec<&str> = if target.starts_with('/') || target.starts_with(".github/") {
        Vec::new()
    } else {
        let mut parts: Vec<&str> = from.split('/').collect();
        parts.pop();
        parts
    };
    for part in rooted.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(format!("`{target}` leads out of the repository"));
                }
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}
