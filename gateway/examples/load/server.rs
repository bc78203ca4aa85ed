//! The server under load, in a process of its own: baseline routes and the gateway on one listener, so
//! that every ratio is of one build, one runtime and one run.

use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use postern_contract::{Admission, Document, OptIn, Scalar, Subscription, Timestamp, canonical};
use postern_gateway::clock::SystemClock;
use postern_gateway::config::{Config, KeyConfig, SourceConfig};
use postern_gateway::store::Options;
use postern_gateway::{Gateway, Loaded};
use postern_predicates::Trigger;
use postern_profiles::Catalogue;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use crate::payload::SECRET;

/// Serves until standard input ends, on a port that it prints
pub fn run() -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(e) => {
            eprintln!("load: {e}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("load: {why}");
            ExitCode::FAILURE
        }
    }
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

async fn serve() -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(text)?;
    let copies: usize = std::env::args()
        .nth(2)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1);
    let config = configure(dir.path(), copies)?;
    let variables = |_: &str| Some(SECRET.as_bytes().to_vec());
    let faults = |faults: postern_gateway::Faults| {
        faults
            .0
            .iter()
            .map(|f| f.to_string())
            .collect::<Vec<_>>()
            .join("; ")
    };
    let loaded = Loaded::new(&config, &variables).map_err(faults)?;
    let server = config.server.clone();
    let gateway =
        Gateway::open(config, loaded, Arc::new(SystemClock), Options::default()).map_err(faults)?;
    let router = gateway.router().merge(baselines()?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(text)?;
    println!("{}", listener.local_addr().map_err(text)?);
    let stop = CancellationToken::new();
    let ended = stop.clone();
    tokio::spawn(async move {
        let mut nothing = String::new();
        let mut input = tokio::io::BufReader::new(tokio::io::stdin());
        let _ = tokio::io::AsyncBufReadExt::read_line(&mut input, &mut nothing).await;
        ended.cancel();
    });
    postern_gateway::server::serve(listener, router, &server, &Arc::default(), stop).await;
    Ok(())
}

/// What others do at most: read the body; verify it; verify, parse and look at six places
fn baselines() -> Result<Router, String> {
    let keyed = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).map_err(text)?;
    let (verifying, parsing) = (keyed.clone(), keyed);
    Ok(Router::new()
        .route("/echo", post(|_: Bytes| async { StatusCode::NO_CONTENT }))
        .route(
            "/verify",
            post(move |headers: HeaderMap, body: Bytes| async move {
                verify(&verifying, &headers, &body)
            }),
        )
        .route(
            "/verify_parse",
            post(move |headers: HeaderMap, body: Bytes| async move {
                let status = verify(&parsing, &headers, &body);
                if status != StatusCode::NO_CONTENT {
                    return status;
                }
                let Ok(value) = serde_json::from_slice::<serde_json::Value>(&body) else {
                    return StatusCode::BAD_REQUEST;
                };
                let found = [
                    "/ref",
                    "/before",
                    "/after",
                    "/repository/full_name",
                    "/pusher/name",
                    "/sender/login",
                ]
                .iter()
                .filter(|pointer| value.pointer(pointer).is_some())
                .count();
                if found == 6 {
                    status
                } else {
                    StatusCode::BAD_REQUEST
                }
            }),
        ))
}

fn verify(keyed: &Hmac<Sha256>, headers: &HeaderMap, body: &[u8]) -> StatusCode {
    let given = headers
        .get("x-hub-signature-256")
        .and_then(|v| v.to_str().ok());
    let given = given
        .and_then(|v| v.strip_prefix("sha256="))
        .and_then(|v| hex::decode(v).ok());
    let mut mac = keyed.clone();
    mac.update(body);
    match given.map(|given| mac.verify_slice(&given).is_ok()) {
        Some(true) => StatusCode::NO_CONTENT,
        _ => StatusCode::UNAUTHORIZED,
    }
}

