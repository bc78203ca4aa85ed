//! Where a connector's declaration comes from: the repository's own file first, else the shipped one.

use std::path::{Path, PathBuf};

use postern_compiler::workflow::CONNECTORS;
use postern_compiler::{Connector, Diagnostic, shipped};
use postern_contract::Name;
use postern_predicates::{Resources, Trigger};

use crate::failure::{Failure, did_you_mean};
use crate::input;
use crate::repository;

/// A declaration and its place
pub(super) struct Declaration {
    id: Name,
    text: String,
    /// The file, where it is the repository's own
    file: Option<PathBuf>,
}

/// Every declaration at hand by id: the repository's own in place of shipped ones of the same id
pub(super) fn all() -> Result<Vec<Declaration>, Failure> {
    let root = repository::root(Path::new("."));
    let directory = root.as_ref().map(|root| root.join(CONNECTORS));
    let mut ids: Vec<Name> = Vec::new();
    for entry in directory
        .iter()
        .filter_map(|dir| dir.read_dir().ok())
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".md"));
        ids.extend(id.and_then(|id| id.parse().ok()));
    }
    ids.extend(shipped().filter_map(|(id, _)| id.parse().ok()));
    ids.sort();
    ids.dedup();
    ids.iter()
        .map(|id| Declaration::of(id, root.as_deref()))
        .collect()
}

impl Declaration {
    /// The declaration of `id`
    pub(super) fn find(id: &str) -> Result<Self, Failure> {
        let id: Name = id.parse().map_err(|e: postern_contract::name::NotAName| {
            Failure::call("not-a-connector", e.to_string())
        })?;
        Self::of(&id, repository::root(Path::new(".")).as_deref())
    }

    fn of(id: &Name, root: Option<&Path>) -> Result<Self, Failure> {
        let file = root.map(|root| root.join(CONNECTORS).join(format!("{id}.md")));
        if let Some(file) = file
            && let Some(text) = input::text_if_there(&file)?
        {
            return Ok(Self {
                id: id.clone(),
                text,
                file: Some(file),
            });
        }
        match shipped().find(|(shipped, _)| *shipped == id.as_str()) {
            Some((_, text)) => Ok(Self {
                id: id.clone(),
                text: text.to_owned(),
                file: None,
            }),
            None => {
                let near = did_you_mean(id.as_str(), shipped().map(|(id, _)| id));
                let why = format!("there is no connector `{id}`, here or shipped");
                Err(Failure::call("unknown-connector", why)
                    .hint(near.unwrap_or_else(|| "see `postern connector list`".to_owned())))
            }
        }
    }

    /// The id
    pub(super) fn id(&self) -> &str {
        self.id.as_str()
    }

    /// The Markdown
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The file, or that it is shipped
    pub(super) fn place(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => format!("shipped/{}.md", self.id),
        }
    }

    fn read(&self) -> Result<Connector, Failure> {
        let connector =
            Connector::read(&self.place(), &self.text).map_err(|found| invalid(&found))?;
        if connector.id == self.id {
            Ok(connector)
        } else {
            let why = format!("{}: it declares `{}`", self.place(), connector.id);
            Err(Failure::no("other-connector", why))
        }
    }

    /// The names of its triggers, in order of the file
    pub(super) fn triggers(&self) -> Result<Vec<String>, Failure> {
        let connector = self.read()?;
        Ok(connector
            .triggers()
            .into_iter()
            .map(str::to_owned)
            .collect())
    }

    /// A trigger, bound to `grants` or else to the declaration's own resources
    pub(super) fn trigger(
        &self,
        name: &str,
        grants: Option<Resources>,
    ) -> Result<Trigger, Failure> {
        let connector = self.read()?;
        if !connector.triggers().contains(&name) {
            let near = did_you_mean(name, connector.triggers().into_iter());
            let why = format!("`{}` declares no trigger `{name}`", self.id);
            return Err(Failure::call("unknown-trigger", why)
                .hint(near.unwrap_or_else(|| "see `postern connector list`".to_owned())));
        }
        let grants = match grants {
            Some(grants) => {
                let known = connector.collections(name);
                if let Some(other) = grants.keys().find(|key| !known.contains(key)) {
                    let why = format!("the binding: `{name}` is bound to no collection `{other}`");
                    return Err(Failure::call("unknown-collection", why)
                        .hint(format!("it is bound to: {}", known.join(", "))));
                }
                grants
            }
            None => connector
                .own_grants(name)
                .map_err(|found| invalid(&found))?,
        };
        let compiled = connector.compile(name, grants);
        compiled.map_err(|found| invalid(std::slice::from_ref(&*found)))
    }
}

/// The first finding, and how many there are
fn invalid(found: &[Diagnostic]) -> Failure {
    let Some(first) = found.first() else {
        return Failure::no("declaration-invalid", "the declaration is invalid");
    };
    let more = match found.len() {
        1 => String::new(),
        n => format!(" (the first of {n})"),
    };
    let (line, column) = (first.place.line, first.place.column);
    let message = format!("{}:{line}:{column}: {}{more}", first.file, first.message);
    let failure = Failure::no(first.code, message);
    match &first.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
