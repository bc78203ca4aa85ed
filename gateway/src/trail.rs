//! The trail of one delivery: what each step found, gathered for the event log as the delivery passes.

use std::collections::HashMap;

use postern_contract::fault::Fault as _;
use postern_contract::{Digest, Sha256Hex, Timestamp};
use postern_profiles::{Item, Step, VerifiedEvidence};

use crate::decide::Decisions;
use crate::handshake::NotDone;
use crate::journal::{Entry, LogCandidate, LogLine, LogOutcome, LogSubscription};
use crate::pipeline::Stop;
use crate::receive::RawDelivery;
use crate::respond::Answer;
use crate::sources::Source;
use crate::subscribe::{Denied, Owed};

/// The most names of native events that a line has
const MAX_NAMES: usize = 8;

/// The native event's name; of a batch, each one once
fn names(evidence: &VerifiedEvidence) -> Option<String> {
    let mut names: Vec<&str> = evidence.items().iter().map(Item::event).collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len() > MAX_NAMES;
    names.truncate(MAX_NAMES);
    let names = names.join(",");
    (!names.is_empty()).then(|| if more { format!("{names},…") } else { names })
}

/// What has been found so far
pub struct Trail {
    line: LogLine,
    body: Option<bytes::Bytes>,
    /// Where among the line's candidates each trigger stands
    places: HashMap<Digest, Vec<usize>>,
}

impl Trail {
    /// Of a delivery to `source` that begins to arrive at `now`
    pub fn new(source: &Source, now: Timestamp) -> Self {
        Self {
            line: LogLine {
                id: uuid::Uuid::now_v7().to_string(),
                received_at: now,
                source: source.name.clone(),
                profile: source.profile().id().to_owned(),
                outcome: LogOutcome::NotReceived,
                code: None,
                detail: None,
                peer: None,
                event: None,
                delivery: None,
                body_sha256: None,
                key: None,
                events: Vec::new(),
                candidates: Vec::new(),
            },
            body: None,
            places: HashMap::new(),
        }
    }

    /// It has arrived whole
    pub fn received(&mut self, raw: &RawDelivery) {
        self.line.received_at = raw.received_at;
        self.line.peer = raw.peer.map(|peer| peer.ip().to_string());
        self.body = Some(raw.body.clone());
    }

    /// It is authentic evidence
    pub fn verified(&mut self, evidence: &VerifiedEvidence) {
        self.line.event = names(evidence);
        self.line.delivery = evidence.delivery().map(str::to_owned);
        self.line.body_sha256 = Some(evidence.body_sha256());
        self.line.key = Some(evidence.key_name().to_owned());
    }

    /// The triggers that did not match
    pub fn nonmatches(&mut self, decisions: &Decisions<'_>) {
        for (candidate, others, why) in &decisions.nonmatches {
            self.say(LogCandidate {
                connector: candidate.trigger.connector().to_owned(),
                trigger: candidate.trigger.trigger().to_owned(),
                trigger_digest: candidate.trigger.digest(),
                matched: false,
                others: *others,
                variant: None,
                reason: Some(why.reason.as_str().to_owned()),
                at: why.at.clone(),
                subscriptions: Vec::new(),
            });
        }
    }

