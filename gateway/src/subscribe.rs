//! Subscribe: an event and the subscriptions of its trigger become the deliveries that are owed. Filters
//! only narrow; what is not admitted gets nothing, and why is kept for the log.

use postern_contract::{Digest, Name, Timestamp};
use postern_predicates::Nonmatch;
use postern_profiles::Item;

use crate::admission::{NotAdmitted, Permit};
use crate::project::Projected;

/// An event and all that it owes: made by [`subscribe`] alone
pub struct Owed<'a> {
    projected: Projected<'a>,
    permits: Vec<(Digest, Name)>,
    denied: Vec<(Digest, Denied)>,
}

/// Why one subscription gets nothing of a match
#[derive(Debug, PartialEq)]
pub enum Denied {
    /// A chosen filter is not true
    Filter(Nonmatch),
    /// A condition of admission does not hold
    Admission(NotAdmitted),
}

impl Denied {
    /// Stable kebab-case code
    pub fn code(&self) -> &'static str {
        match self {
            Self::Filter(why) => why.reason.as_str(),
            Self::Admission(why) => why.code(),
        }
    }
}

impl<'a> Owed<'a> {
    /// The event
    pub fn projected(&self) -> &Projected<'a> {
        &self.projected
    }
    /// Subscription and destination of every delivery that is owed
    pub fn permits(&self) -> &[(Digest, Name)] {
        &self.permits
    }
    /// The subscriptions that get nothing, and why
    pub fn denied(&self) -> &[(Digest, Denied)] {
        &self.denied
    }
}

/// Asks every subscription of the trigger that matched
pub fn subscribe<'a>(projected: Projected<'a>, item: &Item, now: Timestamp) -> Owed<'a> {
    let mut permits = Vec::new();
    let mut denied = Vec::new();
    let body = item.document();
    for subscriber in &projected.candidate().subscribers {
        let standing = match &subscriber.standing {
            Ok(standing) => standing,
            Err(why) => {
                denied.push((subscriber.digest, Denied::Admission(*why)));
                continue;
            }
        };
        if let Err(why) = standing.filters.admit(body, projected.matched().found()) {
            denied.push((subscriber.digest, Denied::Filter(why)));
            continue;
        }
        for admitted in &standing.admitted {
            match admitted.permit(body, now) {
                Ok(permit) => permits.push(owe(&permit)),
                Err(why) => denied.push((subscriber.digest, Denied::Admission(why))),
            }
        }
    }
    Owed {
        projected,
        permits,
        denied,
    }
}

/// Only a permit makes a delivery
fn owe(permit: &Permit<'_>) -> (Digest, Name) {
    (permit.subscription(), permit.destination().clone())
}
