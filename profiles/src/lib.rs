//! Verification profiles: how each provider signs, as data, and the engine that holds a delivery to it.
//!
//! Pure: request parts, keys and the time go in; verified evidence, a handshake's reply or a refusal come
//! out. Never here: I/O, a clock, a provider's name.

pub mod catalogue;
pub mod encoding;
mod evidence;
mod form;
mod handshake;
mod instant;
pub mod key;
pub mod profile;
pub mod refusal;
pub mod request;
mod scheme;
pub mod sign;
mod signature;
mod source;
pub mod vectors;
pub mod verifier;

pub use catalogue::{Catalogue, NotAProfile};
pub use evidence::{Malformed, ReplayKey, VerifiedEvidence};
pub use key::{BindError, Key, KeyMaterial};
pub use profile::{Ack, Integrity, Profile, Reply};
pub use refusal::{Refusal, Step};
pub use request::{HeaderSource, RequestParts};
pub use verifier::{Outcome, Tolerance, Unverified, Verifier};
