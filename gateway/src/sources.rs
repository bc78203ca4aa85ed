//! A source as meant: a name, a verifier with its keys, the outer bounds of what its subscriptions may be
//! bound to, and how long copies are recognised. Made from the configuration, or refused with every fault.

use std::collections::BTreeMap;
use std::sync::Arc;

use postern_contract::Name;
use postern_contract::fault::{Fault, Party};
use postern_predicates::Binding;
use postern_profiles::{Catalogue, Key, KeyMaterial, Options, Profile, Tolerance, Verifier};
use tokio::sync::Semaphore;

use crate::admission::SourceFacts;
use crate::config::{Period, SourceConfig};
use crate::keys::{self, Environment, KeyFault};
use crate::receive::Share;

/// One endpoint, `POST /hooks/<name>`
pub struct Source {
    /// Its name
    pub name: Name,
    /// What authenticates its deliveries
    pub verifier: Verifier,
    /// The App whose webhook this is
    pub app: Option<u64>,
    /// The outer bounds of its subscriptions
    pub grants: Binding,
    /// How long copies are recognised
    pub window: Period,
    /// How many deliveries may be under way
    pub in_flight: Arc<Semaphore>,
    /// The memory that its bodies hold
    pub share: Share,
}

/// A source that cannot be used as configured
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// The catalogue has no such profile
    #[error("sources.{source_name}.profile: no profile `{profile}`")]
    NoProfile {
        /// The source
        source_name: Name,
        /// What was asked for
        profile: String,
        /// A profile of a similar name
        similar: Option<String>,
    },
    /// A key cannot be had
    #[error("sources.{0}.keys[{1}]: {2}")]
    Key(Name, usize, KeyFault),
    /// The profile does not take the keys, parameters or tolerances
    #[error("sources.{0}: {1}")]
    Bind(Name, postern_profiles::BindError),
    /// Grants that no binding can have
    #[error("sources.{0}.grants: {1}")]
    Grants(Name, String),
    /// Copies would be forgotten while their timestamps still count
    #[error("sources.{0}.window: `{1}` is shorter than past and future tolerance together")]
    Window(Name, Period),
}

impl Fault for SourceFault {
    fn code(&self) -> &'static str {
        match self {
            Self::NoProfile { .. } => "no-profile",
            Self::Key(_, _, fault) => fault.code(),
            Self::Bind(_, fault) => fault.code(),
            Self::Grants(..) => "grants-invalid",
            Self::Window(..) => "window-too-short",
        }
    }
    fn fault(&self) -> Party {
        Party::Operator
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoProfile { similar, .. } => Some(match similar {
                Some(name) => format!("did you mean `{name}`? `postern profile list` shows all"),
                None => "`postern profile list` shows all".to_owned(),
            }),
            Self::Key(_, _, fault) => fault.hint(),
            Self::Bind(_, fault) => fault.hint(),
            _ => None,
        }
    }
}

impl Source {
    /// Checks `config` and reads its keys
    pub fn new(
        name: &Name,
        config: &SourceConfig,
        environment: Environment<'_>,
    ) -> Result<Self, Vec<SourceFault>> {
        let profile = profile(name, config).map_err(|fault| vec![fault])?;
        let mut faults = Vec::new();
        let mut live = Vec::new();
        for (n, key) in config.keys.iter().enumerate() {
            match keys::load(key, environment) {
                Ok(key) => live.push(bound(key)),
                Err(fault) => faults.push(SourceFault::Key(name.clone(), n, fault)),
            }
        }
        let resources = config.grants.resources.clone();
        let grants = Binding::new(resources, config.grants.origins.clone());
        let grants = grants
            .map_err(|e| faults.push(SourceFault::Grants(name.clone(), e.to_string())))
            .ok();
        let options = Options {
            tolerance: Tolerance {
                past: config.past.map(Period::duration),
                future: config.future.map(Period::duration),
            },
            params: (config.params.iter())
                .map(|(name, value)| (name.clone(), value.texts()))
                .collect(),
        };
        let verifier = if faults.is_empty() {
            profile
                .bind(live, options)
                .map_err(|e| faults.push(SourceFault::Bind(name.clone(), e)))
                .ok()
        } else {
            None
        };
        let (Some(verifier), Some(grants), true) = (verifier, grants, faults.is_empty()) else {
            return Err(faults);
        };
        if config.window.duration() < verifier.tolerated() {
            return Err(vec![SourceFault::Window(name.clone(), config.window)]);
        }
        Ok(Self {
            name: name.clone(),
            verifier,
            app: config.app,
            grants,
            window: config.window,
            in_flight: Arc::new(Semaphore::new(config.max_in_flight.max(1))),
            share: Share::default(),
        })
    }

    /// Its verification profile
    pub fn profile(&self) -> &Profile {
        self.verifier.profile()
    }

    /// What admission must know of it
    pub fn facts(&self) -> SourceFacts<'_> {
        SourceFacts {
            name: &self.name,
            profile: self.profile().id(),
            profile_digest: self.profile().digest(),
            app: self.app,
            grants: &self.grants,
        }
    }
}

fn profile(name: &Name, config: &SourceConfig) -> Result<&'static Profile, SourceFault> {
    Catalogue::embedded()
        .get(&config.profile)
        .ok_or_else(|| SourceFault::NoProfile {
            source_name: name.clone(),
            profile: config.profile.clone(),
            similar: similar(&config.profile),
        })
}

/// The profile whose name begins alike
fn similar(id: &str) -> Option<String> {
    let head: String = id.chars().take(4).collect();
    let mut names = Catalogue::embedded().iter().map(Profile::id);
    names
        .find(|name| name.starts_with(&head))
        .map(str::to_owned)
}

fn bound(key: keys::LoadedKey) -> Key {
    Key {
        name: key.name,
        id: key.id,
        material: match key.material {
            keys::Material::Secret(secret) => KeyMaterial::Secret(secret),
            keys::Material::Public(text) => KeyMaterial::Public(text),
        },
        not_after: key.not_after,
    }
}

/// Every source of the configuration, or every fault
pub fn all(
    configs: &BTreeMap<Name, SourceConfig>,
    environment: Environment<'_>,
) -> Result<BTreeMap<Name, Source>, Vec<SourceFault>> {
    let mut sources = BTreeMap::new();
    let mut faults = Vec::new();
    for (name, config) in configs {
        match Source::new(name, config, environment) {
            Ok(source) => drop(sources.insert(name.clone(), source)),
            Err(mut found) => faults.append(&mut found),
        }
    }
    if faults.is_empty() {
        Ok(sources)
    } else {
        Err(faults)
    }
}
