//! Binding: a profile, the keys and what a source says beside them become a verifier, or a fault that would
//! otherwise show as deliveries that never verify.

use std::collections::BTreeSet;
use std::time::Duration;

use postern_contract::Secret;

use super::Verifier;
use crate::facts::Params;
use crate::key::{self, BindError, Key};
use crate::profile::{Auth, Profile};
use crate::scheme::LiveKey;
use crate::source::Source;

/// A source's own tolerances
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// How old; absent: the profile's bound
    pub past: Option<Duration>,
    /// How far ahead; absent: the profile's bound
    pub future: Option<Duration>,
}

/// What a source says beside its keys
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its own tolerances
    pub tolerance: Tolerance,
    /// The profile's parameters
    pub params: Params,
    /// The operator holds the source in setup: the handshake that brings a secret is answered
    pub setup: bool,
    /// What keys are fetched with, where the profile's key server wants it
    pub credential: Option<Secret>,
}

impl Profile {
    /// Binds keys and parameters: decodes each key strictly, and refuses what could never verify anything
    pub fn bind(&self, keys: Vec<Key>, options: Options) -> Result<Verifier<'_>, BindError> {
        let special = self
            .specialised(&options.params)
            .map_err(BindError::Generic)?;
        let rules = special.as_ref().unwrap_or(self);
        let has_setup = rules.has_setup();
        let fetches = keys.is_empty() && rules.fetches_keys();
        if keys.is_empty() && !has_setup && !fetches {
            return Err(BindError::NoKey);
        }
        match (&options.credential, fetches && rules.needs_credential()) {
            (None, true) => return Err(BindError::NoCredential),
            (Some(_), false) => return Err(BindError::UnusedCredential),
            _ => {}
        }
        let Tolerance { past, future } = options.tolerance;
        if [past, future].iter().flatten().any(Duration::is_zero) {
            return Err(BindError::Tolerance);
        }
        if rules.tolerance().is_none() && (past.is_some() || future.is_some()) {
            return Err(BindError::NoTimestamp);
        }
        let known = self.params();
        if let Some(name) = options
            .params
            .keys()
            .find(|name| !known.contains_key(*name))
        {
            return Err(BindError::UnknownParam(name.clone()));
        }
        let given = |name: &String| options.params.get(name).is_some_and(|v| !v.is_empty());
        if let Some((name, _)) = known.iter().find(|(name, needed)| **needed && !given(name)) {
            return Err(BindError::NoParam(name.clone()));
        }
        let fetching = (rules.declared.auth.iter()).filter_map(|auth| auth.fetch.as_ref());
        let mut asked = fetching.flat_map(|rule| rule.needed_params());
        if fetches && let Some(name) = asked.find(|name| !given(&(*name).to_owned())) {
            return Err(BindError::NoParam(name.to_owned()));
        }
        // Where a parameter says which key the deliveries name, a key without an id is that one
        let named = |auth: &Auth| match &auth.key_id {
            Some(Source::Param(name)) => options.params.get(name)?.first().cloned(),
            _ => None,
        };
        let mut bound: Vec<Vec<LiveKey>> = rules.declared.auth.iter().map(|_| Vec::new()).collect();
        for key in &keys {
            // Alternatives may take keys of different kinds: a key is one of those that it fits
            let mut fault = None;
            let mut fits = false;
            for (auth, live) in rules.declared.auth.iter().zip(&mut bound) {
                match key::prepare(key, auth) {
                    Ok(ready) => {
                        fits = true;
                        live.push(LiveKey {
                            name: key.name.clone(),
                            id: key.id.clone().or_else(|| named(auth)),
                            not_after: key.not_after,
                            ready,
                        });
                    }
                    Err(e) => fault = fault.or(Some(e)),
                }
            }
            if let Some(fault) = fault.filter(|_| !fits) {
                return Err(fault);
            }
        }
        let verifier = Verifier {
            profile: self,
            special: special.clone().map(Box::new),
            keys: bound,
            fetches,
            options,
        };
        let usable = |group: &Option<&str>| {
            let mut alternatives = verifier.alternatives(*group);
            alternatives.any(|(auth, keys)| !keys.is_empty() || fetches && auth.is_fetched())
        };
        if (fetches || !keys.is_empty()) && !rules.groups().iter().all(usable) {
            return Err(BindError::NoKey);
        }
        Ok(verifier)
    }

    /// The groups of alternatives, each of which must hold
    pub(super) fn groups(&self) -> BTreeSet<Option<&str>> {
        (self.declared.auth.iter())
            .map(|auth| auth.group.as_deref())
            .collect()
    }
}
