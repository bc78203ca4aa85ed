//! Bytes as a terminal may show them: what cannot be seen is escaped, what is secret is named and not shown,
//! and what is long is cut.

/// The most bytes that are shown
const MAX_SHOWN: usize = 2_048;
/// Shorter texts stand in a body by chance: hiding them would hide the body
const MIN_HIDDEN: usize = 6;

/// `bytes` without what is `hidden`
pub(super) fn quoted(bytes: &[u8], hidden: &[&[u8]]) -> String {
    let mut out = String::from("\"");
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let secret = hidden
            .iter()
            .filter(|secret| secret.len() >= MIN_HIDDEN)
            .find(|secret| rest.starts_with(secret));
        if let Some(secret) = secret {
            out.push_str("«hidden»");
            at += secret.len();
        } else if at >= MAX_SHOWN {
            out.push_str(&format!("\" and {} bytes more", rest.len()));
            return out;
        } else {
            at += one(rest, &mut out);
        }
    }
    out.push('"');
    out
}

/// Writes one character, or one byte where there is none; how many bytes it was
fn one(rest: &[u8], out: &mut String) -> usize {
    let character = (1..=4).find_map(|n| {
        let text = std::str::from_utf8(rest.get(..n)?).ok()?;
        text.chars().next().map(|c| (c, n))
    });
    match character {
        Some(('"', n)) => {
            out.push_str("\\\"");
            n
        }
        Some((c, n)) if c.is_ascii() => {
            out.extend(c.escape_default().filter(|_| c != '\''));
            if c == '\'' {
                out.push(c);
            }
            n
        }
        // Marks that turn or hide what stands beside them are not alphanumeric
        Some((c, n)) if c.is_alphanumeric() => {
            out.push(c);
            n
        }
        Some((c, n)) => {
            out.extend(c.escape_unicode());
            n
        }
        None => {
            let byte = rest.first().copied().unwrap_or_default();
            out.push_str(&format!("\\x{byte:02x}"));
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_what_is_secret_is_not_shown() {
        let quoted = |text: &[u8]| quoted(text, &[b"hunter2", b"ab"]);
        assert_eq!(quoted(b"v0:1:{\"a\":'b'}\r\n"), r#""v0:1:{\"a\":'b'}\r\n""#);
        assert_eq!(
            quoted("é\u{202e}\u{1b}[0m".as_bytes()),
            r#""é\u{202e}\u{1b}[0m""#
        );
        assert_eq!(quoted(b"\xff\\"), r#""\xff\\""#);
        assert_eq!(quoted(b"xhunter2hunter2ab"), "\"x«hidden»«hidden»ab\"");
        let long = quoted(&[b'x'; 5_000]);
        assert!(long.ends_with("x\" and 2952 bytes more"), "{long}");
        // A secret across the cut does not show its head
        let mut cut = vec![b'x'; MAX_SHOWN - 3];
        cut.extend(b"hunter2 and more");
        assert!(!quoted(&cut).contains("hun"));
    }
}
