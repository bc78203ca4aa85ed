//! Verification profiles: how each provider signs, as data, and the engine that holds a delivery to it.
//!
//! Pure: request parts, keys and the time go in; verified evidence, a handshake's reply or a refusal come
//! out. Never here: I/O, a clock, a provider's name.

mod canonical;
pub mod catalogue;
pub mod certificate;
pub mod encoding;
mod evidence;
pub mod explain;
mod facts;
mod form;
mod handshake;
mod instant;
mod jwk;
mod jwt;
pub mod key;
mod multipart;
mod native;
pub mod network;
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
pub use evidence::{Item, Malformed, ReplayKey, VerifiedEvidence};
pub use facts::Params;
pub use handshake::Then;
pub use key::{BindError, Key, KeyMaterial};
pub use native::Unverified;
pub use network::{FetchedKey, FetchedKeys, KeyFault, KeyRequest};
pub use profile::{Ack, Confidence, GENERIC_PARAMS, Integrity, Profile, Reply, SignaturePlace};
pub use refusal::{Refusal, Step};
pub use request::{HeaderSource, RequestParts};
pub use sign::TrialKey;
pub use verifier::{Options, Outcome, Tolerance, Verifier};
