//! Follows a workflow's imports to connectors, inside the repository alone: no network, no way out, no
//! cycle. A connector of the repository is never replaced by a shipped one.

use std::collections::{BTreeMap, BTreeSet};

use postern_contract::pointer::escape;

use super::{CONNECTORS, Imported};
use crate::Sources;
use crate::connector::{Connector, shipped};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::frontmatter::{self, Page};
use crate::import::{Bindings, Schema};
use crate::yaml::{Node, Value};

/// The deepest chain of imports
const MAX_DEPTH: usize = 8;
/// The most imports that are followed, over all files
const MAX_IMPORTS: usize = 1_000;
const KEYS: &[&str] = &["uses", "path", "with", "inputs"];

pub(super) struct Importer<'s> {
    sources: &'s Sources,
    /// The directory of the workflow, with `/` at its end
    home: &'s str,
    /// The files on the way to the one that is read
    chain: Vec<String>,
    /// Every imported file with what it was given
    seen: BTreeMap<String, String>,
    followed: usize,
    pub(super) imported: BTreeMap<String, Imported>,
    pub(super) broken: BTreeSet<String>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// One entry of `imports`
struct Entry<'a> {
    page: &'a Page,
    /// Its path in the page
    path: String,
    target: &'a str,
    with: Node,
    with_path: String,
}

impl<'s> Importer<'s> {
    pub(super) fn new(sources: &'s Sources, workflow: &'s str) -> Self {
        let home = workflow.rfind('/').and_then(|at| workflow.get(..=at));
        Self {
            sources,
            home: home.unwrap_or_default(),
            chain: vec![workflow.to_owned()],
            seen: BTreeMap::new(),
            followed: 0,
            imported: BTreeMap::new(),
            broken: BTreeSet::new(),
            diagnostics: Vec::new(),
        }
    }

    fn error(&mut self, entry: &Entry<'_>, message: impl Into<String>, hint: Option<String>) {
        let found = entry.page.error("import", &entry.path, message);
        self.diagnostics.push(found.hint(hint));
    }

    /// Follows everything that a file imports. `given` is what was bound where it was imported itself;
    /// `None` where that is at fault, which was said.
    pub(super) fn follow(&mut self, page: &Page, given: Option<&Bindings>) {
        let Some(imports) = page.root.get("imports").filter(|n| !n.is_null()) else {
            return;
        };
        let inner = imports.get("aw").and_then(Node::sequence);
        let (list, base) = match (imports.sequence(), inner) {
            (Some(list), _) => (list, "/imports"),
            (None, Some(list)) => (list, "/imports/aw"),
            (None, None) => {
                let found = page.error("import", "/imports", "want a list of imports");
                return self.diagnostics.push(found);
            }
        };
        for (n, node) in list.iter().enumerate() {
            if let Some(entry) = self.entry(page, node, format!("{base}/{n}")) {
                self.import(&entry, given);
            }
        }
    }

    /// Reads an entry: a path, or `uses` and `with`
    fn entry<'a>(&mut self, page: &'a Page, node: &'a Node, path: String) -> Option<Entry<'a>> {
        let mut sound = true;
        for (key, _) in node.mapping().unwrap_or_default() {
            if !KEYS.contains(&key.text.as_str()) {
                let path = format!("{path}/{}", escape(&key.text));
                let found = page.error("import", &path, format!("unknown key `{}`", key.text));
                let hint = did_you_mean(&key.text, KEYS.iter().copied());
                self.diagnostics.push(found.hint(hint));
            }
        }
        for (key, other) in [("uses", "path"), ("with", "inputs")] {
            if node.get(key).is_some() && node.get(other).is_some() {
                let path = format!("{path}/{other}");
                let message = format!("`{key}` and `{other}` are one: want `{key}` alone");
                (self.diagnostics).push(page.error("import", &path, message));
                sound = false;
            }
        }
        let uses = node.get("uses").or_else(|| node.get("path"));
        let target = node.text().or_else(|| uses.and_then(Node::text));
        let Some(target) = target.filter(|target| !target.is_empty()) else {
            let found = page.error("import", &path, "want a path, or `uses` and `with`");
            self.diagnostics.push(found);
            return None;
        };
        let key = if node.get("inputs").is_some() {
            "inputs"
        } else {
            "with"
        };
        let nothing = || Node {
            place: node.place,
            value: Value::Scalar {
                text: String::new(),
                plain: true,
            },
        };
        sound.then(|| Entry {
            page,
            with: node.get(key).cloned().unwrap_or_else(nothing),
            with_path: format!("{path}/{key}"),
            path,
            target,
        })
    }

