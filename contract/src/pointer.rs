//! JSON Pointers (RFC 6901) within the bounds of event-predicates/v1, section 2: at most 512 bytes and 32
//! tokens, parsed once, with the tokens decoded. Percent-encoding and the URI fragment form are not read.

use std::fmt;
use std::str::FromStr;

/// The most bytes of a pointer
pub const MAX_BYTES: usize = 512;
/// The most tokens of a pointer
pub const MAX_TOKENS: usize = 32;

/// A checked pointer; `""` is the root
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer {
    text: Box<str>,
    tokens: Box<[Token]>,
}

/// One decoded step
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    text: Box<str>,
    index: Option<usize>,
}

/// A text that is no pointer, or one past the bounds
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPointer {
    /// Not RFC 6901
    #[error(
        "not a JSON Pointer: it is empty or begins with `/`, and `~` stands only in `~0` and `~1`"
    )]
    Syntax,
    /// Too many bytes
    #[error("a pointer of {0} bytes: at most {MAX_BYTES}")]
    Bytes(usize),
    /// Too many tokens
    #[error("a pointer of {0} tokens: at most {MAX_TOKENS}")]
    Tokens(usize),
}

impl Token {
    /// The decoded text
    pub fn text(&self) -> &str {
        &self.text
    }
    /// The array index that the token spells: `0` or ASCII digits without a leading zero. An index that no
    /// array can have is `usize::MAX`.
    pub fn index(&self) -> Option<usize> {
        self.index
    }
    fn new(text: &str) -> Self {
        let digits = !text.is_empty()
            && text.bytes().all(|b| b.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        // 2^64 and beyond must not wrap to a small index
        let index = digits.then(|| text.parse().unwrap_or(usize::MAX));
        Self {
            text: text.into(),
            index,
        }
    }
}

impl Pointer {
    /// The whole document
    pub fn root() -> Self {
        Self {
            text: "".into(),
            tokens: [].into(),
        }
    }
    /// The text as written
    pub fn as_str(&self) -> &str {
        &self.text
    }
    /// The decoded steps
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }
    /// Whether this pointer has a whole token `*`
    pub fn wildcards(&self) -> usize {
        self.tokens.iter().filter(|t| &*t.text == "*").count()
    }
}

/// A token in its escaped spelling
pub fn escape(token: &str) -> String {
    jsonptr::Token::new(token).encoded().to_owned()
}

impl FromStr for Pointer {
    type Err = NotAPointer;
    fn from_str(text: &str) -> Result<Self, NotAPointer> {
        if text.len() > MAX_BYTES {
            return Err(NotAPointer::Bytes(text.len()));
        }
        let parsed = jsonptr::Pointer::parse(text).map_err(|_| NotAPointer::Syntax)?;
        let tokens: Box<[Token]> = parsed.tokens().map(|t| Token::new(&t.decoded())).collect();
        if tokens.len() > MAX_TOKENS {
            return Err(NotAPointer::Tokens(tokens.len()));
        }
        Ok(Self {
            text: text.into(),
            tokens,
        })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
impl serde::Serialize for Pointer {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}
impl<'de> serde::Deserialize<'de> for Pointer {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_at_n_and_refuse_n_plus_1() {
        let token = |n: usize| "/a".repeat(n);
        assert!(token(32).parse::<Pointer>().is_ok());
        assert_eq!(token(33).parse::<Pointer>(), Err(NotAPointer::Tokens(33)));
        assert!(format!("/{}", "a".repeat(511)).parse::<Pointer>().is_ok());
        assert_eq!(
            format!("/{}", "a".repeat(512)).parse::<Pointer>(),
            Err(NotAPointer::Bytes(513))
        );
    }

    #[test]
    fn indexes_never_wrap_and_never_have_a_leading_zero() {
        let index = |t: &str| Token::new(t).index();
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("18446744073709551616"), Some(usize::MAX));
        for bad in ["", "00", "01", "-1", "+1", "1 ", "١", "0x1", "-"] {
            assert_eq!(index(bad), None, "{bad}");
        }
    }
}
