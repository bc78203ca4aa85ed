//! The embedded store: one directory, one process, nothing to install. `index.sqlite` beside `segments/`,
//! one writer thread with group commit, and a thread that checkpoints the index.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use postern_contract::{Digest, Name, Timestamp};
use tokio::sync::mpsc;

use super::index::{self, fault};
use super::keeper::{Checkpoints, Keeper};
use super::segments::{self, Segments, sync_dir};
use super::writer::{Ask, Group, Job, Writer};
use super::{
    BoxFuture, Claimed, Commit, Committed, DeliveryId, Settled, SettledAs, Store, StoreFault,
    outbox, receipts,
};

/// How often the lock is tried, and the pause between: a second in all
const LOCK_TRIES: usize = 50;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
/// Requests that may wait for the writer
const QUEUE: usize = 1_024;

/// A place in the commit at which a test can stop the process or make the disk fail
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Inside the index's transaction, after one delivery's rows
    InTransaction,
    /// Before the group's records are written to a segment
    BeforeAppend,
    /// After it
    AfterAppend,
    /// Before the segment is made durable
    BeforeSync,
    /// The records are durable, and the index has not committed
    BeforeCommit,
    /// The index has committed
    AfterCommit,
    /// Before anybody is answered
    BeforeAnswer,
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
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
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
        let connection = index::open(&file)?;
        // The keeper's own: the log must never grow because this failed later
        let second = index::open(&file)?;
        outbox::release_leases(&connection).map_err(fault("release leases"))?;
        let extents = index::extents(&connection).map_err(fault("read its index"))?;
        let (keeper, work) = Keeper::new();
        let checkpoints = Checkpoints::of(&keeper);
        let at = dir.join("segments");
        let segments =
            Segments::open(at.clone(), &extents, keeper).map_err(io("open its segments"))?;
        sync_dir(dir).map_err(io("sync its directory"))?;
        let (jobs, receiver) = mpsc::channel(QUEUE);
        let writer = Writer::new(file, connection, segments, options.steps, checkpoints)?;
        let beside = at.clone();
        let threads = vec![
            spawn("postern-store", move || writer.run(receiver))?,
            spawn("postern-keeper", move || work.run(&second, beside))?,
        ];
        Ok(Self {
            jobs: Some(jobs),
            threads,
            segments: at,
            _lock: lock,
        })
    }

    async fn ask<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&mut Group<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreFault> {
        let (ask, answer) = Ask::new(bytes, work);
        let jobs = self.jobs.as_ref().ok_or(StoreFault::Stopped)?;
        jobs.send(Box::new(ask))
            .await
            .map_err(|_| StoreFault::Stopped)?;
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
        // The writer ends when nobody can ask it any more, and the keeper with it
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Store for Embedded {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Committed, StoreFault>> {
        let bytes = commit.body.len();
        Box::pin(self.ask(bytes, move |group| group.commit(&commit)))
    }
    fn claim(
        &self,
        destination: Name,
        limit: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<Claimed>, StoreFault>> {
        Box::pin(async move {
            let due = self.ask(0, move |group| {
                outbox::claim(group.tx, &destination, limit, now, lease_until)
                    .map_err(fault("claim"))
            });
            self.read(due.await?, now).await
        })
    }
    fn settle(&self, settled: Vec<Settled>) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.ask(0, move |group| {
            (settled.iter())
                .try_for_each(|one| outbox::settle(group.tx, one).map_err(fault("settle")))
        }))
    }
    fn kill(
        &self,
        subscription: Digest,
        reason: &'static str,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        Box::pin(self.ask(0, move |group| {
            outbox::kill(group.tx, &subscription, reason, now).map_err(fault("settle"))
        }))
    }
    fn requeue(
        &self,
        deliveries: Vec<DeliveryId>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        Box::pin(self.ask(0, move |group| {
            outbox::requeue(group.tx, &deliveries, now).map_err(fault("queue again"))
        }))
    }
    fn next_due(&self, destination: Name) -> BoxFuture<'_, Result<Option<Timestamp>, StoreFault>> {
        Box::pin(self.ask(0, move |group| {
            outbox::next_due(group.tx, &destination).map_err(fault("read its index"))
        }))
    }
    fn prune(&self, now: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(async move {
            let step = || {
                self.ask(0, move |group| {
                    let pruned = receipts::prune(group.tx, now, before).map_err(fault("prune"))?;
                    Ok(group.pruned(pruned))
                })
            };
            while step().await? {}
            Ok(())
        })
    }
    fn ready(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.ask(0, |group| group.probe()))
    }
}
