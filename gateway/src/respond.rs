//! Respond: the one place where an outcome becomes an HTTP status. A 2xx says that the event and all that
//! it owes are on durable storage, or that nobody is owed anything; a refusal never says why.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{
    ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use postern_contract::EventId;
use postern_profiles::{Ack, Reply};
use serde::Serialize;

use crate::receive::NotReceived;

/// What became of a request
#[derive(Debug)]
pub enum Answer {
    /// Events are on durable storage
    Accepted(Vec<EventId>),
    /// A copy of a delivery that is on durable storage
    Replay(Vec<EventId>),
    /// Authentic, and nobody is owed anything
    NothingOwed,
    /// A provider's handshake, answered as its profile says
    Handshake(Reply),
    /// No such source
    NoSource,
    /// No such method here
    Method,
    /// Turned away before verification
    NotReceived(NotReceived),
    /// Not authentic, whatever the cause
    Refused,
    /// Authentic, but no evidence
    Malformed,
    /// The source has too much under way
    Busy,
    /// The store cannot commit
    Unavailable,
    /// The key that would tell cannot be had
    NoKey,
    /// What a handshake asks for could not be done
    NotDone,
}

#[derive(Serialize)]
struct Events<'a> {
    events: &'a [EventId],
}

#[derive(Serialize)]
struct Problem<'a> {
    error: ProblemBody<'a>,
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    code: &'a str,
    message: &'a str,
}

/// Why a request was not read as one: there is no source yet, and no line of the event log
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// No HTTP that is taken
    Malformed,
    /// Its line and headers are too large
    HeadTooLarge,
    /// Its path is too long
    PathTooLong,
}

impl NotRead {
    /// By the status that hyper answers with
    pub fn of_status(status: &str) -> Option<Self> {
        match status {
            "400" => Some(Self::Malformed),
            "414" => Some(Self::PathTooLong),
            "431" => Some(Self::HeadTooLarge),
            _ => None,
        }
    }
    fn problem(self) -> (StatusCode, ProblemBody<'static>) {
        let (status, code, message) = match self {
            Self::Malformed => (
                StatusCode::BAD_REQUEST,
                "malformed-request",
                "the request is no HTTP that is taken here",
            ),
            Self::HeadTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "head-too-large",
                "the request's line and headers are too large",
            ),
            Self::PathTooLong => (
                StatusCode::URI_TOO_LONG,
                "path-too-long",
                "the path is too long",
            ),
        };
        (status, ProblemBody { code, message })
    }
}

/// A request that was not read as one
pub fn not_read(why: NotRead) -> Response {
    let (status, error) = why.problem();
    json(status, &Problem { error })
}

/// The same answer's body alone
pub fn not_read_body(why: NotRead) -> Vec<u8> {
    let (_, error) = why.problem();
    bytes(&Problem { error })
}

/// The answer on the wire; `ack` is what the source's profile replaces
pub fn respond(answer: &Answer, ack: Option<&Ack>) -> Response {
    match answer {
        Answer::Accepted(events) => accepted(StatusCode::ACCEPTED, events, ack),
        Answer::Replay(events) => accepted(StatusCode::OK, events, ack),
        Answer::NothingOwed => match ack.and_then(|a| a.accepted.as_ref()) {
            Some(own) => reply(own),
            None => empty(StatusCode::NO_CONTENT),
        },
        Answer::Handshake(own) => reply(own),
        Answer::NoSource => nothing_here(),
        Answer::Method => not_allowed("POST", "deliveries are posted"),
        Answer::NotReceived(why) => not_received(why),
        Answer::Refused => match ack.and_then(|a| a.refused.as_ref()) {
            Some(own) => reply(own),
            None => problem(
                StatusCode::UNAUTHORIZED,
                "not-authentic",
                "the delivery is not authentic",
            ),
        },
        Answer::Malformed => problem(
            StatusCode::BAD_REQUEST,
            "malformed-body",
            "the delivery is authentic, but its body is no evidence",
        ),
        Answer::Busy => later(
            StatusCode::TOO_MANY_REQUESTS,
            "busy",
            "too many deliveries of this source are under way",
        ),
        Answer::Unavailable => later(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            "the delivery could not be stored",
        ),
        Answer::NoKey => later(
            StatusCode::SERVICE_UNAVAILABLE,
            "key-unavailable",
            "the key of the signature cannot be had now",
        ),
        Answer::NotDone => later(
            StatusCode::SERVICE_UNAVAILABLE,
            "handshake-failed",
            "what the handshake asks for could not be done",
        ),
    }
}

/// No source, or no such path
pub fn nothing_here() -> Response {
    problem(
        StatusCode::NOT_FOUND,
        "not-found",
        "there is nothing at this path",
    )
}

/// A route that tells, and takes nothing
pub fn read_only() -> Response {
    not_allowed("GET, HEAD", "this is only read")
}

fn not_allowed(allow: &'static str, message: &str) -> Response {
    let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, "method", message);
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// A profile's own answer; what it echoes is never sniffed for another type
fn reply(own: &Reply) -> Response {
    let mut response = Response::new(Body::from(own.body.clone()));
    // Profiles are checked when they are loaded: these cannot fail
    *response.status_mut() = StatusCode::from_u16(own.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    if !own.body.is_empty()
        && let Ok(kind) = HeaderValue::try_from(own.content_type.as_str())
    {
        headers.insert(CONTENT_TYPE, kind);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    for (name, value) in &own.headers {
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(name.as_str()),
            HeaderValue::try_from(value.as_str()),
        ) {
            headers.insert(name, value);
        }
    }
    response
}

fn accepted(status: StatusCode, events: &[EventId], ack: Option<&Ack>) -> Response {
    match ack.and_then(|a| a.accepted.as_ref()) {
        Some(own) => reply(own),
        None => json(status, &Events { events }),
    }
}

fn not_received(why: &NotReceived) -> Response {
    match why {
        NotReceived::TooLarge(_) => problem(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "the body is too large",
        ),
        NotReceived::TooSlow(_) => problem(
            StatusCode::REQUEST_TIMEOUT,
            "body-too-slow",
            "the body did not arrive in time",
        ),
        NotReceived::Cut => problem(StatusCode::BAD_REQUEST, "body-cut", "the body ended early"),
        NotReceived::Encoded(_) => problem(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content-encoding",
            "send the body without a content encoding",
        ),
        NotReceived::Loop => problem(
            StatusCode::LOOP_DETECTED,
            "hop-limit",
            "a gateway has dispatched this delivery: it is not taken again",
        ),
        NotReceived::NoMemory => later(
            StatusCode::SERVICE_UNAVAILABLE,
            "no-memory",
            "too many bodies are under way",
        ),
    }
}

fn later(status: StatusCode, code: &str, message: &str) -> Response {
    let mut response = problem(status, code, message);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn problem(status: StatusCode, code: &str, message: &str) -> Response {
    json(
        status,
        &Problem {
            error: ProblemBody { code, message },
        },
    )
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(bytes(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn bytes(body: &impl Serialize) -> Vec<u8> {
    // These shapes have string keys alone: they always serialize
    serde_json::to_vec(body).unwrap_or_default()
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
