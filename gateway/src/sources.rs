//! A source as meant: a name, a verifier with its keys, the outer bounds of what its subscriptions may be
//! bound to, and how long copies are recognised. Made from the configuration, or refused with every fault.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use postern_contract::Name;
use postern_contract::fault::{Fault, Party};
use postern_predicates::Binding;
use postern_profiles::{
    Catalogue, Confidence, Key, KeyMaterial, Options, Profile, Tolerance, Verifier,
};
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
    pub verifier: Verifier<'static>,
    /// The App whose webhook this is
    pub app: Option<u64>,
    /// The outer bounds of its subscriptions
    pub grants: Binding,
    /// Where the secret goes that the provider brings: only while the source is in setup
    pub learn_into: Option<PathBuf>,
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
    /// A provider that brings no secret
    #[error("sources.{0}.setup: the profile's provider brings no secret")]
    NoSetup(Name),
    /// A secret has nowhere to go
    #[error("sources.{0}.setup: no key has a `file`, into which the secret would go")]
    NoFile(Name),
    /// A credential that is a public key
    #[error("sources.{0}.credential: {1}")]
    Credential(Name, KeyFault),
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
            Self::NoSetup(_) => "no-setup",
            Self::NoFile(_) => "setup-no-file",
            Self::Credential(_, fault) => fault.code(),
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
            Self::Credential(_, fault) => fault.hint(),
            Self::NoFile(_) => Some("add `keys = [{ file = \"secrets/…\" }]`".to_owned()),
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
        let mut learn_into = None;
        for (n, key) in config.keys.iter().enumerate() {
            if config.setup
                && let Some(file) = key.file.as_ref().filter(|file| !file.exists())
            {
                learn_into = learn_into.or_else(|| Some(file.clone()));
                continue;
            }
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
        if config.setup && !profile.has_setup() {
            faults.push(SourceFault::NoSetup(name.clone()));
        } else if config.setup && config.keys.iter().all(|key| key.file.is_none()) {
            faults.push(SourceFault::NoFile(name.clone()));
        }
        let credential = match &config.credential {
            None => None,
            Some(config) => match keys::load(config, environment) {
                Ok(keys::LoadedKey {
                    material: keys::Material::Secret(secret),
                    ..
                }) => Some(secret),
                Ok(_) => {
                    let fault = KeyFault::NoSecret;
                    faults.push(SourceFault::Credential(name.clone(), fault));
                    None
                }
                Err(fault) => {
                    faults.push(SourceFault::Credential(name.clone(), fault));
                    None
                }
            },
        };
        // The engine takes a source without keys for one in setup: here the operator must say so
        if live.is_empty() && faults.is_empty() && learn_into.is_none() && !profile.fetches_keys() {
            let fault = postern_profiles::BindError::NoKey;
            faults.push(SourceFault::Bind(name.clone(), fault));
        }
        let options = Options {
            setup: learn_into.is_some(),
            credential,
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
            learn_into,
            window: config.window,
            in_flight: Arc::new(Semaphore::new(config.max_in_flight.max(1))),
            share: Share::default(),
        })
    }

    /// Its verification profile
    pub fn profile(&self) -> &Profile {
        self.verifier.profile()
    }

    /// What the operator should know of it
    pub fn warnings(&self) -> Vec<String> {
        let profile = self.profile();
        let mut warnings = Vec::new();
        if profile.confidence() == Confidence::Unconfirmed {
            let check = profile.to_check().join("; ");
            warnings.push(format!(
                "nobody has seen the profile `{}` verify a real delivery: check that {check}",
                profile.id()
            ));
        }
        let given = |name: &str| self.verifier.has_param(name);
        let advised = profile.advised().iter().filter(|(name, _)| !given(name));
        warnings
            .extend(advised.map(|(name, why)| format!("the parameter `{name}` is missing: {why}")));
        let params = profile.params();
        let of_url = ["base_url", "callback_url"];
        if of_url.iter().any(|name| params.contains_key(*name)) && !of_url.iter().any(|n| given(n))
        {
            warnings.push(
                "the URL is signed: where a proxy stands before postern, set the parameter `base_url` to what \
                 the provider calls"
                    .to_owned(),
            );
        }
        if self.learn_into.is_some() {
            warnings.push("it is in setup: whoever posts first brings the secret".to_owned());
        }
        warnings
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
