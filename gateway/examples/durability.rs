//! The crash test: children commit under load and are killed, by SIGKILL at any moment or by abort at each
//! named step of a commit. Whatever was acknowledged must be in the store, whole and once.
//!
//! `cargo run -p postern-gateway --example durability -- --seconds N`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test program: it prints, and what it cannot do ends it"
)]

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use postern_contract::{Digest, EventId, Sha256Hex, Timestamp};
use postern_gateway::store::reader::Reader;
use postern_gateway::store::{
    Commit, Committed, DeliveryId, Embedded, NewEvent, Options, Owed, Step, Store,
};
use postern_profiles::ReplayKey;
use rand::Rng;

/// Tasks that commit at once
const TASKS: u64 = 8;
/// Numbers that a second child sends again, acknowledged or not
const AGAIN: u64 = 100;
const STEPS: [Step; 8] = [
    Step::Judged,
    Step::BeforeAppend,
    Step::AfterAppend,
    Step::BeforeSync,
    Step::AfterSync,
    Step::BeforeAnswer,
    Step::Indexing,
    Step::BeforeIndexed,
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["child", dir, from, step, after] => child(
            Path::new(dir),
            from.parse().unwrap(),
            step,
            after.parse().unwrap(),
        ),
        ["--seconds", seconds] => parent(Duration::from_secs(seconds.parse().unwrap())),
        _ => {
            eprintln!("usage: durability --seconds N");
            ExitCode::from(2)
        }
    }
}

/// Delivery number `n`. Its event's id differs at every try, as if two copies had raced: only the replay
/// key says that they are one.
fn commit(n: u64) -> Commit {
    // Some are long, so that segments fill up, and the next is made, while processes die
    let filler = if n.is_multiple_of(20) {
        1 << 20
    } else {
        n % 4_000
    };
    let body = Bytes::from(format!(
        "{{\"n\":{n},\"filler\":\"{}\"}}",
        ".".repeat(filler as usize)
    ));
    let id = Sha256Hex::of(format!("{n} {}", rand::rng().random::<u64>()).as_bytes());
    let destination = "sink".parse().unwrap();
    let mut key = [0; 32];
    key.iter_mut()
        .zip(n.to_be_bytes())
        .for_each(|(to, from)| *to = from);
    let subscription = Digest::of(b"s");
    Commit {
        source: "source".parse().unwrap(),
        replay_keys: vec![ReplayKey::from_bytes(key)],
        window_until: Timestamp::from_unix(4_000_000_000).unwrap(),
        received_at: Timestamp::from_unix(1_800_000_000).unwrap(),
        delivery: n.to_string(),
        body_sha256: Sha256Hex::of(&body),
        body,
        events: vec![NewEvent {
            id,
            document: Bytes::from(format!("{{\"n\":{n}}}")),
            trigger_digest: Digest::of(b"t"),
            owed: vec![Owed {
                id: DeliveryId::of(id, subscription, &destination),
                subscription,
                destination,
            }],
        }],
    }
}

/// Commits until it is killed, or aborts at the `after`th time that it comes to `step`
fn child(dir: &Path, from: u64, step: &str, after: u64) -> ExitCode {
    let step: Option<usize> = step.parse().ok();
    let wanted = step.and_then(|n| STEPS.get(n).copied());
    let count = AtomicU64::new(0);
    let options = Options::at_each_step(move |at| {
        if Some(at) == wanted && count.fetch_add(1, Ordering::Relaxed) >= after {
            std::process::abort();
        }
        Ok(())
    });
    let store = Arc::new(Embedded::open(dir, options).unwrap());
    let next = Arc::new(AtomicU64::new(from));
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..TASKS {
            let (store, next) = (Arc::clone(&store), Arc::clone(&next));
            tasks.spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    for _ in 0..if n.is_multiple_of(5) { 2 } else { 1 } {
                        let committed = store.commit(commit(n)).await.unwrap();
                        let (Committed::Fresh { events } | Committed::Replay { events }) =
                            committed;
                        // One write a line, so that a kill leaves no half of one
                        let line = format!("{n} {}\n", events.first().unwrap());
                        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                    }
                }
            });
        }
        tasks.join_next().await;
    });
    ExitCode::FAILURE
}

