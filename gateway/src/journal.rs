//! The event log: one line for every delivery, with the step that refused it or what every candidate
//! trigger said, so that "why did this not fire?" has an answer. Written by one thread off the data path,
//! flushed when idle, never synced: no acknowledgement rests on it. It never holds a secret, a computed
//! signature or a body; bodies of deliveries that committed nothing are kept for a while in a ring beside.

mod ring;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use postern_contract::{Digest, EventId, Name, Sha256Hex, Timestamp};
use prometheus_client::metrics::counter::Counter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::config::LogConfig;
use crate::outage::Outage;
use crate::store::embedded::make_private;
use ring::{Lost, Ring};

/// How long lines are gathered before they are written
const GATHER: std::time::Duration = std::time::Duration::from_millis(2);
/// Lines that may wait for the writer
const QUEUE: usize = 1_024;
/// Bytes of bodies that may wait for the writer; beyond them lines go without
const MAX_WAITING_BYTES: usize = 16 << 20;
/// A delivery waits no longer than this for the writer
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// Files of a ring
const FILES: u64 = 8;

/// What became of a delivery
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogOutcome {
    /// Events were committed
    Accepted,
    /// A copy of a committed delivery
    Replay,
    /// Authentic, and nobody is owed anything
    NothingOwed,
    /// A handshake was answered
    Handshake,
    /// Authentic, and no evidence
    Malformed,
    /// Not authentic
    Refused,
    /// Turned away before verification
    NotReceived,
    /// The store could not commit
    Unavailable,
}

impl LogOutcome {
    /// Its stable spelling
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Replay => "replay",
            Self::NothingOwed => "nothing-owed",
            Self::Handshake => "handshake",
            Self::Malformed => "malformed",
            Self::Refused => "refused",
            Self::NotReceived => "not-received",
            Self::Unavailable => "unavailable",
        }
    }
}

/// One delivery
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// The line's own id (UUID version 7)
    pub id: String,
    /// When the delivery arrived
    pub received_at: Timestamp,
    /// The source
    pub source: Name,
    /// Its verification profile
    pub profile: String,
    /// What became of it
    pub outcome: LogOutcome,
    /// The code of the step that failed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The step that failed, for the operator
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The other end of the connection
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The native event
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The delivery's id by the provider
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// SHA-256 of the body
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<Sha256Hex>,
    /// The name of the key that verified it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The events that it made or had made before
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventId>,
    /// What every candidate trigger said
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<LogCandidate>,
}

