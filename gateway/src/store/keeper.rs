//! What must not hold up the indexer: a thread that moves the write-ahead log into the index.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

/// The indexer's way to checkpoints. The thread ends when this is dropped.
pub(super) struct Checkpoints {
    ask: SyncSender<()>,
    done: Arc<AtomicBool>,
    asked: bool,
}

/// The thread's end
pub(super) struct Keeper {
    asked: Receiver<()>,
    done: Arc<AtomicBool>,
}

impl Checkpoints {
    pub(super) fn new() -> (Self, Keeper) {
        let (ask, receiver) = sync_channel(1);
        let done = Arc::new(AtomicBool::new(false));
        let keeper = Keeper {
            asked: receiver,
            done: Arc::clone(&done),
        };
        let asked = false;
        (Self { ask, done, asked }, keeper)
    }

    /// Asks for a checkpoint, unless one is on its way
    pub(super) fn ask(&mut self) {
        if !self.asked {
            self.asked = self.ask.try_send(()).is_ok();
        }
    }

    /// Whether one has ended since this was last asked
    pub(super) fn ended(&mut self) -> bool {
        let ended = self.asked && self.done.swap(false, Ordering::Acquire);
        self.asked &= !ended;
        ended
    }
}

impl Keeper {
    /// Works until nobody can ask it any more
    pub(super) fn run(self, connection: &Connection) {
        while let Ok(()) = self.asked.recv() {
            // Readers and the indexer go on; what they hold is left for the next time
            if let Err(e) = checkpoint(connection) {
                tracing::warn!(error = %e, "a checkpoint was put off");
            }
            self.done.store(true, Ordering::Release);
        }
    }
}

/// Moves what it can of the write-ahead log into the index
pub(super) fn checkpoint(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}
