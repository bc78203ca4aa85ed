//! What the embedded store does on a disk: faults at every step, a full disk, torn and damaged files, two
//! processes, and reading beside a writer.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where something is not as it should be"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use postern_contract::fault::{Fault as _, Retry};
use postern_contract::{Digest, Name, Sha256Hex, Timestamp};
use postern_gateway::store::reader::{Reader, State};
use postern_gateway::store::{
    Commit, Committed, DeliveryId, Embedded, NewEvent, Options, Owed, Settled, SettledAs, Step,
    Store, StoreFault,
};
use postern_profiles::ReplayKey;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix(1_800_000_000 + seconds).unwrap()
}

fn sink() -> Name {
    "sink".parse().unwrap()
}

fn id(n: u64) -> Sha256Hex {
    Sha256Hex::of(&n.to_be_bytes())
}

/// Delivery number `n` with a body of `size` bytes
fn commit(n: u64, size: usize) -> Commit {
    let body = Bytes::from(vec![b'0' + (n % 10) as u8; size]);
    let subscription = Digest::of(b"subscription");
    Commit {
        source: "source".parse().unwrap(),
        replay_keys: vec![ReplayKey::from_bytes(*id(n).as_bytes())],
        window_until: at(3_600),
        received_at: at(0),
        delivery: n.to_string(),
        body_sha256: Sha256Hex::of(&body),
        body,
        events: vec![NewEvent {
            id: id(n),
            document: Bytes::from(format!("{{\"n\":{n}}}")),
            trigger_digest: Digest::of(b"trigger"),
            owed: vec![Owed {
                id: DeliveryId::of(id(n), subscription, &sink()),
                subscription,
                destination: sink(),
            }],
        }],
    }
}

fn fresh(n: u64) -> Committed {
    Committed::Fresh {
        events: vec![id(n)],
    }
}

fn open(dir: &Path) -> Embedded {
    Embedded::open(dir, Options::default()).unwrap()
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(dir.join("segments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

/// A store that fails at `step` while the switch is on
fn breaking(dir: &Path, step: Step) -> (Embedded, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(false));
    let hook = Arc::clone(&broken);
    let options = Options::at_each_step(move |at| {
        if at == step && hook.load(Ordering::SeqCst) {
            return Err(StoreFault::Io("write", "no space left".to_owned()));
        }
        Ok(())
    });
    (Embedded::open(dir, options).unwrap(), broken)
}

#[tokio::test]
async fn a_fault_at_any_step_of_a_commit_is_told_and_passes() {
    for step in [
        Step::Judged,
        Step::BeforeAppend,
        Step::AfterAppend,
        Step::BeforeSync,
        Step::AfterSync,
        Step::BeforeAnswer,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (store, broken) = breaking(dir.path(), step);
        store.commit(commit(0, 10)).await.unwrap();
        broken.store(true, Ordering::SeqCst);
        for n in 1..4 {
            let fault = store.commit(commit(n, 10)).await.unwrap_err();
            assert_eq!((fault.code(), fault.retry()), ("store-io", Retry::Later));
            // After a fault, ready writes to see whether it has passed; only a delivery is judged
            let ready = store.ready().await.is_ok();
            assert_eq!(ready, step == Step::Judged, "{step:?}");
        }
        broken.store(false, Ordering::SeqCst);
        store.ready().await.unwrap();
        let after = matches!(step, Step::AfterSync | Step::BeforeAnswer);
        for n in 1..4 {
            // What was refused is committed now, or was then, and is never doubled
            let again = store.commit(commit(n, 10)).await.unwrap();
            let events = vec![id(n)];
            let known = Committed::Replay { events };
            assert_eq!(again, if after { known } else { fresh(n) }, "{step:?}");
        }
        // Failures leave no files behind: the next segment, where something had been written to the first
        let files = match step {
            Step::AfterAppend | Step::BeforeSync => 2,
            _ => 1,
        };
        assert_eq!(segments(dir.path()).len(), files, "{step:?}");
        drop(store);
        let store = open(dir.path());
        let claimed = store.claim(sink(), 10, at(1), at(2)).await.unwrap();
        assert_eq!(claimed.len(), 4, "{step:?}");
        for n in 0..4 {
            let (_, body) = reader(dir.path()).documents(id(n)).unwrap().unwrap();
            assert_eq!(body, commit(n, 10).body);
        }
    }
}

#[tokio::test]
async fn what_is_acknowledged_outlives_an_index_that_cannot_be_written() {
    for step in [Step::Indexing, Step::BeforeIndexed] {
        let dir = tempfile::tempdir().unwrap();
        let (store, broken) = breaking(dir.path(), step);
        broken.store(true, Ordering::SeqCst);
        // The log is the promise
        assert_eq!(store.commit(commit(1, 10)).await.unwrap(), fresh(1));
        // What asks the index is told, and from then on so is every new delivery; a copy is still known
        let fault = store.ready().await.unwrap_err();
        assert_eq!((fault.code(), fault.retry()), ("store-io", Retry::Later));
        assert!(store.claim(sink(), 10, at(1), at(2)).await.is_err());
        assert_eq!(
            store.commit(commit(2, 10)).await.unwrap_err().code(),
            "store-io"
        );
        let events = vec![id(1)];
        let known = Committed::Replay { events };
        assert_eq!(store.commit(commit(1, 10)).await.unwrap(), known);
        broken.store(false, Ordering::SeqCst);
        store.ready().await.unwrap();
        assert_eq!(store.commit(commit(2, 10)).await.unwrap(), fresh(2));
        assert_eq!(store.commit(commit(1, 10)).await.unwrap(), known);
        // It fails again, and the process ends before it passes
        broken.store(true, Ordering::SeqCst);
        assert_eq!(store.commit(commit(3, 10)).await.unwrap(), fresh(3));
        drop(store);
        let store = open(dir.path());
        let events = vec![id(3)];
        let known = Committed::Replay { events };
        assert_eq!(store.commit(commit(3, 10)).await.unwrap(), known);
        let claimed = store.claim(sink(), 10, at(1), at(2)).await.unwrap();
        let events: Vec<_> = claimed.iter().map(|one| one.event).collect();
        assert_eq!(events, [id(1), id(2), id(3)], "{step:?}");
        let (document, body) = reader(dir.path()).documents(id(3)).unwrap().unwrap();
        assert_eq!((document, body), ("{\"n\":3}".into(), commit(3, 10).body));
    }
}

fn reader(dir: &Path) -> Reader {
    let reader = Reader::open(dir).unwrap();
    reader.check().unwrap();
    reader
}

#[tokio::test]
async fn everybody_of_a_group_that_fails_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let fail = Arc::new(AtomicBool::new(true));
    let hook = Arc::clone(&fail);
    let options = Options::at_each_step(move |at| {
        if at == Step::BeforeSync && hook.load(Ordering::SeqCst) {
            return Err(StoreFault::Io("write", "no space left".to_owned()));
        }
        Ok(())
    });
    let store = Arc::new(Embedded::open(dir.path(), options).unwrap());
    // Two copies of each, and none of the second may be a success when the first fails
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.commit(commit(n / 2, 10)).await })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap().is_err());
    }
    fail.store(false, Ordering::SeqCst);
    for n in 0..20 {
        assert_eq!(store.commit(commit(n, 10)).await.unwrap(), fresh(n));
    }
}

