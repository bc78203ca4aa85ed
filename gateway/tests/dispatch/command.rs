//! Programs: what they are given, what their end means, and that nothing of them is left behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use postern_gateway::store::SettledAs;
use serde_json::{Value, json};

use crate::stage::{Stage, within};

/// The test's own script; postern itself starts no shell
fn script(text: &str, dir: &Path) -> Value {
    json!({
        "kind": "command",
        "argv": ["/bin/sh", "-c", text, "sh", "$(touch injected); `touch injected` 'x"],
        "env": ["SEEN"],
        "cwd": dir,
        "timeout": "25s",
        "retry": { "limit": 1 },
    })
}

fn fifo(dir: &Path) {
    let made = std::process::Command::new("mkfifo")
        .arg(dir.join("fifo"))
        .status()
        .unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn a_program_gets_one_line_its_arguments_and_a_clean_environment() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"cat > line; printf %s "$1" > argument; env -0 > environment"#;
    let mut stage = Stage::new(&[("run", script(text, dir.path()))]);
    let _running = stage.start();
    let debt = stage.owe("run").await;
    assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
    let read = |file: &str| std::fs::read(dir.path().join(file)).unwrap();
    let line = read("line");
    assert_eq!(line.iter().position(|b| *b == b'\n'), Some(line.len() - 1));
    let event: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["id"], debt.event.to_string());
    assert_eq!(
        event["data"],
        serde_json::from_slice::<Value>(&debt.document).unwrap()
    );
    assert_eq!(read("argument"), b"$(touch injected); `touch injected` 'x");
    assert!(!dir.path().join("injected").exists());
    let seen: BTreeSet<Vec<u8>> = (read("environment").split(|b| *b == 0))
        // What the shell and `env` themselves add
        .filter(|v| {
            !["PWD=", "OLDPWD=", "SHLVL=", "_="]
                .iter()
                .any(|own| v.starts_with(own.as_bytes()))
        })
        .filter(|v| !v.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    let want = [
        b"SEEN=a b=c\xff".to_vec(),
        format!("POSTERN_EVENT_ID={}", debt.event).into_bytes(),
        format!("POSTERN_DELIVERY_ID={}", debt.id).into_bytes(),
    ];
    assert_eq!(seen, BTreeSet::from(want));
}

#[tokio::test]
async fn any_other_end_than_zero_is_tried_again_until_the_limit() {
    for code in [1, 75] {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("echo first >&2; echo second >&2; exit {code}");
        let mut stage = Stage::new(&[("run", script(&text, dir.path()))]);
        let _running = stage.start();
        stage.owe("run").await;
        let (at, detail) = stage.retried().await;
        assert_eq!(detail, format!("exit status: {code}: first second"));
        stage.until(at);
        let settled = stage.settled().await;
        assert_eq!(
            settled.outcome,
            SettledAs::Dead {
                reason: "attempts-exhausted"
            }
        );
    }
}

#[tokio::test]
async fn the_last_4_kib_of_standard_error_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let text = "head -c 300000 /dev/zero | tr '\\0' x >&2; head -c 300000 /dev/zero; printf end >&2; exit 1";
    let mut stage = Stage::new(&[("run", script(text, dir.path()))]);
    let _running = stage.start();
    stage.owe("run").await;
    let (_, detail) = stage.retried().await;
    assert_eq!(
        detail,
        format!("exit status: 1: {}end", "x".repeat(4_096 - 3))
    );
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let mut stage = Stage::new(&[("run", json!({ "kind": "command", "argv": ["/bin/true"] }))]);
    let _running = stage.start();
    // More than a pipe holds
    stage.owe_text("run", &"x".repeat(1_000_000)).await;
    assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_failure() {
    let mut stage = Stage::new(&[(
        "run",
        json!({ "kind": "command", "argv": ["/nowhere/at/all"] }),
    )]);
    let _running = stage.start();
    stage.owe("run").await;
    let (_, detail) = stage.retried().await;
    assert!(
        detail.starts_with("`/nowhere/at/all` does not start: "),
        "{detail}"
    );
}

#[tokio::test]
async fn a_program_that_outlives_its_time_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = script("echo so far >&2; read line; exec sleep 60", dir.path());
    config["timeout"] = json!("2s");
    let mut stage = Stage::new(&[("run", config)]);
    let _running = stage.start();
    stage.owe("run").await;
    let (_, detail) = stage.retried().await;
    assert_eq!(detail, "no end within 2s: killed: so far");
}

#[tokio::test]
async fn what_a_killed_program_has_started_is_killed_with_it() {
    let dir = tempfile::tempdir().unwrap();
    fifo(dir.path());
    // The child holds the FIFO open for as long as it lives
    let text = "(echo up; exec sleep 60) > fifo & wait";
    let stage = Stage::new(&[("run", script(text, dir.path()))]);
    let running = stage.start();
    stage.owe("run").await;
    let path = dir.path().join("fifo");
    let (tell, up) = tokio::sync::oneshot::channel();
    let reading = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut fifo = std::fs::File::open(path).unwrap();
        let mut word = [0; 3];
        fifo.read_exact(&mut word).unwrap();
        tell.send(word).unwrap();
        // The end comes when nobody holds it any more
        fifo.read_to_end(&mut Vec::new()).unwrap()
    });
    assert_eq!(within(up).await.unwrap(), *b"up\n");
    within(running.stop(Duration::ZERO)).await;
    assert_eq!(within(reading).await.unwrap(), 0);
}

#[tokio::test]
async fn a_program_that_ended_well_is_not_judged_by_what_it_left_running() {
    let dir = tempfile::tempdir().unwrap();
    fifo(dir.path());
    // Holds standard error until somebody opens the FIFO
    let mut config = script("cat fifo >/dev/null & exit 0", dir.path());
    // Longer than a test waits: whoever waits for the pipe's end fails
    config["timeout"] = json!("90s");
    let mut stage = Stage::new(&[("run", config)]);
    let _running = stage.start();
    stage.owe("run").await;
    assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
    // Still there: opening waits for a reader
    let path = dir.path().join("fifo");
    let opened = tokio::task::spawn_blocking(move || {
        std::fs::OpenOptions::new().write(true).open(path).map(drop)
    });
    within(opened).await.unwrap().unwrap();
}
