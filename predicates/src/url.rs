//! URL identity (event-predicates/v1, section 6.7): one canonical spelling of an absolute `https` URL, and
//! prefixes with placeholders. Read by hand by RFC 3986: a general parser repairs what must be refused
//! here. It fixes identity, and authenticates nothing.

/// A URL in its one spelling
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalUrl {
    text: String,
    origin_len: usize,
}

impl CanonicalUrl {
    /// Reads a URL; `None` where it is not absolute, not `https`, has credentials, or breaks any rule
    pub fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_at_checked(8)?;
        if !scheme.eq_ignore_ascii_case("https://") {
            return None;
        }
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len()))?;
        let path = settle(path, "/")?;
        let query = query.map(|query| settle(query, "/?"));
        settle(fragment, "/?")?;
        if path.split('/').any(is_dots) {
            return None;
        }
        let mut out = String::with_capacity(text.len() + 1);
        out.push_str("https://");
        authority_into(authority, &mut out)?;
        let origin_len = out.len();
        out.push_str(if path.is_empty() { "/" } else { &path });
        if let Some(query) = query {
            out.push('?');
            out.push_str(&query?);
        }
        Some(Self {
            text: out,
            origin_len,
        })
    }

    /// The canonical spelling
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port
    pub fn origin(&self) -> &str {
        self.text.get(..self.origin_len).unwrap_or_default()
    }
}

/// Whether `text` is an origin in its canonical spelling
pub(crate) fn is_origin(text: &str) -> bool {
    CanonicalUrl::read(text).is_some_and(|url| url.origin() == text)
}

/// Host and port without credentials, the host in lower case, the default port left out
fn authority_into(authority: &str, out: &mut String) -> Option<()> {
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let host_byte = |b: u8| unreserved(b) || is_sub_delim(b);
    if host.is_empty() || !host.bytes().all(host_byte) || host.split('.').any(str::is_empty) {
        return None;
    }
    out.push_str(&host.to_ascii_lowercase());
    if let Some(port) = port {
        let digits =
            !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
        if !digits || port.starts_with('0') {
            return None;
        }
        let number: u16 = port.parse().ok()?;
        if number != 443 {
            out.push(':');
            out.push_str(port);
        }
    }
    Some(())
}

fn unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~')
}

fn is_sub_delim(b: u8) -> bool {
    matches!(
        b,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
    )
}

fn is_dots(segment: &str) -> bool {
    segment == "." || segment == ".."
}

/// Checks every character, decodes unreserved escapes once, and writes the hex of the others in upper case
fn settle(text: &str, further: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let (high, low) = (hex(bytes.next()?)?, hex(bytes.next()?)?);
            let decoded = high * 16 + low;
            if unreserved(decoded) {
                out.push(char::from(decoded));
            } else {
                escape(decoded, &mut out);
            }
        } else if unreserved(b)
            || is_sub_delim(b)
            || matches!(b, b':' | b'@')
            || further.as_bytes().contains(&b)
        {
            out.push(char::from(b));
        } else {
            return None;
        }
    }
    Some(out)
}

fn hex(b: u8) -> Option<u8> {
    char::from(b)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}

fn escape(b: u8, out: &mut String) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    out.push('%');
    for nibble in [b >> 4, b & 15] {
        out.push(DIGITS.get(usize::from(nibble)).copied().unwrap_or('0'));
    }
}

/// Percent-encoded but for unreserved characters
fn encode(text: &str, out: &mut String) {
    for b in text.bytes() {
        if unreserved(b) {
            out.push(char::from(b));
        } else {
            escape(b, out);
        }
    }
}

/// A prefix that a field's URL must begin with
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field { name: String, slashes: bool },
}

