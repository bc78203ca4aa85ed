//! A destination that leads back to a source of its own gateway.

use std::time::Duration;

use http::HeaderValue;
use postern_gateway::journal::LogOutcome;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::world::{Setup, World, opened, signed};

#[tokio::test]
async fn report_d54_what_leads_back_to_its_own_source_ends_after_one_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let mut setup = Setup::new();
    setup.egress = vec![at.to_string()];
    setup.destination = json!({
        "kind": "http", "url": format!("http://{at}/hooks/github"), "signing": [{"env": "SIGNING"}],
        "retry": {"limit": 1000, "initial": "1h"},
    });
    let world = World::open(setup);
    let stop = CancellationToken::new();
    let looking = async {
        assert_eq!(world.deliver("d-1", &opened(1)).await.status, 202);
        let attempted = || {
            let deliveries = world.reader().events(1).unwrap().remove(0).deliveries;
            deliveries[0]
                .log
                .first()
                .map(|attempt| attempt.detail.clone())
        };
        let wait = async {
            loop {
                if let Some(detail) = attempted() {
                    return detail;
                }
                tokio::task::yield_now().await;
            }
        };
        let detail = tokio::time::timeout(Duration::from_secs(60), wait).await;
        let detail = detail.unwrap();
        assert!(detail.starts_with("status 508"), "{detail}");
        assert!(detail.contains("hop-limit"), "{detail}");
        stop.cancel();
    };
    tokio::join!(world.gateway.serve(listener, stop.clone()), looking);
    let line = world.last_line();
    assert_eq!(line.outcome, LogOutcome::NotReceived);
    assert_eq!(line.code.as_deref(), Some("hop-limit"));
}

#[tokio::test]
async fn report_d54_a_count_is_refused_before_anything_else_is_asked() {
    let world = World::open(Setup::new());
    let with = |hops: &'static str| {
        let mut request = signed("d-1", &opened(1));
        let hops = HeaderValue::from_static(hops);
        request.headers_mut().insert("postern-hops", hops);
        request
    };
    let answer = world.send(with("1")).await;
    assert_eq!(answer.status, 508, "{}", answer.body);
    assert!(answer.body.contains("\"hop-limit\""), "{}", answer.body);
    assert_eq!(world.send(with("0")).await.status, 202);
}
