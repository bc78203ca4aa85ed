//! What a source's deliveries may trigger: the loaded triggers by native event, each with the
//! subscriptions that name its digest and whether each one is admitted. Built when files are loaded; a
//! delivery only looks up.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use postern_contract::{Digest, Name, Subscription};
use postern_predicates::{ChosenFilters, Family, Trigger};

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

/// Triggers of one declaration, and the candidate of each
pub struct Kin {
    /// The triggers
    pub family: Family,
    /// One a member, in the members' order
    pub candidates: Vec<Candidate>,
}

/// The candidates of one source
#[derive(Default)]
pub struct Candidates {
    kin: Vec<Kin>,
    by_event: HashMap<String, Vec<usize>>,
    by_subscription: HashMap<Digest, (usize, usize, usize)>,
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
        let triggers = subscribers
            .keys()
            .filter_map(|digest| plans.triggers.get(digest));
        let families = Family::group(triggers.cloned());
        let mut found = Self::default();
        for family in families {
            let place = found.kin.len();
            let mut candidates = Vec::with_capacity(family.members().len());
            for (member, trigger) in family.members().iter().enumerate() {
                let subscribers = subscribers.remove(&trigger.digest()).unwrap_or_default();
                for (n, subscriber) in subscribers.iter().enumerate() {
                    (found.by_subscription).insert(subscriber.digest, (place, member, n));
                }
                candidates.push(Candidate {
                    trigger: Arc::clone(trigger),
                    subscribers,
                });
            }
            // One declaration lists the same events for every member
            for event in family
                .members()
                .first()
                .map_or(&[][..], |t| t.native_events())
            {
                let listed = found.by_event.entry(event.clone()).or_default();
                if listed.last() != Some(&place) {
                    listed.push(place);
                }
            }
            found.kin.push(Kin { family, candidates });
        }
        found
    }

    /// Those who look at a native event
    pub fn of_event(&self, event: &str) -> impl Iterator<Item = &Kin> {
        let places = self.by_event.get(event).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|place| self.kin.get(*place))
    }

    /// Where a subscription stands; `None` where its trigger is not loaded
    pub fn subscriber(&self, subscription: Digest) -> Option<&Subscriber> {
        let (kin, member, n) = self.by_subscription.get(&subscription)?;
        (self.kin.get(*kin)?.candidates.get(*member)?.subscribers).get(*n)
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
