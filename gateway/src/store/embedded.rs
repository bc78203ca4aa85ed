//! The embedded store: one directory, one process, nothing to install. The log in `segments/`, whose
//! writer commits by groups; `index.sqlite`, which another thread makes from the log and in which it keeps
//! what is owed; and a thread that checkpoints the index.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use postern_contract::{Digest, Name, Timestamp};
use tokio::sync::oneshot;

use super::index::{self, fault};
use super::indexer::{Ask, Handoff, Index, Indexer, Work};
use super::keeper::Checkpoints;
use super::recovery::recover;
use super::segments::{self, Segments, sync_dir};
use super::writer::{Request, Writer};
use super::{
    BoxFuture, Claimed, Commit, Committed, DeliveryId, Settled, SettledAs, Store, StoreFault,
    outbox, receipts,
};

/// How often the lock is tried, and the pause between: a second in all
const LOCK_TRIES: usize = 50;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// A place at which a test can stop the process or make the disk fail: in the commit, and in the indexing
/// of what was committed
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One delivery of a group has passed the replay guard
    Judged,
    /// Before the group's entries are written to the log
    BeforeAppend,
    /// After it
    AfterAppend,
    /// Before the log is made durable
    BeforeSync,
    /// The group is committed
    AfterSync,
    /// Before anybody is answered
    BeforeAnswer,
    /// Inside the index's transaction, after one entry's rows
    Indexing,
    /// Before that transaction is committed
    BeforeIndexed,
}

type Hook = Arc<dyn Fn(Step) -> Result<(), StoreFault> + Send + Sync>;

/// What a test does at each step; nothing otherwise
#[derive(Clone, Default)]
pub(super) struct Steps(Option<Hook>);

impl Steps {
    pub(super) fn at(&self, step: Step) -> Result<(), StoreFault> {
        match &self.0 {
            None => Ok(()),
            Some(hook) => hook(step),
        }
    }
}

/// How a store is opened
#[derive(Clone, Default)]
pub struct Options {
    steps: Steps,
}

impl Options {
    /// Calls `hook` at each step of a commit: a test's way to fail the disk or end the process
    pub fn at_each_step(
        hook: impl Fn(Step) -> Result<(), StoreFault> + Send + Sync + 'static,
    ) -> Self {
        Self {
            steps: Steps(Some(Arc::new(hook))),
        }
    }
}

/// The embedded store
pub struct Embedded {
    requests: Option<Sender<Request>>,
    work: Option<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
    segments: PathBuf,
    _lock: File,
}

impl Embedded {
    /// Opens the store in `dir`, which is made where it does not exist. Blocks while it reads and writes.
    pub fn open(dir: &Path, options: Options) -> Result<Self, StoreFault> {
        let io = |what| move |e: std::io::Error| StoreFault::Io(what, e.to_string());
        make_private(dir).map_err(io("make its directory"))?;
        let lock = lock(dir)?;
        let file = dir.join("index.sqlite");
        let mut connection = index::open(&file)?;
        // The keeper's own: the log must never grow because this failed later
        let second = index::open(&file)?;
        let at = dir.join("segments");
        let next = recover(&mut connection, &at)?;
        outbox::release_leases(&connection).map_err(fault("release leases"))?;
        sync_dir(dir).map_err(io("sync its directory"))?;
        let (checkpoints, keeper) = Checkpoints::new();
        let (work, receiver) = channel();
        let handoff = Arc::new(Handoff::default());
        let segments = Segments::new(at.clone(), next);
        let writer = Writer::new(
            file.clone(),
            segments,
            Arc::clone(&handoff),
            work.clone(),
            options.steps.clone(),
        )?;
        let indexer = Indexer::new(
            file,
            at.clone(),
            connection,
            options.steps,
            checkpoints,
            handoff,
        )?;
        let (requests, asked) = channel();
        let threads = vec![
            spawn("postern-store", move || writer.run(asked))?,
            spawn("postern-index", move || indexer.run(receiver))?,
            spawn("postern-keeper", move || keeper.run(&second))?,
        ];
        Ok(Self {
            requests: Some(requests),
            work: Some(work),
            threads,
            segments: at,
            _lock: lock,
        })
    }