const TRIGGER: &str = r#"{
    "connector": "github", "trigger": "push-to-branch", "verificationProfile": "github",
    "nativeEvents": ["push"], "match": {"/deleted": false},
    "when": {"equals": {"pointer": "/ref", "value": "refs/heads/main"}},
    "normalize": {"repository": "/repository/full_name", "ref": "/ref", "before": "/before",
        "after": "/after", "pusher": "/pusher/name", "actor": "/sender/login"},
    "types": {"repository": "string", "ref": "string", "before": "string", "after": "string",
        "pusher": "string", "actor": "string"},
    "resources": {"repository": "repositories"}, "resourceOrigins": ["https://github.com"]}"#;

/// A source, `copies` subscriptions of as many triggers, and a destination that nothing is sent to: the
/// report is of the path up to the acknowledgement
fn configure(dir: &std::path::Path, copies: usize) -> Result<Config, String> {
    let profile = Catalogue::embedded().get("github").ok_or("no profile")?;
    let write = |path: std::path::PathBuf, bytes: &[u8]| {
        std::fs::create_dir_all(path.parent().unwrap_or(dir)).map_err(text)?;
        std::fs::write(path, bytes).map_err(text)
    };
    for n in 0..copies {
        // The first is the one that matches; the others are bound to other repositories
        let repository = if n == 0 {
            "Codertocat/Hello-World".to_owned()
        } else {
            format!("octo/r{n}")
        };
        let declared = Document::parse(TRIGGER.as_bytes().to_vec().into()).map_err(text)?;
        let grants = [("repositories".to_owned(), vec![Scalar::String(repository)])];
        let trigger = Trigger::compile(&declared, profile.digest(), grants.into()).map_err(text)?;
        let name = format!("plans/triggers/{}.json", trigger.digest().hex());
        write(dir.join(name), trigger.document())?;
        let subscription = Subscription {
            api_version: postern_contract::API_VERSION.to_owned(),
            kind: "Subscription".to_owned(),
            workflow: "load.md".to_owned(),
            repository: Some("octo/load".to_owned()),
            connector: "github".parse().map_err(text)?,
            trigger: "push-to-branch".parse().map_err(text)?,
            trigger_digest: trigger.digest(),
            profile: profile.id().to_owned(),
            profile_digest: profile.digest(),
            binding: trigger.binding_digest(),
            filters: Default::default(),
            operational: false,
        };
        let bytes = canonical::to_vec(&subscription).map_err(text)?;
        write(dir.join(format!("plans/subscriptions/{n}.json")), &bytes)?;
        let admission = Admission {
            subscription_digest: subscription.digest().map_err(text)?,
            repository: "octo/load".to_owned(),
            app: None,
            installation: None,
            source: "github".parse().map_err(text)?,
            destination: "nowhere".parse().map_err(text)?,
            opt_in: OptIn {
                by: "load".to_owned(),
                at: Timestamp::EPOCH,
            },
            expires: None,
        };
        let bytes = serde_json::to_vec(&admission).map_err(text)?;
        write(dir.join(format!("admissions/{n}.json")), &bytes)?;
    }
    let mut repositories = vec![Scalar::String("Codertocat/Hello-World".to_owned())];
    repositories.extend((1..copies).map(|n| Scalar::String(format!("octo/r{n}"))));
    let mut config = Config::default().rooted_at(dir);
    let source = SourceConfig {
        setup: false,
        credential: None,
        params: std::collections::BTreeMap::new(),
        profile: "github".to_owned(),
        keys: vec![KeyConfig {
            env: Some("SECRET".to_owned()),
            ..KeyConfig::default()
        }],
        past: None,
        future: None,
        window: "7d".parse().map_err(text)?,
        app: None,
        grants: postern_gateway::config::GrantsConfig {
            resources: [("repositories".to_owned(), repositories)].into(),
            origins: vec!["https://github.com".to_owned()],
        },
        max_in_flight: 1_024,
    };
    config
        .sources
        .insert("github".parse().map_err(text)?, source);
    // A program that sleeps: what is queued stays queued, so that dispatching takes no part
    let destination = serde_json::json!({
        "kind": "command", "argv": ["sleep", "3600"], "concurrency": 1, "timeout": "1h"
    });
    let destination = serde_json::from_value(destination).map_err(text)?;
    config
        .destinations
        .insert("nowhere".parse().map_err(text)?, destination);
    Ok(config)
}
