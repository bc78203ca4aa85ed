//! Dispatch: takes due deliveries from the store, attempts them, and settles what each attempt came to.
//! One task a destination, so that a slow one holds back nobody else. At least once, with an id that is
//! equal over all attempts.

pub mod cloudevent;
mod command;
pub mod destination;
mod http;
pub mod retry;
pub mod standard_webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use postern_contract::{Name, Timestamp};
use postern_egress::Client;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::admission::NotAdmitted;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::outage::Outage;
use crate::store::{Claimed, Settled, SettledAs, Store};
use cloudevent::CloudEvent;
pub use destination::{Destination, Kind};

/// A destination without work looks again after this long even if nobody wakes it
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// Wait this long when the store cannot answer
const STORE_PAUSE: Duration = Duration::from_millis(500);
/// A lease lasts as long as an attempt may take, and this
const LEASE_MARGIN: Duration = Duration::from_secs(30);

/// What an attempt came to
#[derive(Debug)]
pub enum Attempt {
    /// Accepted
    Delivered {
        /// For the log
        detail: String,
    },
    /// Worth another try
    Failed {
        /// For the log
        detail: String,
        /// What the destination asked to wait
        retry_after: Option<Duration>,
    },
    /// Not worth another try
    Gone {
        /// Stable kebab-case code
        reason: &'static str,
        /// For the log
        detail: String,
    },
}

/// Whether what a subscription is owed may still leave
pub trait StillAdmitted: Send + Sync + 'static {
    /// Asked before every attempt
    fn still_admitted(
        &self,
        claimed: &Claimed,
        destination: &Name,
        now: Timestamp,
    ) -> Result<(), NotAdmitted>;
}

/// Tells the dispatcher that there may be work
#[derive(Clone, Debug, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Everybody who waits looks again
    pub fn wake(&self) {
        self.0.notify_waiters();
    }
}

/// What every destination's task works with
#[derive(Clone)]
pub struct Dispatcher {
    /// Where deliveries are kept
    pub store: Arc<dyn Store>,
    /// Where time comes from
    pub clock: Arc<dyn Clock>,
    /// The way out
    pub client: Client,
    /// Asked before every attempt
    pub admitted: Arc<dyn StillAdmitted>,
    /// Counters
    pub metrics: Arc<Metrics>,
    /// New work
    pub wake: Wake,
}

/// The running tasks of a set of destinations
pub struct Running {
    names: BTreeSet<Name>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Running {
    /// Stops taking work, and waits for attempts under way for as long as `drain` allows. What is cut off
    /// is tried again after its lease.
    pub async fn stop(mut self, drain: Duration) {
        self.stop.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(drain, all).await.is_err() {
            tracing::warn!("attempts were cut off: they are made again");
        }
        self.tasks.abort_all();
    }
}

impl Dispatcher {
    /// Starts a task for every destination
    pub fn start(&self, destinations: &BTreeMap<Name, Arc<Destination>>) -> Running {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for destination in destinations.values() {
            let (this, destination) = (self.clone(), Arc::clone(destination));
            tasks.spawn(this.serve(destination, stop.clone()));
        }
        Running {
            names: destinations.keys().cloned().collect(),
            tasks,
            stop,
        }
    }

    /// Puts `destinations` in the place of those that run. Attempts under way end as they began, each
    /// within its own timeout; what a removed destination is owed waits until it is configured again.
    pub fn replace(
        &self,
        mut running: Running,
        destinations: &BTreeMap<Name, Arc<Destination>>,
    ) -> Running {
        running.stop.cancel();
        for name in &running.names {
            if !destinations.contains_key(name) {
                tracing::warn!(destination = %name, "a destination is gone: what it is owed waits");
            }
        }
        let mut started = self.start(destinations);
        // Whoever stops the new tasks waits for the old ones too
        (started.tasks).spawn(async move { while running.tasks.join_next().await.is_some() {} });
        started
    }

    async fn serve(self, destination: Arc<Destination>, stop: CancellationToken) {
        let mut attempts = JoinSet::new();
        let claiming = Outage::of("claiming deliveries");
        loop {
            // Registered before looking: a commit in between is not missed
            let woken = self.wake.0.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            while let Some(ended) = attempts.try_join_next() {
                note(&destination, ended);
            }
            if stop.is_cancelled() {
                break;
            }
            // A destination that is busy asks nothing of the store, which all of them share
            let free = destination.concurrency.saturating_sub(attempts.len());
            let pause = match free {
                0 => LONGEST_SLEEP,
                _ => match self.claim(&destination, free, &claiming).await {
                    Ok(claimed) if !claimed.is_empty() => {
                        for claimed in claimed {
                            let (this, destination) = (self.clone(), Arc::clone(&destination));
                            attempts
                                .spawn(async move { this.deliver(&destination, claimed).await });
                        }
                        continue;
                    }
                    Ok(_) => self.pause(&destination).await,
                    Err(()) => STORE_PAUSE,
                },
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = woken => {}
                Some(ended) = attempts.join_next() => note(&destination, ended),
                () = tokio::time::sleep(pause) => {}
            }
        }
        while let Some(ended) = attempts.join_next().await {
            note(&destination, ended);
        }
    }

