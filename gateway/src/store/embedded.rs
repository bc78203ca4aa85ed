//! The embedded store: one directory, one process, nothing to install. `index.sqlite` beside `segments/`,
//! one writer thread with group commit, and a thread that checkpoints the index.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use postern_contract::{Name, Timestamp};
use tokio::sync::{mpsc, oneshot};

use super::segments::Segments;
use super::writer::{Request, Writer};
use super::{BoxFuture, Claimed, Commit, Committed, Settled, Store, StoreFault, index};

/// Requests that may wait for the writer
const QUEUE: usize = 1_024;
/// Checkpoint once the write-ahead log has this many bytes
const CHECKPOINT_BYTES: u64 = 8 << 20;

/// A place in the commit at which a test can stop the process or make the disk fail
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Before a record is appended
    BeforeAppend,
    /// After it, not yet durable
    AfterAppend,
    /// Inside the index's transaction
    InTransaction,
    /// Before the segments are made durable
    BeforeSync,
    /// Before the index commits
    BeforeCommit,
    /// After the index has committed, before anybody is answered
    AfterCommit,
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
    requests: Option<mpsc::Sender<Request>>,
    threads: Vec<JoinHandle<()>>,
    _lock: File,
}

impl Embedded {
    /// Opens the store in `dir`, which is made where it does not exist
    pub fn open(dir: &Path, options: Options) -> Result<Self, StoreFault> {
        let io = |what| move |e: std::io::Error| StoreFault::Io(what, e.to_string());
        std::fs::create_dir_all(dir).map_err(io("make its directory"))?;
        let lock = File::create(dir.join("lock")).map_err(io("make its lock"))?;
        lock.try_lock()
            .map_err(|_| StoreFault::InUse(dir.display().to_string()))?;
        let file = dir.join("index.sqlite");
        let connection = index::open(&file)?;
        index::release_leases(&connection).map_err(index::fault("release leases"))?;
        let segments = Segments::open(dir.join("segments")).map_err(io("open its segments"))?;
        sync_dir(dir).map_err(io("sync its directory"))?;
        let (requests, receiver) = mpsc::channel(QUEUE);
        let (checkpoint, wanted) = std::sync::mpsc::sync_channel(1);
        let writer = Writer {
            dir: dir.to_owned(),
            connection: Some(connection),
            segments,
            steps: options.steps,
            checkpoint,
        };
        let threads = vec![
            spawn("postern-store", move || writer.run(receiver))?,
            spawn("postern-checkpoint", move || checkpoints(&file, &wanted))?,
        ];
        Ok(Self {
            requests: Some(requests),
            threads,
            _lock: lock,
        })
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreFault>>) -> Request,
    ) -> Result<T, StoreFault> {
        let (to, answer) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or(StoreFault::Stopped)?;
        (requests.send(request(to)).await).map_err(|_| StoreFault::Stopped)?;
        answer.await.map_err(|_| StoreFault::Stopped)?
    }
}

fn sync_dir(dir: &Path) -> std::io::Result<()> {
    File::open(dir)?.sync_all()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreFault> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|e| StoreFault::Io("start a thread", e.to_string()))
}

/// Moves the write-ahead log into the index beside the writer, so that no commit waits for it
fn checkpoints(file: &Path, wanted: &std::sync::mpsc::Receiver<()>) {
    let log = PathBuf::from(format!("{}-wal", file.display()));
    let Ok(connection) = index::open(file) else {
        return;
    };
    while wanted.recv().is_ok() {
        let size = std::fs::metadata(&log).map_or(0, |m| m.len());
        if size < CHECKPOINT_BYTES {
            continue;
        }
        // Readers and the writer go on; what they hold is left for the next time
        let done = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(e) = done {
            tracing::warn!(error = %e, "a checkpoint was put off");
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The writer ends when nobody can ask it any more, and the checkpoints with it
        self.requests = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Store for Embedded {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Committed, StoreFault>> {
        Box::pin(self.ask(|to| Request::Commit(Box::new(commit), to)))
    }
    fn claim(
        &self,
        destination: Name,
        limit: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<Claimed>, StoreFault>> {
        Box::pin(self.ask(move |to| Request::Claim(destination, limit, now, lease_until, to)))
    }
    fn settle(&self, settled: Vec<Settled>) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.ask(|to| Request::Settle(settled, to)))
    }
    fn next_due(&self, destination: Name) -> BoxFuture<'_, Result<Option<Timestamp>, StoreFault>> {
        Box::pin(self.ask(|to| Request::NextDue(destination, to)))
    }
    fn prune(&self, now: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(async move {
            while self.ask(|to| Request::Prune(now, before, to)).await? {}
            Ok(())
        })
    }
    fn ready(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.ask(Request::Ready))
    }
}
