//! The index's one writer: a thread that puts durable entries of the log into the index, many in one
//! transaction, and does all that changes what is owed. No acknowledgement waits for it: what it has not
//! done when a process dies is done by the next opening.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::embedded::{Step, Steps};
use super::entry::Logged;
use super::index::{self, Extents, fault};
use super::keeper::{self, Checkpoints};
use super::receipts::{self, Pruned};
use super::{StoreFault, segments};

/// Entries alone are indexed no more often than this: one transaction writes a page once
const PERIOD: Duration = Duration::from_millis(500);
/// Where the index cannot be written, it is tried again this often
const RETRY: Duration = Duration::from_millis(200);
/// The most jobs of one transaction
const MAX_JOBS: usize = 256;
/// A checkpoint is asked for once the write-ahead log has this many pages of 4 KiB
const CHECKPOINT_PAGES: u32 = 2_048;
/// With this many the indexer makes one itself, before anything else
const TOO_MANY_PAGES: u32 = 16 * CHECKPOINT_PAGES;

/// What the indexer is told
pub(super) enum Work {
    /// Entries wait in the [`Handoff`]
    Entries,
    /// Something to do with everything before it in the index
    Job(Box<dyn Job>),
}

/// What the indexer is asked for
pub(super) trait Job: Send {
    /// Does it, inside a transaction
    fn run(&mut self, index: &mut Index<'_>) -> Result<(), StoreFault>;
    /// Answers whoever asked, once the transaction's fate is known. They may have gone: the outcome is on
    /// the disk all the same.
    fn answer(self: Box<Self>, fault: Option<&StoreFault>);
}

/// A job that is a function
pub(super) struct Ask<T, F> {
    work: Option<F>,
    done: Option<T>,
    to: oneshot::Sender<Result<T, StoreFault>>,
}

impl<T, F> Ask<T, F>
where
    F: FnOnce(&mut Index<'_>) -> Result<T, StoreFault> + Send,
    T: Send,
{
    pub(super) fn new(work: F) -> (Self, oneshot::Receiver<Result<T, StoreFault>>) {
        let (to, answer) = oneshot::channel();
        let ask = Self {
            work: Some(work),
            done: None,
            to,
        };
        (ask, answer)
    }
}

impl<T, F> Job for Ask<T, F>
where
    F: FnOnce(&mut Index<'_>) -> Result<T, StoreFault> + Send,
    T: Send,
{
    fn run(&mut self, index: &mut Index<'_>) -> Result<(), StoreFault> {
        self.done = self.work.take().map(|work| work(index)).transpose()?;
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
pub(super) struct Index<'a> {
    pub(super) tx: &'a Transaction<'a>,
    failing: bool,
    emptied: &'a mut Vec<u32>,
}

impl Index<'_> {
    /// Notes segments that may go once the transaction has committed; whether there may be more
    pub(super) fn pruned(&mut self, pruned: Pruned) -> bool {
        self.emptied.extend(pruned.emptied);
        pruned.more
    }

    /// Where the last transaction failed, writes to see whether it would again
    pub(super) fn probe(&mut self) -> Result<(), StoreFault> {
        if self.failing {
            index::probe(self.tx).map_err(fault("write its index"))?;
        }
        Ok(())
    }
}

/// What the two writers tell each other
#[derive(Default)]
pub(super) struct Handoff {
    entries: Mutex<Vec<Arc<Logged>>>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    /// The index has every entry up to this number
    indexed: u64,
    /// Why it has no more
    fault: Option<StoreFault>,
}

impl Handoff {
    /// Hands over entries that are durable, in the order of the log; the indexer is told of the first
    pub(super) fn give(&self, logged: impl Iterator<Item = Arc<Logged>>, indexer: &Sender<Work>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = entries.is_empty();
        entries.extend(logged);
        if idle && !entries.is_empty() {
            let _ = indexer.send(Work::Entries);
        }
    }

    /// How far the index is, once it is at `least` or gets no further, and then why
    pub(super) fn indexed(&self, least: u64) -> (u64, Option<StoreFault>) {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = |p: &mut Progress| p.indexed < least && p.fault.is_none();
        let progress = (self.changed)
            .wait_while(progress, behind)
            .unwrap_or_else(PoisonError::into_inner);
        (progress.indexed, progress.fault.clone())
    }

    fn take(&self) -> Vec<Arc<Logged>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut entries)
    }

    fn tell(&self, done: Result<Option<u64>, StoreFault>) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok(number) => {
                progress.indexed = number.unwrap_or(progress.indexed);
                progress.fault = None;
            }
            Err(fault) => progress.fault = Some(fault),
        }
        self.changed.notify_all();
    }
}

