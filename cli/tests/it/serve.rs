//! The whole way as an operator goes it: compile, admit, check, serve; then kill -9 under load, start
//! again, and hold every acknowledgement to what the store has.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::support::postern;

const SECRET: &str = "kill nine";
/// Ends a wait for what does not come
const PATIENCE: Duration = Duration::from_secs(60);

/// Compiled, admitted and configured below `dir`; where it will listen
fn set_up(dir: &Path) -> SocketAddr {
    // Free a moment ago; nobody else here binds ports by number
    let at = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let workflow = dir.join(".github/workflows/triage.md");
    std::fs::create_dir_all(workflow.parent().unwrap()).unwrap();
    std::fs::write(
        workflow,
        "---\non: {gateway-dispatch: {github: [issue-opened]}}\nimports:\n  - uses: .github/workflows/connectors/github.md\n    with: {repositories: [Codertocat/Hello-World]}\n---\nTriage.\n",
    )
    .unwrap();
    let config = format!(
        r#"
[server]
listen = "{at}"
[sources.github]
profile = "github"
keys = [{{ env = "HOOK_SECRET" }}]
[sources.github.grants]
origins = ["https://github.com"]
resources.repositories = ["Codertocat/Hello-World"]
[destinations.agent]
kind = "command"
argv = ["/nonexistent/agent"]
[destinations.agent.retry]
limit = 1000
initial = "1h"
"#
    );
    std::fs::write(dir.join("postern.toml"), config).unwrap();
    let compile = [
        "compile",
        ".github/workflows/triage.md",
        "--out",
        "plans",
        "--repository",
        "o/r",
    ];
    let compiled = postern(&compile).dir(dir).run();
    assert_eq!(compiled.code, 0, "{}", compiled.err);
    let subscription = std::fs::read_dir(dir.join("plans/subscriptions"))
        .unwrap()
        .next()
        .unwrap();
    let subscription = subscription.unwrap().path();
    let admit = [
        "admit",
        subscription.to_str().unwrap(),
        "--source",
        "github",
        "--destination",
        "agent",
        "--by",
        "alice",
    ];
    let admitted = postern(&admit).dir(dir).run();
    assert_eq!(admitted.code, 0, "{}", admitted.err);
    let checked = postern(&["serve", "--check", "--json"])
        .dir(dir)
        .env("HOOK_SECRET", SECRET)
        .run();
    assert_eq!(checked.json()["admitted"], 1, "{}", checked.err);
    at
}

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(dir: &Path, at: SocketAddr) -> Served {
    let child = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(["serve", "--config", "postern.toml"])
        .current_dir(dir)
        .env("HOOK_SECRET", SECRET)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let served = Served(child);
    let patience = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(at).is_err() {
        assert!(Instant::now() < patience, "the gateway does not listen");
        std::thread::yield_now();
    }
    served
}

fn body(n: u64) -> String {
    let recorded = include_str!("../../../fixtures/demo/01-issue-opened.json");
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    // A title of its own makes it another delivery, whose signed content is its own
    recorded["body"]
        .as_str()
        .unwrap()
        .replace("Spelling error in the README file", &format!("title {n}"))
}

/// Status and events; `None` where no answer came
fn post(at: SocketAddr, n: u64) -> Option<(u16, Vec<String>)> {
    let body = body(n);
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let signature: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let request = format!(
        "POST /hooks/github HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-github-event: issues\r\nx-github-delivery: d-{n}\r\nx-hub-signature-256: sha256={signature}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.get(9..12)?.parse().ok()?;
    let json: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1)?).ok()?;
    let events = json["events"].as_array().into_iter().flatten();
    let events = events.map(|e| e.as_str().unwrap().to_owned());
    Some((status, events.collect()))
}

