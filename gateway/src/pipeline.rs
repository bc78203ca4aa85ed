//! The data path, top to bottom: receive, verify, decide, project, subscribe, commit, and only then the
//! acknowledgement. Each step takes what the step before alone can make.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::response::Response;
use postern_contract::canonical::NotCanonical;
use postern_profiles::{Malformed, Outcome, Refusal, Reply, Step};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::commit::commit;
use crate::decide::decide;
use crate::dispatch::Wake;
use crate::handshake::{NotDone, fulfil};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::network_keys::{NetworkKeys, NoKey};
use crate::outage::Outage;
use crate::project::project;
use crate::receive::{Limits, NotReceived, receive};
use crate::respond::{Answer, respond};
use crate::state::{Served, State};
use crate::store::{Committed, Store, StoreFault};
use crate::subscribe::subscribe;
use crate::trail::Trail;

/// What the data path works with
pub struct Pipeline {
    /// Where time comes from
    pub clock: Arc<dyn Clock>,
    /// What a delivery may cost
    pub limits: Limits,
    /// Sources and frozen documents, replaced whole by a reload
    pub state: Arc<ArcSwap<State>>,
    /// Keys that are fetched
    pub keys: NetworkKeys,
    /// Hears of secrets that sources have learned
    pub learned: Arc<Notify>,
    /// Where events are kept
    pub store: Arc<dyn Store>,
    /// The event log
    pub journal: Journal,
    /// Counters
    pub metrics: Arc<Metrics>,
    /// Tells the dispatcher of new work
    pub wake: Wake,
    /// The deliveries that are worked on
    pub under_way: TaskTracker,
    /// What `/readyz` has told so far
    pub ready: Outage,
}

/// Why a delivery goes no further
pub enum Stop {
    /// Too much of this source is under way
    Busy,
    /// Turned away before verification
    NotReceived(NotReceived),
    /// Not authentic
    Refused(Refusal),
    /// A handshake, which asks for nothing but its answer
    Handshake(Reply),
    /// A handshake whose promise could not be kept
    NotDone(NotDone),
    /// Whether it is authentic cannot be known now
    NoKey(NoKey),
    /// Authentic, but no evidence
    Malformed(Malformed),
    /// A projection without canonical form
    NotCanonical(NotCanonical),
    /// The store cannot commit
    NotStored(StoreFault),
}

impl Pipeline {
    /// Answers one request to `/hooks/<name>`. On a task of its own: a sender that hangs up, and be it in
    /// mid-commit, takes neither the delivery's line from the log nor new work from the dispatcher.
    pub async fn answer(self: Arc<Self>, name: String, request: http::Request<Body>) -> Response {
        let tracker = self.under_way.clone();
        let work = tracker.spawn(async move {
            let _counted = InFlight::new(&self.metrics);
            self.handle(&name, request).await
        });
        // Broken off: nothing was promised
        work.await
            .unwrap_or_else(|_| respond(&Answer::Unavailable, None))
    }

    async fn handle(&self, name: &str, request: http::Request<Body>) -> Response {
        let state = self.state.load_full();
        let Some(served) = state.served(name) else {
            return respond(&Answer::NoSource, None);
        };
        let mut trail = Trail::new(&served.source, self.clock.now());
        let answer = match self.process(&state, served, request, &mut trail).await {
            Ok(answer) => answer,
            Err(stop) => trail.stopped(stop),
        };
        let entry = trail.end(&answer);
        self.metrics.delivery(name, entry.line.outcome.as_str());
        self.journal.record(entry).await;
        respond(&answer, Some(served.source.profile().ack()))
    }

    async fn process(
        &self,
        state: &State,
        served: &Served,
        request: http::Request<Body>,
        trail: &mut Trail,
    ) -> Result<Answer, Stop> {
        let source = &served.source;
        let raw = receive(request, &self.limits, &source.share, || self.clock.now())
            .await
            .map_err(Stop::NotReceived)?;
        trail.received(&raw);
        // Taken once the body is here: a sender that holds bodies back must not use turns up
        let _turn = source.in_flight.try_acquire().map_err(|_| Stop::Busy)?;
        let verified = self.keys.verify(source, &raw, &state.client).await;
        let evidence = match verified.map_err(Stop::NoKey)? {
            Outcome::Verified(evidence) => evidence,
            Outcome::Handshake(reply, then) => {
                let done = fulfil(then, source, &state.client, &self.learned).await;
                return Err(done.map_or_else(Stop::NotDone, |()| Stop::Handshake(reply)));
            }
            Outcome::Malformed(malformed) => return Err(Stop::Malformed(malformed)),
            // Fetching has ended: a key that is still wanted is none
            Outcome::Wanted(_) => return Err(Stop::Refused(Step::NoLiveKey.into())),
            Outcome::Refused(refusal) => return Err(Stop::Refused(refusal)),
        };
        trail.verified(&evidence);
        let mut owed = Vec::new();
        let mut seen = HashSet::new();
        for item in evidence.items() {
            let decisions = decide(&served.candidates, item);
            trail.nonmatches(&decisions);
            for matched in decisions.matches {
                let (sha256, at) = (evidence.body_sha256(), raw.received_at);
                let event = project(matched, source.profile(), item, sha256, at)
                    .map_err(Stop::NotCanonical)?;
                // An item that a batch has twice is one event
                if seen.insert((event.id(), event.candidate().trigger.digest())) {
                    owed.push(subscribe(event, item, at));
                }
            }
        }
        trail.matches(&owed);
        if owed.iter().all(|event| event.permits().is_empty()) {
            return Ok(Answer::NothingOwed);
        }
        let began = Instant::now();
        let committed = commit(&self.store, &self.wake, source, &evidence, &raw, &owed)
            .await
            .map_err(Stop::NotStored)?;
        let fresh = match &committed {
            Committed::Fresh { events } => events.len(),
            Committed::Replay { .. } => 0,
        };
        self.metrics.commit(began.elapsed(), fresh);
        Ok(match committed {
            Committed::Fresh { events } => Answer::Accepted(events),
            Committed::Replay { events } => Answer::Replay(events),
        })
    }
}

/// Counts a request for as long as it is worked on
struct InFlight<'m>(&'m Metrics);

impl<'m> InFlight<'m> {
    fn new(metrics: &'m Metrics) -> Self {
        metrics.in_flight.inc();
        Self(metrics)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}
