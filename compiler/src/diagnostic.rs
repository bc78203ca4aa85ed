//! What is wrong with a file, where, and how to mend it: for people drawn on the source, for programs as
//! JSON. What is drawn cannot steer a terminal, and a line that may hold a secret is not drawn.

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
    /// Whether the line may hold a secret
    #[serde(skip)]
    concealed: bool,
}

/// The most characters of a source line that are drawn
const MAX_DRAWN: usize = 160;

impl Diagnostic {
    /// An error
    pub(crate) fn error(
        code: &'static str,
        file: &str,
        place: Place,
        path: &str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity: Severity::Error,
            file: file.to_owned(),
            place,
            path: path.to_owned(),
            message: message.into(),
            hint: None,
            concealed: false,
        }
    }

    /// The same as a warning
    pub(crate) fn warning(self) -> Self {
        let severity = Severity::Warning;
        Self { severity, ..self }
    }

    /// With how to mend it
    pub(crate) fn hint(self, hint: impl Into<Option<String>>) -> Self {
        let hint = hint.into();
        Self { hint, ..self }
    }

    /// Without the line that it is about
    pub(crate) fn conceal(self, concealed: bool) -> Self {
        Self { concealed, ..self }
    }

    /// Drawn on the source, as several lines
    pub fn draw(&self, source: Option<&str>) -> String {
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Place { line, column } = self.place;
        let mut out = format!(
            "{}:{line}:{column}: {kind}[{}]: {}",
            plain(&self.file),
            self.code,
            plain(&self.message)
        );
        let source = source.filter(|_| !self.concealed);
        if let Some(text) = source.and_then(|s| s.lines().nth(line.saturating_sub(1))) {
            let number = line.to_string();
            let gap = " ".repeat(number.len());
            // Of a long line, the part around the column
            let skipped = column.saturating_sub(MAX_DRAWN / 2);
            let skipped = if text.chars().count() > MAX_DRAWN {
                skipped
            } else {
                0
            };
            let shown: String = text.chars().skip(skipped).take(MAX_DRAWN).collect();
            let before: String = (shown.chars())
                .take(column.saturating_sub(1 + skipped))
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            let shown = plain(&shown);
            let _ = write!(out, "\n{gap} |\n{number} | {shown}\n{gap} | {before}^");
        }
        if let Some(hint) = &self.hint {
            let _ = write!(out, "\nhint: {}", plain(hint));
        }
        out
    }
}

/// Text without what steers a terminal or hides text, character for character
fn plain(text: &str) -> String {
    let plain = |c: char| match c {
        '\t' => c,
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(plain).collect()
}

/// The name that was most likely meant
pub(crate) fn did_you_mean<'a>(
    given: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<String> {
    if given.len() > 100 {
        return None;
    }
    known
        .take(200)
        // A name much longer or shorter is not meant, and comparing long texts is slow
        .filter(|name| name.len().abs_diff(given.len()) <= 1 + name.len() / 4)
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| format!("did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize, message: &str) -> Diagnostic {
        Diagnostic::error("code", "a.md", Place { line, column }, "", message)
    }

    #[test]
    fn the_caret_stands_under_the_column() {
        let drawn = at(2, 3, "wrong")
            .hint("mend it".to_owned())
            .draw(Some("x\n\tab\n"));
        assert_eq!(
            drawn,
            "a.md:2:3: error[code]: wrong\n  |\n2 | \tab\n  | \t ^\nhint: mend it"
        );
        assert_eq!(
            at(9, 1, "wrong").draw(Some("x")),
            "a.md:9:1: error[code]: wrong"
        );
    }

    #[test]
    fn a_source_cannot_steer_the_terminal() {
        let drawn = at(1, 1, "no \u{1b}]0;x\u{7} `\u{202e}`").draw(Some("a\u{1b}[2J\u{202e}b\r\n"));
        assert!(
            !drawn.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']),
            "{drawn:?}"
        );
        // Replaced, not dropped: columns stay
        assert!(drawn.contains("1 | a\u{fffd}[2J\u{fffd}b"), "{drawn:?}");
    }

    #[test]
    fn of_a_long_line_the_part_around_the_column_is_drawn() {
        let line = format!("{}X{}", "a".repeat(100_000), "b".repeat(100_000));
        let drawn = at(1, 100_001, "wrong").draw(Some(&line));
        let lines: Vec<&str> = drawn.lines().collect();
        let caret = lines[3].find('^').unwrap();
        assert_eq!(lines[2].as_bytes()[caret], b'X');
        assert!(drawn.len() < 500);
    }
}
