//! The listener over real sockets: deadlines, limits, a drain; and the other routes.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::world::{Setup, World, opened, signature};

/// A listening gateway; `then` speaks to it
pub async fn listening<F: Future<Output = ()>>(
    bend: impl FnOnce(&mut Setup),
    then: impl FnOnce(std::net::SocketAddr) -> F,
) -> Duration {
    let mut setup = Setup::new();
    bend(&mut setup);
    let world = World::open(setup);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let ended = stop.clone();
    let client = async {
        then(at).await;
        ended.cancel();
        tokio::time::Instant::now()
    };
    let (_, stopped) = tokio::join!(world.gateway.serve(listener, stop), client);
    stopped.elapsed()
}

pub async fn read_all(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A reset after the answer is the server's way to say that it reads no more
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

pub fn raw(body: &str, length: &str) -> String {
    format!(
        "POST /hooks/github HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-github-event: issues\r\nx-github-delivery: d-1\r\nx-hub-signature-256: {}\r\n{length}\r\n\r\n",
        signature(body.as_bytes())
    )
}

#[tokio::test]
async fn report_a6_a_chunked_body_cut_within_a_character_is_accepted() {
    listening(
        |_| {},
        |at| async move {
            let body = opened(1).replace("t1", "é");
            let cut = body.find('é').unwrap() + 1;
            let (head, tail) = body.as_bytes().split_at(cut);
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream
                .write_all(raw(&body, "transfer-encoding: chunked").as_bytes())
                .await
                .unwrap();
            for part in [head, tail] {
                stream
                    .write_all(format!("{:x}\r\n", part.len()).as_bytes())
                    .await
                    .unwrap();
                stream.write_all(part).await.unwrap();
                stream.write_all(b"\r\n").await.unwrap();
                stream.flush().await.unwrap();
            }
            stream.write_all(b"0\r\n\r\n").await.unwrap();
            let answer = read_all(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        },
    )
    .await;
}

#[tokio::test]
async fn slow_headers_and_slow_bodies_are_cut_off() {
    let quick = |s: &mut Setup| {
        s.server = json!({"header_timeout": "200ms", "body_timeout": "200ms"});
    };
    listening(quick, |at| async move {
        let mut slow = TcpStream::connect(at).await.unwrap();
        slow.write_all(b"POST /hooks/github HTTP/1.1\r\nhost:")
            .await
            .unwrap();
        // Nothing more comes: the server ends it, with 408 or without a word
        let answer = read_all(&mut slow).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 408"),
            "{answer}"
        );
        let mut slow = TcpStream::connect(at).await.unwrap();
        slow.write_all(raw("{}", "content-length: 2").as_bytes())
            .await
            .unwrap();
        slow.write_all(b"{").await.unwrap();
        let answer = read_all(&mut slow).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_declared_or_chunked_body_past_the_limit_is_a_413() {
    let small = |s: &mut Setup| s.server = json!({"max_body_bytes": 1000});
    listening(small, |at| async move {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream
            .write_all(raw("", "content-length: 1001").as_bytes())
            .await
            .unwrap();
        assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 413"));
        let mut stream = TcpStream::connect(at).await.unwrap();
        let chunk = format!(
            "{}3e9\r\n{}\r\n",
            raw("", "transfer-encoding: chunked"),
            " ".repeat(1001)
        );
        stream.write_all(chunk.as_bytes()).await.unwrap();
        assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 413"));
    })
    .await;
}

#[tokio::test]
async fn a_stop_drains_idle_connections_and_gives_up_on_the_rest() {
    let quick = |s: &mut Setup| s.server = json!({"drain": "300ms"});
    let took = listening(quick, |at| async move {
        let mut busy = TcpStream::connect(at).await.unwrap();
        busy.write_all(raw("{}", "content-length: 2").as_bytes())
            .await
            .unwrap();
        // Kept open over the stop, as a sender that never ends its body would
        std::mem::forget(busy);
    })
    .await;
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test]
async fn a_sender_that_has_said_everything_may_end_its_half() {
    listening(
        |_| {},
        |at| async move {
            let body = opened(1);
            let mut stream = TcpStream::connect(at).await.unwrap();
            let head = raw(&body, &format!("content-length: {}", body.len()));
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .unwrap();
            stream.shutdown().await.unwrap();
            assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 202"));
        },
    )
    .await;
}

#[tokio::test]
async fn bodies_that_are_held_back_use_no_turns_up() {
    listening(
        |s| s.source["max_in_flight"] = json!(1),
        |at| async move {
            let mut held = TcpStream::connect(at).await.unwrap();
            held.write_all(raw("{}", "content-length: 2").as_bytes())
                .await
                .unwrap();
            held.write_all(b"{").await.unwrap();
            let body = opened(1);
            let mut stream = TcpStream::connect(at).await.unwrap();
            let head = raw(&body, &format!("content-length: {}", body.len()));
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .await
                .unwrap();
            let answer = read_all(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        },
    )
    .await;
}

#[tokio::test]
async fn the_other_routes_answer() {
    let world = World::open(Setup::new());
    world.deliver("d-1", &opened(1)).await;
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    assert_eq!(world.send(get("/healthz")).await.body, "ok\n");
    assert_eq!(world.send(get("/readyz")).await.status, 200);
    let metrics = world.send(get("/metrics")).await.body;
    assert!(
        metrics.contains("postern_deliveries_total{source=\"github\",outcome=\"accepted\"} 1"),
        "{metrics}"
    );
    assert!(metrics.contains("postern_events_total 1"), "{metrics}");
    assert!(
        metrics.contains("postern_commit_seconds_count 1"),
        "{metrics}"
    );
    // report D53: no id in any label
    assert!(!metrics.contains("d-1"), "{metrics}");
    assert_eq!(world.send(get("/")).await.status, 404);
}
