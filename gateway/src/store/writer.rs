//! The one writer: takes whatever waits as a group, appends to the segments, makes them durable, commits
//! the index, and only then answers anybody. A group that fails fails as a whole.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::embedded::{Step, Steps};
use super::index::{self, fault};
use super::keeper::{self, Checkpoints};
use super::receipts::{self, Pruned};
use super::segments::Segments;
use super::{Commit, Committed, StoreFault};

/// The most requests of one group
const MAX_GROUP: usize = 256;
/// The most bytes of one group's bodies
const MAX_GROUP_BYTES: usize = 64 << 20;
/// A checkpoint is asked for once the write-ahead log has this many pages of 4 KiB
const CHECKPOINT_PAGES: u32 = 2_048;
/// With this many the writer makes one itself, before anybody else is served
const TOO_MANY_PAGES: u32 = 16 * CHECKPOINT_PAGES;
/// What a probe writes to a segment: enough to need room
const PROBE: usize = 64 << 10;

/// What the writer is asked for
pub(super) trait Job: Send {
    /// Bytes that it brings
    fn bytes(&self) -> usize;
    /// Does it, inside the group's transaction
    fn run(&mut self, group: &mut Group<'_>) -> Result<(), StoreFault>;
    /// Answers whoever asked, once the group's fate is known. They may have gone: the outcome is on the
    /// disk all the same.
    fn answer(self: Box<Self>, fault: Option<&StoreFault>);
}

/// A job that is a function
pub(super) struct Ask<T, F> {
    bytes: usize,
    work: Option<F>,
    done: Option<T>,
    to: oneshot::Sender<Result<T, StoreFault>>,
}

impl<T, F> Ask<T, F>
where
    F: FnOnce(&mut Group<'_>) -> Result<T, StoreFault> + Send,
    T: Send,
{
    pub(super) fn new(bytes: usize, work: F) -> (Self, oneshot::Receiver<Result<T, StoreFault>>) {
        let (to, answer) = oneshot::channel();
        let ask = Self {
            bytes,
            work: Some(work),
            done: None,
            to,
        };
        (ask, answer)
    }
}

impl<T, F> Job for Ask<T, F>
where
    F: FnOnce(&mut Group<'_>) -> Result<T, StoreFault> + Send,
    T: Send,
{
    fn bytes(&self) -> usize {
        self.bytes
    }
    fn run(&mut self, group: &mut Group<'_>) -> Result<(), StoreFault> {
        self.done = self.work.take().map(|work| work(group)).transpose()?;
        Ok(())
    }
    fn answer(self: Box<Self>, fault: Option<&StoreFault>) {
        let outcome = match fault {
            Some(fault) => Err(fault.clone()),
            None => self.done.ok_or(StoreFault::Stopped),
        };
        let _ = self.to.send(outcome);
    }
}

/// What a job may touch
pub(super) struct Group<'a> {
    pub(super) tx: &'a Transaction<'a>,
    segments: &'a mut Segments,
    steps: &'a Steps,
    latest: &'a mut i64,
    failing: bool,
    emptied: &'a mut Vec<u32>,
}

impl Group<'_> {
    /// Guards and commits one delivery
    pub(super) fn commit(&mut self, commit: &Commit) -> Result<Committed, StoreFault> {
        let committed = receipts::commit(self.tx, self.segments, self.latest, commit)?;
        self.steps.at(Step::InTransaction)?;
        Ok(committed)
    }

    /// Notes segments that may go once the group has committed
    pub(super) fn pruned(&mut self, pruned: Pruned) -> bool {
        self.emptied.extend(pruned.emptied);
        pruned.more
    }

    /// Where the last write failed, writes to see whether it would again
    pub(super) fn probe(&mut self) -> Result<(), StoreFault> {
        if self.failing {
            self.segments
                .append_probe(PROBE)
                .map_err(|e| StoreFault::Io("append to a segment", e.to_string()))?;
            index::probe(self.tx).map_err(fault("write its index"))?;
        }
        Ok(())
    }
}

/// Why a group failed, and whether the index may have it after all
struct Failed {
    why: StoreFault,
    may_count: bool,
}

impl From<StoreFault> for Failed {
    fn from(why: StoreFault) -> Self {
        let may_count = false;
        Self { why, may_count }
    }
}

pub(super) struct Writer {
    file: PathBuf,
    connection: Option<Connection>,
    segments: Segments,
    steps: Steps,
    checkpoints: Checkpoints,
    /// Pages in the write-ahead log; 0 while this group has written nothing
    pages: Arc<AtomicU32>,
    latest: i64,
    failing: bool,
}

impl Writer {
    pub(super) fn new(
        file: PathBuf,
        connection: Connection,
        segments: Segments,
        steps: Steps,
        checkpoints: Checkpoints,
    ) -> Result<Self, StoreFault> {
        let latest = index::latest(&connection).map_err(fault("read its index"))?;
        let mut writer = Self {
            file,
            connection: None,
            segments,
            steps,
            checkpoints,
            pages: Arc::default(),
            latest,
            failing: false,
        };
        writer.connection = Some(writer.ready(connection)?);
        Ok(writer)
    }

