//! What an operator should look at: found in the configuration, the secrets and the event log, without
//! touching the network or a running gateway.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;

use postern_contract::Timestamp;
use serde::Serialize;

use crate::config::{Config, Period};
use crate::journal::{self, LogLine};
use crate::sources::Source;
use crate::state::State;

/// How long before a key's end it is told
const SOON_MS: i64 = 7 * 24 * 3_600_000;

/// Something to look at
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable kebab-case code
    pub code: &'static str,
    /// The source, or what else it is about
    pub about: String,
    /// What it is, and how to mend it
    pub message: String,
}

/// When each key of each source last verified a delivery that the log still has
#[derive(Debug, Default)]
struct Used {
    oldest: Option<Timestamp>,
    last: BTreeMap<(String, String), Timestamp>,
}

impl Used {
    fn note(&mut self, line: &LogLine) {
        let at = line.received_at;
        self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
        if let Some(key) = &line.key {
            let last = (self.last)
                .entry((line.source.to_string(), key.clone()))
                .or_insert(at);
            *last = at.max(*last);
        }
    }
}

/// Looks at everything as of `now`; a key is unused if it verified nothing for `unused_for`
pub fn examine(
    config: &Config,
    state: &State,
    unused_for: Period,
    now: Timestamp,
) -> std::io::Result<Vec<Finding>> {
    let used = RefCell::new(Used::default());
    let read = journal::read(&config.log.path, usize::MAX, |line| {
        used.borrow_mut().note(line);
        false
    });
    match read {
        // A gateway that never ran has no log
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        read => drop(read?),
    }
    let used = used.into_inner();
    let mut findings = Vec::new();
    for source in state.all().map(|served| &served.source) {
        let about = |message: String, code| Finding {
            code,
            about: format!("source `{}`", source.name),
            message,
        };
        findings.extend((source.warnings().into_iter()).map(|m| about(m, "source-warning")));
        keys(source, &used, unused_for, now, &mut |code, message| {
            findings.push(about(message, code));
        });
    }
    for file in config.secret_files() {
        let Ok(held) = std::fs::metadata(file) else {
            continue;
        };
        if held.permissions().mode() & 0o077 != 0 {
            findings.push(Finding {
                code: "secret-readable",
                about: format!("`{}`", file.display()),
                message: "others than its owner can read it: chmod 600".to_owned(),
            });
        }
    }
    Ok(findings)
}

fn keys(
    source: &Source,
    used: &Used,
    unused_for: Period,
    now: Timestamp,
    find: &mut dyn FnMut(&'static str, String),
) {
    let keys = source.verifier.keys();
    let last = |name: &str| {
        let key = (source.name.to_string(), name.to_owned());
        used.last.get(&key).copied()
    };
    let since = now.plus_ms(-unused_for.millis());
    for (name, not_after) in &keys {
        match not_after {
            Some(end) if *end <= now => {
                let why = format!("the key `{name}` has ended at {end}: take it away");
                find("key-ended", why);
                continue;
            }
            Some(end) if *end <= now.plus_ms(SOON_MS) => {
                find("key-ends", format!("the key `{name}` ends at {end}"));
            }
            _ => {}
        }
        // Silence says something only where there was something to hear: deliveries that others verified
        let others = keys.keys().filter(|other| *other != name);
        let heard = others.filter_map(|other| last(other)).max();
        match last(name) {
            Some(at) if at < since => find(
                "key-unused",
                format!(
                    "the key `{name}` has verified nothing since {at}: take it away if it was replaced"
                ),
            ),
            None if heard.is_some_and(|at| at >= since) => {
                let from = used
                    .oldest
                    .map_or_else(String::new, |at| format!(" since {at}"));
                find(
                    "key-unused",
                    format!(
                        "the key `{name}` has verified nothing that the log still has{from}, and another has: take it away if it was replaced"
                    ),
                );
            }
            _ => {}
        }
    }
}
