//! What an operator asks about admissions: every subscription, what it may do, and where it stands. It
//! needs no secret, so that a reviewer can run it anywhere.

use std::collections::BTreeMap;

use postern_contract::{Digest, Name};
use postern_predicates::Binding;
use postern_profiles::Catalogue;
use serde::Serialize;

use crate::admission::{DestinationFacts, Provenance, SourceFacts};
use crate::candidates::Candidates;
use crate::config::Config;
use crate::plans::Plans;

/// One subscription at one source
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The subscription's digest
    pub digest: Digest,
    /// The workflow
    pub workflow: String,
    /// Its repository
    pub repository: Option<String>,
    /// The connector
    pub connector: Name,
    /// The trigger
    pub trigger: Name,
    /// The source whose deliveries could match; none is configured where it is missing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Name>,
    /// Where its events go
    pub destinations: Vec<Name>,
    /// Why it gets nothing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

/// Every subscription of `plans` at every source of `config`
pub fn standings(config: &Config, plans: &Plans) -> Vec<Standing> {
    let destinations: BTreeMap<&Name, DestinationFacts<'_>> = (config.destinations.iter())
        .map(|(name, one)| {
            let credential = one.app.zip(one.installation);
            let facts = DestinationFacts {
                name,
                credential: credential.map(|(app, installation)| Provenance { app, installation }),
            };
            (name, facts)
        })
        .collect();
    let mut found = Vec::new();
    for (digest, subscription) in &plans.subscriptions {
        let blank = || Standing {
            digest: *digest,
            workflow: subscription.workflow.clone(),
            repository: subscription.repository.clone(),
            connector: subscription.connector.clone(),
            trigger: subscription.trigger.clone(),
            source: None,
            destinations: Vec::new(),
            why: Some("no-source"),
        };
        let before = found.len();
        for (name, source) in &config.sources {
            let Some(profile) = Catalogue::embedded().get(&source.profile) else {
                continue;
            };
            if profile.id() != subscription.profile {
                continue;
            }
            let resources = source.grants.resources.clone();
            let grants = Binding::new(resources, source.grants.origins.clone());
            let facts = SourceFacts {
                name,
                profile: profile.id(),
                profile_digest: profile.digest(),
                app: source.app,
                grants: &grants.unwrap_or_default(),
            };
            let candidates = Candidates::new(plans, &facts, &destinations);
            let subscriber = candidates.subscriber(*digest);
            let mut standing = Standing {
                source: Some(name.clone()),
                ..blank()
            };
            match subscriber.map(|s| &s.standing) {
                Some(Ok(admitted)) => {
                    standing.why = None;
                    standing.destinations = admitted
                        .admitted
                        .iter()
                        .map(|a| a.destination().clone())
                        .collect();
                }
                Some(Err(why)) => standing.why = Some(why.code()),
                None => standing.why = Some("no-trigger"),
            }
            found.push(standing);
        }
        if found.len() == before {
            found.push(blank());
        }
    }
    found
}
