//! The gateway: receives deliveries, verifies them, guards against replays, decides, projects, commits
//! and dispatches.
//!
//! The data path reads as one page in [`pipeline`]. Never here: the compiler (only frozen documents are
//! loaded, and their digests are checked), the environment (the command line hands secrets in).

pub mod clock;
pub mod config;
pub mod receive;
pub mod server;
pub mod store;