    fn ready(&self, mut connection: Connection) -> Result<Connection, StoreFault> {
        connection.set_prepared_statement_cache_capacity(64);
        index::count_pages(&mut connection, &self.pages)?;
        Ok(connection)
    }

    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
        while let Some(first) = jobs.blocking_recv() {
            let mut bytes = first.bytes();
            let mut group = vec![first];
            while group.len() < MAX_GROUP && bytes < MAX_GROUP_BYTES {
                let Ok(next) = jobs.try_recv() else {
                    break;
                };
                bytes += next.bytes();
                group.push(next);
            }
            self.serve(group);
        }
    }

    fn serve(&mut self, mut group: Vec<Box<dyn Job>>) {
        self.pages.store(0, Ordering::Relaxed);
        let fault = match self.write(&mut group) {
            Ok(()) => {
                let pages = self.pages.load(Ordering::Relaxed);
                self.failing &= pages == 0;
                None
            }
            Err(Failed { why, may_count }) => {
                if !self.failing {
                    tracing::error!(error = %why, "the store cannot commit");
                }
                self.failing = true;
                self.segments.abandon(may_count);
                self.connection = None;
                Some(why)
            }
        };
        for job in group {
            job.answer(fault.as_ref());
        }
        self.checkpoint();
    }

    /// Writes a whole group in one transaction. On a fault, nothing of it counts.
    fn write(&mut self, group: &mut [Box<dyn Job>]) -> Result<(), Failed> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.ready(index::open(&self.file)?)?,
        };
        let steps = self.steps.clone();
        let mut emptied = Vec::new();
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fault("begin a transaction"))?;
        let mut together = Group {
            tx: &tx,
            segments: &mut self.segments,
            steps: &steps,
            latest: &mut self.latest,
            failing: self.failing,
            emptied: &mut emptied,
        };
        for job in group.iter_mut() {
            job.run(&mut together)?;
        }
        let io = |what| move |e: std::io::Error| StoreFault::Io(what, e.to_string());
        if self.segments.has_waiting() {
            steps.at(Step::BeforeAppend)?;
            self.segments.write().map_err(io("append to a segment"))?;
            steps.at(Step::AfterAppend)?;
        }
        steps.at(Step::BeforeSync)?;
        self.segments.sync().map_err(io("sync a segment"))?;
        index::extend(&tx, self.segments.added()).map_err(fault("write its index"))?;
        steps.at(Step::BeforeCommit)?;
        tx.commit().map_err(|e| Failed {
            // A full disk stops before the page that would make it count; after any other fault a crash
            // may bring the transaction back
            may_count: e.sqlite_error_code() != Some(ErrorCode::DiskFull),
            why: fault("commit")(e),
        })?;
        let may_count = true;
        let after = |why| Failed { why, may_count };
        steps.at(Step::AfterCommit).map_err(after)?;
        // One that was empty when it was pruned may have got a record later in the same group
        let added = self.segments.added();
        emptied.retain(|segment| !added.contains_key(segment));
        self.segments.committed();
        if let Err(e) = self.segments.remove(&emptied) {
            // The next opening removes them
            tracing::warn!(error = %e, "segments without records stay");
        }
        self.connection = Some(connection);
        steps.at(Step::BeforeAnswer).map_err(after)
    }

    /// Keeps the write-ahead log short. The keeper does the work beside the commits; what they wrote
    /// meanwhile is little, and is moved here, because only a log that is moved whole begins anew.
    fn checkpoint(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        if self.checkpoints.ended() || pages > TOO_MANY_PAGES {
            if let Some(connection) = &self.connection
                && let Err(e) = keeper::checkpoint(connection)
            {
                tracing::warn!(error = %e, "a checkpoint was put off");
            }
        } else if pages > CHECKPOINT_PAGES {
            self.checkpoints.ask();
        }
    }
}
