//! A gateway in a directory of its own, with one trigger, one subscription and one admission that the
//! test can bend before it opens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use http_body_util::BodyExt as _;
use postern_contract::{Digest, Document, Scalar, Subscription, Timestamp, canonical};
use postern_gateway::clock::Clock;
use postern_gateway::config::Config;
use postern_gateway::journal::{self, LogLine};
use postern_gateway::store::Options;
use postern_gateway::store::reader::Reader;
use postern_gateway::{Gateway, Loaded};
use postern_predicates::Trigger;
use postern_profiles::Catalogue;
use serde_json::{Value, json};
use sha2::Sha256;
use tower::ServiceExt as _;

pub const SECRET: &str = "a secret";
/// 2027-01-15T08:00:00Z
pub const NOW: i64 = 1_800_000_000;

/// A clock that the test sets
#[derive(Clone)]
pub struct SetClock(pub Arc<Mutex<i64>>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(*self.0.lock().unwrap()).unwrap()
    }
}

/// Everything before it is written
pub struct Setup {
    pub declaration: Value,
    pub profile_digest: Digest,
    pub grants: BTreeMap<String, Vec<Scalar>>,
    /// Changes to the subscription as compiled
    pub subscription: Value,
    pub admission: Value,
    pub source: Value,
    pub destination: Value,
    pub server: Value,
    pub egress: Vec<String>,
    pub write_trigger: bool,
    pub write_admission: bool,
    pub options: Options,
}

impl Setup {
    pub fn new() -> Self {
        let profile = Catalogue::embedded().get("github").unwrap();
        Self {
            declaration: json!({
                "connector": "github", "trigger": "issue-opened", "verificationProfile": "github",
                "nativeEvents": ["issues"], "match": {"/action": "opened"},
                "normalize": {"repository": "/repository/full_name", "title": {"pointer": "/title", "required": false}},
                "resources": {"repository": "repositories"}, "resourceOrigins": ["https://github.com"],
                "filters": {"label": {"pointer": "/label", "type": "string"}},
            }),
            profile_digest: profile.digest(),
            grants: [(
                "repositories".to_owned(),
                vec![Scalar::String("o/r".to_owned())],
            )]
            .into(),
            subscription: json!({}),
            admission: json!({}),
            source: json!({
                "profile": "github", "keys": [{"env": "SECRET"}],
                "grants": {"origins": ["https://github.com"], "resources": {"repositories": ["o/r"]}},
            }),
            // Nothing is listening there, and nobody is let through: what is owed stays owed
            destination: json!({"kind": "command", "argv": ["/nonexistent/program"], "retry": {"limit": 1000, "initial": "1h"}}),
            server: json!({"max_body_bytes": 1_000_000}),
            egress: Vec::new(),
            write_trigger: true,
            write_admission: true,
            options: Options::default(),
        }
    }
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            into[key] = value.clone();
        }
    }
}

fn put(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// A running gateway and its files
pub struct World {
    pub gateway: Gateway,
    pub router: Router,
    pub config: Config,
    pub clock: SetClock,
    pub subscription: Digest,
    _dir: tempfile::TempDir,
}

/// What came back
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn events(&self) -> Vec<String> {
        let json: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let events = json["events"].as_array().cloned().unwrap_or_default();
        events
            .iter()
            .map(|e| e.as_str().unwrap().to_owned())
            .collect()
    }
}

pub fn environment(name: &str) -> Option<Vec<u8>> {
    match name {
        "SECRET" => Some(SECRET.as_bytes().to_vec()),
        "SIGNING" => Some(b"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".to_vec()),
        _ => None,
    }
}