#[tokio::test]
async fn nobody_is_answered_before_the_log_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let options = Options::at_each_step(move |at| {
        seen.lock().unwrap().push(at);
        Ok(())
    });
    let store = Embedded::open(dir.path(), options).unwrap();
    store.commit(commit(1, 10)).await.unwrap();
    let mut answered = steps.lock().unwrap().clone();
    // The index may be quick
    answered.retain(|step| !matches!(step, Step::Indexing | Step::BeforeIndexed));
    assert_eq!(
        answered,
        [
            Step::Judged,
            Step::BeforeAppend,
            Step::AfterAppend,
            Step::BeforeSync,
            Step::AfterSync,
            Step::BeforeAnswer,
        ]
    );
}

/// The process that `a_full_disk_is_told_and_passes` starts, in a directory of its own: says what came of
/// its commits, and waits to be told to go on
#[tokio::test]
#[ignore = "a part of another test"]
async fn child_of_the_full_disk() {
    let store = open(Path::new("store"));
    let mut told = std::io::stdin().lines();
    let say = |text: String| writeln!(std::io::stdout(), "\n{text}").unwrap();
    for n in 0..15 {
        store.commit(commit(n, 65_536)).await.unwrap();
    }
    // Indexed, too: the parent reads
    store.ready().await.unwrap();
    say("room".to_owned());
    told.next();
    let mut refused = 0;
    for n in 15..20 {
        refused += u32::from(store.commit(commit(n, 65_536)).await.is_err());
        refused += u32::from(store.ready().await.is_err());
    }
    // What is known is still known: it needs no room
    let known = store.commit(commit(3, 65_536)).await.unwrap();
    let events = vec![id(3)];
    assert_eq!(known, Committed::Replay { events });
    say(format!("full {refused}"));
    told.next();
    store.ready().await.unwrap();
    for n in 15..20 {
        assert_eq!(store.commit(commit(n, 65_536)).await.unwrap(), fresh(n));
    }
    say("room again".to_owned());
}