    async fn claim(
        &self,
        destination: &Destination,
        limit: usize,
        claiming: &Outage,
    ) -> Result<Vec<Claimed>, ()> {
        let now = self.clock.now();
        let lease = destination.timeout + LEASE_MARGIN;
        let until = now.plus_ms(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
        let name = &destination.name;
        match self.store.claim(name.clone(), limit, now, until).await {
            Ok(claimed) => {
                claiming.works();
                Ok(claimed)
            }
            Err(e) => {
                claiming.fails(1, &format_args!("for `{name}`: {e}"));
                Err(())
            }
        }
    }

    /// How long nothing is due
    async fn pause(&self, destination: &Destination) -> Duration {
        match self.store.next_due(destination.name.clone()).await {
            Ok(Some(due)) => {
                let ms = due.unix_ms().saturating_sub(self.clock.now().unix_ms());
                Duration::from_millis(u64::try_from(ms).unwrap_or(0).max(1)).min(LONGEST_SLEEP)
            }
            Ok(None) => LONGEST_SLEEP,
            Err(_) => STORE_PAUSE,
        }
    }

    /// Attempts one delivery and settles it
    async fn deliver(&self, destination: &Destination, claimed: Claimed) {
        let started_at = self.clock.now();
        let (attempted, attempt) = self.attempt(destination, &claimed, started_at).await;
        let ended_at = self.clock.now();
        let number = claimed.attempts + u32::from(attempted);
        let (outcome, detail) = match attempt {
            Attempt::Delivered { detail } => (SettledAs::Delivered, detail),
            Attempt::Gone { reason, detail } => (SettledAs::Dead { reason }, detail),
            Attempt::Failed {
                detail,
                retry_after,
            } => (
                destination.retry.after(number, ended_at, retry_after),
                detail,
            ),
        };
        let label = match &outcome {
            SettledAs::Delivered => "delivered",
            SettledAs::Retry { .. } => "retry",
            SettledAs::Dead { .. } => "dead",
        };
        self.metrics.attempt(destination.name.as_str(), label);
        if !matches!(outcome, SettledAs::Delivered) {
            tracing::warn!(delivery = %claimed.id, destination = %destination.name, attempt = number, outcome = label, %detail, "not delivered");
        }
        let settled = Settled {
            id: claimed.id,
            started_at: attempted.then_some(started_at),
            ended_at,
            detail,
            outcome,
        };
        if let Err(e) = self.store.settle(vec![settled]).await {
            // The lease ends, and the delivery is made again: at least once
            tracing::error!(delivery = %claimed.id, error = %e, "an attempt was not recorded");
        }
    }

    /// Whether anything was sent, and what it came to
    async fn attempt(
        &self,
        destination: &Destination,
        claimed: &Claimed,
        now: Timestamp,
    ) -> (bool, Attempt) {
        let name = &destination.name;
        if let Err(why) = self.admitted.still_admitted(claimed, name, now) {
            let attempt = Attempt::Gone {
                reason: "admission-revoked",
                detail: why.to_string(),
            };
            return (false, attempt);
        }
        let event = match CloudEvent::new(claimed) {
            Ok(event) => event,
            Err(why) => {
                let attempt = Attempt::Gone {
                    reason: "event-unreadable",
                    detail: why.to_string(),
                };
                return (false, attempt);
            }
        };
        let attempt = match &destination.kind {
            Kind::Http(http) => {
                http::attempt(
                    &self.client,
                    http,
                    &event,
                    claimed,
                    destination.timeout,
                    now,
                )
                .await
            }
            Kind::Command(command) => {
                command::attempt(command, &event, claimed, destination.timeout).await
            }
        };
        (true, attempt)
    }
}

/// An attempt that broke off has settled nothing: its lease ends, and it is made again
fn note(destination: &Destination, ended: Result<(), JoinError>) {
    if let Err(e) = ended {
        tracing::error!(destination = %destination.name, error = %e, "an attempt broke off");
    }
}