/// What one trigger said
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogCandidate {
    /// The connector
    pub connector: String,
    /// The trigger's name
    pub trigger: String,
    /// The trigger's digest
    pub trigger_digest: Digest,
    /// Whether it matched
    #[serde(rename = "match")]
    pub matched: bool,
    /// How many others said the same: triggers of the same declaration, bound to other members, and items
    /// of a batch
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: usize,
    /// The variant that matched
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Why it did not match
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The place in the evidence
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// What became of it at each subscription
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<LogSubscription>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What became of a match at one subscription
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogSubscription {
    /// The subscription's digest
    pub digest: Digest,
    /// The destination that is owed a delivery
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Name>,
    /// Why nothing is owed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The place in the evidence, for a filter
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A line, and the body to keep with it
pub struct Entry {
    /// The line
    pub line: LogLine,
    /// The body of an authentic delivery that committed nothing
    pub body: Option<Bytes>,
}

/// What the writer is sent
enum Message {
    Entry(Box<Entry>),
    Stop,
}

/// The log's writing end
#[derive(Clone)]
pub struct Journal {
    lines: mpsc::Sender<Message>,
    counts: Arc<Counts>,
}

struct Counts {
    /// Lines that are not in the log
    lost: Counter,
    /// Bytes of bodies that wait for the writer
    waiting: AtomicUsize,
}

/// Keeps the writer's thread. On drop, what has been handed over is written, and the thread ends, even if
/// a [`Journal`] is still about.
pub struct JournalThread {
    lines: mpsc::Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for JournalThread {
    fn drop(&mut self) {
        // The writer empties its queue all the time: there is room in a moment
        while let Err(mpsc::error::TrySendError::Full(_)) = self.lines.try_send(Message::Stop) {
            std::thread::yield_now();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Journal {
    /// Opens the log, and cuts off what a crash has torn.
    /// `lost` counts the lines that are not in the log.
    pub fn open(config: &LogConfig, lost: Counter) -> std::io::Result<(Self, JournalThread)> {
        make_private(&config.path)?;
        let counts = Arc::new(Counts {
            lost,
            waiting: AtomicUsize::new(0),
        });
        let writer = Writer {
            lines: Ring::open(&config.path, ring::LINES, config.max_bytes)?,
            bodies: Ring::open(&config.path, ring::BODIES, config.max_body_bytes)?,
            counts: Arc::clone(&counts),
            lines_written: Outage::of("writing the event log"),
            bodies_written: Outage::of("keeping bodies beside the event log"),
        };
        let (lines, receiver) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("postern-log".to_owned())
            .spawn(move || writer.run(receiver))?;
        let thread = JournalThread {
            lines: lines.clone(),
            thread: Some(thread),
        };
        Ok((Self { lines, counts }, thread))
    }

    /// Hands a line to the writer, and waits a moment while the writer is behind. Where too many bytes wait, a
    /// line goes without its body, and one that waits too long is lost: no delivery depends on either.
    pub async fn record(&self, mut entry: Entry) {
        let bytes = entry.body.as_ref().map_or(0, Bytes::len);
        if self.counts.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_WAITING_BYTES {
            self.counts.waiting.fetch_sub(bytes, Ordering::Relaxed);
            entry.body = None;
        }
        let held = entry.body.as_ref().map_or(0, Bytes::len);
        let entry = Message::Entry(Box::new(entry));
        if self.lines.send_timeout(entry, LONGEST_WAIT).await.is_err() {
            self.counts.waiting.fetch_sub(held, Ordering::Relaxed);
            self.counts.lost.inc();
        }
    }
}

struct Writer {
    lines: Ring,
    bodies: Ring,
    counts: Arc<Counts>,
    /// Of each ring its own: lines may fit where bodies do not, and must not say for them that all is well
    lines_written: Outage,
    bodies_written: Outage,
}

impl Writer {
    fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        let mut stopped = false;
        while !stopped {
            let mut next = messages.blocking_recv();
            stopped = next.is_none();
            // One wake and one write for many lines: no acknowledgement waits for them
            std::thread::sleep(GATHER);
            while let Some(message) = next.take() {
                match message {
                    Message::Entry(entry) => self.write(&entry),
                    Message::Stop => stopped = true,
                }
                next = messages.try_recv().ok();
            }
            self.flush();
        }
    }

    fn write(&mut self, entry: &Entry) {
        if let Ok(mut line) = serde_json::to_vec(&entry.line) {
            line.push(b'\n');
            let written = self.lines.write(&line);
            self.note_lines(written);
        }
        if let Some(body) = &entry.body {
            self.counts.waiting.fetch_sub(body.len(), Ordering::Relaxed);
            let written = self.bodies.write(&ring::record(&entry.line.id, body));
            note(&self.bodies_written, written);
        }
    }

    /// Idle: what is buffered becomes readable
    fn flush(&mut self) {
        let flushed = self.lines.flush();
        self.note_lines(flushed);
        note(&self.bodies_written, self.bodies.flush());
    }

    fn note_lines(&self, written: Result<u64, Lost>) {
        if let Err(Lost { records, .. }) = &written {
            self.counts.lost.inc_by(*records);
        }
        note(&self.lines_written, written);
    }
}

fn note(outage: &Outage, written: Result<u64, Lost>) {
    match written {
        // Nothing was tried
        Ok(0) => {}
        Ok(_) => outage.works(),
        Err(Lost { records, why }) => outage.fails(records, &why),
    }
}

/// The newest lines first that are `wanted`, at most `limit`
pub fn read(
    dir: &Path,
    limit: usize,
    wanted: impl Fn(&LogLine) -> bool,
) -> std::io::Result<Vec<LogLine>> {
    let mut found = Vec::new();
    for text in ring::newest_first(dir, ring::LINES)? {
        // A torn line is what a crash left: it is skipped
        let lines = text.split(|b| *b == b'\n').rev();
        let parsed = lines.filter_map(|line| serde_json::from_slice::<LogLine>(line).ok());
        for line in parsed.filter(|line| wanted(line)) {
            found.push(line);
            if found.len() == limit {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// The body that was kept with a line, while the ring still has it
pub fn body(dir: &Path, id: &str) -> std::io::Result<Option<Bytes>> {
    for bytes in ring::newest_first(dir, ring::BODIES)? {
        if let Some(body) = ring::find(&bytes, id) {
            return Ok(Some(body));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u32) -> LogLine {
        LogLine {
            id: format!("line-{n}"),
            received_at: Timestamp::EPOCH,
            source: "github".parse().unwrap(),
            profile: "github".to_owned(),
            outcome: LogOutcome::NothingOwed,
            code: None,
            detail: None,
            peer: None,
            event: Some("push".to_owned()),
            delivery: None,
            body_sha256: None,
            key: None,
            events: Vec::new(),
            candidates: Vec::new(),
        }
    }

    #[tokio::test]
    async fn lines_and_bodies_come_back_newest_first_and_a_torn_line_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let config = LogConfig {
            path: dir.path().to_owned(),
            max_bytes: 1 << 20,
            max_body_bytes: 1 << 20,
        };
        let (journal, thread) = Journal::open(&config, Counter::default()).unwrap();
        for n in 0..3 {
            let body = (n == 1).then(|| Bytes::from_static(b"{\"a\":1}"));
            journal
                .record(Entry {
                    line: line(n),
                    body,
                })
                .await;
        }
        drop(journal);
        drop(thread);
        let file = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().path());
        let file = file
            .into_iter()
            .find(|p| p.extension().is_some_and(|e| e == "jsonl"))
            .unwrap();
        let mut text = std::fs::read(&file).unwrap();
        text.extend_from_slice(b"{\"id\":\"torn");
        std::fs::write(&file, text).unwrap();
        let found = read(dir.path(), 2, |_| true).unwrap();
        let ids: Vec<&str> = found.iter().map(|l| l.id.as_str()).collect();
        assert_eq!(ids, ["line-2", "line-1"]);
        assert_eq!(body(dir.path(), "line-1").unwrap().unwrap(), "{\"a\":1}");
        assert_eq!(body(dir.path(), "line-2").unwrap(), None);
    }

    #[tokio::test]
    async fn the_ring_stays_within_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let config = LogConfig {
            path: dir.path().to_owned(),
            max_bytes: 16 << 10,
            max_body_bytes: 16 << 10,
        };
        let (journal, thread) = Journal::open(&config, Counter::default()).unwrap();
        for n in 0..500 {
            journal
                .record(Entry {
                    line: line(n),
                    body: Some(Bytes::from_static(&[0; 100])),
                })
                .await;
        }
        drop(journal);
        drop(thread);
        let bytes: u64 = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().metadata().unwrap().len())
            .sum();
        assert!(bytes < 2 * (16 << 10) + 4096, "{bytes}");
        let newest = read(dir.path(), 1, |_| true).unwrap();
        assert_eq!(newest[0].id, "line-499");
    }

    /// Writes 50 lines with bodies into rings of which one or both have lost their directory; what was said,
    /// and how many lines were lost
    fn written(lines_fit: bool, bodies_fit: bool) -> (Vec<String>, u64) {
        let open = |fits: bool, kind| {
            let dir = tempfile::tempdir().unwrap();
            let ring = Ring::open(dir.path(), kind, 1 << 20).unwrap();
            // Dropped, it takes no new file
            (ring, fits.then_some(dir))
        };
        let (lines, _lines_dir) = open(lines_fit, ring::LINES);
        let (bodies, _bodies_dir) = open(bodies_fit, ring::BODIES);
        let lost = Counter::default();
        let mut writer = Writer {
            lines,
            bodies,
            counts: Arc::new(Counts {
                lost: lost.clone(),
                waiting: AtomicUsize::new(50),
            }),
            lines_written: Outage::of("lines"),
            bodies_written: Outage::of("bodies"),
        };
        let messages = crate::outage::tests::said(|| {
            for n in 0..50 {
                let body = Some(Bytes::from_static(b"x"));
                writer.write(&Entry {
                    line: line(n),
                    body,
                });
                writer.flush();
            }
        });
        (messages, lost.get())
    }

    #[test]
    fn what_is_lost_is_counted_and_said_once_though_lines_fit_where_bodies_do_not() {
        assert_eq!(written(true, true), (Vec::new(), 0));
        // Bodies are kept for a while only: they are not counted as lines
        let (said, lost) = written(true, false);
        assert_eq!((said.len(), lost), (1, 0), "{said:?}");
        assert!(said[0].starts_with("ERROR bodies fails"), "{said:?}");
        let (said, lost) = written(false, true);
        assert_eq!((said.len(), lost), (1, 50), "{said:?}");
        assert!(said[0].starts_with("ERROR lines fails"), "{said:?}");
        assert_eq!(written(false, false).0.len(), 2);
    }
}
