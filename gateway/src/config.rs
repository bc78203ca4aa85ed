//! The configuration as an operator writes it (`postern.toml`), with every default in one place. Nothing
//! is used from here unchecked: [`crate::sources`] and [`crate::destinations`] turn it into what is meant.
//!
//! Never here: a secret. Secrets are named by environment variable or file.

pub mod limits;
pub mod period;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use postern_contract::{Name, Scalar, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use limits::ServerConfig;
pub use period::Period;

/// The whole file
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where to listen, and what a connection may cost
    pub server: ServerConfig,
    /// Where events and owed deliveries are kept
    pub store: StoreConfig,
    /// The event log
    pub log: LogConfig,
    /// The frozen documents
    pub plans: PlansConfig,
    /// Who may post: one table a source, `POST /hooks/<name>`
    pub sources: BTreeMap<Name, SourceConfig>,
    /// Where events go: one table a destination
    pub destinations: BTreeMap<Name, DestinationConfig>,
    /// What outbound requests may reach
    pub egress: EgressConfig,
}

/// The store of events
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// The directory of the embedded store; relative to the configuration file
    pub path: PathBuf,
    /// How long events and finished deliveries are kept
    pub retention: Period,
}

/// The log of deliveries and decisions
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// The directory; relative to the configuration file
    pub path: PathBuf,
    /// The most bytes that the lines take
    pub max_bytes: u64,
    /// The most bytes that the bodies of deliveries without a match take
    pub max_body_bytes: u64,
}

/// The frozen documents that the gateway works by
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlansConfig {
    /// A directory as `postern compile --out` writes it: `triggers/` and `subscriptions/`
    pub path: PathBuf,
    /// The directory of the admissions that the operator has reviewed
    pub admissions: PathBuf,
}

/// One provider's endpoint
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The verification profile's id, see `postern profile list`
    pub profile: String,
    /// The live secrets or public keys; several while one is being replaced
    #[serde(default)]
    pub keys: Vec<KeyConfig>,
    /// Waits for the provider to bring the secret: it is written to the first key's `file` that is not there
    /// yet. Only of profiles whose provider does so; take it away once it is there
    #[serde(default)]
    pub setup: bool,
    /// What fetches the profile's keys, where its provider's key server wants a credential: `env` or `file`
    #[serde(default)]
    pub credential: Option<KeyConfig>,
    /// What the profile must know beside its keys, such as `base_url`: see its page
    #[serde(default)]
    pub params: BTreeMap<String, ParamConfig>,
    /// How old a signed timestamp may be; absent: the profile's own bound
    #[serde(default)]
    pub past: Option<Period>,
    /// How far ahead a signed timestamp may be; absent: the profile's own bound
    #[serde(default)]
    pub future: Option<Period>,
    /// How long a copy is recognised; never under `past` and `future` together
    #[serde(default = "seven_days")]
    pub window: Period,
    /// The GitHub App's id, where this is the App's own webhook: evidence must then name its installation
    #[serde(default)]
    pub app: Option<u64>,
    /// What subscriptions of this source may be bound to at most
    #[serde(default)]
    pub grants: GrantsConfig,
    /// The most deliveries of this source that are worked on at once; more are answered 429
    #[serde(default = "in_flight")]
    pub max_in_flight: usize,
}

/// The value of a profile's parameter: a text, or several
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParamConfig {
    /// A text
    One(String),
    /// Any of these texts
    Many(Vec<String>),
}

impl ParamConfig {
    /// Every text
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text.clone()],
            Self::Many(texts) => texts.clone(),
        }
    }
}

/// The outer bounds of a source's subscriptions
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrantsConfig {
    /// Collection to members, such as `repositories = ["octo/hello"]`
    pub resources: BTreeMap<String, Vec<Scalar>>,
    /// Origins that event URLs may have, such as `https://github.com`
    pub origins: Vec<String>,
}

/// Where a key comes from: exactly one of `env`, `file` and `public`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeyConfig {
    /// The environment variable that holds the secret
    pub env: Option<String>,
    /// The file that holds the secret; one newline at its end is dropped
    pub file: Option<PathBuf>,
    /// A public key, which is no secret
    pub public: Option<String>,
    /// What the log calls this key; absent: the variable's or file's name
    pub name: Option<String>,
    /// What deliveries call this key, where the provider gives its keys an id; absent: it counts for all
    pub id: Option<String>,
    /// When it stops counting
    pub not_after: Option<Timestamp>,
}

