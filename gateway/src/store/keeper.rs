//! What must not hold up a commit: a thread that moves the write-ahead log into the index, and makes the
//! next segment beforehand, so that an append changes data alone and no block map.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rusqlite::Connection;

use super::segments::{self, SEGMENT_BYTES, sync_dir};

/// Zeros are written in pieces of this size
const PIECE: usize = 1 << 20;

enum Chore {
    Checkpoint,
    Spare(u32),
}

/// A segment that was to be made beforehand; no file where that failed
pub(super) struct Spare {
    pub(super) segment: u32,
    pub(super) file: Option<File>,
}

/// The writer's end
pub(super) struct Keeper {
    chores: SyncSender<Chore>,
    made: Receiver<Spare>,
    checkpointed: Arc<AtomicBool>,
}

/// The thread's end
pub(super) struct Work {
    chores: Receiver<Chore>,
    made: Sender<Spare>,
    checkpointed: Arc<AtomicBool>,
}

impl Keeper {
    pub(super) fn new() -> (Self, Work) {
        // At most one chore of each kind is asked for at a time
        let (chores, receiver) = sync_channel(2);
        let (sender, made) = channel();
        let checkpointed = Arc::new(AtomicBool::new(false));
        let work = Work {
            chores: receiver,
            made: sender,
            checkpointed: Arc::clone(&checkpointed),
        };
        let keeper = Self {
            chores,
            made,
            checkpointed,
        };
        (keeper, work)
    }

    /// Asks for a segment; whether it was asked for
    pub(super) fn make_spare(&self, segment: u32) -> bool {
        self.chores.try_send(Chore::Spare(segment)).is_ok()
    }

    /// The segment, where it is made
    pub(super) fn made(&self) -> Option<Spare> {
        self.made.try_recv().ok()
    }
}

/// The writer's way to checkpoints
pub(super) struct Checkpoints {
    chores: SyncSender<Chore>,
    done: Arc<AtomicBool>,
    asked: bool,
}

impl Checkpoints {
    pub(super) fn of(keeper: &Keeper) -> Self {
        Self {
            chores: keeper.chores.clone(),
            done: Arc::clone(&keeper.checkpointed),
            asked: false,
        }
    }

    /// Asks for a checkpoint, unless one is on its way
    pub(super) fn ask(&mut self) {
        if !self.asked {
            self.asked = self.chores.try_send(Chore::Checkpoint).is_ok();
        }
    }

    /// Whether one has ended since this was last asked
    pub(super) fn ended(&mut self) -> bool {
        let ended = self.asked && self.done.swap(false, Ordering::Acquire);
        self.asked &= !ended;
        ended
    }
}

impl Work {
    /// Works until the writer is gone
    pub(super) fn run(self, connection: &Connection, segments: PathBuf) {
        while let Ok(chore) = self.chores.recv() {
            match chore {
                Chore::Checkpoint => {
                    // Readers and the writer go on; what they hold is left for the next time
                    if let Err(e) = checkpoint(connection) {
                        tracing::warn!(error = %e, "a checkpoint was put off");
                    }
                    self.checkpointed.store(true, Ordering::Release);
                }
                Chore::Spare(segment) => self.make(&segments, segment),
            }
        }
    }

    fn make(&self, dir: &std::path::Path, segment: u32) {
        let file = match zeros(dir, segment) {
            Ok(file) => Some(file),
            Err(e) => {
                tracing::warn!(segment, error = %e, "no segment was made beforehand");
                let _ = std::fs::remove_file(segments::path(dir, segment));
                None
            }
        };
        // The writer may have ended: opening removes what no index names
        let _ = self.made.send(Spare { segment, file });
    }
}

/// Moves what it can of the write-ahead log into the index
pub(super) fn checkpoint(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// A segment of zeros, durable with its name
fn zeros(dir: &std::path::Path, segment: u32) -> io::Result<File> {
    let mut file = segments::create(dir, segment)?;
    let piece = vec![0; PIECE];
    let mut left = SEGMENT_BYTES as usize;
    while left > 0 {
        let now = piece.get(..left.min(PIECE)).unwrap_or(&piece);
        file.write_all(now)?;
        // In pieces, so that a commit's sync does not wait for all of it
        file.sync_data()?;
        left -= now.len();
    }
    file.sync_all()?;
    sync_dir(dir)?;
    Ok(file)
}

#[cfg(test)]
impl Work {
    pub(super) fn serve_spares(&self, dir: &std::path::Path) -> Vec<u32> {
        let mut made = Vec::new();
        while let Ok(chore) = self.chores.try_recv() {
            if let Chore::Spare(segment) = chore {
                self.make(dir, segment);
                made.push(segment);
            }
        }
        made
    }
}
