//! The files that workflows may import, read once: Markdown of the repository's `.github` and `.agents`,
//! and beside each workflow. Links are not followed, so that nothing leads out of the repository.

use std::path::{Path, PathBuf};

use postern_compiler::{MAX_FILE_BYTES, Sources};

use crate::failure::Failure;
use crate::input;
use crate::repository;

/// The most files that are read
const MAX_FILES: usize = 5_000;
/// How deep below a workflow's own directory imports are looked for
const MAX_DEPTH: usize = 4;

/// A repository's Markdown
pub(super) struct Tree {
    /// Where paths begin
    pub(super) root: PathBuf,
    /// By path from the root
    pub(super) sources: Sources,
    /// The workflows, likewise
    pub(super) workflows: Vec<String>,
}

/// Reads what `workflows` may import
pub(super) fn load(workflows: &[PathBuf]) -> Result<Tree, Failure> {
    if let Some(path) = workflows
        .iter()
        .find(|path| path.to_string_lossy().ends_with(".lock.yml"))
    {
        let why = format!("`{}` is a compiled workflow, and no source", path.display());
        return Err(Failure::call("not-a-source", why));
    }
    let found: Vec<PathBuf> = (workflows.iter())
        .map(|path| {
            path.canonicalize()
                .map_err(|e| Failure::unreadable(path, &e))
        })
        .collect::<Result<_, _>>()?;
    let first = found
        .first()
        .and_then(|path| path.parent())
        .unwrap_or(Path::new("/"));
    // Outside of a repository, a workflow's paths begin beside it
    let root = repository::root(first).unwrap_or_else(|| first.to_owned());
    let mut walk = Walk {
        root: &root,
        sources: Sources::default(),
        files: 0,
    };
    for inner in [".github", ".agents"] {
        walk.directory(&root.join(inner), usize::MAX)?;
    }
    let mut names = Vec::new();
    for path in &found {
        let name = walk.name(path).ok_or_else(|| {
            let why = format!(
                "`{}` is not in the repository `{}`",
                path.display(),
                root.display()
            );
            Failure::call("other-repository", why)
        })?;
        if let Some(directory) = path.parent()
            && walk.sources.get(&name).is_none()
        {
            walk.directory(directory, MAX_DEPTH)?;
        }
        // Whatever its name ends in: who names a file means it
        let text = input::text(path)?;
        walk.sources.insert(name.clone(), text);
        names.push(name);
    }
    Ok(Tree {
        sources: walk.sources,
        workflows: names,
        root,
    })
}

struct Walk<'r> {
    root: &'r Path,
    sources: Sources,
    files: usize,
}

impl Walk<'_> {
    /// The path from the root, with `/`
    fn name(&self, path: &Path) -> Option<String> {
        let parts = path.strip_prefix(self.root).ok()?.components();
        let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
        parts.map(|parts| parts.join("/"))
    }

    fn directory(&mut self, directory: &Path, depth: usize) -> Result<(), Failure> {
        // One that is not there, or not ours to read, holds no import
        let Ok(entries) = directory.read_dir() else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) && depth > 0 && !hidden {
                self.directory(&path, depth - 1)?;
            } else if kind.as_ref().is_ok_and(std::fs::FileType::is_file) {
                self.file(&path)?;
            } else if kind.is_ok_and(|kind| kind.is_symlink()) {
                self.refuse(&path, "it is a link, and links are not followed");
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), Failure> {
        let markdown = path.extension().is_some_and(|extension| extension == "md");
        let Some(name) = self.name(path).filter(|_| markdown) else {
            return Ok(());
        };
        if self.sources.get(&name).is_some() {
            return Ok(());
        }
        self.files += 1;
        if self.files > MAX_FILES {
            let why = format!("more than {MAX_FILES} Markdown files around the workflows");
            return Err(Failure::call("too-many-files", why));
        }
        let size = path.metadata().map_or(0, |m| m.len());
        if size > MAX_FILE_BYTES as u64 {
            let why = format!("it has {size} bytes: at most {MAX_FILE_BYTES}");
            self.refuse(path, &why);
            return Ok(());
        }
        match std::fs::read_to_string(path) {
            Ok(text) => self.sources.insert(name, text),
            Err(e) => self.refuse(path, &e.to_string()),
        }
        Ok(())
    }

    /// A file that is there and is not taken: whoever imports it is told why, and nothing stands in for it
    fn refuse(&mut self, path: &Path, why: &str) {
        let markdown = path.extension().is_some_and(|extension| extension == "md");
        if let Some(name) = self.name(path).filter(|_| markdown)
            && self.sources.get(&name).is_none()
        {
            self.sources.refuse(name, why);
        }
    }
}
