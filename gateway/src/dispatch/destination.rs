//! A destination as meant: made from the configuration, or refused with every fault.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use postern_contract::fault::{Fault, Party};
use postern_contract::{Name, Secret};
use postern_egress::Allowed;
use url::Url;

use super::retry::Policy;
use super::standard_webhooks::{NotASigningKey, SigningKey};
use crate::admission::{DestinationFacts, Provenance};
use crate::config::{DestinationConfig, DestinationKind, ModeConfig};
use crate::keys::{self, Environment, KeyFault, Material};

/// Headers that are ours to set, or that are about the connection and the body's bytes
const OURS: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "postern-hops",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// The most attempts of one destination at once
const MAX_CONCURRENCY: usize = 1_024;

/// Where events go
#[derive(Debug)]
pub struct Destination {
    /// Its name
    pub name: Name,
    /// How they get there
    pub kind: Kind,
    /// How long one attempt may take
    pub timeout: Duration,
    /// The most attempts at once
    pub concurrency: usize,
    /// How failures are tried again
    pub retry: Policy,
    credential: Option<Provenance>,
}

/// How events get there
#[derive(Debug)]
pub enum Kind {
    /// By HTTP
    Http(Http),
    /// To a local program
    Command(Command),
}

/// An HTTP receiver
#[derive(Debug)]
pub struct Http {
    /// Where to post
    pub url: Url,
    /// How the event travels
    pub mode: ModeConfig,
    /// The live signing secrets
    pub signing: Vec<SigningKey>,
    /// Further headers
    pub headers: HeaderMap,
}

/// A local program
#[derive(Debug)]
pub struct Command {
    /// The program
    pub program: String,
    /// Its arguments
    pub arguments: Vec<String>,
    /// All that it sees of the environment
    pub environment: Vec<(String, Secret)>,
    /// Its working directory
    pub cwd: Option<PathBuf>,
}

/// A destination that cannot be used as configured
#[derive(Debug, thiserror::Error)]
pub enum DestinationFault {
    /// A setting that is missing, or that belongs to another kind
    #[error("destinations.{0}.{1}: {2}")]
    Setting(Name, &'static str, String),
    /// A signing secret cannot be had
    #[error("destinations.{0}.signing[{1}]: {2}")]
    Key(Name, usize, KeyFault),
    /// A signing secret is none
    #[error("destinations.{0}.signing[{1}]: {2}")]
    Signing(Name, usize, NotASigningKey),
}

impl Fault for DestinationFault {
    fn code(&self) -> &'static str {
        match self {
            Self::Setting(..) => "destination-setting",
            Self::Key(_, _, fault) => fault.code(),
            Self::Signing(..) => "destination-signing",
        }
    }
    fn fault(&self) -> Party {
        Party::Operator
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Key(_, _, fault) => fault.hint(),
            _ => None,
        }
    }
}

impl Destination {
    /// Checks `config` and reads its secrets
    pub fn new(
        name: &Name,
        config: &DestinationConfig,
        allowed: &Allowed,
        environment: Environment<'_>,
    ) -> Result<Self, Vec<DestinationFault>> {
        let mut faults = Vec::new();
        let kind = match config.kind {
            DestinationKind::Http => http(name, config, allowed, environment, &mut faults),
            DestinationKind::Command => command(name, config, environment, &mut faults),
        };
        if !(1..=MAX_CONCURRENCY).contains(&config.concurrency) {
            faults.push(DestinationFault::Setting(
                name.clone(),
                "concurrency",
                format!("is {}: want 1 to {MAX_CONCURRENCY}", config.concurrency),
            ));
        }
        let credential = match (config.app, config.installation) {
            (None, None) => None,
            (Some(app), Some(installation)) => Some(Provenance { app, installation }),
            _ => {
                faults.push(DestinationFault::Setting(
                    name.clone(),
                    "app",
                    "`app` and `installation` go together".to_owned(),
                ));
                None
            }
        };
        match kind {
            Some(kind) if faults.is_empty() => Ok(Self {
                name: name.clone(),
                kind,
                timeout: config.timeout.duration(),
                concurrency: config.concurrency,
                retry: Policy {
                    limit: config.retry.limit,
                    initial: config.retry.initial.duration(),
                    max: config.retry.max.duration(),
                    max_retry_after: config.retry.max_retry_after.duration(),
                },
                credential,
            }),
            _ => Err(faults),
        }
    }

    /// What admission must know of it
    pub fn facts(&self) -> DestinationFacts<'_> {
        DestinationFacts {
            name: &self.name,
            credential: self.credential,
        }
    }
}

