//! What a handshake asks to be done before it is answered: an address to visit, or a secret to keep. An
//! answer is a promise here too: it is given once the thing is done.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use postern_contract::Secret;
use postern_contract::fault::Fault as _;
use postern_egress::{Client, Outbound};
use postern_profiles::Then;
use tokio::sync::Notify;

use crate::sources::Source;

/// How long visiting an address may take: the sender waits for it
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why it is not done
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// The source is not in setup any more: it has learned its secret
    #[error("the source has its secret: it is not in setup")]
    Learned,
    /// The secret cannot be stored
    #[error("the secret cannot be stored: {0}")]
    NotStored(Error),
    /// The address that confirms a subscription was not visited
    #[error("the subscription is not confirmed: {1}")]
    NotVisited(&'static str, String),
}

impl NotDone {
    /// Stable kebab-case code
    pub fn code(&self) -> &'static str {
        match self {
            Self::Learned => "setup-over",
            Self::NotStored(_) => "secret-not-stored",
            Self::NotVisited(code, _) => code,
        }
    }
}

/// Does what a handshake asks for; `learned` hears of a new secret
pub async fn fulfil(
    then: Then,
    source: &Source,
    client: &Client,
    learned: &Notify,
) -> Result<(), NotDone> {
    let name = &source.name;
    match then {
        Then::Nothing => {}
        Then::NoVisit(param) => tracing::warn!(
            source = %name,
            "a subscription waits to be confirmed: give the source the parameter `{param}`, and have it sent again"
        ),
        Then::Visit(url) => {
            let host = url.host_str().unwrap_or_default().to_owned();
            let outbound = Outbound {
                url,
                headers: HeaderMap::new(),
                body: Bytes::new(),
                timeout: TIMEOUT,
            };
            let answer = (client.get(outbound).await)
                .map_err(|why| NotDone::NotVisited(why.code(), why.to_string()))?;
            if !answer.status.is_success() {
                let why = format!("`{host}` answers {}", answer.status);
                return Err(NotDone::NotVisited("visit-status", why));
            }
            tracing::info!(source = %name, host, "a subscription is confirmed");
        }
        Then::Learn(secret) => {
            let file = source.learn_into.clone().ok_or(NotDone::Learned)?;
            let stored = tokio::task::spawn_blocking(move || store(&file, &secret));
            match stored
                .await
                .map_err(|e| NotDone::NotStored(Error::other(e)))?
            {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(NotDone::Learned),
                Err(e) => return Err(NotDone::NotStored(e)),
            }
            tracing::info!(source = %name, "the source has learned its secret: take `setup` away");
            learned.notify_one();
        }
    }
    Ok(())
}

/// Puts a secret into a new file, for its owner alone: all of it and durably, or nothing. A secret that is
/// there is never replaced.
fn store(file: &Path, secret: &Secret) -> std::io::Result<()> {
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", uuid::Uuid::now_v7()));
    let temporary = dir.join(name);
    let written = (|| {
        let mut new = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        new.write_all(secret.expose())?;
        new.sync_all()?;
        // Fails where there is a file, of whomever
        std::fs::hard_link(&temporary, file)
    })();
    let _ = std::fs::remove_file(&temporary);
    written?;
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_is_stored_for_its_owner_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
        store(&file, &secret("first")).unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = store(&file, &secret("second")).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&file).unwrap(), b"first");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(store(&dir.path().join("none/secret"), &secret("x")).is_err());
    }
}
