//! What a source's deliveries may trigger: the loaded triggers by native event, each with the
//! subscriptions that name its digest and whether each one is admitted. Built when files are loaded; a
//! delivery only looks up.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use postern_contract::{Digest, Name, Subscription};
use postern_predicates::{ChosenFilters, Trigger};

use crate::admission::{Admitted, DestinationFacts, NotAdmitted, SourceFacts};
use crate::plans::Plans;

/// One trigger and those who wait for it
pub struct Candidate {
    /// The frozen trigger
    pub trigger: Arc<Trigger>,
    /// The subscriptions that name its digest, by digest
    pub subscribers: Vec<Subscriber>,
}

/// One subscription of a candidate
pub struct Subscriber {
    /// Its digest
    pub digest: Digest,
    /// Its chosen filters and its admissions, or why it gets nothing
    pub standing: Result<Standing, NotAdmitted>,
}

/// A subscription that at least one admission lets through
pub struct Standing {
    /// The chosen filters
    pub filters: ChosenFilters,
    /// One a destination
    pub admitted: Vec<Admitted>,
}

/// The candidates of one source
#[derive(Default)]
pub struct Candidates {
    by_event: HashMap<String, Vec<Arc<Candidate>>>,
    all: Vec<Arc<Candidate>>,
}

impl Candidates {
    /// Judges every subscription of `plans` that verifies by the source's profile
    pub fn new(
        plans: &Plans,
        source: &SourceFacts<'_>,
        destinations: &BTreeMap<&Name, DestinationFacts<'_>>,
    ) -> Self {
        let mut subscribers: BTreeMap<Digest, Vec<Subscriber>> = BTreeMap::new();
        for (digest, subscription) in &plans.subscriptions {
            if subscription.profile != source.profile {
                continue;
            }
            let trigger = plans.triggers.get(&subscription.trigger_digest);
            let standing = stand(*digest, subscription, trigger, source, plans, destinations);
            subscribers
                .entry(subscription.trigger_digest)
                .or_default()
                .push(Subscriber {
                    digest: *digest,
                    standing,
                });
        }
        let mut found = Self::default();
        for (digest, subscribers) in subscribers {
            let Some(trigger) = plans.triggers.get(&digest) else {
                continue;
            };
            let candidate = Arc::new(Candidate {
                trigger: Arc::clone(trigger),
                subscribers,
            });
            for event in trigger.native_events() {
                let listed = found.by_event.entry(event.clone()).or_default();
                if !listed.iter().any(|c| Arc::ptr_eq(c, &candidate)) {
                    listed.push(Arc::clone(&candidate));
                }
            }
            found.all.push(candidate);
        }
        found
    }

    /// The candidates of a native event
    pub fn of_event(&self, event: &str) -> &[Arc<Candidate>] {
        self.by_event.get(event).map_or(&[], Vec::as_slice)
    }

    /// Every candidate
    pub fn all(&self) -> &[Arc<Candidate>] {
        &self.all
    }
}

/// The admissions of one subscription from one source: those that hold, else why the first does not
fn stand(
    digest: Digest,
    subscription: &Subscription,
    trigger: Option<&Arc<Trigger>>,
    source: &SourceFacts<'_>,
    plans: &Plans,
    destinations: &BTreeMap<&Name, DestinationFacts<'_>>,
) -> Result<Standing, NotAdmitted> {
    let mut admitted = Vec::new();
    let mut first_refusal = None;
    let named = (plans.admissions.iter())
        .filter(|a| a.subscription_digest == digest && &a.source == source.name);
    for admission in named {
        let destination = destinations.get(&admission.destination);
        let trigger = trigger.map(Arc::as_ref);
        match Admitted::new(
            digest,
            subscription,
            trigger,
            source,
            admission,
            destination,
        ) {
            Ok(yes) => admitted.push(yes),
            Err(no) => first_refusal = first_refusal.or(Some(no)),
        }
    }
    if admitted.is_empty() {
        return Err(first_refusal.unwrap_or(NotAdmitted::NoAdmission));
    }
    let filters = trigger
        .ok_or(NotAdmitted::NoTrigger)?
        .choose(&subscription.filters)
        .map_err(|_| NotAdmitted::OtherFilters)?;
    Ok(Standing { filters, admitted })
}
