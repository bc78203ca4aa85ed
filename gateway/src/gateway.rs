//! The assembled gateway: opens the store and the log, loads sources, plans and destinations, serves HTTP
//! and dispatches, and replaces what comes from files as a whole when told to reload.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State as Extract};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use postern_contract::fault::Fault;
use postern_contract::{Name, Timestamp};
use postern_egress::{Allowed, Client};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::NotAdmitted;
use crate::clock::Clock;
use crate::config::Config;
use crate::dispatch::{Destination, Dispatcher, Running, StillAdmitted, Wake, destination};
use crate::journal::{Journal, JournalThread};
use crate::keys::{Environment, SecretFiles};
use crate::metrics::Metrics;
use crate::network_keys::NetworkKeys;
use crate::outage::Outage;
use crate::pipeline::Pipeline;
use crate::plans::{PlanFault, Plans};
use crate::receive::{Limits, Memory};
use crate::respond;
use crate::server;
use crate::sources;
use crate::state::State;
use crate::store::{Claimed, Embedded, Options, Store};

/// How often secret files are looked at
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_secs(2);

/// How often what has ended is forgotten
const PRUNE_EVERY: std::time::Duration = std::time::Duration::from_secs(60);

/// Everything that files say, checked
pub struct Loaded {
    state: State,
    destinations: BTreeMap<Name, Arc<Destination>>,
    config: Config,
    secrets: SecretFiles,
}

/// Why a gateway does not start or reload: every fault that was found
#[derive(Debug)]
pub struct Faults(pub Vec<Box<dyn Fault + Send + Sync>>);

impl<F: Fault + Send + Sync + 'static> From<F> for Faults {
    fn from(fault: F) -> Self {
        Self(vec![Box::new(fault)])
    }
}

fn boxed<F: Fault + Send + Sync + 'static>(faults: Vec<F>) -> Faults {
    Faults(
        (faults.into_iter())
            .map(|f| Box::new(f) as Box<dyn Fault + Send + Sync>)
            .collect(),
    )
}

/// A part of the start that failed
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// An entry of `egress.allow`
    #[error("egress.allow: {0}")]
    Allow(#[from] postern_egress::guard::NotAllowed),
    /// The event log cannot be opened
    #[error("the event log cannot be opened: {0}")]
    Log(std::io::Error),
}

impl Fault for StartFault {
    fn code(&self) -> &'static str {
        match self {
            Self::Allow(_) => "egress-allow",
            Self::Log(_) => "log-io",
        }
    }
    fn fault(&self) -> postern_contract::fault::Party {
        postern_contract::fault::Party::Operator
    }
}

impl Loaded {
    /// Reads and checks everything that `config` names, without touching store, log or network
    pub fn new(config: &Config, environment: Environment<'_>) -> Result<Self, Faults> {
        let plans = Plans::load(&config.plans.path, &config.plans.admissions);
        Self::with_plans(config, plans.map(Arc::new), environment)
    }

    fn with_plans(
        config: &Config,
        plans: Result<Arc<Plans>, Vec<PlanFault>>,
        environment: Environment<'_>,
    ) -> Result<Self, Faults> {
        let allowed = Allowed::parse(&config.egress.allow).map_err(StartFault::from)?;
        // Before the secrets are read: what changes in between is noticed
        let secrets = SecretFiles::read(config);
        let mut faults = Vec::new();
        let mut keep = |found: Faults| faults.extend(found.0);
        let sources = sources::all(&config.sources, environment).map_err(|f| keep(boxed(f)));
        let destinations = destination::all(&config.destinations, &allowed, environment)
            .map_err(|f| keep(boxed(f)));
        let plans = plans.map_err(|f| keep(boxed(f)));
        let client = Client::new(allowed).map_err(|f| keep(f.into()));
        let (Ok(sources), Ok(destinations), Ok(plans), Ok(client)) =
            (sources, destinations, plans, client)
        else {
            return Err(Faults(faults));
        };
        let facts = (destinations.iter())
            .map(|(name, one)| (name, one.facts()))
            .collect();
        Ok(Self {
            state: State::new(plans, sources, &facts, client),
            destinations,
            config: config.clone(),
            secrets,
        })
    }

