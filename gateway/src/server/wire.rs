//! The wire: a connection's bytes as they pass, with a bound on how long a write may make no progress, and
//! with the one shape of our errors where hyper answers by itself. It never reads ahead, and leaves alone
//! whatever answers a request that has reached the service.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf as _, Bytes};
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::respond::{self, NotRead};

/// Nothing that reached the service waits for its answer: what is written now is hyper's own
const IDLE: u8 = 0;
/// The service has a request
const ASKED: u8 = 1;
/// hyper has the whole answer, and may not have written it yet
const ANSWERED: u8 = 2;

/// Whose answer is being written, as the service and the wire of one connection know it
#[derive(Clone, Default)]
pub(super) struct Turn(Arc<AtomicU8>);

impl Turn {
    /// A request has reached the service
    pub(super) fn asked(&self) {
        self.0.store(ASKED, Ordering::Relaxed);
    }
    fn answered(&self) {
        self.0.store(ANSWERED, Ordering::Relaxed);
    }
    fn written(&self) {
        let order = Ordering::Relaxed;
        // Where another request is under way already, nothing changes
        let _ = self.0.compare_exchange(ANSWERED, IDLE, order, order);
    }
    fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE
    }
}

/// A connection's bytes
pub(super) struct Wire {
    stream: TcpStream,
    /// How long a write may make no progress
    patience: Duration,
    /// Runs while a write makes none
    stalled: Option<Pin<Box<Sleep>>>,
    turn: Turn,
    /// What is still to be written in the place of hyper's own answer
    instead: Bytes,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, patience: Duration, turn: Turn) -> Self {
        Self {
            stream,
            patience,
            stalled: None,
            turn,
            instead: Bytes::new(),
        }
    }

    fn push(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, data) {
            self.stalled = None;
            return Poll::Ready(written);
        }
        let patience = self.patience;
        let stalled = (self.stalled).get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        let why = format!("nothing of an answer was taken within {patience:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }

    fn push_instead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.instead.has_remaining() {
            let data = self.instead.clone();
            match ready!(self.push(cx, &data))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.instead.advance(n),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// hyper's own answer with our body. `None` where it is none that we know: then it goes out as it is.
fn in_our_shape(hypers: &[u8]) -> Option<Bytes> {
    const EMPTY: &str = "content-length: 0\r\n";
    let text = std::str::from_utf8(hypers).ok()?;
    let why = NotRead::of_status(text.get("HTTP/1.1 ".len()..)?.get(..3)?)?;
    if !text.ends_with("\r\n\r\n") || !text.contains(EMPTY) {
        return None;
    }
    let body = respond::not_read_body(why);
    let head = format!(
        "content-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    let mut ours = text.replace(EMPTY, &head).into_bytes();
    ours.extend_from_slice(&body);
    Some(ours.into())
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

// hyper asks `is_write_vectored`, which stays false: answers are small, and come in one piece
impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.push_instead(cx))?;
        if this.turn.is_idle()
            && let Some(ours) = in_our_shape(data)
        {
            this.instead = ours;
            return Poll::Ready(Ok(data.len()));
        }
        this.push(cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.push_instead(cx))?;
        // hyper flushes once it has written all that it has
        this.turn.written();
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.push_instead(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

/// A body that says when hyper has taken all of it, or wants no more
pub(super) struct Told {
    body: Body,
    turn: Turn,
}

impl Told {
    pub(super) fn new(body: Body, turn: Turn) -> Self {
        Self { body, turn }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.turn.answered();
    }
}

impl http_body::Body for Told {
    type Data = Bytes;
    type Error = axum::Error;
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_hyper_gets_a_body_and_keeps_its_head() {
        // As hyper 1.12 writes it
        let hypers = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
                      content-length: 0\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        let ours = in_our_shape(hypers.as_bytes()).unwrap();
        let ours = std::str::from_utf8(&ours).unwrap();
        let (head, body) = ours.split_once("\r\n\r\n").unwrap();
        assert!(body.contains("\"head-too-large\""), "{body}");
        let length = format!("content-length: {}\r\n", body.len());
        for part in [
            "HTTP/1.1 431 ",
            "connection: close",
            &length,
            "date: Thu",
            "content-type: application/json",
        ] {
            assert!(head.contains(part), "{part}: {head}");
        }
    }

    #[test]
    fn what_is_no_answer_of_hyper_is_left_alone() {
        for other in [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 400",
            "",
        ] {
            assert!(in_our_shape(other.as_bytes()).is_none(), "{other}");
        }
    }
}
