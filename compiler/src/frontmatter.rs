//! Splits a Markdown file: YAML between two lines of `---` at its very beginning, then the body, which is
//! never looked at.

use crate::MAX_FILE_BYTES;
use crate::diagnostic::{Diagnostic, Place};
use crate::yaml::{self, Node, NotYaml};

/// A file whose frontmatter was read: what a diagnostic is drawn on
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path
    pub(crate) file: String,
    /// The frontmatter
    pub(crate) root: Node,
}

impl Page {
    /// Reads a file; the one fault of its YAML is where it stands
    pub(crate) fn read(file: &str, text: &str) -> Result<Self, Box<Diagnostic>> {
        match read(text) {
            Ok(root) => Ok(Self {
                file: file.to_owned(),
                root,
            }),
            Err(e) => {
                let found = Diagnostic::error("frontmatter", file, e.place, "", e.message);
                Err(Box::new(found))
            }
        }
    }

    /// An error at an entry
    pub(crate) fn error(
        &self,
        code: &'static str,
        path: &str,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, &self.file, self.root.locate(path), path, message)
    }
}

/// Whether a file begins with frontmatter at all
pub(crate) fn begins(text: &str) -> bool {
    text.lines().next().is_some_and(|l| l.trim_end() == "---")
}

fn read(text: &str) -> Result<Node, NotYaml> {
    let fail = |message: String| {
        Err(NotYaml {
            place: Place { line: 1, column: 1 },
            message,
        })
    };
    if text.len() > MAX_FILE_BYTES {
        return fail(format!(
            "a file of {} bytes: at most {MAX_FILE_BYTES}",
            text.len()
        ));
    }
    if !begins(text) {
        return fail("want frontmatter: the file begins with a line of `---`".to_owned());
    }
    let mut lines = text.split_inclusive('\n');
    let skipped = lines.next().map_or(0, str::len);
    let mut end = skipped;
    for line in lines {
        if line.trim_end() == "---" {
            return yaml::read(text.get(skipped..end).unwrap_or_default(), 2);
        }
        end += line.len();
    }
    fail("the frontmatter does not end: want a second line of `---`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frontmatter_stands_between_two_lines_at_the_beginning() {
        // CS-2-01
        for good in [
            "---\na: 1\n---\nbody",
            "---\r\na: 1\r\n---\r\n",
            "--- \na: 1\n---",
        ] {
            let page = Page::read("a.md", good).unwrap();
            assert_eq!(page.root.to_json(), r#"{"a":1}"#, "{good:?}");
        }
        for (bad, line) in [
            ("", 1),
            ("a: 1", 1),
            ("\n---\na: 1\n---\n", 1),
            ("\u{feff}---\na: 1\n---\n", 1),
            ("---\na: 1\n", 1),
            ("---\na: 1\na: 2\n---\n", 3),
        ] {
            let found = Page::read("a.md", bad).unwrap_err();
            assert_eq!(
                (found.code, found.place.line),
                ("frontmatter", line),
                "{bad:?}"
            );
        }
        // An indented line does not end it
        let page = Page::read("a.md", "---\na: |\n  ---\n  b\n---\n").unwrap();
        assert_eq!(page.root.to_json(), r#"{"a":"---\nb\n"}"#);
    }

    #[test]
    fn a_file_is_bounded() {
        let file = |bytes: usize| {
            let head = "---\na: 1\n---\n";
            format!("{head}{}", " ".repeat(bytes - head.len()))
        };
        assert!(Page::read("a.md", &file(MAX_FILE_BYTES)).is_ok());
        assert!(Page::read("a.md", &file(MAX_FILE_BYTES + 1)).is_err());
    }
}
