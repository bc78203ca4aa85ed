//! A receiver on loopback: tells every request, answers as it is told to, and can hold requests back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{Semaphore, mpsc};

use crate::stage::within;

/// A request as it came over the wire
#[derive(Debug)]
pub struct Got {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().unwrap_or_else(|| panic!("no `{name}`"));
        assert!(values.next().is_none(), "`{name}` stands twice");
        value.to_str().unwrap()
    }
}

pub struct Sink {
    pub address: SocketAddr,
    got: mpsc::UnboundedReceiver<Got>,
    gate: Arc<Semaphore>,
    peak: Arc<AtomicUsize>,
}

/// An answer without a body
pub fn status(code: u16) -> Response {
    Response::builder()
        .status(code)
        .body(Body::empty())
        .unwrap()
}

impl Sink {
    /// Answers the nth request, from 0, with `answer(nth)`
    pub async fn answering(answer: impl Fn(usize) -> Response + Send + Sync + 'static) -> Self {
        Self::new(Semaphore::MAX_PERMITS, answer).await
    }

    /// Answers 200, and only as often as it is let
    pub async fn holding() -> Self {
        Self::new(0, |_| status(200)).await
    }

    async fn new(free: usize, answer: impl Fn(usize) -> Response + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, got) = mpsc::unbounded_channel();
        let gate = Arc::new(Semaphore::new(free));
        let peak = Arc::new(AtomicUsize::new(0));
        let (answer, count, active) = (Arc::new(answer), Arc::default(), Arc::default());
        let (gate_, peak_) = (Arc::clone(&gate), Arc::clone(&peak));
        let handler = move |request: Request| {
            let (tell, answer, gate, peak) = (
                tell.clone(),
                Arc::clone(&answer),
                Arc::clone(&gate_),
                Arc::clone(&peak_),
            );
            let (count, active): (Arc<AtomicUsize>, Arc<AtomicUsize>) =
                (Arc::clone(&count), Arc::clone(&active));
            async move {
                let (head, body) = request.into_parts();
                let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                let nth = count.fetch_add(1, Ordering::SeqCst);
                peak.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let headers = head.headers;
                let _ = tell.send(Got { headers, body });
                gate.acquire().await.unwrap().forget();
                active.fetch_sub(1, Ordering::SeqCst);
                answer(nth)
            }
        };
        let router = Router::new().fallback(handler);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            got,
            gate,
            peak,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The next request
    pub async fn got(&mut self) -> Got {
        within(self.got.recv()).await.unwrap()
    }

    /// Nothing has come that [`Sink::got`] has not told
    pub fn is_quiet(&mut self) -> bool {
        self.got.try_recv().is_err()
    }

    /// Answers `n` more of the requests that it holds or will hold
    pub fn let_through(&self, n: usize) {
        self.gate.add_permits(n);
    }

    /// The most requests that it has held at once
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }
}