    /// Sources, candidates and who is admitted
    pub fn state(&self) -> &State {
        &self.state
    }
}

/// A gateway that is open
pub struct Gateway {
    pipeline: Arc<Pipeline>,
    dispatch: Mutex<Option<Running>>,
    dispatcher: Mutex<Dispatcher>,
    /// The configuration that it was opened by: what a reload does not change
    config: Config,
    /// The configuration that its sources are of, and what their secret files held
    secrets: std::sync::Mutex<(Arc<Config>, SecretFiles)>,
    _journal: JournalThread,
}

/// Asks the current state, whatever a reload has made of it
struct Admissions(Arc<ArcSwap<State>>);

impl StillAdmitted for Admissions {
    fn still_admitted(
        &self,
        claimed: &Claimed,
        destination: &Name,
        now: Timestamp,
    ) -> Result<(), NotAdmitted> {
        let source = claimed.source.as_str();
        (self.0.load()).still_admitted(source, claimed.subscription, destination, now)
    }
}

impl Gateway {
    /// Opens store and log, and starts dispatching. `options` is a test's way into the store.
    pub fn open(
        config: Config,
        loaded: Loaded,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, Faults> {
        let store: Arc<dyn Store> = Arc::new(Embedded::open(&config.store.path, options)?);
        let metrics = Arc::new(Metrics::default());
        let (journal, thread) =
            Journal::open(&config.log, metrics.lines_lost.clone()).map_err(StartFault::Log)?;
        let wake = Wake::default();
        warn(&loaded.state);
        let client = loaded.state.client.clone();
        let state = Arc::new(ArcSwap::from_pointee(loaded.state));
        let dispatcher = Dispatcher {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            client,
            admitted: Arc::new(Admissions(Arc::clone(&state))),
            metrics: Arc::clone(&metrics),
            wake: wake.clone(),
        };
        let running = dispatcher.start(&loaded.destinations);
        let pipeline = Pipeline {
            clock,
            limits: Limits {
                max_body_bytes: config.server.max_body_bytes,
                body_timeout: config.server.body_timeout.duration(),
                // One body of the largest size must find room
                memory: Memory::new(
                    (config.server.max_memory_bytes)
                        .max(config.server.max_body_bytes.saturating_mul(2)),
                ),
            },
            state,
            keys: NetworkKeys::default(),
            learned: Arc::default(),
            store,
            journal,
            metrics,
            wake,
            under_way: TaskTracker::new(),
            ready: Outage::of("readiness"),
        };
        Ok(Self {
            pipeline: Arc::new(pipeline),
            dispatch: Mutex::new(Some(running)),
            dispatcher: Mutex::new(dispatcher),
            config,
            secrets: std::sync::Mutex::new((Arc::new(loaded.config), loaded.secrets)),
            _journal: thread,
        })
    }

    /// The routes of the public face
    pub fn router(&self) -> Router {
        Router::new()
            .route("/hooks/{source}", any(hook))
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .fallback(|| async { respond::nothing_here() })
            .method_not_allowed_fallback(|| async { respond::read_only() })
            .with_state(Arc::clone(&self.pipeline))
    }

    /// Serves until `stop`, then drains
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let pruning = self.prune(stop.clone());
        let (limits, metrics) = (&self.config.server, &self.pipeline.metrics);
        let serving = server::serve(listener, self.router(), limits, metrics, stop);
        tokio::join!(serving, pruning);
        let drain = self.config.server.drain.duration();
        // Deliveries whose senders are gone end as well: what they commit and log is whole
        let under_way = &self.pipeline.under_way;
        under_way.close();
        if tokio::time::timeout(drain, under_way.wait()).await.is_err() {
            tracing::warn!(left = under_way.len(), "deliveries were cut off");
        }
        let running = self.dispatch.lock().await.take();
        if let Some(running) = running {
            running.stop(drain).await;
        }
    }

