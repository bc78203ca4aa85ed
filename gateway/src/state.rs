//! What a reload replaces as a whole: sources, the candidates of each, and who is admitted. A delivery
//! under way keeps the state that it began with; a queued one keeps the digest that it was matched under.

use std::collections::BTreeMap;
use std::sync::Arc;

use postern_contract::{Digest, Name, Timestamp};
use postern_egress::Client;

use crate::admission::{DestinationFacts, NotAdmitted};
use crate::candidates::Candidates;
use crate::plans::Plans;
use crate::sources::Source;

/// A source and what its deliveries may trigger
pub struct Served {
    /// The source
    pub source: Source,
    /// Its candidates
    pub candidates: Candidates,
}

/// Everything that comes from files
pub struct State {
    served: BTreeMap<Name, Served>,
    /// The frozen documents that it was built from
    pub plans: Arc<Plans>,
    /// What receiving asks the network by: for keys and confirmations
    pub client: Client,
}

impl State {
    /// Judges every subscription for every source
    pub fn new(
        plans: Arc<Plans>,
        sources: BTreeMap<Name, Source>,
        destinations: &BTreeMap<&Name, DestinationFacts<'_>>,
        client: Client,
    ) -> Self {
        let served = sources
            .into_iter()
            .map(|(name, source)| {
                let candidates = Candidates::new(&plans, &source.facts(), destinations);
                (name, Served { source, candidates })
            })
            .collect();
        Self {
            served,
            plans,
            client,
        }
    }

    /// The source of a name
    pub fn served(&self, name: &str) -> Option<&Served> {
        self.served.get(name)
    }

    /// Every source
    pub fn all(&self) -> impl Iterator<Item = &Served> {
        self.served.values()
    }

    /// Whether what `subscription` is owed may leave for `destination` now. The event was matched under
    /// this digest; the trigger's evidence is not asked again.
    pub fn still_admitted(
        &self,
        source: &str,
        subscription: Digest,
        destination: &Name,
        now: Timestamp,
    ) -> Result<(), NotAdmitted> {
        let served = self.served(source).ok_or(NotAdmitted::NoAdmission)?;
        let standing = (served.candidates.subscriber(subscription))
            .ok_or(NotAdmitted::NoAdmission)?
            .standing
            .as_ref()
            .map_err(|why| *why)?;
        standing
            .admitted
            .iter()
            .find(|admitted| admitted.destination() == destination)
            .ok_or(NotAdmitted::NoAdmission)?
            .in_force(now)
    }
}
