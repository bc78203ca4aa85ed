//! Canonical forms that no template of parts gives: sorted fields, spellings of a URL, and serializations.
//! Each is the one that the providers' own documentation or libraries state.

use std::borrow::Cow;
use std::collections::BTreeMap;

use url::Url;

/// Names and values of a form or query
type Pairs = [(String, String)];

/// Order by UTF-16 code units, as JavaScript sorts
fn by_utf16(a: &str, b: &str) -> std::cmp::Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Name and value of every field, sorted by name; fields of one name stay in their order
pub(crate) fn form_sorted(fields: &Pairs) -> Vec<u8> {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by(|a, b| by_utf16(&a.0, &b.0));
    let mut out = Vec::new();
    for (name, value) in sorted {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out
}

/// The URL, and name and value of every field, sorted, equal ones once. A proxy may have added or taken away
/// the port or spelled the URL anew: it is tried as it came, without a port, with its scheme's own, and in
/// its normal form.
pub(crate) fn url_and_fields(url: &str, fields: &Pairs) -> Vec<Vec<u8>> {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by(|a, b| by_utf16(&a.0, &b.0).then_with(|| by_utf16(&a.1, &b.1)));
    sorted.dedup();
    let mut tail = Vec::new();
    for (name, value) in sorted {
        tail.extend_from_slice(name.as_bytes());
        tail.extend_from_slice(value.as_bytes());
    }
    let mut spelled: Vec<String> = vec![url.to_owned()];
    spelled.extend(with_port(url, false));
    spelled.extend(with_port(url, true));
    if let Ok(normal) = Url::parse(url) {
        spelled.push(normal.to_string());
    }
    let mut out: Vec<Vec<u8>> = Vec::new();
    for url in spelled {
        let content = [url.as_bytes(), &tail].concat();
        if !out.contains(&content) {
            out.push(content);
        }
    }
    out
}

/// Path and query, escaped once more, as the provider's own library does before it signs: the text between
/// the first question mark and the second as if it were one value, and then all of it as a URI. An empty
/// query goes, with its question mark.
pub(crate) fn path_and_query_escaped(path_and_query: &str) -> String {
    // What `encodeURIComponent` and `encodeURI` of ECMAScript leave beside letters and digits
    const COMPONENT: &[u8] = b"-_.!~*'()";
    const URI: &[u8] = b"-_.!~*'();,/?:@&=+$#";
    let mut parts = path_and_query.split('?');
    let path = parts.next().unwrap_or_default();
    let query = parts.next().filter(|query| !query.is_empty());
    let query = query.map(|query| format!("?{}", escaped(query, COMPONENT)));
    escaped(&format!("{path}{}", query.unwrap_or_default()), URI)
}

fn escaped(text: &str, kept: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The URL's text without its port, or with its scheme's default where it has none
fn with_port(url: &str, with: bool) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, Some(port)),
        _ => (authority, None),
    };
    match (with, port, scheme) {
        (false, _, _) => Some(format!("{scheme}://{host}{path}")),
        (true, Some(_), _) => None,
        (true, None, "https") => Some(format!("{scheme}://{host}:443{path}")),
        (true, None, "http") => Some(format!("{scheme}://{host}:80{path}")),
        (true, None, _) => None,
    }
}

/// `<base>?<k=v&…>.<kv…>`: the URL without its query, the query sorted, and the fields sorted; with the
/// question mark and the full stop where there is something behind them
pub(crate) fn sorted_url_and_fields(url: &str, fields: &Pairs) -> Vec<u8> {
    let url = url.split('#').next().unwrap_or_default();
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> =
        form_urlencoded::parse(query.as_bytes()).collect();
    pairs.sort();
    let query: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut out = base.to_owned();
    if !query.is_empty() || !fields.is_empty() {
        out.push('?');
        out.push_str(&query.join("&"));
    }
    if !query.is_empty() && !fields.is_empty() {
        out.push('.');
    }
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort();
    for (name, value) in sorted {
        out.push_str(name);
        out.push_str(value);
    }
    out.into_bytes()
}

/// The fields as PHP's `serialize` writes an array of strings, sorted by name; the last of one name counts
pub(crate) fn php_serialize<'a>(fields: impl Iterator<Item = &'a (String, String)>) -> Vec<u8> {
    let sorted: BTreeMap<&str, &str> = fields.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut out = format!("a:{}:{{", sorted.len()).into_bytes();
    for text in sorted.iter().flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(format!("s:{}:\"{text}\";", text.len()).as_bytes());
    }
    out.push(b'}');
    out
}

