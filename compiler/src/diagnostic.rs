//! What is wrong with a file, where, and how to mend it: for people drawn on the source, for programs as
//! JSON.

use std::fmt::Write as _;

use serde::Serialize;

/// How bad it is
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is written
    Error,
    /// Worth a look
    Warning,
}

/// A line and column, both from 1; columns count characters
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line
    pub line: usize,
    /// The column
    pub column: usize,
}

/// One finding
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable kebab-case code
    pub code: &'static str,
    /// How bad it is
    pub severity: Severity,
    /// The file
    pub file: String,
    /// Where in it
    #[serde(flatten)]
    pub place: Place,
    /// The entry, as a JSON Pointer into the frontmatter
    pub path: String,
    /// What is wrong
    pub message: String,
    /// How to mend it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Drawn on the source, as several lines
    pub fn draw(&self, source: Option<&str>) -> String {
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Place { line, column } = self.place;
        let mut out = format!(
            "{}:{line}:{column}: {kind}[{}]: {}",
            self.file, self.code, self.message
        );
        let text = source.and_then(|s| s.lines().nth(line.saturating_sub(1)));
        if let Some(text) = text {
            let number = line.to_string();
            let gap = " ".repeat(number.len());
            let before: String = (text.chars().take(column.saturating_sub(1)))
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            let _ = write!(out, "\n{gap} |\n{number} | {text}\n{gap} | {before}^");
        }
        if let Some(hint) = &self.hint {
            let _ = write!(out, "\nhint: {hint}");
        }
        out
    }
}

/// The name that was most likely meant
pub(crate) fn did_you_mean<'a>(
    given: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<String> {
    known
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| format!("did you mean `{name}`?"))
}
