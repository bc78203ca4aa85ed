//! Writing frozen documents: whole files or none, by a temporary file that takes the place of the old
//! one; what has not changed is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

use postern_compiler::Selected;
use postern_contract::canonical;
use serde::Serialize;

use crate::failure::Failure;

/// What was written
#[derive(Serialize)]
pub(super) struct Written {
    /// By path below the directory
    pub(super) files: Vec<String>,
    /// How many were the same already
    pub(super) unchanged: usize,
}

/// Writes `subscriptions/` and `triggers/` below `out`
pub(super) fn write(out: &Path, selected: &[Selected]) -> Result<Written, Failure> {
    let mut written = Written {
        files: Vec::new(),
        unchanged: 0,
    };
    for (name, bytes) in documents(selected)? {
        let path = out.join(&name);
        if std::fs::read(&path).is_ok_and(|old| old == bytes) {
            written.unchanged += 1;
        } else {
            replace(&path, &bytes).map_err(|e| Failure::unwritable(&path, &e))?;
            written.files.push(name);
        }
    }
    Ok(written)
}

/// Every document by its name, triggers first: a subscription never stands without its trigger
fn documents(selected: &[Selected]) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut triggers = BTreeMap::new();
    let mut subscriptions = Vec::new();
    let mut names = BTreeSet::new();
    for one in selected {
        let name = format!("triggers/{}.json", one.trigger.digest().hex());
        triggers.insert(name, one.trigger.document().to_vec());
        let subscription = &one.subscription;
        let file = Path::new(&subscription.workflow).file_stem();
        let stem = file.and_then(|stem| stem.to_str()).unwrap_or("workflow");
        let base = format!(
            "subscriptions/{stem}.{}.{}",
            subscription.connector, subscription.trigger
        );
        // Workflows of the same name in two directories
        let name = std::iter::once(format!("{base}.json"))
            .chain((2..).map(|n: usize| format!("{base}.{n}.json")))
            .find(|name| !names.contains(name))
            .unwrap_or_default();
        names.insert(name.clone());
        let bytes = canonical::to_vec(subscription)
            .map_err(|e| Failure::around("not-canonical", e.to_string()))?;
        subscriptions.push((name, bytes));
    }
    Ok(triggers.into_iter().chain(subscriptions).collect())
}

fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".postern-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The gateway may run as another user; the umask still counts
        builder.permissions(std::fs::Permissions::from_mode(0o644));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