#[test]
fn a_full_disk_is_told_and_passes() {
    let dir = tempfile::tempdir().unwrap();
    // A write past the limit fails as on a full disk; the signal that would end the process is ignored
    let script = "trap '' XFSZ; exec \"$0\" --ignored --exact child_of_the_full_disk --nocapture";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id_of_child = child.id().to_string();
    let limit = |bytes: &str| {
        let limit = format!("--fsize={bytes}:unlimited");
        let done = Command::new("prlimit")
            .args([&limit, "--pid", &id_of_child])
            .status();
        assert!(done.unwrap().success());
    };
    let mut told = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut expect = |wanted: &str| {
        let said = lines.by_ref().map(Result::unwrap);
        let mut said = said.filter(|line| line.starts_with("room") || line.starts_with("full"));
        assert_eq!(said.next().as_deref(), Some(wanted));
    };
    expect("room");
    limit("8192");
    writeln!(told).unwrap();
    // Every commit and every answer to `ready`
    expect("full 10");
    let found = reader(&dir.path().join("store"));
    assert_eq!(found.events(100).unwrap().len(), 15);
    limit("unlimited");
    writeln!(told).unwrap();
    expect("room again");
    assert!(child.wait().unwrap().success());
    for n in 0..20 {
        let (_, body) = found.documents(id(n)).unwrap().unwrap();
        assert_eq!(body, commit(n, 65_536).body);
    }
}

#[tokio::test]
async fn a_torn_tail_is_cut_and_every_record_before_it_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(commit(1, 100)).await.unwrap();
    drop(store);
    let file = segments(dir.path()).pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    let mut torn = whole.clone();
    torn.extend([7; 33]);
    std::fs::write(&file, torn).unwrap();
    // And a file that the index never heard of
    std::fs::write(dir.path().join("segments/00000077.segment"), "x").unwrap();
    let store = open(dir.path());
    assert_eq!(std::fs::read(&file).unwrap(), whole);
    assert_eq!(segments(dir.path()).len(), 1);
    store.commit(commit(2, 100)).await.unwrap();
    let claimed = store.claim(sink(), 10, at(1), at(2)).await.unwrap();
    let documents: Vec<_> = claimed.iter().map(|one| one.document.as_ref()).collect();
    assert_eq!(documents, [b"{\"n\":1}", b"{\"n\":2}"]);
}

#[tokio::test]
async fn a_damaged_event_is_dead_and_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for n in 1..4 {
        store.commit(commit(n, 100)).await.unwrap();
    }
    let file = segments(dir.path()).pop().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let damaged = b"{\"n\":2}";
    let place = bytes.windows(7).position(|w| w == damaged).unwrap();
    bytes[place + 5] = b'9';
    std::fs::write(&file, bytes).unwrap();
    let claimed = store.claim(sink(), 10, at(1), at(100)).await.unwrap();
    let events: Vec<_> = claimed.iter().map(|one| one.event).collect();
    assert_eq!(events, [id(1), id(3)]);
    let dead = reader(dir.path())
        .deliveries(Some(State::Dead), 10)
        .unwrap();
    assert_eq!((dead.len(), dead[0].event), (1, id(2)));
    assert_eq!(dead[0].reason.as_deref(), Some("record-damaged"));
    let fault = reader(dir.path()).documents(id(2)).unwrap_err();
    assert_eq!(fault.code(), "store-damaged");
}

#[tokio::test]
async fn one_process_writes_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let Err(fault) = Embedded::open(dir.path(), Options::default()) else {
        unreachable!("two writers");
    };
    assert_eq!(fault.code(), "store-in-use");
    assert!(
        fault
            .to_string()
            .contains(&dir.path().display().to_string())
    );
    drop(store);
    open(dir.path());
}

#[tokio::test]
async fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let index = dir.path().join("index.sqlite");
    let connection = rusqlite::Connection::open(&index).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = std::fs::read(&index).unwrap();
    for fault in [
        Embedded::open(dir.path(), Options::default())
            .err()
            .unwrap(),
        Reader::open(dir.path()).err().unwrap(),
    ] {
        assert_eq!(fault.code(), "store-format");
    }
    assert_eq!(std::fs::read(&index).unwrap(), before);
}

