//! The listener: hyper's own connection builder with the deadlines and limits that `axum::serve` leaves
//! off, a bound on connections, and a drain. It knows nothing of what a request means.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
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
    stop: CancellationToken,
) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout.duration())
        // A sender may end its half once it has said everything: it still gets its answer
        .half_close(true)
        .max_headers(MAX_HEADERS)
        .max_buf_size(limits.max_header_bytes.max(MIN_BUFFER));
    let connections = Arc::new(Semaphore::new(limits.max_connections.max(1)));
    let graceful = GracefulShutdown::new();
    let tasks = TaskTracker::new();
    let give_up = CancellationToken::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let Some((stream, peer, permit)) = accepted else {
            continue;
        };
        let app = app.clone();
        let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            app.clone().oneshot(request)
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        let give_up = give_up.clone();
        tasks.spawn(async move {
            let _permit = permit;
            tokio::select! {
                () = give_up.cancelled() => {}
                ended = connection => {
                    if let Err(e) = ended {
                        // The sender's doing: a cut connection, a late header, no HTTP at all
                        tracing::debug!(%peer, error = %e, "connection ended");
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

/// The next connection, once there is room for it
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Answers are small and whole: waiting for more only delays the acknowledgement
            if let Err(e) = stream.set_nodelay(true) {
                tracing::debug!(%peer, error = %e, "no TCP_NODELAY");
            }
            Some((stream, peer, permit))
        }
        Err(e) => {
            tracing::warn!(error = %e, "a connection was not accepted");
            tokio::time::sleep(NO_DESCRIPTOR).await;
            None
        }
    }
}
