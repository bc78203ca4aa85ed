//! A body as other software would have written it: what a framework parses and writes again is the same
//! JSON, and other bytes.

use postern_contract::{Document, Kind, Value};

/// How JSON is written
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    /// Every character beyond ASCII as `\u00e4`
    pub(super) ascii: bool,
    /// A slash as `\/`
    pub(super) slashes: bool,
    /// `, ` and `: ` in place of `,` and `:`
    pub(super) spaced: bool,
    /// A line a member, indented by so many blanks
    pub(super) indent: Option<usize>,
}

/// Ways in which common software writes JSON
pub(super) const STYLES: [(&str, Style); 8] = {
    const PLAIN: Style = Style {
        ascii: false,
        slashes: false,
        spaced: false,
        indent: None,
    };
    [
        ("compact", PLAIN),
        (
            "compact, `\\u` escapes",
            Style {
                ascii: true,
                ..PLAIN
            },
        ),
        (
            "compact, `\\/` escapes",
            Style {
                slashes: true,
                ..PLAIN
            },
        ),
        (
            "compact, `\\u` and `\\/` escapes",
            Style {
                ascii: true,
                slashes: true,
                ..PLAIN
            },
        ),
        (
            "with blanks",
            Style {
                spaced: true,
                ..PLAIN
            },
        ),
        (
            "with blanks, `\\u` escapes",
            Style {
                spaced: true,
                ascii: true,
                ..PLAIN
            },
        ),
        (
            "indented by 2",
            Style {
                indent: Some(2),
                ..PLAIN
            },
        ),
        (
            "indented by 4",
            Style {
                indent: Some(4),
                ..PLAIN
            },
        ),
    ]
};

/// The document, written anew: members in their order, numbers as they stand
pub(super) fn rewritten(document: &Document, style: Style) -> String {
    let mut out = String::new();
    write(document.root(), style, 0, &mut out);
    out
}

fn write(value: Value<'_>, style: Style, depth: usize, out: &mut String) {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = style.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    };
    let between = if style.spaced { ", " } else { "," };
    let colon = if style.spaced || style.indent.is_some() {
        ": "
    } else {
        ":"
    };
    if let Some(members) = value.members() {
        out.push('{');
        let mut first = true;
        for (key, member) in members {
            if !first {
                out.push_str(between);
            }
            first = false;
            line(out, depth + 1);
            text(key, style, out);
            out.push_str(colon);
            write(member, style, depth + 1, out);
        }
        if !first {
            line(out, depth);
        }
        out.push('}');
    } else if let Some(items) = value.items() {
        out.push('[');
        let mut first = true;
        for item in items {
            if !first {
                out.push_str(between);
            }
            first = false;
            line(out, depth + 1);
            write(item, style, depth + 1, out);
        }
        if !first {
            line(out, depth);
        }
        out.push(']');
    } else if let Some(string) = value.as_str() {
        text(string, style, out);
    } else if let Some(digits) = value.number_text() {
        out.push_str(digits);
    } else if value.kind() == Kind::Null {
        out.push_str("null");
    } else {
        out.push_str(if value.as_bool() == Some(true) {
            "true"
        } else {
            "false"
        });
    }
}

fn text(string: &str, style: Style, out: &mut String) {
    out.push('"');
    for c in string.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if style.slashes => out.push_str("\\/"),
            c if u32::from(c) < 0x20 || style.ascii && !c.is_ascii() => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_json_in_the_bytes_of_other_software() {
        let source = r#"{"b":[1.0,{}],"a":"ä/\u0001😀","c":null,"d":true,"e":[]}"#;
        let document = Document::parse(source.to_owned().into()).unwrap();
        let styled = |name: &str| {
            let (_, style) = STYLES.iter().find(|(known, _)| *known == name).unwrap();
            rewritten(&document, *style)
        };
        // JSON.stringify of the parsed body, but for 1.0, which stays
        assert_eq!(
            styled("compact"),
            r#"{"b":[1.0,{}],"a":"ä/\u0001😀","c":null,"d":true,"e":[]}"#
        );
        // PHP's json_encode
        assert_eq!(
            styled("compact, `\\u` and `\\/` escapes"),
            r#"{"b":[1.0,{}],"a":"\u00e4\/\u0001\ud83d\ude00","c":null,"d":true,"e":[]}"#
        );
        // Python's json.dumps
        assert_eq!(
            styled("with blanks, `\\u` escapes"),
            r#"{"b": [1.0, {}], "a": "\u00e4/\u0001\ud83d\ude00", "c": null, "d": true, "e": []}"#
        );
        assert_eq!(
            styled("indented by 2"),
            "{\n  \"b\": [\n    1.0,\n    {}\n  ],\n  \"a\": \"ä/\\u0001😀\",\n  \"c\": null,\n  \"d\": true,\n  \"e\": []\n}"
        );
    }
}
