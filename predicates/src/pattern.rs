//! The portable pattern subset of event-predicates/v1 section 5: parsed by hand within its bounds, then
//! translated to code point ranges, so that no raw class reaches the engine.

mod parse;

use std::fmt::Write;

pub(crate) use parse::{Assertion, Node, NotAPattern};

/// A pattern that has been checked
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Box<str>,
    engine: regex::Regex,
}

impl Pattern {
    /// Checks and compiles `text`
    pub fn new(text: &str) -> Result<Self, NotAPattern> {
        let tree = parse::parse(text)?;
        let mut source = String::new();
        translate(&tree, &mut source);
        let engine = regex::RegexBuilder::new(&source)
            // 1,024 bytes hold at most 512 groups, each of which becomes two nodes
            .nest_limit(4096)
            // The cost bound keeps programs small; this is far above what it lets through
            .size_limit(64 << 20)
            .build()
            .map_err(|_| NotAPattern::Engine)?;
        Ok(Self {
            text: text.into(),
            engine,
        })
    }

    /// The text as written
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches anywhere in `text`, in time linear in its length
    pub fn is_match(&self, text: &str) -> bool {
        self.engine.is_match(text)
    }
}

/// Writing to a String cannot fail, so its results are dropped
fn translate(node: &Node, out: &mut String) {
    match node {
        Node::Set(ranges) => {
            out.push('[');
            if ranges.is_empty() {
                // A class of nothing: everything taken away from everything
                out.push_str("^\\x{0}-\\x{10FFFF}");
            }
            for (low, high) in ranges {
                let _ = write!(out, "\\x{{{low:X}}}-\\x{{{high:X}}}");
            }
            out.push(']');
        }
        Node::Assert(assertion) => out.push_str(match assertion {
            Assertion::Start => "\\A",
            Assertion::End => "\\z",
            Assertion::Boundary => "(?-u:\\b)",
            Assertion::Inside => "(?-u:\\B)",
        }),
        Node::Concat(items) => items.iter().for_each(|item| translate(item, out)),
        Node::Alternate(branches) => {
            out.push_str("(?:");
            for (n, branch) in branches.iter().enumerate() {
                if n > 0 {
                    out.push('|');
                }
                translate(branch, out);
            }
            out.push(')');
        }
        Node::Repeat { item, min, max } => {
            out.push_str("(?:");
            translate(item, out);
            out.push(')');
            let _ = match max {
                Some(max) => write!(out, "{{{min},{max}}}"),
                None => write!(out, "{{{min},}}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().is_match(text)
    }

    #[test]
    fn reads_as_three_engines_read_alike() {
        for (pattern, text, expect) in [
            ("main", "not-main-x", true),
            ("^main$", "not-main-x", false),
            ("a.c", "abc", true),
            ("a\\.c", "abc", false),
            ("^.$", "\n", false),
            ("^.$", "\u{10FFFF}", true),
            ("^\\w+$", "é", false),
            ("^\\s$", "\u{a0}", false),
            ("^\\s$", "\u{b}", true),
            ("a$", "a\n", false),
            ("\\bé", "é", false),
            ("", "", true),
            ("a||b", "x", true),
            ("^(?:ab){2}$", "abab", true),
            ("^[^\\d\\D]$", "x", false),
            ("^[\\--a]$", "0", true),
            ("^[a-]$", "-", true),
            ("^a{2,}?$", "aaa", true),
        ] {
            assert_eq!(holds(pattern, text), expect, "{pattern} {text:?}");
        }
    }

    #[test]
    fn what_engines_read_differently_is_refused() {
        for bad in [
            "(?=a)",
            "(?<n>a)",
            "\\1",
            "(?i)a",
            "\\pL",
            "[[:alpha:]]",
            "[a&&b]",
            "[a--b]",
            "[a~~b]",
            "^*",
            "\\b+",
            "a{",
            "}",
            "]",
            "{,3}",
            "a{01}",
            "[]",
            "[^]",
            "[]a]",
            "[a-b-c]",
            "[b-a]",
            "a**",
            "a{2}{3}",
            "(",
            ")",
            "[a",
            "\\",
            "\\x41",
            "a{101}",
            "(?:a{100}){11}",
            "*a",
        ] {
            assert!(Pattern::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bounds_hold_at_n_and_refuse_n_plus_1() {
        assert!(Pattern::new(&"a".repeat(1024)).is_ok());
        assert!(Pattern::new(&"a".repeat(1025)).is_err());
        assert!(Pattern::new("a{100}").is_ok());
        assert!(Pattern::new("(?:a{100}){10}").is_ok());
        // Cost 24 for `.`, times 100, times 4 is 9,600; times 5 is 12,000
        assert!(Pattern::new("(?:.{100}){4}").is_ok());
        assert!(Pattern::new("(?:.{100}){5}").is_err());
        let nested = format!("{}a{}", "(".repeat(511), ")".repeat(511));
        assert!(Pattern::new(&nested).unwrap().is_match("a"));
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}", bent in "[ab^$.*+?(){}|0-9,\\[\\]\\\\:-]{0,60}", subject in "[ab0]{0,9}") {
            for pattern in [text, bent] {
                if let Ok(pattern) = Pattern::new(&pattern) {
                    pattern.is_match(&subject);
                }
            }
        }
    }
}
