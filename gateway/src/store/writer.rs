//! The one writer: takes whatever waits as a group, appends to the segments, makes them durable, commits
//! the index, and only then answers anybody.

use std::path::PathBuf;

use postern_contract::{EventId, Name, Sha256Hex, Timestamp};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::embedded::{Step, Steps};
use super::index::{self, Due, fault};
use super::segments::{Record, Segments};
use super::{Claimed, Commit, Committed, Settled, StoreFault};

/// The most requests of one group
const MAX_GROUP: usize = 256;
/// The most bytes of one group's bodies
const MAX_GROUP_BYTES: usize = 64 << 20;

type Answer<T> = oneshot::Sender<Result<T, StoreFault>>;

/// What the writer is asked for
pub(super) enum Request {
    Commit(Box<Commit>, Answer<Committed>),
    Claim(Name, usize, Timestamp, Timestamp, Answer<Vec<Claimed>>),
    Settle(Vec<Settled>, Answer<()>),
    NextDue(Name, Answer<Option<Timestamp>>),
    Prune(Timestamp, Timestamp, Answer<bool>),
    Ready(Answer<()>),
}

/// An answer that waits for the group to be durable
enum Pending {
    Commit(Answer<Committed>, Committed),
    Claim(Answer<Vec<Claimed>>, Vec<Due>),
    Settle(Answer<()>),
    NextDue(Answer<Option<Timestamp>>, Option<Timestamp>),
    Prune(Answer<bool>, bool),
    Ready(Answer<()>),
}

pub(super) struct Writer {
    pub(super) dir: PathBuf,
    pub(super) connection: Option<Connection>,
    pub(super) segments: Segments,
    pub(super) steps: Steps,
    pub(super) checkpoint: std::sync::mpsc::SyncSender<()>,
}

impl Writer {
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
            let mut bytes = size(&first);
            let mut group = vec![first];
            while group.len() < MAX_GROUP && bytes < MAX_GROUP_BYTES {
                let Ok(next) = requests.try_recv() else {
                    break;
                };
                bytes += size(&next);
                group.push(next);
            }
            self.serve(group);
            // A full channel means that a checkpoint is on its way
            let _ = self.checkpoint.try_send(());
        }
    }

    fn serve(&mut self, group: Vec<Request>) {
        let mut waiting = Vec::with_capacity(group.len());
        match self.write(group, &mut waiting) {
            Ok(()) => waiting.into_iter().for_each(|one| self.answer(one)),
            Err((why, rest)) => {
                tracing::error!(error = %why, "a group was not committed");
                // Nobody knows what of the group is on the disk: start anew behind it
                self.segments.abandon();
                self.connection = None;
                waiting
                    .into_iter()
                    .for_each(|one| refuse_pending(one, &why));
                rest.into_iter().for_each(|one| refuse(one, &why));
            }
        }
    }

    /// Writes a whole group in one transaction. On a fault, nothing of it counts.
    fn write(
        &mut self,
        group: Vec<Request>,
        waiting: &mut Vec<Pending>,
    ) -> Result<(), (StoreFault, Vec<Request>)> {
        let steps = self.steps.clone();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => match index::open(&self.dir.join("index.sqlite")) {
                Ok(connection) => connection,
                Err(why) => return Err((why, group)),
            },
        };
        let mut group = group.into_iter();
        let outcome = (|| {
            let tx = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(fault("begin a transaction"))?;
            for request in group.by_ref() {
                one(&tx, &mut self.segments, &steps, request, waiting)?;
            }
            steps.at(Step::BeforeSync)?;
            self.segments
                .sync()
                .map_err(|e| StoreFault::Io("sync a segment", e.to_string()))?;
            steps.at(Step::BeforeCommit)?;
            tx.commit().map_err(fault("commit"))?;
            steps.at(Step::AfterCommit)
        })();
        match outcome {
            Ok(()) => {
                self.connection = Some(connection);
                Ok(())
            }
            Err(why) => Err((why, group.collect())),
        }
    }

    fn answer(&mut self, pending: Pending) {
        // Whoever asked may have gone: the outcome is on the disk all the same
        match pending {
            Pending::Commit(to, committed) => drop(to.send(Ok(committed))),
            Pending::Claim(to, due) => {
                let dir = self.dir.join("segments");
                drop(to.send(due.into_iter().map(|due| read_due(&dir, due)).collect()));
            }
            Pending::Settle(to) => drop(to.send(Ok(()))),
            Pending::NextDue(to, at) => drop(to.send(Ok(at))),
            Pending::Ready(to) => drop(to.send(Ok(()))),
            Pending::Prune(to, more) => {
                let swept = self.sweep();
                drop(to.send(swept.map(|()| more)));
            }
        }
    }

    /// Removes segments that nothing points at
    fn sweep(&mut self) -> Result<(), StoreFault> {
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        let keep = index::segments_in_use(connection).map_err(fault("read its index"))?;
        self.segments
            .remove_all_but(&keep)
            .map_err(|e| StoreFault::Io("remove a segment", e.to_string()))
    }
}