    /// Has `load` read the files on a thread that may wait for a disk, and puts them in place; meanwhile
    /// everything goes on. The outer error says that `load` broke off.
    pub async fn reload<E: Send + 'static>(
        &self,
        load: impl FnOnce() -> Result<Loaded, E> + Send + 'static,
    ) -> Result<Result<(), E>, JoinError> {
        match tokio::task::spawn_blocking(load).await? {
            Ok(loaded) => {
                self.replace(loaded).await;
                Ok(Ok(()))
            }
            Err(why) => Ok(Err(why)),
        }
    }

    /// Returns once a file that holds a secret has changed since it was last read or noticed
    pub async fn secrets_changed(&self) {
        loop {
            tokio::select! {
                () = self.pipeline.learned.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let config = Arc::clone(&self.secrets().0);
            let read = tokio::task::spawn_blocking(move || SecretFiles::read(&config));
            // Broken off: looked at again the next time
            let Ok(now) = read.await else { continue };
            let known = &mut self.secrets().1;
            if *known != now {
                *known = now;
                return;
            }
        }
    }

    /// As [`Self::reload`], of the secrets alone: configuration, plans and admissions stay as they are
    pub async fn reload_secrets(
        &self,
        environment: fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Result<(), Faults>, JoinError> {
        let config = Arc::clone(&self.secrets().0);
        let plans = Arc::clone(&self.state().plans);
        self.reload(move || Loaded::with_plans(&config, Ok(plans), &environment))
            .await
    }

    fn secrets(&self) -> std::sync::MutexGuard<'_, (Arc<Config>, SecretFiles)> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deliveries under way end under the state that they began with; queued ones keep their digest, and go
    /// out if it is still admitted.
    async fn replace(&self, loaded: Loaded) {
        warn(&loaded.state);
        let client = loaded.state.client.clone();
        *self.secrets() = (Arc::new(loaded.config), loaded.secrets);
        self.pipeline.state.store(Arc::new(loaded.state));
        let mut dispatcher = self.dispatcher.lock().await;
        dispatcher.client = client;
        let mut running = self.dispatch.lock().await;
        if let Some(old) = running.take() {
            *running = Some(dispatcher.replace(old, &loaded.destinations));
        }
    }

    /// What it works by now
    pub fn state(&self) -> Arc<State> {
        self.pipeline.state.load_full()
    }

    async fn prune(&self, stop: CancellationToken) {
        let pruning = Outage::of("pruning the store");
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PRUNE_EVERY) => {}
            }
            let now = self.pipeline.clock.now();
            let before = now.plus_ms(-self.config.store.retention.millis());
            match self.pipeline.store.prune(now, before).await {
                Ok(()) => pruning.works(),
                Err(e) => pruning.fails(1, &e),
            }
        }
    }
}

/// Says what operators should know of their sources
fn warn(state: &State) {
    for source in state.all().map(|served| &served.source) {
        for warning in source.warnings() {
            tracing::warn!(source = %source.name, "{warning}");
        }
    }
}

async fn hook(
    Extract(pipeline): Extract<Arc<Pipeline>>,
    source: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    // What is no UTF-8 names no source
    let Ok(Path(source)) = source else {
        return respond::nothing_here();
    };
    pipeline.answer(source, request).await
}

async fn readyz(Extract(pipeline): Extract<Arc<Pipeline>>) -> Response {
    match pipeline.store.ready().await {
        Ok(()) => {
            pipeline.ready.works();
            "ready\n".into_response()
        }
        Err(e) => {
            pipeline.ready.fails(1, &e);
            (StatusCode::SERVICE_UNAVAILABLE, "the store is not ready\n").into_response()
        }
    }
}

async fn metrics(Extract(pipeline): Extract<Arc<Pipeline>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], pipeline.metrics.text()).into_response()
}
