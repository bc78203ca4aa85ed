//! What a workflow selects: triggers by name, each once. Nothing is selected by a pattern, and nothing that
//! looks like a selection is passed over.

use std::collections::{BTreeSet, HashSet};

use postern_contract::pointer::escape;

use super::Run;
use crate::diagnostic::did_you_mean;
use crate::yaml::{Key, Node};

/// A trigger that a workflow selects
pub(super) struct Selection {
    pub(super) connector: String,
    pub(super) trigger: String,
    /// The entry in the workflow
    pub(super) path: String,
    pub(super) filters: Vec<(Key, Node)>,
    /// Their holder
    pub(super) filters_path: String,
}

/// Keys under `on` with a hyphen that are no selection, whatever a connector is called
const ON_KEYS: &[&str] = &[
    "gateway-dispatch",
    "github-app",
    "github-token",
    "lock-for-agent",
    "manual-approval",
    "skip-bots",
    "skip-if-match",
    "skip-if-no-match",
    "skip-roles",
    "status-comment",
    "stop-after",
];

impl Run<'_> {
    /// Everything under `on` that selects a trigger
    pub(super) fn selections(&mut self) -> Vec<Selection> {
        let mut found = Vec::new();
        let page = self.page;
        for (key, value) in page
            .root
            .get("on")
            .and_then(Node::mapping)
            .unwrap_or_default()
        {
            if key.text == "gateway-dispatch" {
                self.gateway_dispatch(value, &mut found);
            } else if !ON_KEYS.contains(&key.text.as_str()) {
                self.qualified(key, value, &mut found);
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
            let hint = "a list of values in one filter takes any of them".to_owned();
            self.error("selected-twice", &selection.path, message, Some(hint));
        }
        kept
    }

    /// `<id>-<trigger>` of an imported connector
    fn qualified(&mut self, key: &Key, value: &Node, found: &mut Vec<Selection>) {
        let path = format!("/on/{}", escape(&key.text));
        let mut exact = Vec::new();
        let mut near = Vec::new();
        for imported in self.imported.values() {
            let id = imported.connector.id.as_str();
            let rest = key.text.strip_prefix(id);
            let Some(trigger) = rest.and_then(|rest| rest.strip_prefix('-')) else {
                continue;
            };
            if imported.connector.triggers().contains(&trigger) {
                exact.push((id.to_owned(), trigger.to_owned()));
            } else {
                let hint = did_you_mean(trigger, imported.connector.triggers().into_iter());
                near.push((format!("`{id}` declares no trigger `{trigger}`"), hint));
            }
        }
        match exact.as_slice() {
            [] => {
                for (message, hint) in near.into_iter().take(1) {
                    self.error("no-trigger", &path, message, hint);
                }
            }
            [(connector, trigger)] => {
                self.push(connector, trigger, &path, &path, value, found);
            }
            [(one, _), (other, _), ..] => {
                let message = format!("`{}` may be a trigger of `{one}` or `{other}`", key.text);
                let hint = "select it under `gateway-dispatch`".to_owned();
                self.error("selection", &path, message, Some(hint));
            }
        }
    }

    fn gateway_dispatch(&mut self, node: &Node, found: &mut Vec<Selection>) {
        let base = "/on/gateway-dispatch";
        let Some(connectors) = node.mapping().filter(|members| !members.is_empty()) else {
            let message = "want a nonempty mapping of connectors".to_owned();
            return self.error("selection", base, message, None);
        };
        for (connector, list) in connectors {
            let path = format!("{base}/{}", escape(&connector.text));
            let Some(items) = list.sequence().filter(|items| !items.is_empty()) else {
                let message = "want a nonempty list of triggers".to_owned();
                self.error("selection", &path, message, None);
                continue;
            };
            for (n, item) in items.iter().enumerate() {
                let path = format!("{path}/{n}");
                match (item.text(), item.mapping()) {
                    (Some(name), _) => found.push(Selection {
                        connector: connector.text.clone(),
                        trigger: name.to_owned(),
                        filters: Vec::new(),
                        filters_path: path.clone(),
                        path,
                    }),
                    (None, Some([(key, value)])) => {
                        let inner = format!("{path}/{}", escape(&key.text));
                        self.push(&connector.text, &key.text, &path, &inner, value, found);
                    }
                    _ => {
                        let message =
                            "want a trigger's name, or one name with `filters`".to_owned();
                        self.error("selection", &path, message, None);
                    }
                }
            }
        }
    }

    /// A selection with options, which stand at `inner`; a fault of theirs is noted
    fn push(
        &mut self,
        connector: &str,
        trigger: &str,
        path: &str,
        inner: &str,
        value: &Node,
        found: &mut Vec<Selection>,
    ) {
        let filters_path = format!("{inner}/filters");
        let mut filters = Vec::new();
        match value.mapping() {
            Some(members) => {
                for (key, value) in members {
                    if key.text != "filters" {
                        let path = format!("{inner}/{}", escape(&key.text));
                        let hint = did_you_mean(&key.text, std::iter::once("filters"));
                        let message = format!("unknown key `{}`: want `filters`", key.text);
                        self.error("selection", &path, message, hint);
                        continue;
                    }
                    match value.mapping() {
                        Some(members) => filters = members.to_vec(),
                        None => {
                            let message = "`filters` is a mapping of names to values".to_owned();
                            self.error("selection", &filters_path, message, None);
                        }
                    }
                }
            }
            None if value.is_null() => {}
            None => {
                let message = "want `filters`, a mapping".to_owned();
                self.error("selection", inner, message, None);
            }
        }
        found.push(Selection {
            connector: connector.to_owned(),
            trigger: trigger.to_owned(),
            path: path.to_owned(),
            filters,
            filters_path,
        });
    }

    /// What the workflow selects of a connector beside triggers: said to be left out, not passed over
    pub(super) fn not_compiled(&mut self) {
        let page = self.page;
        let mut found = Vec::new();
        let mut note = |path: String, what: &str| {
            let message = format!("{what} not compiled yet: this version compiles triggers alone");
            found.push(page.error("not-compiled", &path, message).warning());
        };
        for imported in self.imported.values() {
            let id = imported.connector.id.as_str();
            let declares = |section: &str| imported.connector.section(section).is_some();
            if (declares("tools") || declares("mcp-servers"))
                && page.root.get("tools").is_some_and(|t| t.get(id).is_some())
            {
                note(format!("/tools/{id}"), &format!("the tools of `{id}` are"));
            }
            let operations = (imported.connector.section("safe-outputs")).and_then(Node::mapping);
            for (operation, _) in operations.unwrap_or_default() {
                let key = format!("{id}-{}", operation.text);
                let selected = page.root.get("safe-outputs").and_then(|s| s.get(&key));
                if selected.is_some() {
                    let path = format!("/safe-outputs/{}", escape(&key));
                    note(path, &format!("the safe output `{key}` is"));
                }
            }
        }
        self.diagnostics.append(&mut found);
    }

    /// Selecting of an experimental connector is worth a word, and weakens nothing
    pub(super) fn experimental(&mut self, selections: &[Selection]) {
        let mut said = BTreeSet::new();
        for selection in selections {
            let id = selection.connector.as_str();
            let experimental = |id| {
                let imported = self.imported.get(id);
                imported.is_some_and(|imported| imported.connector.experimental())
            };
            if experimental(id) && said.insert(id) {
                let message = format!("the connector `{id}` is experimental: it may change");
                let found = self.page.error("experimental", &selection.path, message);
                self.diagnostics.push(found.warning());
            }
        }
    }
}