/// Writes the files of `setup` below `dir`; the configuration and the subscription's digest
pub fn write(dir: &Path, setup: &Setup) -> (Config, Digest) {
    let declared = Document::parse(setup.declaration.to_string().into()).unwrap();
    let trigger = Trigger::compile(&declared, setup.profile_digest, setup.grants.clone()).unwrap();
    if setup.write_trigger {
        let name = format!("plans/triggers/{}.json", trigger.digest().hex());
        put(&dir.join(name), trigger.document());
    }
    let mut subscription = serde_json::to_value(Subscription {
        api_version: postern_contract::API_VERSION.to_owned(),
        kind: "Subscription".to_owned(),
        workflow: ".github/workflows/w.md".to_owned(),
        repository: Some("o/workflows".to_owned()),
        connector: trigger.connector().parse().unwrap(),
        trigger: trigger.trigger().parse().unwrap(),
        trigger_digest: trigger.digest(),
        profile: trigger.profile().to_owned(),
        profile_digest: trigger.profile_digest(),
        binding: trigger.binding_digest(),
        filters: BTreeMap::new(),
        operational: false,
    })
    .unwrap();
    merge(&mut subscription, &setup.subscription);
    if subscription.get("repository").is_none() {
        subscription["repository"] = Value::Null;
    }
    let bytes = canonical::to_vec(&subscription).unwrap();
    let digest = Digest::of(&bytes);
    put(&dir.join("plans/subscriptions/s.json"), &bytes);
    let mut admission = json!({
        "subscriptionDigest": digest.to_string(), "repository": "o/workflows", "app": null,
        "installation": null, "source": "github", "destination": "agent",
        "optIn": {"by": "alice", "at": "2026-01-01T00:00:00Z"},
    });
    merge(&mut admission, &setup.admission);
    // `null` says the same as nothing for these two
    for key in ["app", "installation"] {
        if admission.get(key).is_none() {
            admission[key] = Value::Null;
        }
    }
    if setup.write_admission {
        put(
            &dir.join("admissions/a.json"),
            admission.to_string().as_bytes(),
        );
    }
    let config = json!({
        "server": setup.server, "sources": {"github": setup.source},
        "destinations": {"agent": setup.destination}, "egress": {"allow": setup.egress},
    });
    let config: Config = serde_json::from_value(config).unwrap();
    (config.rooted_at(dir), digest)
}

impl World {
    pub fn open(setup: Setup) -> Self {
        Self::open_in(setup, |_| {})
    }

    /// A gateway that owes nobody anything
    pub fn open_without_plans(setup: Setup) -> Self {
        Self::open_in(setup, |config| {
            config.plans.path.push("none");
            config.plans.admissions.push("none");
        })
    }

    fn open_in(setup: Setup, bend: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (mut config, subscription) = write(dir.path(), &setup);
        bend(&mut config);
        let clock = SetClock(Arc::new(Mutex::new(NOW)));
        let loaded = load(&config);
        let gateway = Gateway::open(
            config.clone(),
            loaded,
            Arc::new(clock.clone()),
            setup.options,
        )
        .unwrap();
        let router = gateway.router();
        Self {
            gateway,
            router,
            config,
            clock,
            subscription,
            _dir: dir,
        }
    }

    pub fn dir(&self) -> &Path {
        self._dir.path()
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        send(self.router.clone(), request).await
    }

    /// A signed delivery of the event `issues`
    pub async fn deliver(&self, id: &str, body: &str) -> Answer {
        self.send(signed(id, body)).await
    }

    /// Ends the gateway, so that the log is whole; its files stay as long as what is given back
    pub fn end(self) -> tempfile::TempDir {
        let Self {
            gateway,
            router,
            _dir,
            ..
        } = self;
        drop(router);
        drop(gateway);
        _dir
    }

    /// Ends the gateway, and gives the newest line of its log
    pub fn last_line(self) -> LogLine {
        let path = self.config.log.path.clone();
        let _dir = self.end();
        journal::read(&path, 1, |_| true).unwrap().remove(0)
    }

    pub fn reader(&self) -> Reader {
        Reader::open(&self.config.store.path).unwrap()
    }
}

pub fn load(config: &Config) -> Loaded {
    Loaded::new(config, &environment).unwrap_or_else(|faults| {
        panic!(
            "{:?}",
            faults.0.iter().map(|f| f.to_string()).collect::<Vec<_>>()
        )
    })
}

pub async fn send(router: Router, request: Request<Body>) -> Answer {
    let response = router.oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

pub fn signature(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

pub fn signed(id: &str, body: &str) -> Request<Body> {
    Request::post("/hooks/github")
        .header("content-type", "application/json")
        .header("x-github-event", "issues")
        .header("x-github-delivery", id)
        .header("x-hub-signature-256", signature(body.as_bytes()))
        .body(Body::from(body.to_owned()))
        .unwrap()
}

/// A body that matches; `n` makes it another one
pub fn opened(n: u32) -> String {
    format!(r#"{{"action":"opened","title":"t{n}","repository":{{"full_name":"o/r"}}}}"#)
}
