//! The listener: hyper's own connection builder with the deadlines and limits that `axum::serve` leaves
//! off, a bound on connections, and a drain. It knows nothing of what a request means.

mod wire;

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::header::{CONNECTION, HOST, HeaderValue};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::config::ServerConfig;
use crate::metrics::{Cut, Metrics};
use crate::outage::Outage;
use crate::respond::{self, NotRead};
use wire::{Told, Turn, Wire};

/// More headers than any provider of the catalogue sends, several times over
const MAX_HEADERS: usize = 128;
/// hyper's least buffer
const MIN_BUFFER: usize = 8 << 10;
/// How long to wait when the system has no file descriptor left
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);

/// The address of the other end, as a request extension
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Serves `app` until `stop`, then lets what is under way finish for as long as the drain allows
pub async fn serve(
    listener: TcpListener,
    app: Router,
    limits: &ServerConfig,
    metrics: &Arc<Metrics>,
    stop: CancellationToken,
) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout.duration())
        // A sender may end its half once it has said everything: it still gets its answer
        .half_close(true)
        .max_headers(MAX_HEADERS)
        // The buffer alone is no bound: hyper may read past it, and it has a least size
        .max_header_size(limits.max_header_bytes)
        .max_buf_size(limits.max_header_bytes.max(MIN_BUFFER));
    let connections = Arc::new(Semaphore::new(limits.max_connections.max(1)));
    let graceful = GracefulShutdown::new();
    let tasks = TaskTracker::new();
    let give_up = CancellationToken::new();
    let accepting = Outage::of("accepting connections");
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &connections, &accepting) => accepted,
        };
        let Some((stream, peer, permit)) = accepted else {
            continue;
        };
        let turn = Turn::default();
        let wire = Wire::new(stream, limits.write_timeout.duration(), turn.clone());
        let (app, counted) = (app.clone(), Arc::clone(metrics));
        let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
            turn.asked();
            request.extensions_mut().insert(Peer(peer));
            let (app, turn, counted) = (app.clone(), turn.clone(), Arc::clone(&counted));
            async move {
                let answer = if names_one_host(&request) {
                    let Ok(answer) = app.oneshot(request).await;
                    answer
                } else {
                    counted.cut(Cut::MalformedHead);
                    let mut answer = respond::not_read(NotRead::Malformed);
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(CONNECTION, close);
                    answer
                };
                Ok::<_, Infallible>(answer.map(|body| Told::new(body, turn)))
            }
        });
        let connection = builder.serve_connection(TokioIo::new(wire), service);
        let connection = graceful.watch(connection);
        let (give_up, metrics) = (give_up.clone(), Arc::clone(metrics));
        tasks.spawn(async move {
            let _permit = permit;
            let mut connection = pin!(connection);
            tokio::select! {
                () = give_up.cancelled() => {}
                ended = &mut connection => {
                    if let Err(e) = ended {
                        // The sender's doing: a cut connection, a late header, no HTTP at all
                        tracing::debug!(%peer, error = %e, "connection ended");
                        metrics.cut(why(&e));
                    }
                }
            }
        });
    }
    drop(listener);
    tasks.close();
    let drain = limits.drain.duration();
    if tokio::time::timeout(drain, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(
            seconds = drain.as_secs(),
            "the drain is over: closing what is left"
        );
    }
    give_up.cancel();
    tasks.wait().await;
}

/// RFC 9112, section 3.2: a request names one host. hyper leaves that to us.
fn names_one_host<B>(request: &http::Request<B>) -> bool {
    let hosts = request.headers().get_all(HOST).iter().count();
    hosts == 1 || (hosts == 0 && request.version() < http::Version::HTTP_11)
}

/// Why hyper has ended a connection
fn why(error: &hyper::Error) -> Cut {
    let stalled = (error.source())
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|e| e.kind() == io::ErrorKind::TimedOut);
    if stalled {
        Cut::WriteStalled
    } else if error.is_parse_too_large() {
        Cut::HeadTooLarge
    } else if error.is_parse() {
        Cut::MalformedHead
    } else if error.is_timeout() {
        Cut::NoHead
    } else {
        Cut::Broken
    }
}

/// The next connection, once there is room for it
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
    accepting: &Outage,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            accepting.works();
            // Answers are small and whole: waiting for more only delays the acknowledgement
            if let Err(e) = stream.set_nodelay(true) {
                tracing::debug!(%peer, error = %e, "no TCP_NODELAY");
            }
            Some((stream, peer, permit))
        }
        Err(e) => {
            accepting.fails(1, &e);
            tokio::time::sleep(NO_DESCRIPTOR).await;
            None
        }
    }
}