    fn import(&mut self, entry: &Entry<'_>, given: Option<&Bindings>) {
        let optional = entry.target.ends_with('?');
        let target = entry.target.trim_end_matches('?');
        let target = target.split('#').next().unwrap_or_default();
        // A shipped connector imports as if it stood where it was looked for
        let from = self.chain.last().map_or("", String::as_str);
        let file = match self.resolve(from, target) {
            Ok(file) => file,
            Err((message, hint)) => {
                self.broken.extend(id_of(target));
                return self.error(entry, message, hint);
            }
        };
        if self.chain.contains(&file) {
            let chain = self.chain.join("` -> `");
            return self.error(entry, format!("a cycle: `{chain}` -> `{file}`"), None);
        }
        // One file with the same bindings is one import, however many ways lead to it
        let with = given.map_or_else(|| entry.with.to_json(), |given| given.resolved(&entry.with));
        match self.seen.get(&file) {
            Some(before) if *before == with => return,
            Some(_) => {
                let message = format!("`{file}` is imported twice, and given different values");
                let found = entry.page.error("import-twice", &entry.path, message);
                return self.diagnostics.push(found);
            }
            None => {}
        }
        self.followed += 1;
        if self.chain.len() > MAX_DEPTH || self.followed > MAX_IMPORTS {
            let message = format!("imports deeper than {MAX_DEPTH}, or more than {MAX_IMPORTS}");
            return self.error(entry, message, None);
        }
        let Some((text, shown)) = self.text(entry, &file, optional) else {
            return;
        };
        self.seen.insert(file.clone(), with);
        // A shared file may be Markdown alone; a connector may not
        if id_of(&file).is_none() && !frontmatter::begins(text) {
            self.bind(entry, &Schema::default(), given);
            return;
        }
        let page = match Page::read(&shown, text) {
            Ok(page) => page,
            Err(found) => {
                self.broken.extend(id_of(&file));
                return self.diagnostics.push(*found);
            }
        };
        let bindings = if id_of(&file).is_some() || page.root.get("connectors").is_some() {
            self.connector(entry, &file, text, &page, given)
        } else {
            match Schema::read(page.root.get("import-schema")) {
                Ok(schema) => self.bind(entry, &schema, given),
                Err(faults) => {
                    for fault in faults {
                        let path = format!("/import-schema{}", fault.path);
                        let found = page.error("import-schema", &path, fault.message);
                        (self.diagnostics).push(found.hint(fault.hint).conceal(fault.secret));
                    }
                    None
                }
            }
        };
        self.chain.push(file);
        self.follow(&page, bindings.as_ref());
        self.chain.pop();
    }

    /// The text of a file, and the name under which it is shown
    fn text(&mut self, entry: &Entry<'_>, file: &str, optional: bool) -> Option<(&'s str, String)> {
        let sources = self.sources;
        if let Some(text) = sources.get(file) {
            return Some((text, file.to_owned()));
        }
        let id = id_of(file);
        let (message, hint) = match (sources.refused(file), id) {
            (Some(why), _) => (format!("`{file}`: {why}"), None),
            (None, Some(id)) => match shipped().find(|(shipped, _)| *shipped == id) {
                Some((_, text)) => return Some((text, format!("shipped/{id}.md"))),
                None => (
                    format!("there is no `{file}`, and no connector `{id}` is shipped"),
                    did_you_mean(&id, shipped().map(|(id, _)| id)),
                ),
            },
            (None, None) => (format!("there is no `{file}`"), None),
        };
        if !optional || sources.refused(file).is_some() {
            let found = entry.page.error("no-file", &entry.path, message);
            self.diagnostics.push(found.hint(hint));
            self.broken.extend(id_of(file));
        }
        None
    }

