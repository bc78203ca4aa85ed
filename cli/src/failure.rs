//! Why a command ended without its result: a stable code, one line, a hint of its own, and what the exit
//! code makes of it. Messages never hold a secret.

use std::path::Path;

use postern_contract::Fault;
use serde::Serialize;

use crate::output::Exit;

/// A command that ended without its result
#[derive(Clone, Debug)]
pub struct Failure {
    /// Stable kebab-case code
    pub code: &'static str,
    /// One line: what, where, why
    pub message: String,
    /// How to mend it, a hint a line
    pub hint: Option<String>,
    /// What the exit code says
    pub exit: Exit,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl Failure {
    fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            exit,
        }
    }

    /// The call was wrong
    pub fn call(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Call, code, message)
    }

    /// Something around the command failed: network, disk, store
    pub fn around(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Around, code, message)
    }

    /// What a stage refuses: the answer is no
    pub fn refused(fault: &dyn Fault) -> Self {
        Self::of(Exit::No, fault)
    }

    /// The answer is no
    pub fn no(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::No, code, message)
    }

    /// A stage's fault under an exit code of the command's choice
    pub fn of(exit: Exit, fault: &dyn Fault) -> Self {
        Self {
            hint: fault.hint(),
            ..Self::new(exit, fault.code(), fault.to_string())
        }
    }

    /// A file that cannot be read
    pub fn unreadable(path: &Path, why: &std::io::Error) -> Self {
        Self::call("unreadable", format!("`{}`: {why}", path.display()))
    }

    /// A file that cannot be written
    pub fn unwritable(path: &Path, why: &std::io::Error) -> Self {
        Self::around("unwritable", format!("`{}`: {why}", path.display()))
    }

    /// The same with a hint
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, said of `subject`
    #[must_use]
    pub fn about(mut self, subject: &str) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }

    /// `{error: {code, message, hint}}`
    pub fn as_json(&self) -> impl Serialize + '_ {
        Envelope {
            error: Inner {
                code: self.code,
                message: &self.message,
                hint: self.hint.as_deref(),
            },
        }
    }
}

/// The nearest of `known` to `wanted`, as a hint
pub fn did_you_mean<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known.map(|name| (strsim::damerau_levenshtein(wanted, name), name));
    let (distance, name) = near.min()?;
    (distance <= 3 && distance < wanted.chars().count()).then(|| format!("did you mean `{name}`?"))
}