#[tokio::test]
async fn a_reader_sees_what_is_there_while_and_after_a_gateway_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.commit(commit(1, 100)).await.unwrap();
    store.commit(commit(2, 100)).await.unwrap();
    let claimed = store.claim(sink(), 1, at(1), at(100)).await.unwrap();
    for n in 1..=25 {
        let again = SettledAs::Retry { at: at(n) };
        let gone = SettledAs::Dead { reason: "gone" };
        let one = Settled {
            id: claimed[0].id,
            started_at: Some(at(n)),
            ended_at: at(n + 1),
            detail: "x".repeat(5_000),
            outcome: if n == 25 { gone } else { again },
        };
        store.settle(vec![one]).await.unwrap();
    }
    let look = |reader: &Reader| {
        let events = reader.events(10).unwrap();
        // The newest first
        assert_eq!(
            events.iter().map(|e| e.id).collect::<Vec<_>>(),
            [id(2), id(1)]
        );
        let one = reader.event(id(1)).unwrap().unwrap();
        assert_eq!(one.source, "source");
        assert_eq!((one.received_at, one.delivery.as_str()), (at(0), "1"));
        assert_eq!(one.body_sha256, Sha256Hex::of(&[b'1'; 100]));
        let (document, body) = reader.documents(id(1)).unwrap().unwrap();
        assert_eq!((document, body), ("{\"n\":1}".into(), commit(1, 100).body));
        let dead = &one.deliveries[0];
        assert_eq!((dead.state, dead.attempts), (State::Dead, 25));
        // The last 20 attempts, each with a bounded detail
        let numbers: Vec<u32> = dead.log.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, (6..=25).collect::<Vec<_>>());
        assert_eq!(dead.log[0].detail.len(), 1_000);
        assert_eq!(dead.log[0].started_at, Some(at(6)));
        let of = |state, to: &str| {
            let to = to.parse().unwrap();
            reader.deliveries_to(Some(&to), state, 10).unwrap().len()
        };
        assert_eq!(of(None, "sink"), 2);
        assert_eq!(of(Some(State::Queued), "sink"), 1);
        assert_eq!(of(Some(State::Dead), "sink"), 1);
        assert_eq!(of(Some(State::Delivered), "sink"), 0);
        assert_eq!(of(None, "elsewhere"), 0);
        let by_id = reader.delivery(dead.id.parse().unwrap()).unwrap().unwrap();
        assert_eq!(by_id.event, id(1));
        assert!(reader.event(id(3)).unwrap().is_none());
        assert!(reader.documents(id(3)).unwrap().is_none());
    };
    let beside = reader(dir.path());
    look(&beside);
    store.commit(commit(3, 1)).await.unwrap();
    assert!(reader(dir.path()).event(id(3)).unwrap().is_some());
    drop((store, beside));
    let store = reader(dir.path());
    assert_eq!(store.events(1).unwrap()[0].id, id(3));
}

#[tokio::test]
async fn pruning_removes_segments_and_rows_and_nothing_that_is_owed() {
    let dir = tempfile::tempdir().unwrap();
    // A new process begins a new segment: three of them
    for n in 0..3 {
        open(dir.path()).commit(commit(n, 1_000)).await.unwrap();
    }
    let store = open(dir.path());
    assert_eq!(segments(dir.path()).len(), 3);
    for one in store.claim(sink(), 2, at(1), at(100)).await.unwrap() {
        let done = Settled {
            id: one.id,
            started_at: Some(at(1)),
            ended_at: at(1),
            detail: String::new(),
            outcome: SettledAs::Delivered,
        };
        store.settle(vec![done]).await.unwrap();
    }
    store.prune(at(3_600), at(3_600)).await.unwrap();
    let left = reader(dir.path());
    assert_eq!(left.events(10).unwrap().len(), 1);
    assert_eq!(segments(dir.path()).len(), 1);
    assert!(left.documents(id(2)).unwrap().is_some());
    let index = rusqlite::Connection::open(dir.path().join("index.sqlite")).unwrap();
    for (table, rows) in [
        ("receipts", 1),
        // It goes with its receipt
        ("replay", 1),
        ("events", 1),
        ("deliveries", 1),
        ("attempts", 0),
        ("segments", 1),
    ] {
        let count: i64 = index
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(count, rows, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_the_index_stays_short_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    // Between the rounds a reader waits for the index, so that checkpoints fall among its transactions
    for round in 1..=3 {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..64 {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                for n in 0..300 {
                    let n = round * 100_000 + task * 1_000 + n;
                    store.commit(commit(n, 10)).await.unwrap();
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let events = reader(dir.path()).events(usize::MAX >> 1).unwrap();
        assert_eq!(events.len(), usize::try_from(round).unwrap() * 19_200);
    }
    // 57,600 commits touch several pages each: far more than this if the log never began anew
    let log = std::fs::metadata(dir.path().join("index.sqlite-wal"));
    let bytes = log.unwrap().len();
    assert!(bytes < 64 << 20, "{bytes}");
    let index = std::fs::metadata(dir.path().join("index.sqlite"));
    let bytes = index.unwrap().len();
    assert!(bytes > 4 << 20, "{bytes}");
}