impl Prefix {
    /// Reads `text`, which holds one of `origins` and a slash, and is canonical around its placeholders
    pub(crate) fn read(text: &str, origins: &[String]) -> Option<Self> {
        let owned = |origin: &String| {
            text.strip_prefix(origin.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        };
        if !origins.iter().any(owned) {
            return None;
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = placeholder(rest) {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (slashes, name) = match name.strip_prefix('+') {
                Some(name) => (true, name),
                None => (false, name),
            };
            parts.push(Part::Field {
                name: name.to_owned(),
                slashes,
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        // What stands around the placeholders could otherwise never begin a canonical URL
        let sample: String = (parts.iter())
            .map(|part| match part {
                Part::Text(text) => text.as_str(),
                Part::Field { .. } => "x",
            })
            .collect();
        let canonical = CanonicalUrl::read(&sample)?;
        (canonical.as_str() == sample).then_some(Self(parts))
    }

    /// The fields that it names
    pub(crate) fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Field { name, .. } => Some(name.as_str()),
        })
    }

    /// Whether it begins `url`, filled with the text of fields (`None`: left out)
    pub(crate) fn begins(
        &self,
        url: &CanonicalUrl,
        field: impl Fn(&str) -> Option<String>,
    ) -> bool {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Field { name, slashes } => {
                    let Some(text) = field(name) else {
                        return false;
                    };
                    if !*slashes {
                        encode(&text, &mut filled);
                        continue;
                    }
                    for (n, segment) in text.split('/').enumerate() {
                        if segment.is_empty() || is_dots(segment) {
                            return false;
                        }
                        if n > 0 {
                            filled.push('/');
                        }
                        encode(segment, &mut filled);
                    }
                }
            }
        }
        let Some(rest) = url.as_str().strip_prefix(filled.as_str()) else {
            return false;
        };
        // `…/issues/1` must not take `…/issues/12` for its own
        matches!(self.0.last(), Some(Part::Text(_)))
            || rest.is_empty()
            || rest.starts_with(['/', '?'])
    }
}

/// The first `{…}` that holds no brace: what stands before, inside and after it
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let close = text
        .char_indices()
        .find(|(at, c)| *c == '}' && text.get(..*at).is_some_and(|head| head.contains('{')))?
        .0;
    let (head, tail) = text.split_at_checked(close)?;
    let (before, name) = head.rsplit_once('{')?;
    Some((before, name, tail.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cs_8_09_one_spelling_of_one_url() {
        for (text, expect) in [
            ("HTTPS://GitHub.COM", "https://github.com/"),
            ("https://a:443/b#c", "https://a/b"),
            ("https://a:8443/%7eb%2f?q=%41", "https://a:8443/~b%2F?q=A"),
            ("https://a/b?", "https://a/b?"),
        ] {
            assert_eq!(CanonicalUrl::read(text).unwrap().as_str(), expect, "{text}");
        }
        for bad in [
            "",
            "http://a/",
            "https:/a",
            "https:///a",
            "https://u@a/",
            "https://a:/",
            "https://a:0443/",
            "https://a:0/",
            "https://a:65536/",
            "https://[::1]/",
            "https://a../",
            "https://a./",
            "https://.a/",
            "https://a/../b",
            "https://a/%2e%2E/b",
            "https://a/./b",
            "https://a\\b/",
            "https://é/",
            "https://a/é",
            "https://a/%zz",
            "https://a/%4",
            "https://a/ b",
            "https://a/#\u{7f}",
            "https://a%41/",
            " https://a/",
        ] {
            assert_eq!(CanonicalUrl::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_prefix_ends_where_its_placeholder_ends() {
        let origins = ["https://a".to_owned()];
        let prefix = Prefix::read("https://a/{+repo}/issues/{n}", &origins).unwrap();
        let begins = |url: &str, repo: &str| {
            prefix.begins(&CanonicalUrl::read(url).unwrap(), |name| {
                Some(if name == "n" { "1" } else { repo }.to_owned())
            })
        };
        assert!(begins("https://a/o/r/issues/1", "o/r"));
        assert!(begins("https://a/o/r/issues/1?x", "o/r"));
        assert!(!begins("https://a/o/r/issues/12", "o/r"));
        assert!(!begins("https://a/o/x/issues/1", "o/r"));
        assert!(!begins("https://a/o//issues/1", "o/"));
        for bad in [
            "https://b/",
            "https://a",
            "https://a/%7E/",
            "https://a/{n",
            "https://a/../",
        ] {
            assert_eq!(Prefix::read(bad, &origins), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn canonical_urls_stay_as_they_are(text in "https://[a-zA-Z0-9.:%@/?#\\[\\]é]{0,40}") {
            if let Some(url) = CanonicalUrl::read(&text) {
                prop_assert_eq!(CanonicalUrl::read(url.as_str()), Some(url.clone()));
            }
        }
        #[test]
        fn never_panics(text in "\\PC{0,60}") {
            let _ = CanonicalUrl::read(&text);
            let _ = Prefix::read(&format!("https://a/{text}"), &["https://a".to_owned()]);
        }
    }
}
