//! Running a file of lines, each with what it expects: shared by `profile check` and `predicate check`.
//! The last line is always `N passed, M failed[, K known gaps]`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use postern_contract::{Document, Value};
use serde::Serialize;

use crate::failure::Failure;
use crate::input;
use crate::output::{Exit, Output};

/// Where a project keeps the lines that it does not hold yet
const KNOWN_GAPS: &str = "known-gaps.txt";

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    passed: usize,
    failed: usize,
    known_gaps: usize,
    failures: Vec<Failed>,
    /// Named as gaps, and yet they hold
    closed_gaps: Vec<String>,
}

#[derive(Serialize)]
struct Failed {
    /// The line's number in the file, from 1
    line: usize,
    id: String,
    why: String,
}

impl Report {
    fn human(&self) -> String {
        let mut text = String::new();
        for failed in &self.failures {
            // Writing to a string cannot fail
            let _ = writeln!(
                text,
                "FAIL {} (line {}): {}",
                failed.id, failed.line, failed.why
            );
        }
        let _ = write!(text, "{} passed, {} failed", self.passed, self.failed);
        if self.known_gaps > 0 {
            let _ = write!(text, ", {} known gaps", self.known_gaps);
        }
        text
    }
}

/// Runs every line of `file`; `judge` gives why a line fails
pub fn check(
    file: &Path,
    judge: impl Fn(&str) -> Result<(), String>,
    output: &Output,
) -> Result<Exit, Failure> {
    let text = input::text(file)?;
    let gaps = known_gaps(&input::text_if_there(Path::new(KNOWN_GAPS))?.unwrap_or_default());
    let mut report = Report::default();
    let lines = text.lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let id = id_of(line);
        let verdict = judge(line);
        if gaps.contains_key(&id) {
            report.known_gaps += 1;
            if verdict.is_ok() {
                report.closed_gaps.push(id);
            }
            continue;
        }
        match verdict {
            Ok(()) => report.passed += 1,
            Err(why) => {
                report.failed += 1;
                report.failures.push(Failed {
                    line: number + 1,
                    id,
                    why,
                });
            }
        }
    }
    if report.passed + report.failed + report.known_gaps == 0 {
        let why = format!("`{}` holds no lines", file.display());
        return Err(Failure::call("no-lines", why));
    }
    for id in &report.closed_gaps {
        output.warning(&format!("`{id}` passes: take it out of {KNOWN_GAPS}"));
    }
    output.result(&report, || report.human())?;
    Ok(Exit::answer(report.failed == 0))
}

/// The id of a line, `?` where it has none
fn id_of(line: &str) -> String {
    let document = Document::parse(Bytes::copy_from_slice(line.as_bytes()));
    let id = document
        .as_ref()
        .ok()
        .and_then(|line| line.root().member("id"));
    id.and_then(Value::as_str).unwrap_or("?").to_owned()
}

/// `<id> <reason>` a line; `#` begins a comment
fn known_gaps(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim);
    let entries = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = entries.map(|line| line.split_once(char::is_whitespace).unwrap_or((line, "")));
    split
        .map(|(id, reason)| {
            (
                id.trim_end_matches(',').to_owned(),
                reason.trim().to_owned(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_an_id_and_a_reason_a_line() {
        let gaps = known_gaps("# why\n\ngithub-03  needs a key\nx\n");
        let gaps: Vec<_> = gaps
            .iter()
            .map(|(id, why)| (id.as_str(), why.as_str()))
            .collect();
        assert_eq!(gaps, [("github-03", "needs a key"), ("x", "")]);
    }
}