/// The request of which a query string hash is the SHA-256: method, path below the base, and the query
/// sorted, its repeated values joined, the token itself left out
pub(crate) fn query_string_request(method: &str, path_and_query: &str) -> String {
    let (path, query) = path_and_query
        .split_once('?')
        .unwrap_or((path_and_query, ""));
    let path = match path.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.replace('&', "%26"),
    };
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "jwt" {
            values
                .entry(encoded(&name))
                .or_default()
                .push(encoded(&value));
        }
    }
    let query: Vec<String> = (values.into_iter())
        .map(|(name, mut values)| {
            values.sort();
            format!("{name}={}", values.join(","))
        })
        .collect();
    format!("{}&{path}&{}", method.to_ascii_uppercase(), query.join("&"))
}

/// Percent-encoded but for what RFC 3986 leaves unreserved
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

/// The URL with the escapes decoded that may stand as they are in a query
pub(crate) fn url_decoded(url: &str) -> String {
    const DECODED: &str = ":/?@!$'()*,;";
    let mut out = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let code = after
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.map(char::from).filter(|c| DECODED.contains(*c)) {
            Some(c) => {
                out.push(c);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        (pairs.iter())
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn fields_are_sorted_as_the_providers_sort_them() {
        let fields = pairs(&[("b", "2"), ("a", "2"), ("a", "1"), ("a", "2"), ("c", "")]);
        assert_eq!(form_sorted(&fields), b"a2a1a2b2c");
        let spelled = url_and_fields("https://h.example/p?q=1", &fields);
        assert_eq!(spelled[0], b"https://h.example/p?q=1a1a2b2c");
        assert_eq!(spelled[1], b"https://h.example:443/p?q=1a1a2b2c");
        assert_eq!(spelled.len(), 2);
        let spelled = url_and_fields("https://H.example:8443", &[]);
        let spelled: Vec<_> = spelled.iter().map(|s| String::from_utf8_lossy(s)).collect();
        assert_eq!(
            spelled,
            [
                "https://H.example:8443",
                "https://H.example",
                "https://h.example:8443/"
            ]
        );
    }

    #[test]
    fn a_sorted_url_has_its_marks_where_something_follows() {
        let spelled = |url: &str, fields: &[(&str, &str)]| {
            String::from_utf8(sorted_url_and_fields(url, &pairs(fields))).unwrap()
        };
        assert_eq!(spelled("https://h/p", &[]), "https://h/p");
        assert_eq!(spelled("https://h/p?b=2&a=1", &[]), "https://h/p?a=1&b=2");
        assert_eq!(
            spelled("https://h/p", &[("y", "2"), ("x", "1")]),
            "https://h/p?x1y2"
        );
        assert_eq!(
            spelled("https://h/p?a=1", &[("x", "1")]),
            "https://h/p?a=1.x1"
        );
    }

    #[test]
    fn php_counts_bytes() {
        // php -r 'echo serialize(["a" => "é", "b" => ""]);'
        let fields = pairs(&[("b", ""), ("a", "é")]);
        let wanted = "a:2:{s:1:\"a\";s:2:\"é\";s:1:\"b\";s:0:\"\";}";
        assert_eq!(php_serialize(fields.iter()), wanted.as_bytes());
    }

    #[test]
    fn the_query_string_request_is_sorted_and_leaves_the_token_out() {
        let request = query_string_request("post", "/in/x/?b=2&a=1&a=0&jwt=t&c=a+b%2F*");
        assert_eq!(request, "POST&/in/x&a=0,1&b=2&c=a%20b%2F%2A");
        assert_eq!(query_string_request("GET", "/"), "GET&/&");
    }

    #[test]
    fn path_and_query_are_escaped_as_the_providers_library_does() {
        // Each by `signRequest` of @contentful/node-apps-toolkit 3.16.1: its HMAC is that of this text
        for (wire, signed) in [
            (
                "/in/c?b=2&a=one%20two",
                "/in/c?b%253D2%2526a%253Done%252520two",
            ),
            ("/in/%C5%BE", "/in/%25C5%25BE"),
            ("/in/c?", "/in/c"),
            ("/in/c?a=1?b=2", "/in/c?a%253D1"),
            ("/in/c", "/in/c"),
            ("/in/c?a", "/in/c?a"),
        ] {
            assert_eq!(path_and_query_escaped(wire), signed, "{wire}");
        }
    }

    #[test]
    fn only_the_fixed_escapes_are_decoded() {
        assert_eq!(
            url_decoded("https://h/x?u=https%3A%2F%2fa%20b%26c%zz%"),
            "https://h/x?u=https://a%20b%26c%zz%"
        );
    }
}
