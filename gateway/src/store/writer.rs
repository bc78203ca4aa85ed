//! The log's one writer: takes whatever waits as a group, asks the replay guard of each, appends what is
//! new, makes all of it durable with one sync, and only then answers anybody. A group that fails fails as
//! a whole.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use postern_contract::Sha256Hex;
use tokio::sync::oneshot;

use super::embedded::{Step, Steps};
use super::entry::{Entry, EntryEvent, EntryOwed, Kept, Key, Logged};
use super::guard::{Guard, Verdict};
use super::index::{self, fault};
use super::indexer::{Handoff, Work};
use super::pending::Pending;
use super::segments::Segments;
use super::view::View;
use super::{Commit, Committed, StoreFault};

/// The most requests of one group
const MAX_GROUP: usize = 256;
/// The most bytes of one group's bodies
const MAX_GROUP_BYTES: usize = 64 << 20;
/// With this many entries that are not in the index, commits wait for it
const MAX_PENDING: usize = 32_768;
/// Where the group before had this many requests, the next waits for a moment: others are on their way, and
/// one sync carries all
const SIBLINGS: usize = 5;
const GATHER: Duration = Duration::from_micros(300);
/// A view of the index ends when nobody has asked for so long
const VIEW: Duration = Duration::from_millis(100);
/// What a probe writes: enough to need room
const PROBE: usize = 64 << 10;
/// Replay keys are kept longer by as much as the clock stands behind the newest receipt, up to this: a
/// clock that went back must not shorten a window, nor one that was far ahead keep keys for ever
const MOST_BEHIND_MS: i64 = 30 * 24 * 3_600 * 1_000;

type Answer<T> = oneshot::Sender<Result<T, StoreFault>>;

/// What the writer is asked for
pub(super) enum Request {
    /// To commit a delivery
    Commit(Box<Commit>, Answer<Committed>),
    /// Whether it can commit
    Probe(Answer<()>),
}

pub(super) struct Writer {
    view: View,
    segments: Segments,
    pending: Pending,
    handoff: Arc<Handoff>,
    indexer: Sender<Work>,
    steps: Steps,
    /// The number of the newest entry
    number: u64,
    /// The newest time of receipt, in Unix milliseconds
    latest: i64,
    failing: bool,
}

impl Writer {
    pub(super) fn new(
        file: PathBuf,
        segments: Segments,
        handoff: Arc<Handoff>,
        indexer: Sender<Work>,
        steps: Steps,
    ) -> Result<Self, StoreFault> {
        let mut view = View::new(file);
        let latest = index::latest(view.open()?).map_err(fault("read its index"))?;
        Ok(Self {
            view,
            segments,
            pending: Pending::default(),
            handoff,
            indexer,
            steps,
            number: 0,
            latest,
            failing: false,
        })
    }

    /// Works until nobody can ask it any more
    pub(super) fn run(mut self, requests: Receiver<Request>) {
        let mut busy = false;
        while let Some(first) = self.next(&requests) {
            if busy {
                std::thread::sleep(GATHER);
            }
            let mut bytes = first.bytes();
            let mut group = vec![first];
            while group.len() < MAX_GROUP && bytes < MAX_GROUP_BYTES {
                let Ok(next) = requests.try_recv() else {
                    break;
                };
                bytes += next.bytes();
                group.push(next);
            }
            busy = group.len() >= SIBLINGS;
            self.serve(group);
        }
    }

    /// The next request. A view of the index ends while nobody asks: it holds up its checkpoints.
    fn next(&mut self, requests: &Receiver<Request>) -> Option<Request> {
        if self.view.is_open() {
            match requests.recv_timeout(VIEW) {
                Err(RecvTimeoutError::Timeout) => self.view.close(),
                received => return received.ok(),
            }
        }
        requests.recv().ok()
    }

    fn serve(&mut self, group: Vec<Request>) {
        let before = self.number;
        let outcome = self.write(&group, before);
        if let Err(why) = &outcome {
            if !self.failing {
                tracing::error!(error = %why, "the store cannot commit");
            }
            self.failing = true;
        }
        let mut outcomes = match &outcome {
            Ok(committed) => committed.iter(),
            Err(_) => [].iter(),
        };
        for request in group {
            let fault = outcome.as_ref().err();
            // Whoever asked may have gone: the outcome is on the disk all the same
            match request {
                Request::Probe(to) => {
                    let _ = to.send(fault.map_or(Ok(()), |why| Err(why.clone())));
                }
                Request::Commit(_, to) => {
                    let stopped = fault.cloned().unwrap_or(StoreFault::Stopped);
                    let _ = to.send(outcomes.next().cloned().ok_or(stopped));
                }
            }
        }
    }

