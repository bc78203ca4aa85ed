//! The replay guard's view of the index: one reading transaction for many groups, because every new one
//! begins with an empty cache. What the index has got since is pending still, so that nothing is missed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::StoreFault;
use super::index::{self, fault};

/// A view that is older is replaced
const OLD: Duration = Duration::from_secs(1);

pub(super) struct View {
    file: PathBuf,
    connection: Option<Connection>,
    /// When the transaction began, while there is one
    since: Option<Instant>,
}

impl View {
    pub(super) fn new(file: PathBuf) -> Self {
        Self {
            file,
            connection: None,
            since: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// Whether another should be taken: there is none, or it is old
    pub(super) fn is_old(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() > OLD)
    }

    /// The index as it was when the view was first opened
    pub(super) fn open(&mut self) -> Result<&Connection, StoreFault> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => index::open_for_guard(&self.file)?,
        };
        if self.since.is_none() {
            connection
                .execute_batch("BEGIN")
                .map_err(fault("read its index"))?;
            self.since = Some(Instant::now());
        }
        Ok(self.connection.insert(connection))
    }

    /// Ends the view; what was read stays in the cache, and is of use where nothing has changed
    pub(super) fn close(&mut self) {
        let ended = self.since.take().is_none()
            || (self.connection.as_ref()).is_some_and(|c| c.execute_batch("ROLLBACK").is_ok());
        if !ended {
            self.lose();
        }
    }

    /// After a fault: the next view begins with a connection of its own
    pub(super) fn lose(&mut self) {
        self.connection = None;
        self.since = None;
    }
}
