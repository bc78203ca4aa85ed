//! Connector and workflow Markdown to frozen documents: triggers and the subscriptions that select them.
//! Every diagnostic is reported, not only the first; the same bytes in give the same digests out.
//!
//! Never here: I/O (files come through [`Sources`]), a clock, a claim that anything is live.

pub mod connector;
pub mod diagnostic;
mod frontmatter;
mod import;
pub mod trial;
pub mod workflow;
pub mod yaml;

use std::collections::BTreeMap;

pub use connector::{Connector, shipped};
pub use diagnostic::{Diagnostic, Severity};
pub use workflow::{Compiled, Compiler, Selected};

/// The most bytes of one file
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// The files of a repository, by path from its root with `/`
#[derive(Clone, Debug, Default)]
pub struct Sources(BTreeMap<String, Result<String, String>>);

impl Sources {
    /// Adds or replaces a file
    pub fn insert(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.0.insert(path.into(), Ok(text.into()));
    }
    /// A file that is there and cannot be taken (a link, too large, no text): importing it is an error with
    /// this reason, and no shipped connector stands in for it
    pub fn refuse(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.0.insert(path.into(), Err(why.into()));
    }
    /// The text of a file
    pub fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path)?.as_deref().ok()
    }
    /// Why a file cannot be taken
    pub fn refused(&self, path: &str) -> Option<&str> {
        self.0.get(path)?.as_ref().err().map(String::as_str)
    }
}