fn size(request: &Request) -> usize {
    match request {
        Request::Commit(commit, _) => commit.body.len(),
        _ => 0,
    }
}

/// Does one request inside the group's transaction
fn one(
    tx: &rusqlite::Transaction<'_>,
    segments: &mut Segments,
    steps: &Steps,
    request: Request,
    waiting: &mut Vec<Pending>,
) -> Result<(), StoreFault> {
    match request {
        Request::Commit(commit, to) => {
            // Waits first: whoever asked is answered even where the rest fails
            let slot = waiting.len();
            waiting.push(Pending::Commit(to, Committed::Fresh { events: Vec::new() }));
            let committed = commit_one(tx, segments, steps, &commit)?;
            if let Some(Pending::Commit(_, place)) = waiting.get_mut(slot) {
                *place = committed;
            }
        }
        Request::Claim(destination, limit, now, until, to) => {
            let slot = waiting.len();
            waiting.push(Pending::Claim(to, Vec::new()));
            let due = index::claim(tx, &destination, limit, now, until).map_err(fault("claim"))?;
            if let Some(Pending::Claim(_, place)) = waiting.get_mut(slot) {
                *place = due;
            }
        }
        Request::Settle(settled, to) => {
            waiting.push(Pending::Settle(to));
            for settled in &settled {
                index::settle(tx, settled).map_err(fault("settle"))?;
            }
        }
        Request::NextDue(destination, to) => {
            let slot = waiting.len();
            waiting.push(Pending::NextDue(to, None));
            let at = index::next_due(tx, &destination).map_err(fault("read its index"))?;
            if let Some(Pending::NextDue(_, place)) = waiting.get_mut(slot) {
                *place = at.and_then(|ms| Timestamp::from_unix_ms(ms).ok());
            }
        }
        Request::Prune(now, before, to) => {
            let slot = waiting.len();
            waiting.push(Pending::Prune(to, false));
            let more = index::prune(tx, now, before).map_err(fault("prune"))?;
            if let Some(Pending::Prune(_, place)) = waiting.get_mut(slot) {
                *place = more;
            }
        }
        Request::Ready(to) => waiting.push(Pending::Ready(to)),
    }
    Ok(())
}

fn commit_one(
    tx: &rusqlite::Transaction<'_>,
    segments: &mut Segments,
    steps: &Steps,
    commit: &Commit,
) -> Result<Committed, StoreFault> {
    let read = fault("read its index");
    if let Some(receipt) = index::known(tx, commit).map_err(&read)? {
        let events = index::events_of(tx, receipt).map_err(read)?;
        return Ok(Committed::Replay {
            events: events.into_iter().map(Sha256Hex::from_bytes).collect(),
        });
    }
    steps.at(Step::BeforeAppend)?;
    let record = Record {
        body: commit.body.clone(),
        events: commit.events.iter().map(|e| e.document.clone()).collect(),
    };
    let place = segments
        .append(&record)
        .map_err(|e| StoreFault::Io("append to a segment", e.to_string()))?;
    steps.at(Step::AfterAppend)?;
    let fresh = index::insert(tx, commit, place).map_err(fault("write its index"))?;
    steps.at(Step::InTransaction)?;
    let events: Vec<EventId> = commit.events.iter().map(|event| event.id).collect();
    Ok(if fresh {
        Committed::Fresh { events }
    } else {
        Committed::Replay { events }
    })
}

fn read_due(dir: &std::path::Path, due: Due) -> Result<Claimed, StoreFault> {
    let record = super::segments::read(dir, due.place)?;
    let document = record.events.get(due.nth).ok_or(StoreFault::Damaged {
        segment: due.place.segment,
        offset: due.place.offset,
    })?;
    Ok(Claimed {
        document: document.clone(),
        ..due.claimed
    })
}

fn refuse(request: Request, why: &StoreFault) {
    match request {
        Request::Commit(_, to) => drop(to.send(Err(why.clone()))),
        Request::Claim(.., to) => drop(to.send(Err(why.clone()))),
        Request::Settle(_, to) | Request::Ready(to) => drop(to.send(Err(why.clone()))),
        Request::NextDue(_, to) => drop(to.send(Err(why.clone()))),
        Request::Prune(_, _, to) => drop(to.send(Err(why.clone()))),
    }
}

fn refuse_pending(pending: Pending, why: &StoreFault) {
    match pending {
        Pending::Commit(to, _) => drop(to.send(Err(why.clone()))),
        Pending::Claim(to, _) => drop(to.send(Err(why.clone()))),
        Pending::Settle(to) | Pending::Ready(to) => drop(to.send(Err(why.clone()))),
        Pending::NextDue(to, _) => drop(to.send(Err(why.clone()))),
        Pending::Prune(to, _) => drop(to.send(Err(why.clone()))),
    }
}
