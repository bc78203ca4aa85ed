//! The kind `command`: a local program, started without a shell, that gets the structured CloudEvent as
//! one line on standard input. Exit status 0 is delivered.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin};

use super::Attempt;
use super::cloudevent::CloudEvent;
use super::destination::Command;
use crate::store::Claimed;

/// The most bytes of the program's standard error that the log keeps
const KEPT: usize = 1_024;

/// One attempt
pub(super) async fn attempt(
    command: &Command,
    event: &CloudEvent<'_>,
    claimed: &Claimed,
    timeout: Duration,
) -> Attempt {
    let failed = |detail: String| Attempt::Failed {
        detail,
        retry_after: None,
    };
    let mut child = match start(command, claimed) {
        Ok(child) => child,
        Err(e) => return failed(format!("`{}` does not start: {e}", command.program)),
    };
    let mut line = event.structured().to_vec();
    line.push(b'\n');
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let done = async {
        let (_, said, status) = tokio::join!(feed(stdin, &line), listen(stderr), child.wait());
        (said, status)
    };
    match tokio::time::timeout(timeout, done).await {
        // The child is killed on drop, with whatever it holds open
        Err(_) => failed(format!("no end within {timeout:?}: killed")),
        Ok((_, Err(e))) => failed(format!("lost sight of `{}`: {e}", command.program)),
        Ok((_, Ok(status))) if status.success() => Attempt::Delivered {
            detail: status.to_string(),
        },
        Ok((said, Ok(status))) if said.is_empty() => failed(status.to_string()),
        Ok((said, Ok(status))) => failed(format!("{status}: {said}")),
    }
}

fn start(command: &Command, claimed: &Claimed) -> std::io::Result<Child> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut start = tokio::process::Command::new(&command.program);
    start
        .args(&command.arguments)
        .env_clear()
        .env("POSTERN_EVENT_ID", claimed.event.to_string())
        .env("POSTERN_DELIVERY_ID", claimed.id.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    for (name, value) in &command.environment {
        start.env(name, std::ffi::OsStr::from_bytes(value));
    }
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

/// The last of what it says, as one line
async fn listen(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else {
        return String::new();
    };
    let mut kept = Vec::new();
    let mut buffer = [0; 4_096];
    while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
        kept.extend_from_slice(buffer.get(..n).unwrap_or_default());
        let over = kept.len().saturating_sub(KEPT);
        kept.drain(..over);
    }
    let text = String::from_utf8_lossy(&kept);
    text.trim().replace(|c: char| c.is_control(), " ")
}