#[derive(Default)]
struct Score {
    acknowledged: u64,
    lost: u64,
    doubled: u64,
}

fn parent(length: Duration) -> ExitCode {
    let end = Instant::now() + length;
    let mut score = Score::default();
    let mut round = 0;
    while Instant::now() < end || round < STEPS.len() * 2 {
        let dir = tempfile::tempdir().unwrap();
        let mut acknowledged: HashMap<u64, HashSet<EventId>> = HashMap::new();
        let mut from = 0;
        for _ in 0..2 {
            run(dir.path(), from, round, &mut acknowledged);
            let last = acknowledged.keys().max().copied().unwrap_or(0);
            from = last.saturating_sub(AGAIN);
            round += 1;
        }
        judge(dir.path(), &acknowledged, &mut score);
    }
    println!(
        "{} acknowledged, {} lost, {} doubled",
        score.acknowledged, score.lost, score.doubled
    );
    ExitCode::from(u8::from(
        score.lost + score.doubled > 0 || score.acknowledged == 0,
    ))
}

/// One child's life: every other one is killed from outside, the others abort at a step
fn run(dir: &Path, from: u64, round: usize, acknowledged: &mut HashMap<u64, HashSet<EventId>>) {
    let step = round % (STEPS.len() * 2);
    let after = rand::rng().random_range(0..200);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("child")
        .arg(dir)
        .args([&from.to_string(), &step.to_string(), &after.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    let reading = std::thread::spawn(move || {
        BufReader::new(out)
            .lines()
            .map_while(Result::ok)
            .collect::<Vec<_>>()
    });
    end(&mut child, step < STEPS.len());
    for line in reading.join().unwrap() {
        let Some((n, id)) = line.split_once(' ') else {
            continue;
        };
        if let (Ok(n), Ok(id)) = (n.parse(), id.parse()) {
            acknowledged.entry(n).or_default().insert(id);
        }
    }
}

/// Waits for an abort, and kills what does not come to it
fn end(child: &mut Child, aborts: bool) {
    let patience = if aborts {
        5_000
    } else {
        rand::rng().random_range(30..300)
    };
    let end = Instant::now() + Duration::from_millis(patience);
    while Instant::now() < end {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn judge(dir: &Path, acknowledged: &HashMap<u64, HashSet<EventId>>, score: &mut Score) {
    // Opened as a gateway would after the crash, then read as the command line would
    drop(Embedded::open(dir, Options::default()).unwrap());
    let reader = Reader::open(dir).unwrap();
    reader.check().unwrap();
    let stored = reader.events(usize::MAX >> 1).unwrap();
    let mut by_number: HashMap<u64, u64> = HashMap::new();
    for event in &stored {
        // Whether or not it was acknowledged: an event is there with all that belongs to it
        let whole =
            event.deliveries.len() == 1 && matches!(reader.documents(event.id), Ok(Some(_)));
        score.lost += u64::from(!whole);
        *by_number
            .entry(event.delivery.parse().unwrap())
            .or_default() += 1;
    }
    score.doubled += by_number.values().filter(|count| **count > 1).count() as u64;
    for (n, ids) in acknowledged {
        score.acknowledged += 1;
        // Copies were answered with one id, and that event is there with its body and what it owes
        let whole = ids.len() == 1
            && ids.iter().all(|id| {
                let Ok(Some((document, body))) = reader.documents(*id) else {
                    return false;
                };
                let owed = reader
                    .event(*id)
                    .ok()
                    .flatten()
                    .map_or(0, |e| e.deliveries.len());
                owed == 1 && document == format!("{{\"n\":{n}}}") && body == commit(*n).body
            });
        score.lost += u64::from(!whole);
    }
}
