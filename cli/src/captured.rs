//! Fixtures: a captured request, or a bare JSON body. Reading one verifies nothing.

mod http;

use std::path::Path;

use bytes::Bytes;
use postern_contract::{CapturedRequest, Document};
use postern_profiles::vectors;

use crate::failure::Failure;
use crate::input;

/// What a fixture's file holds
pub enum Fixture {
    /// A recorded request and its body's bytes
    Request(CapturedRequest, Bytes),
    /// The body alone
    Body(Bytes),
}

impl Fixture {
    /// Reads a file, or standard input for `-`. An object with `method` and `url`, and nothing beside the
    /// keys of a captured request, is one; everything else is a body.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = input::bytes(path)?;
        let request = Document::parse(text.clone()).is_ok_and(|document| is_request(&document));
        if request {
            let (request, body) = parse(&text, path)?;
            Ok(Self::Request(request, body))
        } else {
            Ok(Self::Body(text))
        }
    }
}

/// Reads a captured request, which a bare body is not: as JSON, or as it stands on the wire
pub fn request(path: &Path) -> Result<(CapturedRequest, Bytes), Failure> {
    let text = input::bytes(path)?;
    match http::parse(&text) {
        Some(read) => read.map_err(|why| not_a_request(path, why)),
        None => parse(&text, path),
    }
}

fn not_a_request(path: &Path, why: String) -> Failure {
    Failure::call("not-a-request", format!("`{}`: {why}", path.display())).hint(
        "a captured request is `{method, url, headers, body | body_base64}`, or HTTP/1.1 as it stands on the wire",
    )
}

fn is_request(document: &Document) -> bool {
    const KEYS: [&str; 5] = ["method", "url", "headers", "body", "body_base64"];
    let root = document.root();
    let text = |key| {
        root.member(key)
            .is_some_and(|value| value.as_str().is_some())
    };
    let known =
        (root.members()).is_some_and(|mut members| members.all(|(key, _)| KEYS.contains(&key)));
    known && text("method") && text("url")
}

fn parse(text: &[u8], path: &Path) -> Result<(CapturedRequest, Bytes), Failure> {
    let fail = |why: String| not_a_request(path, why);
    let request: CapturedRequest = serde_json::from_slice(text).map_err(|e| fail(e.to_string()))?;
    let body = vectors::body(&request).map_err(fail)?;
    Ok((request, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, request: bool) {
        let document = Document::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap();
        assert_eq!(is_request(&document), request, "{text}");
    }

    #[test]
    fn a_body_is_never_taken_for_a_request() {
        check(
            r#"{"method":"POST","url":"https://h.example/","headers":{},"body":""}"#,
            true,
        );
        check(r#"{"method":"POST","url":"https://h.example/"}"#, true);
        check(
            r#"{"method":"POST","url":"https://h.example/","action":"opened"}"#,
            false,
        );
        check(r#"{"method":"POST"}"#, false);
        check(r#"{"method":1,"url":"u"}"#, false);
        check("[]", false);
    }
}