#[test]
fn report_d37_kill_nine_under_load_loses_nothing_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = set_up(dir.path());
    let acknowledged: Arc<Mutex<BTreeMap<u64, Vec<String>>>> = Arc::default();
    let next = Arc::new(AtomicU64::new(0));
    for round in 0..3 {
        let mut served = serve(dir.path(), at);
        let stop = Arc::new(AtomicBool::new(false));
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let (acknowledged, next, stop) = (
                    Arc::clone(&acknowledged),
                    Arc::clone(&next),
                    Arc::clone(&stop),
                );
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if let Some((202, events)) = post(at, n) {
                            acknowledged.lock().unwrap().insert(n, events);
                        }
                    }
                })
            })
            .collect();
        // Killed in the middle of a commit, whenever that is: after some tens of acknowledgements
        let enough = (round + 1) * 40;
        let patience = Instant::now() + Duration::from_secs(30);
        while acknowledged.lock().unwrap().len() < enough && Instant::now() < patience {
            std::thread::yield_now();
        }
        served.0.kill().unwrap();
        served.0.wait().unwrap();
        stop.store(true, Ordering::Relaxed);
        senders.into_iter().for_each(|s| s.join().unwrap());
    }
    let _served = serve(dir.path(), at);
    let acknowledged = acknowledged.lock().unwrap();
    assert!(acknowledged.len() >= 120);
    let sent = next.load(Ordering::Relaxed);
    let mut events = BTreeSet::new();
    for n in 0..sent {
        let (status, made) = post(at, n).expect("the gateway answers");
        match acknowledged.get(&n) {
            // Kept: a copy of it is a replay of the same event
            Some(first) => assert_eq!((status, &made), (200, first), "{n}"),
            // Never answered: it was committed before the kill, or it is now
            None => assert!(status == 200 || status == 202, "{n}: {status}"),
        }
        events.extend(made);
    }
    assert_eq!(events.len() as u64, sent);
    let limit = (sent * 2).to_string();
    let listed = postern(&["deliveries", "list", "--json", "--limit", &limit])
        .dir(dir.path())
        .run();
    let listed = listed.json()["deliveries"].as_array().unwrap().clone();
    let owed: BTreeSet<&str> = listed
        .iter()
        .map(|d| d["event"].as_str().unwrap())
        .collect();
    assert_eq!((listed.len() as u64, owed.len() as u64), (sent, sent));
}

#[test]
fn what_an_operator_asks_has_answers_and_no_secret_shows() {
    let dir = tempfile::tempdir().unwrap();
    let at = set_up(dir.path());
    let mut served = serve(dir.path(), at);
    let (status, events) = post(at, 1).unwrap();
    assert_eq!((status, events.len()), (202, 1));
    // SIGTERM drains, and the log is whole afterwards
    let id = served.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert!(served.0.wait().unwrap().success());
    let listed = postern(&["events", "list", "--json"]).dir(dir.path()).run();
    let line = &listed.json()["events"][0];
    assert_eq!(line["outcome"], "accepted");
    assert_eq!(line["delivery"], "d-1");
    let shown = postern(&["events", "show", "d-1", "--json"])
        .dir(dir.path())
        .run();
    assert_eq!(shown.json()["events"][0]["event"]["kind"], "CanonicalEvent");
    assert_eq!(shown.json()["events"][0]["id"], events[0].as_str());
    let human = postern(&["events", "show", &events[0], "--body"])
        .dir(dir.path())
        .run();
    assert!(human.out.contains("owed to agent"), "{}", human.err);
    let standing = postern(&["subscriptions", "--json"]).dir(dir.path()).run();
    assert_eq!(
        standing.json()["subscriptions"][0]["destinations"][0],
        "agent"
    );
    for ran in [&listed, &shown, &human] {
        assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET));
    }
    let missing = postern(&["events", "show", "nothing"])
        .dir(dir.path())
        .run();
    assert_eq!(missing.code, 1);
    // Without the secret it does not start, and says which variable
    let unset = postern(&["serve", "--check"]).dir(dir.path()).run();
    assert_eq!(unset.code, 1);
    assert!(unset.err.contains("HOOK_SECRET"), "{}", unset.err);
}

#[test]
fn a_reload_that_finds_a_pipe_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = set_up(dir.path());
    let mut served = serve(dir.path(), at);
    let pipe = dir.path().join("admissions/pipe.json");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let id = served.0.id().to_string();
    let tell = |signal: &str| {
        let told = Command::new("kill").args([signal, &id]).status();
        assert!(told.unwrap().success());
    };
    tell("-HUP");
    let (status, _) = post(at, 1).unwrap();
    assert_eq!(status, 202);
    let checked = postern(&["serve", "--check"])
        .dir(dir.path())
        .env("HOOK_SECRET", SECRET)
        .run();
    assert_eq!(checked.code, 1);
    assert!(
        checked.err.contains("admissions/pipe.json"),
        "{}",
        checked.err
    );
    tell("-TERM");
    let patience = Instant::now() + PATIENCE;
    let ended = loop {
        if let Some(ended) = served.0.try_wait().unwrap() {
            break ended;
        }
        assert!(Instant::now() < patience, "the gateway does not stop");
        std::thread::yield_now();
    };
    assert!(ended.success());
}

#[test]
fn a_secret_file_that_changes_is_read_again_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let at = set_up(dir.path());
    let config = dir.path().join("postern.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace(r#"{ env = "HOOK_SECRET" }"#, r#"{ file = "secret" }"#);
    std::fs::write(&config, text).unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "another secret\n").unwrap();
    let _served = serve(dir.path(), at);
    assert_eq!(post(at, 1).unwrap().0, 401);
    std::fs::write(&secret, SECRET).unwrap();
    let patience = Instant::now() + PATIENCE;
    while post(at, 1).unwrap().0 != 202 {
        assert!(Instant::now() < patience, "the secret is not read again");
        std::thread::yield_now();
    }
}