    /// Holds `with` to a schema
    fn bind(
        &mut self,
        entry: &Entry<'_>,
        schema: &Schema,
        given: Option<&Bindings>,
    ) -> Option<Bindings> {
        let nothing = Bindings::default();
        let mut rests = false;
        (entry.with).scalars("", &mut |_, text| rests |= text.contains("${{"));
        if given.is_none() && rests {
            return None;
        }
        match Bindings::read(schema, Some(&entry.with), given.unwrap_or(&nothing)) {
            Ok(bindings) => Some(bindings),
            Err(faults) => {
                for fault in faults {
                    let path = format!("{}{}", entry.with_path, fault.path);
                    let found = entry.page.error("import-binding", &path, fault.message);
                    (self.diagnostics).push(found.hint(fault.hint).conceal(fault.secret));
                }
                None
            }
        }
    }

    fn connector(
        &mut self,
        entry: &Entry<'_>,
        file: &str,
        text: &str,
        page: &Page,
        given: Option<&Bindings>,
    ) -> Option<Bindings> {
        let connector = match Connector::read(&page.file, text) {
            Ok(connector) => connector,
            Err(mut found) => {
                let declared = page.root.get("connectors").and_then(Node::mapping);
                let ids = declared.unwrap_or_default().iter();
                self.broken.extend(ids.map(|(key, _)| key.text.clone()));
                self.broken.extend(id_of(file));
                self.diagnostics.append(&mut found);
                return None;
            }
        };
        let bindings = self.bind(entry, connector.schema(), given);
        let id = connector.id.to_string();
        if let Some(other) = self.imported.get(&id) {
            let other = &other.connector.file;
            let message = format!("the connector `{id}` is declared in `{other}` too");
            let found = entry.page.error("import-twice", &entry.path, message);
            self.diagnostics.push(found);
            return None;
        }
        let imported = Imported {
            connector,
            bindings: bindings.clone(),
            from: entry.page.file.clone(),
            with: entry.with.clone(),
            path: entry.with_path.clone(),
        };
        self.imported.insert(id, imported);
        bindings
    }

    /// The file that an import means, from the repository's root; what is wrong, and a hint
    fn resolve(&self, from: &str, target: &str) -> Result<String, (String, Option<String>)> {
        let fail = |message: &str| Err((format!("`{target}`: {message}"), None));
        let remote = !target.starts_with(['.', '/']) && target.contains('@');
        if remote || target.contains("://") {
            let hint = format!("keep a reviewed copy in the repository, under {CONNECTORS}");
            let message = format!("`{target}`: this version resolves local imports alone");
            return Err((message, Some(hint)));
        }
        if target.contains(|c: char| c == '\\' || c.is_control()) {
            return fail("a path holds no backslash and no control character");
        }
        if target.ends_with(".lock.yml") {
            return fail("a compiled workflow is no source");
        }
        let confined = |path: &str| path.starts_with(".github/") || path.starts_with(".agents/");
        let rooted = target.strip_prefix('/').unwrap_or(target);
        if target.starts_with('/') && !confined(rooted) {
            return fail("an absolute import begins with /.github/ or /.agents/");
        }
        let mut parts: Vec<&str> = Vec::new();
        if !target.starts_with('/') && !target.starts_with(".github/") {
            parts.extend(from.split('/'));
            parts.pop();
        }
        for part in rooted.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return fail("it leads out of the repository");
                    }
                }
                part => parts.push(part),
            }
        }
        let file = parts.join("/");
        // A workflow elsewhere, a draft or an example, may import what stands beside it and below
        if confined(&file) || file.starts_with(self.home) {
            Ok(file)
        } else {
            fail("imports stay under .github/ and .agents/")
        }
    }
}

/// The connector that a file is by its place
fn id_of(file: &str) -> Option<String> {
    let id = file.strip_prefix(CONNECTORS)?.strip_suffix(".md")?;
    (!id.contains('/')).then(|| id.to_owned())
}
