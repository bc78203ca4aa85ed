//! The repository around a workflow: its root, and its `owner/name`. Nothing is asked of a server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::environment;
use crate::failure::Failure;

/// The nearest directory at or above `from` that holds `.git` or `.github`
pub fn root(from: &Path) -> Option<PathBuf> {
    let from = std::path::absolute(from).ok()?;
    let found =
        (from.ancestors()).find(|dir| dir.join(".git").exists() || dir.join(".github").is_dir())?;
    Some(found.to_owned())
}

/// `owner/name`: as given, else of the environment, else of the remote `origin`; a given one is checked
pub fn name(given: Option<&str>, root: Option<&Path>) -> Result<Option<String>, Failure> {
    if let Some(given) = given {
        return checked(given, "--repository").map(Some);
    }
    if let Some(set) = environment::text("GITHUB_REPOSITORY") {
        return checked(&set, "GITHUB_REPOSITORY").map(Some);
    }
    Ok(root.and_then(origin))
}

fn checked(text: &str, whence: &str) -> Result<String, Failure> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    let why = format!("{whence}: `{text}` is no repository: want `owner/name`");
    Err(Failure::call("not-a-repository", why))
}

/// What the remote `origin` says, where there is one and git is installed
fn origin(root: &Path) -> Option<String> {
    let answer = (Command::new("git").arg("-C").arg(root))
        .args(["remote", "get-url", "origin"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|answer| answer.status.success())?;
    of_url(std::str::from_utf8(&answer.stdout).ok()?.trim())
}

/// `owner/name` of a remote's URL: the path where it has exactly these two steps
fn of_url(url: &str) -> Option<String> {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        // git's short form for SSH: user@host:path
        None => url.split_once(':')?.1,
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    is_name(path).then(|| path.to_owned())
}

fn is_name(text: &str) -> bool {
    let part = |part: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        !part.is_empty()
            && part.len() <= 100
            && part != "."
            && part != ".."
            && part.bytes().all(allowed)
    };
    text.split_once('/')
        .is_some_and(|(owner, name)| part(owner) && part(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_remote_names_the_same_repository() {
        for url in [
            "https://github.com/octo-org/octo.repo.git",
            "https://github.com/octo-org/octo.repo/",
            "https://token@github.com/octo-org/octo.repo",
            "ssh://git@github.com:22/octo-org/octo.repo.git",
            "git@github.com:octo-org/octo.repo.git",
        ] {
            assert_eq!(of_url(url).as_deref(), Some("octo-org/octo.repo"), "{url}");
        }
        for url in [
            "",
            "/srv/git/repo.git",
            "https://host/a/b/c",
            "git@host:repo.git",
            "https://host",
        ] {
            assert_eq!(of_url(url), None, "{url}");
        }
    }
}
