//! The gateway: receives deliveries, verifies them, guards against replays, decides, projects, commits
//! and dispatches.
//!
//! The data path reads as one page in [`pipeline`]. Never here: the compiler (only frozen documents are
//! loaded, and their digests are checked), the environment (the command line hands secrets in).

pub mod admission;
pub mod candidates;
pub mod clock;
pub mod commit;
pub mod config;
pub mod decide;
pub mod dispatch;
pub mod doctor;
pub mod files;
pub mod gateway;
pub mod handshake;
pub mod hops;
pub mod journal;
pub mod keys;
pub mod metrics;
pub mod network_keys;
pub mod outage;
pub mod pipeline;
pub mod plans;
pub mod project;
pub mod receive;
pub mod respond;
pub mod review;
pub mod server;
pub mod sources;
pub mod state;
pub mod store;
pub mod subscribe;
pub mod trail;
pub mod verify;

pub use config::Config;
pub use gateway::{Faults, Gateway, Loaded};
