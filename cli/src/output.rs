//! What a command says: results to standard output, talk to standard error, and the exit code. Text is
//! never trusted: control characters are spelled out before they reach a terminal.
//!
//! A reader that has gone (`| head`) is no failure: what is left to write is dropped, and the command runs
//! on to its own exit code.

use std::cell::Cell;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::failure::Failure;

/// What the exit code says
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: it is done, or the answer is yes
    Done,
    /// 1: the answer is no
    No,
    /// 2: the call was wrong
    Call,
    /// 3: something around it failed
    Around,
}

impl Exit {
    /// 0 where `yes`, else 1
    pub fn answer(yes: bool) -> Self {
        if yes { Self::Done } else { Self::No }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Call => 2,
            Exit::Around => 3,
        })
    }
}

/// Where a command writes
pub struct Output {
    json: bool,
    gone: Cell<bool>,
}

impl Output {
    /// For people, or for programs
    pub fn new(json: bool) -> Self {
        Self {
            json,
            gone: Cell::new(false),
        }
    }

    /// Whether results are JSON
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether nobody reads results any more
    pub fn gone(&self) -> bool {
        self.gone.get()
    }

    /// The result: `value` as one line of JSON, or what `human` makes of it
    pub fn result<T: Serialize>(
        &self,
        value: &T,
        human: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json {
            let text = serde_json::to_string(value)
                .map_err(|e| Failure::around("output", format!("no JSON of the result: {e}")))?;
            self.raw(text.as_bytes())?;
            self.raw(b"\n")
        } else {
            self.text(&human())
        }
    }

    /// Text for people on standard output; a newline follows unless there is one
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        self.raw(plain(text).as_bytes())?;
        if text.ends_with('\n') || text.is_empty() {
            Ok(())
        } else {
            self.raw(b"\n")
        }
    }

    /// Bytes as they are, such as a completion script
    pub fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        if self.gone.get() {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                self.gone.set(true);
                Ok(())
            }
            Err(e) => Err(Failure::around("output", format!("standard output: {e}"))),
        }
    }

    /// Talk, on standard error
    pub fn note(&self, text: &str) {
        say("\x1b[2m", "note", text);
    }

    /// How to go on, on standard error
    pub fn hint(&self, text: &str) {
        say("\x1b[1;36m", "hint", text);
    }

    /// What an operator should look at, on standard error
    pub fn warning(&self, text: &str) {
        say("\x1b[1;33m", "warning", text);
    }

    /// Text of several lines, such as a diagnostic drawn on its source, on standard error
    pub fn drawn(&self, text: &str) {
        // Nobody is left to tell when standard error is closed
        let _ = writeln!(anstream::stderr().lock(), "{}\n", plain(text));
    }

    /// Why a command ended: on standard error, or as JSON on standard output
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            // A result that cannot be written leaves the exit code alone
            let _ = self.result(&failure.as_json(), String::new);
            return;
        }
        let code = failure.code;
        say("\x1b[1;31m", &format!("error[{code}]"), &failure.message);
        for hint in failure.hint.iter().flat_map(|hints| hints.lines()) {
            self.hint(hint);
        }
    }
}

fn say(style: &str, label: &str, text: &str) {
    let mut to = anstream::stderr().lock();
    // Nobody is left to tell when standard error is closed
    let _ = writeln!(to, "{style}{label}\x1b[0m: {}", plain(text).trim_end());
}

/// `text` with control characters spelled out, but for newlines and tabs
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Directional overrides make a terminal show another text than is there
        let overrides = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if overrides || (c.is_control() && c != '\n' && c != '\t') {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_cannot_drive_the_terminal() {
        assert_eq!(
            plain("a\x1b[2Jb\r\n\tc\u{202e}"),
            "a\\u{1b}[2Jb\\u{d}\n\tc\\u{202e}"
        );
    }

    #[test]
    fn exit_codes_are_the_published_ones() {
        for (exit, code) in [
            (Exit::Done, 0),
            (Exit::No, 1),
            (Exit::Call, 2),
            (Exit::Around, 3),
        ] {
            assert_eq!(ExitCode::from(exit), ExitCode::from(code));
        }
    }
}
