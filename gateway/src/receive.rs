//! Receive: an HTTP request becomes a [`RawDelivery`] of exact bytes, within the limits of size, memory
//! and time. Nothing is decoded, trimmed or parsed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use postern_contract::Timestamp;
use postern_contract::fault::{Fault, Party, Retry};

use crate::hops;
use crate::server::Peer;

/// The most that is set aside on a sender's word alone
const MAX_TRUST: usize = 1 << 20;

/// A delivery as it came, authentic or not
pub struct RawDelivery {
    /// The request's line and headers
    pub head: http::request::Parts,
    /// The body, byte for byte
    pub body: Bytes,
    /// When the body was complete
    pub received_at: Timestamp,
    /// The other end of the connection
    pub peer: Option<SocketAddr>,
    _memory: Reservation,
}

/// A request that is turned away before anybody looks at its signature
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    /// The body is too large
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The body did not arrive in time
    #[error("the body did not arrive within {0:?}")]
    TooSlow(Duration),
    /// The connection ended within the body
    #[error("the body ended early")]
    Cut,
    /// An encoding of the body that the profile does not speak of
    #[error("the body is encoded as `{0}`, which the profile does not speak of")]
    Encoded(String),
    /// Another gateway, or this one, has dispatched it: a destination leads back to a source
    #[error("a gateway has dispatched it: a destination leads back to this source")]
    Loop,
    /// The bodies of this source, or all together, take all the memory that they may
    #[error("the bodies of this source take their share of the memory, or all bodies take it up")]
    NoMemory,
}

impl Fault for NotReceived {
    fn code(&self) -> &'static str {
        match self {
            Self::TooLarge(_) => "body-too-large",
            Self::TooSlow(_) => "body-too-slow",
            Self::Cut => "body-cut",
            Self::Encoded(_) => "content-encoding",
            Self::Loop => "hop-limit",
            Self::NoMemory => "no-memory",
        }
    }
    fn fault(&self) -> Party {
        match self {
            Self::NoMemory => Party::Us,
            Self::Loop => Party::Operator,
            _ => Party::Sender,
        }
    }
    fn retry(&self) -> Retry {
        match self {
            Self::NoMemory | Self::TooSlow(_) | Self::Cut => Retry::Later,
            _ => Retry::Never,
        }
    }
}

/// What receiving may cost
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one body
    pub max_body_bytes: usize,
    /// Time for one body
    pub body_timeout: Duration,
    /// The memory that all bodies share
    pub memory: Memory,
}

/// Receives `request` whole, at the expense of `share`. `at` is asked for the time once the body is complete.
pub async fn receive(
    request: http::Request<Body>,
    limits: &Limits,
    share: &Share,
    at: impl FnOnce() -> Timestamp,
) -> Result<RawDelivery, NotReceived> {
    let (head, body) = request.into_parts();
    if !hops::within_limit(&head.headers) {
        return Err(NotReceived::Loop);
    }
    plain(&head.headers)?;
    let mut memory = limits.memory.reserve(share);
    let body = tokio::time::timeout(
        limits.body_timeout,
        collect(body, limits.max_body_bytes, &mut memory),
    )
    .await
    .map_err(|_| NotReceived::TooSlow(limits.body_timeout))??;
    let peer = head.extensions.get::<Peer>().map(|peer| peer.0);
    Ok(RawDelivery {
        head,
        body,
        received_at: at(),
        peer,
        _memory: memory,
    })
}

/// No profile signs or names an encoding: only bytes as they are can be verified.
fn plain(headers: &http::HeaderMap) -> Result<(), NotReceived> {
    for value in headers.get_all(http::header::CONTENT_ENCODING) {
        if !value.as_bytes().eq_ignore_ascii_case(b"identity") {
            let text = String::from_utf8_lossy(value.as_bytes());
            return Err(NotReceived::Encoded(text.chars().take(40).collect()));
        }
    }
    Ok(())
}

async fn collect(
    mut body: Body,
    max: usize,
    memory: &mut Reservation,
) -> Result<Bytes, NotReceived> {
    let declared = body.size_hint().exact();
    if declared.is_some_and(|n| n > max as u64) {
        return Err(NotReceived::TooLarge(max));
    }
    let declared = declared.map_or(0, |n| n as usize);
    let mut whole = Bytes::new();
    let mut grown = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| NotReceived::Cut)?.into_data() else {
            continue;
        };
        let so_far = whole.len() + grown.len();
        if data.len() > max - so_far {
            return Err(NotReceived::TooLarge(max));
        }
        memory.grow(data.len())?;
        // Most bodies come in one frame, which is then taken without a copy
        if so_far == 0 {
            whole = data;
            continue;
        }
        if grown.is_empty() {
            grown.reserve(declared.min(MAX_TRUST).max(so_far + data.len()));
            grown.extend_from_slice(&std::mem::take(&mut whole));
        }
        grown.extend_from_slice(&data);
    }
    Ok(if grown.is_empty() {
        whole
    } else {
        grown.freeze()
    })
}

