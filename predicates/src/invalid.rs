//! What is wrong with a declaration, and where: the path is a JSON Pointer into the declaration itself.

use postern_contract::fault::{Fault, Party};

/// A declaration that does not compile
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}`: {message}")]
pub struct Invalid {
    /// Where, as a JSON Pointer into the declaration; the root is the empty text
    pub path: String,
    /// What is wrong and how to mend it
    pub message: String,
}

impl Invalid {
    pub(crate) fn at(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            message: message.into(),
        }
    }
}

impl Fault for Invalid {
    fn code(&self) -> &'static str {
        "declaration-invalid"
    }
    fn fault(&self) -> Party {
        Party::Operator
    }
}
