//! What goes over the wire, and what an answer means.

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use postern_contract::Timestamp;
use postern_gateway::store::SettledAs;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::sink::{Got, Sink, status};
use crate::stage::{BEGIN, Stage};

fn sink_config(url: &str) -> Value {
    json!({
        "kind": "http",
        "url": url,
        "signing": [{ "env": "NEW" }, { "env": "OLD" }],
        "retry": { "limit": 3, "initial": "2s", "max": "1h", "max_retry_after": "24h" },
    })
}

/// The signature of Standard Webhooks, made from its text and without the code under test
fn signature(secret: &str, got: &Got) -> String {
    let base64 = base64::engine::general_purpose::STANDARD;
    let mut mac = Hmac::<Sha256>::new_from_slice(&base64.decode(secret).unwrap()).unwrap();
    let (id, at) = (got.header("webhook-id"), got.header("webhook-timestamp"));
    mac.update(format!("{id}.{at}.").as_bytes());
    mac.update(&got.body);
    format!("v1,{}", base64.encode(mac.finalize().into_bytes()))
}

#[tokio::test]
async fn report_a9_every_attempt_signs_the_bytes_that_it_sends() {
    for mode in ["structured", "binary"] {
        let mut sink = Sink::answering(|nth| status(if nth < 2 { 500 } else { 204 })).await;
        let mut config = sink_config(&sink.url());
        config["mode"] = json!(mode);
        let mut stage = Stage::new(&[("sink", config)]);
        let _running = stage.start();
        let debt = stage.owe("sink").await;
        let mut bodies = Vec::new();
        for nth in 0..3 {
            let got = sink.got().await;
            assert_eq!(got.header("webhook-id"), debt.id.to_string());
            assert_eq!(
                got.header("webhook-timestamp"),
                stage.now().unix().to_string()
            );
            // Both secrets are live (report B35), the newer one first
            let both = format!(
                "{} {}",
                signature("C2FVsBQIhrscChlQIMV+b5sSYspob7oD", &got),
                signature("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &got)
            );
            assert_eq!(
                got.header("webhook-signature"),
                both,
                "{mode}, attempt {nth}"
            );
            bodies.push(got.body);
            if nth < 2 {
                let (at, detail) = stage.retried().await;
                assert_eq!(detail, "status 500");
                stage.until(at);
            }
        }
        assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
        assert!(bodies.iter().all(|body| *body == bodies[0]));
    }
}

#[tokio::test]
async fn the_structured_form_holds_the_canonical_event_byte_for_byte() {
    let mut sink = Sink::answering(|_| status(200)).await;
    let stage = Stage::new(&[("sink", sink_config(&sink.url()))]);
    let _running = stage.start();
    let debt = stage.owe("sink").await;
    let got = sink.got().await;
    assert_eq!(got.header("content-type"), "application/cloudevents+json");
    let document = std::str::from_utf8(&debt.document).unwrap();
    let text = std::str::from_utf8(&got.body).unwrap();
    assert!(text.ends_with(&format!("\"data\":{document}}}")), "{text}");
    let event: Value = serde_json::from_slice(&got.body).unwrap();
    let data: Value = serde_json::from_slice(&debt.document).unwrap();
    let digest = postern_contract::Digest::of;
    assert_eq!(
        event,
        json!({
            "specversion": "1.0",
            "id": debt.event.to_string(),
            "source": "/postern/octo",
            "type": "github.issue-opened",
            "time": "2023-11-14T22:13:20Z",
            "datacontenttype": "application/json",
            "subscriptiondigest": digest(b"subscription").to_string(),
            "triggerdigest": digest(b"trigger").to_string(),
            "data": data,
        })
    );
}

#[tokio::test]
async fn the_binary_form_has_its_attributes_in_headers() {
    let mut sink = Sink::answering(|_| status(200)).await;
    let mut config = sink_config(&sink.url());
    config["mode"] = json!("binary");
    let stage = Stage::new(&[("sink", config)]);
    let _running = stage.start();
    let debt = stage.owe("sink").await;
    let got = sink.got().await;
    assert_eq!(got.body, debt.document);
    for (name, value) in [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", &debt.event.to_string()),
        ("ce-source", "/postern/octo"),
        ("ce-type", "github.issue-opened"),
        ("ce-time", "2023-11-14T22:13:20Z"),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
    assert!(got.headers.get("ce-datacontenttype").is_none());
}

#[tokio::test]
async fn report_d48_a_custom_user_agent_is_the_only_one() {
    let mut sink = Sink::answering(|_| status(200)).await;
    let mut config = sink_config(&sink.url());
    config["headers"] = json!({ "User-Agent": "mine/1", "AUTHORIZATION": "Bearer t" });
    let stage = Stage::new(&[("sink", config)]);
    let _running = stage.start();
    stage.owe("sink").await;
    let got = sink.got().await;
    // `header` refuses a second one
    assert_eq!(got.header("user-agent"), "mine/1");
    assert_eq!(got.header("authorization"), "Bearer t");
    assert!(got.headers.get("referer").is_none() && got.headers.get("cookie").is_none());
}

#[tokio::test]
async fn report_d41_a_receiver_that_always_refuses_is_called_four_times() {
    let mut sink = Sink::answering(|_| status(403)).await;
    let mut stage = Stage::new(&[("sink", sink_config(&sink.url()))]);
    let _running = stage.start();
    let debt = stage.owe("sink").await;
    for _ in 0..3 {
        sink.got().await;
        let (at, _) = stage.retried().await;
        assert!(at > stage.now());
        stage.until(at);
    }
    sink.got().await;
    let last = stage.settled().await;
    assert_eq!(last.id, debt.id);
    assert_eq!(
        last.outcome,
        SettledAs::Dead {
            reason: "attempts-exhausted"
        }
    );
    // A year on, the next request is another delivery's
    stage.until(stage.now().plus_ms(365 * 86_400_000));
    let other = stage.owe("sink").await;
    assert_eq!(sink.got().await.header("webhook-id"), other.id.to_string());
    assert!(sink.is_quiet());
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_not_called_again() {
    let mut sink = Sink::answering(|_| status(410)).await;
    let mut stage = Stage::new(&[("sink", sink_config(&sink.url()))]);
    let _running = stage.start();
    stage.owe("sink").await;
    sink.got().await;
    let settled = stage.settled().await;
    assert_eq!(
        settled.outcome,
        SettledAs::Dead {
            reason: "destination-gone"
        }
    );
    assert!(settled.started_at.is_some());
}

#[tokio::test]
async fn report_d43_a_receiver_is_asked_when_to_come_again() {
    let day = 86_400;
    // Header, and the least and the most seconds until the next attempt; the own wait is 1 to 2 s
    for (header, least, most) in [
        ("120", 120, 120),
        ("0", 1, 2),
        ("garbage", 1, 2),
        ("-1", 1, 2),
        ("1.5", 1, 2),
        ("99999999", day, day),
        ("99999999999999999999999999", day, day),
        // 2023-11-14T22:15:20Z: 120 s after the beginning; then before it, and far after
        ("Tue, 14 Nov 2023 22:15:20 GMT", 120, 120),
        ("Tue, 14 Nov 2023 22:10:00 GMT", 1, 2),
        ("Fri, 31 Dec 9999 23:59:59 GMT", day, day),
    ] {
        let answer = move |_| {
            Response::builder()
                .status(429)
                .header("retry-after", header)
                .body(Body::from("slow\u{7} down"))
                .unwrap()
        };
        let sink = Sink::answering(answer).await;
        let mut stage = Stage::new(&[("sink", sink_config(&sink.url()))]);
        let _running = stage.start();
        stage.owe("sink").await;
        let (at, detail) = stage.retried().await;
        let wait = at.unix_ms() - BEGIN * 1_000;
        assert!(
            (least * 1_000..=most * 1_000).contains(&wait),
            "`{header}`: {wait} ms"
        );
        assert_eq!(detail, "status 429: slow down");
    }
}

#[tokio::test]
async fn report_d44_a_redirect_is_not_followed_and_fails() {
    for code in [302, 307] {
        let mut trap = Sink::answering(|_| status(200)).await;
        let location = trap.url();
        let mut sink = Sink::answering(move |_| {
            let answer = Response::builder()
                .status(code)
                .header("location", &location);
            answer.body(Body::empty()).unwrap()
        })
        .await;
        let mut stage = Stage::new(&[("sink", sink_config(&sink.url()))]);
        let _running = stage.start();
        stage.owe("sink").await;
        let (_, detail) = stage.retried().await;
        assert_eq!(detail, format!("redirect-not-followed: status {code}"));
        sink.got().await;
        assert!(sink.is_quiet() && trap.is_quiet());
    }
}

#[tokio::test]
async fn what_the_operator_has_not_allowed_is_dead_at_once_and_not_connected_to() {
    let mut sink = Sink::answering(|_| status(200)).await;
    let port = sink.address.port();
    for host in ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost"] {
        let config = sink_config(&format!("https://{host}:{port}/"));
        let mut stage = Stage::allowing(&[], &[("sink", config)]);
        let _running = stage.start();
        stage.owe("sink").await;
        let settled = stage.settled().await;
        assert_eq!(
            settled.outcome,
            SettledAs::Dead {
                reason: "egress-refused"
            },
            "{host}"
        );
        assert!(
            settled.detail.starts_with("egress-forbidden: "),
            "{}",
            settled.detail
        );
    }
    assert!(sink.is_quiet());
}

#[tokio::test]
async fn nothing_leaves_once_every_signing_secret_has_ended() {
    let mut sink = Sink::answering(|_| status(200)).await;
    let mut config = sink_config(&sink.url());
    let ends = Timestamp::from_unix(BEGIN + 60).unwrap();
    config["signing"] = json!([{ "env": "OLD", "not_after": ends.to_string() }]);
    let mut stage = Stage::new(&[("sink", config)]);
    let _running = stage.start();
    stage.owe("sink").await;
    sink.got().await;
    assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
    stage.until(ends);
    stage.owe("sink").await;
    let (_, detail) = stage.retried().await;
    assert!(detail.starts_with("signing-expired: "), "{detail}");
    assert!(sink.is_quiet());
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_tried_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let mut stage = Stage::new(&[("sink", sink_config(&url))]);
    let _running = stage.start();
    stage.owe("sink").await;
    let (_, detail) = stage.retried().await;
    assert!(detail.starts_with("egress-connection: "), "{detail}");
}
