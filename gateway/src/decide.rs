//! Decide: evidence and the frozen triggers of its source become matches and nonmatches, each nonmatch
//! with one reason. Reads the evidence alone: nothing is fetched, nothing is inferred.

use postern_predicates::{Decision, Match, Nonmatch};
use postern_profiles::VerifiedEvidence;

use crate::candidates::{Candidate, Candidates};

/// What every candidate trigger said of one delivery
pub struct Decisions<'a> {
    /// Those that matched
    pub matches: Vec<Matched<'a>>,
    /// Those that did not, with the reason
    pub nonmatches: Vec<(&'a Candidate, Nonmatch)>,
}

/// A trigger that matched: made by [`decide`] alone
pub struct Matched<'a> {
    candidate: &'a Candidate,
    found: Match,
}

impl<'a> Matched<'a> {
    /// The trigger and its subscriptions
    pub fn candidate(&self) -> &'a Candidate {
        self.candidate
    }
    /// The projection
    pub fn found(&self) -> &Match {
        &self.found
    }
}

/// Asks every trigger that lists the delivery's native event
pub fn decide<'a>(candidates: &'a Candidates, evidence: &VerifiedEvidence) -> Decisions<'a> {
    let mut decisions = Decisions {
        matches: Vec::new(),
        nonmatches: Vec::new(),
    };
    for candidate in candidates.of_event(evidence.event()) {
        let candidate: &Candidate = candidate;
        match (candidate.trigger).decide(evidence.event(), evidence.document()) {
            Decision::Match(found) => decisions.matches.push(Matched { candidate, found }),
            Decision::Nonmatch(why) => decisions.nonmatches.push((candidate, why)),
        }
    }
    decisions
}