    /// Asks the log's writer
    async fn write<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreFault>>) -> Request,
    ) -> Result<T, StoreFault> {
        let (to, answer) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or(StoreFault::Stopped)?;
        let sent = requests.send(request(to));
        sent.map_err(|_| StoreFault::Stopped)?;
        answer.await.map_err(|_| StoreFault::Stopped)?
    }

    /// Asks the indexer, which has everything that was committed before
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Index<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreFault> {
        let (ask, answer) = Ask::new(work);
        let indexer = self.work.as_ref().ok_or(StoreFault::Stopped)?;
        let sent = indexer.send(Work::Job(Box::new(ask)));
        sent.map_err(|_| StoreFault::Stopped)?;
        answer.await.map_err(|_| StoreFault::Stopped)?
    }

    /// Reads the events of what was claimed. One that is damaged is dead: it would be claimed for ever.
    async fn read(
        &self,
        due: Vec<outbox::Due>,
        now: Timestamp,
    ) -> Result<Vec<Claimed>, StoreFault> {
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let dir = self.segments.clone();
        let read = tokio::task::spawn_blocking(move || {
            let read = |due: outbox::Due| (segments::read(&dir, due.place), due.claimed);
            due.into_iter().map(read).collect::<Vec<_>>()
        });
        let read = read.await.map_err(|_| StoreFault::Stopped)?;
        let (mut claimed, mut damaged) = (Vec::with_capacity(read.len()), Vec::new());
        for (document, one) in read {
            match document {
                Ok(document) => claimed.push(Claimed { document, ..one }),
                Err(why @ StoreFault::Damaged { .. }) => {
                    tracing::error!(delivery = %one.id, error = %why, "an event cannot be delivered");
                    damaged.push(Settled {
                        id: one.id,
                        started_at: None,
                        ended_at: now,
                        detail: why.to_string(),
                        outcome: SettledAs::Dead {
                            reason: "record-damaged",
                        },
                    });
                }
                // The lease ends, and it is read again
                Err(why) => {
                    tracing::error!(delivery = %one.id, error = %why, "an event was not read")
                }
            }
        }
        if !damaged.is_empty() {
            self.settle(damaged).await?;
        }
        Ok(claimed)
    }
}

/// Makes a directory that only its owner can look into: it holds what providers sent
pub(crate) fn make_private(dir: &Path) -> std::io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_dir(Path::new(".")),
        Some(parent) => sync_dir(parent),
        None => Ok(()),
    }
}

/// Holds the directory for this process, for as long as the file is open
fn lock(dir: &Path) -> Result<File, StoreFault> {
    let lock = File::create(dir.join("lock"))
        .map_err(|e| StoreFault::Io("make its lock", e.to_string()))?;
    // A process that has just ended, or a program that is just being started by one that had the store
    // open, may hold it for a moment longer
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(e)) => {
                return Err(StoreFault::Io("take its lock", e.to_string()));
            }
        }
    }
    Err(StoreFault::InUse(dir.display().to_string()))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreFault> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|e| StoreFault::Io("start a thread", e.to_string()))
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The writer ends when nobody can ask it any more, then the indexer, and the keeper with them
        self.requests = None;
        self.work = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Store for Embedded {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Committed, StoreFault>> {
        Box::pin(self.write(move |to| Request::Commit(Box::new(commit), to)))
    }
    fn claim(
        &self,
        destination: Name,
        limit: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<Claimed>, StoreFault>> {
        Box::pin(async move {
            let due = self.ask(move |index| {
                outbox::claim(index.tx, &destination, limit, now, lease_until)
                    .map_err(fault("claim"))
            });
            self.read(due.await?, now).await
        })
    }
    fn settle(&self, settled: Vec<Settled>) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.ask(move |index| {
            (settled.iter())
                .try_for_each(|one| outbox::settle(index.tx, one).map_err(fault("settle")))
        }))
    }
    fn kill(
        &self,
        subscription: Digest,
        reason: &'static str,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        Box::pin(self.ask(move |index| {
            outbox::kill(index.tx, &subscription, reason, now).map_err(fault("settle"))
        }))
    }
    fn requeue(
        &self,
        deliveries: Vec<DeliveryId>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        Box::pin(self.ask(move |index| {
            outbox::requeue(index.tx, &deliveries, now).map_err(fault("queue again"))
        }))
    }
    fn next_due(&self, destination: Name) -> BoxFuture<'_, Result<Option<Timestamp>, StoreFault>> {
        Box::pin(self.ask(move |index| {
            outbox::next_due(index.tx, &destination).map_err(fault("read its index"))
        }))
    }
    fn prune(&self, now: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(async move {
            let step = || {
                self.ask(move |index| {
                    let pruned = receipts::prune(index.tx, now, before).map_err(fault("prune"))?;
                    Ok(index.pruned(pruned))
                })
            };
            while step().await? {}
            Ok(())
        })
    }
    fn ready(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(async {
            self.write(Request::Probe).await?;
            self.ask(|index| index.probe()).await
        })
    }
}
