//! Decide: evidence and the frozen triggers of its source become matches and nonmatches, each nonmatch
//! with one reason. Reads the evidence alone: nothing is fetched, nothing is inferred.

use postern_predicates::{Match, Nonmatch};
use postern_profiles::Item;

use crate::candidates::{Candidate, Candidates};

/// What every candidate trigger said of one native event
pub struct Decisions<'a> {
    /// Those that matched
    pub matches: Vec<Matched<'a>>,
    /// Those that did not: one for all of a declaration that say the same, and how many others there are
    pub nonmatches: Vec<(&'a Candidate, usize, Nonmatch)>,
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

/// Asks every trigger that lists the native event
pub fn decide<'a>(candidates: &'a Candidates, item: &Item) -> Decisions<'a> {
    let mut decisions = Decisions {
        matches: Vec::new(),
        nonmatches: Vec::new(),
    };
    for kin in candidates.of_event(item.event()) {
        let said = kin.family.decide(item.event(), item.document());
        for (member, found) in said.matches {
            let candidate = kin.candidates.get(member);
            let matched = candidate.map(|candidate| Matched { candidate, found });
            decisions.matches.extend(matched);
        }
        for (member, count, why) in said.nonmatches {
            let candidate = kin.candidates.get(member);
            let others = count.saturating_sub(1);
            (decisions.nonmatches).extend(candidate.map(|candidate| (candidate, others, why)));
        }
    }
    decisions
}
