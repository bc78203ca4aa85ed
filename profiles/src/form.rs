//! Form bodies (`application/x-www-form-urlencoded`) as evidence: the JSON inside a named field where the
//! form is nothing else, else an object of strings in which a repeated name stays repeated, and so is
//! ambiguous. The header that says so is not signed: it must not give signed bytes a second meaning, so
//! that what begins as JSON is JSON, and a field among others is a string.

use bytes::Bytes;

use crate::multipart;
use crate::profile::Form;
use crate::request::{HeaderSource, OneHeader};

/// Names and values of a form, in their order
pub(crate) type Fields = Vec<(String, String)>;

/// The fields of a body that is a form (its media type alone says so, in any case) and does not begin as
/// JSON; `None` for every other body, and for a form that is no UTF-8
pub(crate) fn fields(form: &Form, headers: &dyn HeaderSource, body: &[u8]) -> Option<Fields> {
    let start = body.trim_ascii_start();
    if start.starts_with(b"{") || start.starts_with(b"[") {
        return None;
    }
    let content_type = match headers.one("content-type") {
        OneHeader::One(value) => value,
        OneHeader::None | OneHeader::Several => b"",
    };
    let media = content_type
        .split(|b| *b == b';')
        .next()
        .unwrap_or_default();
    let media = media.trim_ascii();
    if media.eq_ignore_ascii_case(b"multipart/form-data") {
        multipart::fields(content_type, body)
    } else if form.always || media.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
        // The parser replaces what is no UTF-8: such a form is no evidence instead
        std::str::from_utf8(&percent_decoded(body)).ok()?;
        let pairs = form_urlencoded::parse(body);
        Some(
            pairs
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        )
    } else {
        None
    }
}

/// The JSON text that a form stands for
pub(crate) fn evidence(form: &Form, fields: &[(String, String)]) -> Bytes {
    if let (Some(field), [(name, json)]) = (&form.field, fields)
        && name == field
    {
        return Bytes::from(json.clone());
    }
    let mut text = String::from("{");
    for (n, (name, value)) in fields.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        text.push_str(&serde_json::Value::from(name.as_str()).to_string());
        text.push(':');
        text.push_str(&serde_json::Value::from(value.as_str()).to_string());
    }
    text.push('}');
    text.into()
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

    fn urlencoded() -> http::HeaderMap {
        let mut headers = http::HeaderMap::new();
        let form = "Application/X-WWW-Form-Urlencoded; charset=utf-8".parse();
        headers.insert("content-type", form.unwrap());
        headers
    }

    fn text(field: Option<&str>, body: &str) -> Option<String> {
        let form = Form {
            field: field.map(str::to_owned),
            always: false,
        };
        let fields = fields(&form, &urlencoded(), body.as_bytes())?;
        Some(String::from_utf8(evidence(&form, &fields).to_vec()).unwrap())
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
        let is_form = |form: &Form, body: &[u8]| fields(form, &urlencoded(), body).is_some();
        let form = Form::default();
        let always = Form {
            always: true,
            ..Form::default()
        };
        assert!(fields(&always, &http::HeaderMap::new(), b"a=1").is_some());
        assert!(fields(&form, &http::HeaderMap::new(), b"a=1").is_none());
        assert!(!is_form(&always, b"{\"a\":1}"));
        assert!(is_form(&form, b"payload=%7B%7D"));
        assert!(!is_form(&form, b" {\"text\":\"&payload=%7B%7D&\"}"));
        assert!(!is_form(&form, b"[\"&payload=%7B%7D&\"]"));
    }
}