pub(super) struct Indexer {
    file: PathBuf,
    segments: PathBuf,
    connection: Option<Connection>,
    steps: Steps,
    checkpoints: Checkpoints,
    handoff: Arc<Handoff>,
    /// Pages in the write-ahead log; 0 while this transaction has written nothing
    pages: Arc<AtomicU32>,
    /// Entries that are not in the index yet
    waiting: Vec<Arc<Logged>>,
    /// When entries were last indexed
    last: Instant,
    failing: bool,
}

impl Indexer {
    pub(super) fn new(
        file: PathBuf,
        segments: PathBuf,
        connection: Connection,
        steps: Steps,
        checkpoints: Checkpoints,
        handoff: Arc<Handoff>,
    ) -> Result<Self, StoreFault> {
        let mut indexer = Self {
            file,
            segments,
            connection: None,
            steps,
            checkpoints,
            handoff,
            pages: Arc::default(),
            waiting: Vec::new(),
            last: Instant::now(),
            failing: false,
        };
        indexer.connection = Some(indexer.ready(connection)?);
        Ok(indexer)
    }

    fn ready(&self, mut connection: Connection) -> Result<Connection, StoreFault> {
        connection.set_prepared_statement_cache_capacity(64);
        index::count_pages(&mut connection, &self.pages)?;
        Ok(connection)
    }

    /// Works until nobody can ask it any more; what waits then is indexed, if that can be done
    pub(super) fn run(mut self, work: Receiver<Work>) {
        let mut asked = true;
        while asked {
            let mut jobs = Vec::new();
            asked = self.gather(&work, &mut jobs);
            self.waiting.extend(self.handoff.take());
            if !(jobs.is_empty() && self.waiting.is_empty()) {
                self.serve(jobs);
            }
        }
    }

    /// Waits until there is something to do; whether there may be more after it
    fn gather(&self, work: &Receiver<Work>, jobs: &mut Vec<Box<dyn Job>>) -> bool {
        let mut next = match self.waiting.is_empty() {
            true => work.recv().map_err(RecvTimeoutError::from),
            false => work.recv_timeout(RETRY),
        };
        let due = self.last + PERIOD;
        while matches!(next, Ok(Work::Entries)) {
            next = work.recv_timeout(due.saturating_duration_since(Instant::now()));
        }
        match next {
            Ok(Work::Job(job)) => jobs.push(job),
            Ok(Work::Entries) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        while jobs.len() < MAX_JOBS {
            match work.try_recv() {
                Ok(Work::Job(job)) => jobs.push(job),
                Ok(Work::Entries) => {}
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn serve(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        self.pages.store(0, Ordering::Relaxed);
        self.last = Instant::now();
        let fault = match self.write(&mut jobs) {
            Ok(()) => {
                let wrote = self.pages.load(Ordering::Relaxed) > 0;
                self.failing &= !wrote;
                let number = self.waiting.last().map(|one| one.number);
                self.waiting.clear();
                if !self.failing {
                    self.handoff.tell(Ok(number));
                }
                None
            }
            Err(why) => {
                if !self.failing {
                    tracing::error!(error = %why, "the index cannot be written: what was accepted waits in the log");
                }
                self.failing = true;
                self.connection = None;
                self.handoff.tell(Err(why.clone()));
                Some(why)
            }
        };
        for job in jobs {
            job.answer(fault.as_ref());
        }
        self.checkpoint();
    }

    /// Does everything in one transaction. On a fault, nothing of it counts.
    fn write(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreFault> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.ready(index::open(&self.file)?)?,
        };
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(fault("begin a transaction"))?;
        let mut extents = Extents::new();
        for one in &self.waiting {
            receipts::apply(&tx, &one.entry, &one.at).map_err(fault("write its index"))?;
            index::count(&mut extents, &one.entry, &one.at);
            self.steps.at(Step::Indexing)?;
        }
        index::extend(&tx, &extents).map_err(fault("write its index"))?;
        let mut emptied = Vec::new();
        let mut index = Index {
            tx: &tx,
            failing: self.failing,
            emptied: &mut emptied,
        };
        for job in jobs.iter_mut() {
            job.run(&mut index)?;
        }
        self.steps.at(Step::BeforeIndexed)?;
        tx.commit().map_err(fault("commit"))?;
        if let Err(e) = segments::remove(&self.segments, &emptied) {
            // The next opening removes them
            tracing::warn!(error = %e, "segments without records stay");
        }
        self.connection = Some(connection);
        Ok(())
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
