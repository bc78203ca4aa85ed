//! What two crates of postern must agree on: the parsed document, pointers, canonical JSON, digests,
//! names, the canonical event, subscriptions and admissions, secrets and faults.
//!
//! Never here: I/O, a clock, async, a provider's name.

pub mod admission;
pub mod canonical;
pub mod digest;
pub mod document;
pub mod event;
pub mod fault;
pub mod name;
pub mod pointer;
pub mod request;
pub mod secret;
pub mod subscription;
pub mod timestamp;

pub use admission::{Admission, OptIn};
pub use digest::{Digest, Sha256Hex};
pub use document::{Document, Kind, MalformedBody, Resolution, Value};
pub use event::{CanonicalEvent, EventId, EventSource, FieldValue};
pub use fault::{Fault, Party, Retry};
pub use name::Name;
pub use pointer::Pointer;
pub use request::CapturedRequest;
pub use secret::Secret;
pub use subscription::{FilterChoice, Scalar, Subscription};
pub use timestamp::Timestamp;

/// The version that every document of postern carries (connector specification, 2.2)
pub const API_VERSION: &str = "github.com/gh-aw/connectors/v1";
