//! Splits a Markdown file: YAML between two lines of `---` at its very beginning, then the body.

use crate::MAX_FILE_BYTES;
use crate::diagnostic::Place;
use crate::yaml::{self, Node, NotYaml};

/// The frontmatter's tree
pub(crate) fn read(text: &str) -> Result<Node, NotYaml> {
    let fail = |line, message: String| {
        Err(NotYaml {
            place: Place { line, column: 1 },
            message,
        })
    };
    if text.len() > MAX_FILE_BYTES {
        return fail(
            1,
            format!("a file of {} bytes: at most {MAX_FILE_BYTES}", text.len()),
        );
    }
    let mut rest = match text
        .strip_prefix("---\n")
        .or_else(|| text.strip_prefix("---\r\n"))
    {
        Some(rest) => rest,
        None => {
            return fail(
                1,
                "want frontmatter: the file begins with a line of `---`".to_owned(),
            );
        }
    };
    let mut yaml = 0;
    let whole = rest;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (line, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if line.trim_end() == "---" {
            return yaml::read(whole.get(..yaml).unwrap_or_default(), 2);
        }
        yaml += line.len();
        rest = tail;
    }
    fail(
        1,
        "the frontmatter does not end: want a second line of `---`".to_owned(),
    )
}
