//! Reads secrets from where the configuration names them. The environment is handed in by the command
//! line; a file's one newline at its end is dropped; nothing else is trimmed.

use std::path::{Path, PathBuf};

use postern_contract::fault::{Fault, Party};
use postern_contract::{Digest, Secret};

use crate::config::{Config, KeyConfig};
use crate::files;

/// Reads an environment variable; the command line alone may touch the environment
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// The most bytes of a secret's file
const MAX_FILE_BYTES: u64 = 64 << 10;

/// A key as configured, with its material at hand
#[derive(Debug)]
pub struct LoadedKey {
    /// What the log calls it
    pub name: String,
    /// What deliveries call it
    pub id: Option<String>,
    /// The bytes
    pub material: Material,
    /// When it stops counting
    pub not_after: Option<postern_contract::Timestamp>,
}

/// A secret, or a public key
#[derive(Debug)]
pub enum Material {
    /// A secret
    Secret(Secret),
    /// A public key's text
    Public(String),
}

/// A key that cannot be had
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// None or several of `env`, `file`, `public`
    #[error("a key has exactly one of `env`, `file` and `public`")]
    NotOne,
    /// The variable is not set
    #[error("the environment variable `{0}` is not set")]
    NotSet(String),
    /// The file cannot be read
    #[error("the file `{0}` cannot be read: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// A public key, where a secret is wanted
    #[error("a credential is a secret: it has `env` or `file`")]
    NoSecret,
    /// Nothing there
    #[error("`{0}` is empty")]
    Empty(String),
}

impl Fault for KeyFault {
    fn code(&self) -> &'static str {
        match self {
            Self::NotOne => "key-not-one",
            Self::NotSet(_) => "key-not-set",
            Self::Unreadable(..) => "key-unreadable",
            Self::NoSecret => "key-no-secret",
            Self::Empty(_) => "key-empty",
        }
    }
    fn fault(&self) -> Party {
        Party::Operator
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotSet(name) => Some(format!("export {name}=… before you start postern")),
            _ => None,
        }
    }
}

/// Reads one key
pub fn load(config: &KeyConfig, environment: Environment<'_>) -> Result<LoadedKey, KeyFault> {
    let (default_name, material) = match (&config.env, &config.file, &config.public) {
        (Some(variable), None, None) => {
            let value = environment(variable).ok_or_else(|| KeyFault::NotSet(variable.clone()))?;
            (variable.clone(), Material::Secret(full(value, variable)?))
        }
        (None, Some(file), None) => {
            let name = file.display().to_string();
            let value = files::read(file, MAX_FILE_BYTES)
                .map_err(|e| KeyFault::Unreadable(file.clone(), e))?;
            let secret = full(without_newline(value), &name)?;
            let short = file.file_name().map(|n| n.to_string_lossy().into_owned());
            (short.unwrap_or(name), Material::Secret(secret))
        }
        (None, None, Some(public)) => ("public".to_owned(), Material::Public(public.clone())),
        _ => return Err(KeyFault::NotOne),
    };
    Ok(LoadedKey {
        name: config.name.clone().unwrap_or(default_name),
        id: config.id.clone(),
        material,
        not_after: config.not_after,
    })
}

/// What every file that holds a secret held, by digest: to notice that one has changed, and for nothing
/// else. A file is read through its links, so that a mounted secret that is swapped as a whole is noticed.
#[derive(PartialEq, Eq)]
pub struct SecretFiles(Vec<Option<Digest>>);

impl SecretFiles {
    /// Reads every secret file of `config`
    pub fn read(config: &Config) -> Self {
        let digest = |file: &Path| {
            let held = files::read(file, MAX_FILE_BYTES).ok()?;
            Some(Digest::of(Secret::new(held).expose()))
        };
        Self(config.secret_files().map(digest).collect())
    }
}

fn full(value: Vec<u8>, what: &str) -> Result<Secret, KeyFault> {
    if value.is_empty() {
        return Err(KeyFault::Empty(what.to_owned()));
    }
    Ok(Secret::new(value))
}

/// Editors and `echo` end a file with a newline that is no part of the secret
fn without_newline(mut value: Vec<u8>) -> Vec<u8> {
    if value.last() == Some(&b'\n') {
        value.pop();
        if value.last() == Some(&b'\r') {
            value.pop();
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_at_the_end_of_a_file_is_dropped_and_nothing_else() {
        // report A19
        for (file, secret) in [
            (&b"secret\n"[..], &b"secret"[..]),
            (b"secret\r\n", b"secret"),
            (b"secret\n\n", b"secret\n"),
            (b" secret ", b" secret "),
            (b"secret", b"secret"),
        ] {
            assert_eq!(without_newline(file.to_vec()), secret);
        }
    }

    #[test]
    fn a_key_comes_from_exactly_one_place() {
        // report A18: an empty secret is refused
        let environment = |name: &str| match name {
            "EMPTY" => Some(Vec::new()),
            "SET" => Some(b"x".to_vec()),
            _ => None,
        };
        let env = |name: &str| KeyConfig {
            env: Some(name.to_owned()),
            ..KeyConfig::default()
        };
        let code =
            |config: &KeyConfig| load(config, &environment).map(|_| ()).map_err(|e| e.code());
        assert_eq!(code(&env("SET")), Ok(()));
        assert_eq!(code(&env("EMPTY")), Err("key-empty"));
        assert_eq!(code(&env("UNSET")), Err("key-not-set"));
        assert_eq!(code(&KeyConfig::default()), Err("key-not-one"));
        let two = KeyConfig {
            public: Some("x".to_owned()),
            ..env("SET")
        };
        assert_eq!(code(&two), Err("key-not-one"));
    }
}