    /// What each commit of the group came to, once all of them are durable. On a fault, nothing counts that
    /// was not durable before it.
    fn write(&mut self, group: &[Request], before: u64) -> Result<Vec<Committed>, StoreFault> {
        let committed = match self.append(group) {
            Ok(committed) => committed,
            Err(why) => {
                self.segments.abandon();
                self.pending.withdraw(before);
                self.number = before;
                return Err(why);
            }
        };
        // INVARIANT(log-first): the index gets what is durable, and nothing else
        let durable = self.pending.after(before).cloned();
        self.handoff.give(durable, &self.indexer);
        self.steps.at(Step::AfterSync)?;
        self.failing &= self.number == before && !probes(group);
        self.steps.at(Step::BeforeAnswer)?;
        Ok(committed)
    }

    fn append(&mut self, group: &[Request]) -> Result<Vec<Committed>, StoreFault> {
        let io = |what| move |e: std::io::Error| StoreFault::Io(what, e.to_string());
        let full = self.pending.len() >= MAX_PENDING;
        let least = self.number.saturating_sub(MAX_PENDING as u64 / 2);
        let (indexed, unindexed) = self.handoff.indexed(if full { least } else { 0 });
        if full || self.view.is_old() {
            // INVARIANT: what is no longer pending is in the view that is opened now
            self.view.close();
            self.pending.indexed(indexed);
        }
        let committed = self.judge(group)?;
        // What cannot be indexed would pile up; a copy of what is known asks for nothing
        if let Some(why) = unindexed.filter(|_| self.segments.has_waiting()) {
            return Err(why);
        }
        let probing = self.failing && probes(group);
        if self.segments.has_waiting() || probing {
            self.steps.at(Step::BeforeAppend)?;
            self.segments.write().map_err(io("append to a segment"))?;
            self.steps.at(Step::AfterAppend)?;
        }
        if probing {
            self.segments
                .probe(PROBE)
                .map_err(io("append to a segment"))?;
        }
        self.steps.at(Step::BeforeSync)?;
        self.segments.sync().map_err(io("sync a segment"))?;
        Ok(committed)
    }

    /// Asks the guard of every commit, and puts down what is new
    fn judge(&mut self, group: &[Request]) -> Result<Vec<Committed>, StoreFault> {
        let mut committed = Vec::with_capacity(group.len());
        for request in group {
            if let Request::Commit(commit, _) = request {
                let keys = Key::all(commit);
                let guard = Guard {
                    pending: &self.pending,
                    index: self.view.open()?,
                };
                let verdict = guard.judge(&keys, commit).map_err(fault("read its index"));
                if verdict.is_err() {
                    self.view.lose();
                }
                let verdict = verdict?;
                self.steps.at(Step::Judged)?;
                committed.push(self.put(commit, keys, verdict)?);
            }
        }
        Ok(committed)
    }

    fn put(
        &mut self,
        commit: &Commit,
        keys: Vec<Key>,
        verdict: Verdict,
    ) -> Result<Committed, StoreFault> {
        let mut payloads = Vec::new();
        let (kept, committed) = match verdict {
            Verdict::Replay(events) => return Ok(Committed::Replay { events }),
            Verdict::Again(events) => {
                let kept = Kept::Again {
                    events: events.clone(),
                };
                (kept, Committed::Replay { events })
            }
            Verdict::Fresh(new) => {
                payloads.push((commit.body.as_ref(), commit.body_sha256));
                let mut events = Vec::with_capacity(commit.events.len());
                for (event, new) in commit.events.iter().zip(new) {
                    if new {
                        let document = event.document.as_ref();
                        payloads.push((document, Sha256Hex::of(document)));
                    }
                    events.push(EntryEvent {
                        id: event.id,
                        trigger_digest: event.trigger_digest,
                        new,
                        owed: event.owed.iter().map(EntryOwed::from).collect(),
                    });
                }
                let ids = events.iter().map(|event| event.id).collect();
                let kept = Kept::Receipt {
                    body_sha256: commit.body_sha256,
                    events,
                };
                (kept, Committed::Fresh { events: ids })
            }
        };
        let received_at = commit.received_at.unix_ms();
        self.latest = self.latest.max(received_at);
        let behind = (self.latest - received_at).min(MOST_BEHIND_MS);
        let entry = Entry {
            source: commit.source.clone(),
            delivery: commit.delivery.clone(),
            received_at,
            keys,
            until: commit.window_until.unix_ms().saturating_add(behind),
            kept,
        };
        let io = |e: std::io::Error| StoreFault::Io("append to a segment", e.to_string());
        let bytes = serde_json::to_vec(&entry).map_err(|e| io(e.into()))?;
        let at = self.segments.append(&bytes, &payloads).map_err(io)?;
        self.number += 1;
        self.pending.add(Arc::new(Logged {
            number: self.number,
            entry,
            at,
        }));
        Ok(committed)
    }
}

impl Request {
    /// Bytes that it brings
    fn bytes(&self) -> usize {
        match self {
            Self::Commit(commit, _) => commit.body.len(),
            Self::Probe(_) => 0,
        }
    }
}

fn probes(group: &[Request]) -> bool {
    (group.iter()).any(|request| matches!(request, Request::Probe(_)))
}
