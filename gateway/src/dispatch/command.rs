//! The kind `command`: a local program, started without a shell, that gets the structured CloudEvent as
//! one line on standard input. Exit status 0 is delivered.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin};
use tokio::time::timeout;

use super::Attempt;
use super::cloudevent::CloudEvent;
use super::destination::Command;
use crate::store::Claimed;

/// The most bytes of the program's standard error that the log keeps
const KEPT: usize = 4_096;
/// How long the rest of standard error is read once the program has ended: what it has started, and left
/// its pipes to, may hold them open for ever
const LAST_WORDS: Duration = Duration::from_millis(100);

/// One attempt
pub(super) async fn attempt(
    command: &Command,
    event: &CloudEvent<'_>,
    claimed: &Claimed,
    limit: Duration,
) -> Attempt {
    let failed = |detail: String| Attempt::Failed {
        detail,
        retry_after: None,
    };
    let mut child = match start(command, claimed) {
        Ok(child) => child,
        Err(e) => return failed(format!("`{}` does not start: {e}", command.program)),
    };
    let mut group = Group::of(&child);
    let mut line = event.structured().to_vec();
    line.push(b'\n');
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let mut said = Vec::new();
    let ended = {
        let talk = async { tokio::join!(feed(stdin, &line), listen(stderr, &mut said)) };
        tokio::pin!(talk);
        let mut talking = true;
        let end = async {
            loop {
                tokio::select! {
                    status = child.wait() => return status,
                    _ = &mut talk, if talking => talking = false,
                }
            }
        };
        let ended = timeout(limit, end).await;
        if ended.is_ok() {
            group.spare();
            if talking {
                let _ = timeout(LAST_WORDS, talk).await;
            }
        }
        ended
    };
    let said = one_line(&said);
    let status = match ended {
        // The group is killed on drop
        Err(_) if said.is_empty() => return failed(format!("no end within {limit:?}: killed")),
        Err(_) => return failed(format!("no end within {limit:?}: killed: {said}")),
        Ok(Err(e)) => return failed(format!("lost sight of `{}`: {e}", command.program)),
        Ok(Ok(status)) => status,
    };
    if status.success() {
        Attempt::Delivered {
            detail: status.to_string(),
        }
    } else if said.is_empty() {
        failed(status.to_string())
    } else {
        failed(format!("{status}: {said}"))
    }
}

/// The program and whatever it has started. All of it is killed on drop, so on a timeout and where the
/// attempt is cut off, unless the program has ended by itself.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }
    /// The program has ended: its number may soon be another's
    fn spare(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Already gone is as good
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

fn start(command: &Command, claimed: &Claimed) -> std::io::Result<Child> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut start = tokio::process::Command::new(&command.program);
    start
        .args(&command.arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    for (name, value) in &command.environment {
        start.env(name, std::ffi::OsStr::from_bytes(value.expose()));
    }
    start
        .env("POSTERN_EVENT_ID", claimed.event.to_string())
        .env("POSTERN_DELIVERY_ID", claimed.id.to_string());
    if let Some(cwd) = &command.cwd {
        start.current_dir(cwd);
    }
    start.spawn()
}

/// A program need not read what it is given
async fn feed(stdin: Option<ChildStdin>, line: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(line).await;
        let _ = stdin.shutdown().await;
    }
}

/// Keeps the last of what it says
async fn listen(stderr: Option<ChildStderr>, kept: &mut Vec<u8>) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = [0; 4_096];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(buffer.get(..n).unwrap_or_default());
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
}

fn one_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    text.trim().replace(|c: char| c.is_control(), " ")
}
