//! What every error of a stage says beside its message: a stable code, whose fault it is, and whether
//! trying again can help. One function of the gateway maps these to HTTP; nothing else does.

/// Who has to act so that the same call succeeds
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The provider, or whoever poses as it
    Sender,
    /// The receiver of a dispatched event
    Destination,
    /// Whoever configures this gateway
    Operator,
    /// postern itself
    Us,
}

/// Whether the same call may succeed later without anybody acting
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The answer stays the same
    Never,
    /// A passing condition: try again
    Later,
}

/// An error with a stable code, listed in docs/errors.md
pub trait Fault: std::error::Error {
    /// Stable kebab-case code
    fn code(&self) -> &'static str;
    /// Who has to act
    fn fault(&self) -> Party;
    /// Whether to try again
    fn retry(&self) -> Retry {
        Retry::Never
    }
    /// How to mend it, as a line of its own
    fn hint(&self) -> Option<String> {
        None
    }
}
