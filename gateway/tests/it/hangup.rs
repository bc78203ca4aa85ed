//! Senders that hang up: the gauge of what is under way comes back, and a delivery that was committed is
//! in the event log and at the dispatcher whoever has gone.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use postern_gateway::journal::LogOutcome;
use postern_gateway::store::{Options, Step};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::receiving::{listening, raw, read_all};
use crate::world::{Setup, World, opened, send, signed};

/// Ends a wait that without the mend would last for ever
const PATIENCE: Duration = Duration::from_secs(60);

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_sender_that_hangs_up_in_mid_commit_leaves_its_line() {
    let (reached, mut in_commit) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, told) = std::sync::mpsc::channel::<()>();
    let told = Mutex::new(told);
    let mut setup = Setup::new();
    setup.options = Options::at_each_step(move |step| {
        if step == Step::BeforeSync {
            let _ = reached.send(());
            let _ = told.lock().unwrap().recv();
        }
        Ok(())
    });
    let world = World::open(setup);
    let router = world.router.clone();
    let mut sending = Box::pin(send(router, signed("d-1", &opened(1))));
    tokio::select! {
        answer = &mut sending => panic!("answered before the commit: {answer:?}"),
        commit = in_commit.recv() => commit.unwrap(),
    }
    let metrics = world.send(get("/metrics")).await.body;
    assert!(metrics.contains("postern_in_flight 1\n"), "{metrics}");
    drop(sending);
    go_on.send(()).unwrap();
    // A stop waits for what is under way
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stopped = CancellationToken::new();
    stopped.cancel();
    let stop = world.gateway.serve(listener, stopped);
    tokio::time::timeout(PATIENCE, stop).await.unwrap();
    let metrics = world.send(get("/metrics")).await.body;
    assert!(metrics.contains("postern_in_flight 0\n"), "{metrics}");
    assert!(
        metrics.contains("{source=\"github\",outcome=\"accepted\"} 1\n"),
        "{metrics}"
    );
    let line = world.last_line();
    assert_eq!(line.outcome, LogOutcome::Accepted);
    assert_eq!(line.events.len(), 1);
}

/// Asks until `/metrics` has `line`
async fn until(at: SocketAddr, line: &str) {
    let asking = async {
        loop {
            let mut stream = TcpStream::connect(at).await.unwrap();
            let get = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            stream.write_all(get).await.unwrap();
            if read_all(&mut stream).await.contains(line) {
                return;
            }
        }
    };
    let waited = tokio::time::timeout(PATIENCE, asking).await;
    waited.unwrap_or_else(|_| panic!("never: {line}"));
}

#[tokio::test]
async fn the_gauge_counts_a_body_that_is_held_back_until_its_sender_hangs_up() {
    listening(
        |_| {},
        |at| async move {
            until(at, "postern_in_flight 0\n").await;
            let mut held = Vec::new();
            for n in 1..=3 {
                let mut stream = TcpStream::connect(at).await.unwrap();
                let head = raw("{}", "content-length: 2");
                stream
                    .write_all(format!("{head}{{").as_bytes())
                    .await
                    .unwrap();
                held.push(stream);
                until(at, &format!("postern_in_flight {n}\n")).await;
            }
            drop(held);
            until(at, "postern_in_flight 0\n").await;
            // And each has its line
            until(
                at,
                "postern_deliveries_total{source=\"github\",outcome=\"not-received\"} 3\n",
            )
            .await;
        },
    )
    .await;
}