    /// The triggers that matched, and what became of it at their subscriptions
    pub fn matches(&mut self, owed: &[Owed<'_>]) {
        for owed in owed {
            let trigger = &owed.projected().candidate().trigger;
            let admitted = owed.permits().iter().map(|(digest, to)| LogSubscription {
                digest: *digest,
                destination: Some(to.clone()),
                why: None,
                at: None,
            });
            let denied = owed.denied().iter().map(|(digest, why)| LogSubscription {
                digest: *digest,
                destination: None,
                why: Some(why.code().to_owned()),
                at: match why {
                    Denied::Filter(nonmatch) => nonmatch.at.clone(),
                    Denied::Admission(_) => None,
                },
            });
            self.say(LogCandidate {
                connector: trigger.connector().to_owned(),
                trigger: trigger.trigger().to_owned(),
                trigger_digest: trigger.digest(),
                matched: true,
                others: 0,
                variant: owed
                    .projected()
                    .matched()
                    .found()
                    .variant()
                    .map(str::to_owned),
                reason: None,
                at: None,
                subscriptions: admitted.chain(denied).collect(),
            });
        }
    }

    /// Notes what a trigger said, once for all items of a batch of which it says the same
    fn say(&mut self, said: LogCandidate) {
        let same = |known: &LogCandidate| {
            (known.matched, &known.variant) == (said.matched, &said.variant)
                && (&known.reason, &known.at) == (&said.reason, &said.at)
                && known.subscriptions == said.subscriptions
        };
        let candidates = &mut self.line.candidates;
        let places = self.places.entry(said.trigger_digest).or_default();
        let known = |at: &&usize| candidates.get(**at).is_some_and(same);
        match places
            .iter()
            .find(known)
            .and_then(|at| candidates.get_mut(*at))
        {
            Some(known) => known.others += said.others + 1,
            None => {
                places.push(candidates.len());
                candidates.push(said);
            }
        }
    }

    /// It goes no further: the step is noted, and the answer to the outside does not say it
    pub fn stopped(&mut self, stop: Stop) -> Answer {
        let (outcome, code, detail, answer) = match stop {
            Stop::Busy => (
                LogOutcome::NotReceived,
                "busy",
                "too many deliveries of this source are under way".to_owned(),
                Answer::Busy,
            ),
            Stop::NotReceived(why) => (
                LogOutcome::NotReceived,
                why.code(),
                why.to_string(),
                Answer::NotReceived(why),
            ),
            Stop::Refused(why) => (
                LogOutcome::Refused,
                why.code(),
                match &why.detail {
                    Some(detail) => format!("{why}: {detail}"),
                    None => why.to_string(),
                },
                match why.step {
                    // Nobody looked at any evidence yet
                    Step::Method => Answer::Method,
                    _ => Answer::Refused,
                },
            ),
            Stop::Malformed(why) => (
                LogOutcome::Malformed,
                why.code(),
                why.to_string(),
                Answer::Malformed,
            ),
            Stop::NotCanonical(why) => (
                LogOutcome::Malformed,
                "not-canonical",
                why.to_string(),
                Answer::Malformed,
            ),
            Stop::NotStored(why) => (
                LogOutcome::Unavailable,
                why.code(),
                why.to_string(),
                Answer::Unavailable,
            ),
            Stop::NoKey(why) => (
                LogOutcome::Unavailable,
                why.code,
                why.to_string(),
                Answer::NoKey,
            ),
            Stop::NotDone(why) => match &why {
                NotDone::Learned => (
                    LogOutcome::Refused,
                    why.code(),
                    why.to_string(),
                    Answer::Refused,
                ),
                NotDone::NotStored(_) | NotDone::NotVisited(..) => (
                    LogOutcome::Unavailable,
                    why.code(),
                    why.to_string(),
                    Answer::NotDone,
                ),
            },
            Stop::Handshake(reply) => {
                self.line.outcome = LogOutcome::Handshake;
                self.body = None;
                return Answer::Handshake(reply);
            }
        };
        if outcome != LogOutcome::Malformed {
            // Only what has been authenticated is kept
            self.body = (self.body.take()).filter(|_| matches!(answer, Answer::Unavailable));
        } else if let Some(body) = &self.body {
            self.line.body_sha256 = Some(Sha256Hex::of(body));
        }
        self.line.outcome = outcome;
        self.line.code = Some(code.to_owned());
        self.line.detail = Some(detail);
        answer
    }

    /// What became of it: for the counters
    pub fn end(mut self, answer: &Answer) -> Entry {
        match answer {
            Answer::Accepted(events) => {
                self.line.outcome = LogOutcome::Accepted;
                self.line.events.clone_from(events);
                self.body = None;
            }
            Answer::Replay(events) => {
                self.line.outcome = LogOutcome::Replay;
                self.line.events.clone_from(events);
                self.body = None;
            }
            Answer::NothingOwed => self.line.outcome = LogOutcome::NothingOwed,
            _ => {}
        }
        Entry {
            line: self.line,
            body: self.body,
        }
    }
}
