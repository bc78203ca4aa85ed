//! The demo's stage: a directory that goes away at its end, with compiled plans, admissions and a
//! configuration as an operator would have them; a sink; and the gateway.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use postern_compiler::{Compiler, Sources};
use postern_contract::{Admission, Name, OptIn, canonical};
use postern_gateway::clock::SystemClock;
use postern_gateway::config::Config;
use postern_gateway::store::Options;
use postern_gateway::{Gateway, Loaded};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::configuration;
use crate::environment;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// The demo's webhook secret, known to everybody
pub const SECRET: &str = "It's a Secret to Everybody";
const SIGNING: &str = "whsec_cG9zdGVybiBkZW1vOiBrbm93biB0byBhbGwh";
const WORKFLOW: &str = ".github/workflows/demo.md";
const REPOSITORY: &str = "octo-org/demo";

/// What the sink has got
#[derive(Clone, Default)]
pub struct Sink {
    got: Arc<Mutex<Vec<String>>>,
    more: Arc<Notify>,
}

impl Sink {
    fn put(&self, what: String) {
        if let Ok(mut got) = self.got.lock() {
            got.push(what);
        }
        self.more.notify_waiters();
    }

    /// Types and ids of what has come so far
    pub fn got(&self) -> Vec<String> {
        self.got.lock().map(|got| got.clone()).unwrap_or_default()
    }

    /// Waits until `count` events have come
    pub async fn wait_for(&self, count: usize) {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            if self.got().len() >= count {
                return;
            }
            more.await;
        }
    }
}

/// Everything that is set up
pub struct Stage {
    dir: tempfile::TempDir,
    gateway: Gateway,
    listener: Mutex<Option<TcpListener>>,
    sink_listener: Mutex<Option<TcpListener>>,
    at: SocketAddr,
    /// The sink
    pub sink: Sink,
    /// The configuration
    pub config: Config,
}

fn around(what: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |e| Failure::around("demo", format!("{what}: {e}"))
}

fn inner(e: impl std::fmt::Display) -> Failure {
    Failure::around("demo", e.to_string())
}

impl Stage {
    /// Compiles, admits and opens
    pub async fn set(output: &Output) -> Result<Self, Failure> {
        let dir = tempfile::Builder::new()
            .prefix("postern-demo-")
            .tempdir()
            .map_err(around("no temporary directory"))?;
        let loopback = || TcpListener::bind("127.0.0.1:0");
        let sink_listener = loopback().await.map_err(around("the sink"))?;
        let listener = loopback().await.map_err(around("the gateway"))?;
        let sink_at = sink_listener.local_addr().map_err(around("the sink"))?;
        let at = listener.local_addr().map_err(around("the gateway"))?;
        let file = dir.path().join("postern.toml");
        files::write(&file, configuration_text(at, sink_at).as_bytes())?;
        plan(dir.path())?;
        let config = configuration::read(&file)?;
        let variables = |name: &str| match name {
            "POSTERN_DEMO_SECRET" => Some(SECRET.as_bytes().to_vec()),
            "POSTERN_DEMO_SIGNING" => Some(SIGNING.as_bytes().to_vec()),
            _ => None,
        };
        let loaded = Loaded::new(&config, &variables)
            .map_err(|faults| configuration::first(faults, output))?;
        let gateway = Gateway::open(
            config.clone(),
            loaded,
            Arc::new(SystemClock),
            Options::default(),
        )
        .map_err(|faults| configuration::first(faults, output))?;
        Ok(Self {
            dir,
            gateway,
            listener: Mutex::new(Some(listener)),
            sink_listener: Mutex::new(Some(sink_listener)),
            at,
            sink: Sink::default(),
            config,
        })
    }

    /// Serves gateway and sink until `stop`
    pub async fn serve(&self, stop: CancellationToken) {
        let take = |slot: &Mutex<Option<TcpListener>>| slot.lock().ok().and_then(|mut s| s.take());
        let (Some(listener), Some(sink)) = (take(&self.listener), take(&self.sink_listener)) else {
            return;
        };
        let router = Router::new()
            .route("/events", post(receive))
            .with_state(self.sink.clone());
        let ended = stop.clone();
        let sink = axum::serve(sink, router).with_graceful_shutdown(ended.cancelled_owned());
        let (_, ()) = tokio::join!(sink.into_future(), self.gateway.serve(listener, stop));
    }

    /// Where the gateway listens
    pub fn gateway_at(&self) -> SocketAddr {
        self.at
    }

    /// The configuration as a file
    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join("postern.toml")
    }
}

async fn receive(State(sink): State<Sink>, headers: HeaderMap, body: Bytes) {
    let event: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |key: &str| {
        event
            .get(key)
            .and_then(|v| v.as_str())
            .unwrap_or("?")
            .to_owned()
    };
    let id = headers.get("webhook-id").and_then(|v| v.to_str().ok());
    sink.put(format!("{} as {}", text("type"), id.unwrap_or("?")));
}

fn configuration_text(at: SocketAddr, sink: SocketAddr) -> String {
    format!(
        r#"# What `postern demo` runs on
[server]
listen = "{at}"

[sources.github]
profile = "github"
keys = [{{ env = "POSTERN_DEMO_SECRET" }}]

[sources.github.grants]
origins = ["https://github.com"]
resources.repositories = ["Codertocat/Hello-World", "octo-org/octo-repo"]

[destinations.sink]
kind = "http"
url = "http://{sink}/events"
signing = [{{ env = "POSTERN_DEMO_SIGNING" }}]

[egress]
allow = ["{sink}"]
"#
    )
}

/// Compiles the demo's workflow and admits all of it but one, so that there is something to refuse
fn plan(dir: &std::path::Path) -> Result<(), Failure> {
    let mut sources = Sources::default();
    sources.insert(WORKFLOW, include_str!("workflow.md"));
    let compiler = Compiler {
        sources: &sources,
        repository: Some(REPOSITORY),
    };
    let compiled = compiler.compile(WORKFLOW);
    if let Some(first) = compiled.diagnostics.first() {
        return Err(inner(first.draw(sources.get(WORKFLOW))));
    }
    let name = |text: &str| text.parse::<Name>().map_err(inner);
    for selected in &compiled.selected {
        let trigger = &selected.trigger;
        let at = dir.join("plans/triggers");
        files::write(
            &at.join(format!("{}.json", trigger.digest().hex())),
            trigger.document(),
        )?;
        let subscription = canonical::to_vec(&selected.subscription).map_err(inner)?;
        let file = format!("demo.github.{}.json", trigger.trigger());
        files::write(&dir.join("plans/subscriptions").join(file), &subscription)?;
        if trigger.trigger() == super::play::NOT_ADMITTED {
            continue;
        }
        let admission = Admission {
            subscription_digest: selected.digest,
            repository: REPOSITORY.to_owned(),
            app: None,
            installation: None,
            source: name("github")?,
            destination: name("sink")?,
            opt_in: OptIn {
                by: "the demo".to_owned(),
                at: environment::now(),
            },
            expires: None,
        };
        let text = serde_json::to_vec_pretty(&admission).map_err(inner)?;
        let file = format!("{}.json", trigger.trigger());
        files::write(&dir.join("admissions").join(file), &text)?;
    }
    Ok(())
}
