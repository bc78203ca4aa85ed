//! Form bodies (`application/x-www-form-urlencoded`) as evidence: the JSON inside a named field where the
//! form is nothing else, else an object of strings in which a repeated name stays repeated, and so is
//! ambiguous. The header that says so is not signed: it must not give signed bytes a second meaning, so
//! that what begins as JSON is JSON, and a field among others is a string.

use bytes::Bytes;

use crate::profile::Form;
use crate::request::{HeaderSource, OneHeader};

/// Whether the request says that its body is a form (the media type alone, in any case), and the body does
/// not begin as JSON
pub(crate) fn is_form(headers: &dyn HeaderSource, body: &[u8]) -> bool {
    if body.trim_ascii_start().starts_with(b"{") || body.trim_ascii_start().starts_with(b"[") {
        return false;
    }
    let OneHeader::One(value) = headers.one("content-type") else {
        return false;
    };
    let media = value.split(|b| *b == b';').next().unwrap_or_default();
    (media.trim_ascii()).eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// The JSON text that a form stands for; `None` where it is not UTF-8
pub(crate) fn evidence(form: &Form, body: &[u8]) -> Option<Bytes> {
    // The parser replaces what is no UTF-8: such a form is no evidence instead
    let decoded: Vec<u8> = percent_decoded(body);
    std::str::from_utf8(&decoded).ok()?;
    let pairs: Vec<_> = form_urlencoded::parse(body).collect();
    if let (Some(field), [(name, json)]) = (&form.field, pairs.as_slice())
        && name == field
    {
        return Some(Bytes::from(json.clone().into_owned()));
    }
    let mut text = String::from("{");
    for (n, (name, value)) in pairs.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        text.push_str(&serde_json::Value::from(&**name).to_string());
        text.push(':');
        text.push_str(&serde_json::Value::from(&**value).to_string());
    }
    text.push('}');
    Some(text.into())
}

fn percent_decoded(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some((first, tail)) = rest.split_first() {
        if let [b'%', high, low, after @ ..] = rest
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            out.push(high * 16 + low);
            rest = after;
            continue;
        }
        out.push(*first);
        rest = tail;
    }
    out
}

fn digit(b: u8) -> Option<u8> {
    char::from(b)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(field: Option<&str>, body: &str) -> Option<String> {
        let form = Form {
            field: field.map(str::to_owned),
        };
        evidence(&form, body.as_bytes()).map(|b| String::from_utf8(b.to_vec()).unwrap())
    }

    #[test]
    fn report_f20_a_form_is_its_field_or_an_object_of_strings() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            text(Some("payload"), "payload=%7B%22a%22%3A1%7D"),
            some(r#"{"a":1}"#)
        );
        assert_eq!(
            text(Some("payload"), "a=1+2&b=%C3%A9"),
            some(r#"{"a":"1 2","b":"é"}"#)
        );
        assert_eq!(text(None, "a=1&a=2"), some(r#"{"a":"1","a":"2"}"#));
        assert_eq!(
            text(Some("payload"), "payload=1&payload=2"),
            some(r#"{"payload":"1","payload":"2"}"#)
        );
        assert_eq!(text(None, "a=%ff"), None);
        assert_eq!(text(None, ""), some("{}"));
        // A field among others may be what somebody wrote into a text: it stays a string
        assert_eq!(
            text(Some("payload"), "a=1&payload=%7B%7D&"),
            some(r#"{"a":"1","payload":"{}"}"#)
        );
    }

    #[test]
    fn signed_json_is_no_form_whatever_the_unsigned_header_says() {
        let mut headers = http::HeaderMap::new();
        let form = "application/x-www-form-urlencoded".parse().unwrap();
        headers.insert("content-type", form);
        assert!(is_form(&headers, b"payload=%7B%7D"));
        assert!(!is_form(&headers, b" {\"text\":\"&payload=%7B%7D&\"}"));
        assert!(!is_form(&headers, b"[\"&payload=%7B%7D&\"]"));
    }
}
