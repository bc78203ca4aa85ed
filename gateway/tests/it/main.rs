//! The gateway from the outside: an open store, real frozen documents, requests through its router.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

mod admission;
mod batch;
mod doctor;
mod hangup;
mod hops;
mod hostile;
mod network;
mod receiving;
mod replay;
mod wire;
mod world;