fn http(
    name: &Name,
    config: &DestinationConfig,
    allowed: &Allowed,
    environment: Environment<'_>,
    faults: &mut Vec<DestinationFault>,
) -> Option<Kind> {
    let mut fail = |setting, why: String| {
        faults.push(DestinationFault::Setting(name.clone(), setting, why));
    };
    if !config.argv.is_empty() || !config.env.is_empty() || config.cwd.is_some() {
        fail(
            "kind",
            "`argv`, `env` and `cwd` belong to the kind `command`".to_owned(),
        );
    }
    let url = match config.url.as_deref().map(Url::parse) {
        None => {
            fail("url", "is missing".to_owned());
            None
        }
        Some(Err(e)) => {
            fail("url", e.to_string());
            None
        }
        Some(Ok(url)) => match postern_egress::client::check_url(&url, allowed) {
            Ok(()) => Some(url),
            Err(e) => {
                fail("url", e.to_string());
                None
            }
        },
    };
    let mut headers = HeaderMap::new();
    for (key, value) in &config.headers {
        match (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            (Ok(key), Ok(_)) if OURS.contains(&key.as_str()) || key.as_str().starts_with("ce-") => {
                fail("headers", format!("`{key}` is set by postern"));
            }
            (Ok(key), Ok(mut value)) => {
                // Whatever an operator puts here may be a token
                value.set_sensitive(true);
                if headers.insert(key.clone(), value).is_some() {
                    fail("headers", format!("`{key}` stands twice"));
                }
            }
            _ => fail("headers", format!("`{key}` or its value is no header")),
        }
    }
    let mut signing = Vec::new();
    for (n, key) in config.signing.iter().enumerate() {
        match keys::load(key, environment) {
            Err(fault) => faults.push(DestinationFault::Key(name.clone(), n, fault)),
            Ok(loaded) => match &loaded.material {
                Material::Secret(secret) => match SigningKey::new(secret, loaded.not_after) {
                    Ok(key) => signing.push(key),
                    Err(e) => faults.push(DestinationFault::Signing(name.clone(), n, e)),
                },
                Material::Public(_) => {
                    faults.push(DestinationFault::Signing(name.clone(), n, NotASigningKey));
                }
            },
        }
    }
    if config.signing.is_empty() {
        faults.push(DestinationFault::Setting(
            name.clone(),
            "signing",
            "is empty: the receiver could not tell postern from anybody else".to_owned(),
        ));
    }
    Some(Kind::Http(Http {
        url: url?,
        mode: config.mode.unwrap_or_default(),
        signing,
        headers,
    }))
}

fn command(
    name: &Name,
    config: &DestinationConfig,
    environment: Environment<'_>,
    faults: &mut Vec<DestinationFault>,
) -> Option<Kind> {
    let mut fail = |setting, why: &str| {
        faults.push(DestinationFault::Setting(
            name.clone(),
            setting,
            why.to_owned(),
        ));
    };
    let foreign = config.url.is_some() || config.mode.is_some();
    if foreign || !config.signing.is_empty() || !config.headers.is_empty() {
        fail(
            "kind",
            "`url`, `mode`, `signing` and `headers` belong to the kind `http`",
        );
    }
    let Some((program, arguments)) = config.argv.split_first() else {
        fail("argv", "is empty: want the program and its arguments");
        return None;
    };
    let mut seen = Vec::new();
    for variable in &config.env {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            fail(
                "env",
                &format!("`{}` names no variable", variable.escape_debug()),
            );
            continue;
        }
        match environment(variable) {
            Some(value) => seen.push((variable.clone(), Secret::new(value))),
            None => fail(
                "env",
                &format!("the environment variable `{variable}` is not set"),
            ),
        }
    }
    Some(Kind::Command(Command {
        program: program.clone(),
        arguments: arguments.to_vec(),
        environment: seen,
        cwd: config.cwd.clone(),
    }))
}

/// Every destination of the configuration, or every fault
pub fn all(
    configs: &BTreeMap<Name, DestinationConfig>,
    allowed: &Allowed,
    environment: Environment<'_>,
) -> Result<BTreeMap<Name, Arc<Destination>>, Vec<DestinationFault>> {
    let mut destinations = BTreeMap::new();
    let mut faults = Vec::new();
    for (name, config) in configs {
        match Destination::new(name, config, allowed, environment) {
            Ok(one) => drop(destinations.insert(name.clone(), Arc::new(one))),
            Err(mut found) => faults.append(&mut found),
        }
    }
    if faults.is_empty() {
        Ok(destinations)
    } else {
        Err(faults)
    }
}