/// The kinds of destinations
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DestinationKind {
    /// A CloudEvent by HTTP, signed by Standard Webhooks
    Http,
    /// A local program that reads the event from standard input
    Command,
}

/// How a CloudEvent travels by HTTP
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModeConfig {
    /// The whole event as `application/cloudevents+json`
    #[default]
    Structured,
    /// Attributes as `ce-` headers, the canonical event as the body
    Binary,
}

/// One receiver of events
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DestinationConfig {
    /// `http` or `command`
    pub kind: DestinationKind,
    /// `http`: where to post
    #[serde(default)]
    pub url: Option<String>,
    /// `http`: how the event travels
    #[serde(default)]
    pub mode: Option<ModeConfig>,
    /// `http`: the signing secrets (`whsec_…`), the newest first; each one signs
    #[serde(default)]
    pub signing: Vec<KeyConfig>,
    /// `http`: further headers
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// `command`: the program and its arguments; no shell is involved
    #[serde(default)]
    pub argv: Vec<String>,
    /// `command`: names of environment variables that it may see
    #[serde(default)]
    pub env: Vec<String>,
    /// `command`: its working directory
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// How long one attempt may take
    #[serde(default = "half_a_minute")]
    pub timeout: Period,
    /// The most attempts at once
    #[serde(default = "eight")]
    pub concurrency: usize,
    /// How failures are tried again
    #[serde(default)]
    pub retry: RetryConfig,
    /// The App whose credential this destination acts with, where it has one
    #[serde(default)]
    pub app: Option<u64>,
    /// The App's installation, likewise
    #[serde(default)]
    pub installation: Option<u64>,
}

/// Exponential backoff with full jitter
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// Retries after the first attempt
    pub limit: u32,
    /// The first wait
    pub initial: Period,
    /// The longest wait
    pub max: Period,
    /// The longest wait that a destination's Retry-After may ask for
    pub max_retry_after: Period,
}

/// What the egress guard lets through
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EgressConfig {
    /// Private addresses that outbound requests may reach nevertheless: networks (`10.1.0.0/16`) or
    /// `host:port`
    pub allow: Vec<String>,
}

fn seven_days() -> Period {
    Period::from_secs(7 * 24 * 3600)
}
fn half_a_minute() -> Period {
    Period::from_secs(30)
}
fn eight() -> usize {
    8
}
fn in_flight() -> usize {
    256
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            path: "data/store".into(),
            retention: Period::from_secs(30 * 24 * 3600),
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            path: "data/log".into(),
            max_bytes: 256 << 20,
            max_body_bytes: 64 << 20,
        }
    }
}

impl Default for PlansConfig {
    fn default() -> Self {
        Self {
            path: "plans".into(),
            admissions: "admissions".into(),
        }
    }
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            limit: 12,
            initial: Period::from_secs(2),
            max: Period::from_secs(3600),
            max_retry_after: Period::from_secs(24 * 3600),
        }
    }
}

impl Config {
    /// Every file that holds a secret
    pub fn secret_files(&self) -> impl Iterator<Item = &Path> {
        let sources = self.sources.values();
        let keys = sources.flat_map(|source| source.keys.iter().chain(&source.credential));
        let signing = self.destinations.values().flat_map(|d| &d.signing);
        keys.chain(signing).filter_map(|key| key.file.as_deref())
    }

    /// Takes every relative path as relative to `base`, the configuration file's directory
    pub fn rooted_at(mut self, base: &Path) -> Self {
        let root = |path: &mut PathBuf| *path = base.join(&*path);
        root(&mut self.store.path);
        root(&mut self.log.path);
        root(&mut self.plans.path);
        root(&mut self.plans.admissions);
        let keys =
            (self.sources.values_mut()).flat_map(|s| s.keys.iter_mut().chain(&mut s.credential));
        let signing = (self.destinations.values_mut()).flat_map(|d| d.signing.iter_mut());
        for key in keys.chain(signing) {
            if let Some(file) = &mut key.file {
                root(file);
            }
        }
        for destination in self.destinations.values_mut() {
            if let Some(cwd) = &mut destination.cwd {
                root(cwd);
            }
        }
        self
    }
}