/// The bytes that all bodies under way may take together. A source may hold no more than what it leaves
/// free: alone half of all, beside n others that are as greedy a part of n + 2, so that no source takes the
/// last byte from the rest. What counts is what has arrived, not what a sender announces.
#[derive(Clone, Debug)]
pub struct Memory {
    used: Arc<AtomicUsize>,
    max: usize,
}

/// What the bodies of one source hold
#[derive(Clone, Debug, Default)]
pub struct Share(Arc<AtomicUsize>);

impl Memory {
    /// Room for `max` bytes
    pub fn new(max: usize) -> Self {
        Self {
            used: Arc::default(),
            max,
        }
    }
    fn reserve(&self, share: &Share) -> Reservation {
        Reservation {
            of: self.clone(),
            share: share.clone(),
            bytes: 0,
        }
    }
}

/// One body's bytes, given back on drop
#[derive(Debug)]
struct Reservation {
    of: Memory,
    share: Share,
    bytes: usize,
}

impl Reservation {
    fn grow(&mut self, bytes: usize) -> Result<(), NotReceived> {
        // Added before it is judged: bodies that race may both be refused, and never both be let in
        let add = |to: &AtomicUsize| to.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let (all, own) = (add(&self.of.used), add(&self.share.0));
        self.bytes += bytes;
        if own > self.of.max.saturating_sub(all) {
            return Err(NotReceived::NoMemory);
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.share.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_body_bytes: usize, memory: usize) -> Limits {
        Limits {
            max_body_bytes,
            body_timeout: Duration::from_secs(5),
            memory: Memory::new(memory),
        }
    }

    fn chunks(parts: &[&'static [u8]]) -> http::Request<Body> {
        let frames: Vec<Result<Bytes, std::convert::Infallible>> =
            parts.iter().map(|p| Ok(Bytes::from_static(p))).collect();
        http::Request::new(Body::from_stream(tokio_stream::iter(frames)))
    }

    async fn body(request: http::Request<Body>, limits: &Limits) -> Result<Bytes, NotReceived> {
        receive(request, limits, &Share::default(), || Timestamp::EPOCH)
            .await
            .map(|raw| raw.body)
    }

    #[tokio::test]
    async fn a_character_cut_across_chunks_arrives_whole() {
        // report A6
        let got = body(chunks(&[b"\"\xc3", b"\xa9\""]), &limits(10, 10)).await;
        assert_eq!(got.unwrap(), "\"é\"");
    }

    #[tokio::test]
    async fn the_limit_counts_while_reading() {
        assert_eq!(
            body(chunks(&[b"12345", b"67890"]), &limits(10, 100))
                .await
                .unwrap(),
            "1234567890"
        );
        assert_eq!(
            body(chunks(&[b"12345", b"678901"]), &limits(10, 100)).await,
            Err(NotReceived::TooLarge(10))
        );
    }

    #[tokio::test]
    async fn memory_is_shared_and_given_back() {
        let limits = limits(10, 25);
        let first = receive(chunks(&[b"1234567890"]), &limits, &Share::default(), || {
            Timestamp::EPOCH
        })
        .await;
        // 15 are left, and another source may hold as many as it leaves free
        assert!(body(chunks(&[b"1234567"]), &limits).await.is_ok());
        assert_eq!(
            body(chunks(&[b"1234", b"5678"]), &limits).await,
            Err(NotReceived::NoMemory)
        );
        drop(first);
        assert!(body(chunks(&[b"12345678"]), &limits).await.is_ok());
    }

    #[test]
    fn no_source_takes_the_last_of_the_memory_from_another() {
        let memory = Memory::new(1_200);
        // Bodies of 10 bytes until no more is let in, every one of them held back
        let greedy = |share: &Share| {
            let mut held = Vec::new();
            loop {
                let mut one = memory.reserve(share);
                if one.grow(10).is_err() {
                    return held;
                }
                held.push(one);
            }
        };
        // A half; then of what is left a half; and so on
        let shares = [Share::default(), Share::default(), Share::default()];
        let held: Vec<_> = shares.iter().map(&greedy).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [60, 30, 15]);
        // Who holds the most gets nothing more, and a newcomer does
        assert!(memory.reserve(&shares[0]).grow(10).is_err());
        assert!(memory.reserve(&Share::default()).grow(10).is_ok());
        drop(held);
        assert_eq!(greedy(&shares[2]).len(), 60);
    }

    #[tokio::test]
    async fn an_encoding_is_turned_away_and_identity_is_not() {
        // report A10
        let mut request = chunks(&[b"x"]);
        request
            .headers_mut()
            .insert("content-encoding", "gzip".parse().unwrap());
        assert_eq!(
            body(request, &limits(10, 10)).await,
            Err(NotReceived::Encoded("gzip".to_owned()))
        );
        let mut request = chunks(&[b"x"]);
        request
            .headers_mut()
            .insert("content-encoding", "Identity".parse().unwrap());
        assert!(body(request, &limits(10, 10)).await.is_ok());
    }
}
