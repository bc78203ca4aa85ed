//! Where time comes from. Stages take a [`Clock`], so that tests set the time; only [`SystemClock`] reads it.

use postern_contract::Timestamp;

/// A source of the current time
pub trait Clock: Send + Sync + 'static {
    /// The current time
    fn now(&self) -> Timestamp;
}

/// The machine's clock
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the system's clock"
    )]
    fn now(&self) -> Timestamp {
        // A clock past the calendar's ends is held at the epoch: every tolerance then fails closed
        Timestamp::from_system(std::time::SystemTime::now()).unwrap_or(Timestamp::EPOCH)
    }
}
