//! Dispatch from the store to real receivers on loopback and real programs. The clock is the test's: time
//! passes when a test says so, and nothing here waits for a wall clock to prove a point.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod command;
mod http;
mod schedule;
mod setting;
mod sink;
mod stage;
