//! `multipart/form-data` bodies (RFC 7578), as strict as the providers that send them are plain: fields of
//! text alone. A file among them is left out, and what is not well-formed is no form.

/// The most parts of a body
const MAX_PARTS: usize = 128;
/// The most bytes of a boundary (RFC 2046, section 5.1.1)
const MAX_BOUNDARY: usize = 70;

/// Names and values of the parts that are no files, in their order
pub(crate) fn fields(content_type: &[u8], body: &[u8]) -> Option<Vec<(String, String)>> {
    let content_type = std::str::from_utf8(content_type).ok()?;
    let boundary = parameter(content_type, "boundary")?;
    if boundary.is_empty() || boundary.len() > MAX_BOUNDARY {
        return None;
    }
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first delimiter may stand at the very start
    let mut rest = match body.strip_prefix(delimiter.get(2..)?) {
        Some(rest) => rest,
        None => after(body, &delimiter)?.1,
    };
    let mut fields = Vec::new();
    for _ in 0..=MAX_PARTS {
        if rest.starts_with(b"--") {
            return Some(fields);
        }
        let (part, next) = after(rest.strip_prefix(b"\r\n")?, &delimiter)?;
        fields.extend(field(part)?);
        rest = next;
    }
    None
}

/// What stands before a text, and behind it
fn after<'a>(text: &'a [u8], delimiter: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, delimiter)?;
    let (before, rest) = text.split_at_checked(at)?;
    Some((before, rest.get(delimiter.len()..)?))
}

/// The field of a part; nothing for a file
fn field(part: &[u8]) -> Option<Option<(String, String)>> {
    let (head, body) = match part.strip_prefix(b"\r\n") {
        Some(body) => (&b""[..], body),
        None => after(part, b"\r\n\r\n")?,
    };
    let head = std::str::from_utf8(head).ok()?;
    let mut name = None;
    for line in head.split("\r\n") {
        let (key, value) = line.split_once(':')?;
        if key.trim().eq_ignore_ascii_case("content-disposition") {
            if parameter(value, "filename").is_some() {
                return Some(None);
            }
            if name.replace(parameter(value, "name")?).is_some() {
                return None;
            }
        }
    }
    let value = String::from_utf8(body.to_vec()).ok()?;
    Some(Some((name?, value)))
}

/// A parameter of a header's value, quoted or not. Escapes inside quotes are not read: no such field is
/// known, and two readers would not agree on them.
fn parameter(value: &str, wanted: &str) -> Option<String> {
    let mut found = None;
    for part in value.split(';').skip(1) {
        let (name, text) = part.split_once('=')?;
        if !name.trim().eq_ignore_ascii_case(wanted) {
            continue;
        }
        let text = text.trim();
        let text = match text.strip_prefix('"') {
            Some(text) => text.strip_suffix('"')?,
            None => text,
        };
        if text.contains(['"', '\\']) || found.replace(text.to_owned()).is_some() {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content_type: &str, body: &str) -> Option<Vec<(String, String)>> {
        fields(content_type.as_bytes(), body.as_bytes())
    }

    #[test]
    fn fields_in_their_order_and_no_files() {
        let body = "--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n2\r\n\
            --X\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.pdf\"\r\n\
            Content-Type: application/pdf\r\n\r\n%PDF\r\n\
            --X\r\nContent-Disposition: form-data; name=b\r\n\r\n\r\n--X--\r\n";
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let wanted = Some(vec![pair("a", "1\r\n2"), pair("b", "")]);
        assert_eq!(read("multipart/form-data; boundary=X", body), wanted);
        assert_eq!(read("Multipart/Form-Data; Boundary=\"X\"", body), wanted);
        assert_eq!(read("multipart/form-data", body), None);
        assert_eq!(read("multipart/form-data; boundary=Y", body), None);
        // Cut anywhere before its end it is no form
        let end = body.len() - "--\r\n".len();
        for at in 0..end {
            assert_eq!(
                read("multipart/form-data; boundary=X", body.get(..at).unwrap()),
                None,
                "{at}"
            );
        }
    }

    #[test]
    fn what_is_ambiguous_is_no_form() {
        for head in [
            "Content-Disposition: form-data",
            "Content-Disposition: form-data; name=\"a\"; name=\"b\"",
            "Content-Disposition: form-data; name=\"a\\\"b\"",
            "Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"",
            "no header",
        ] {
            let body = format!("--X\r\n{head}\r\n\r\n1\r\n--X--\r\n");
            assert_eq!(
                read("multipart/form-data; boundary=X", &body),
                None,
                "{head}"
            );
        }
        let many = "--X\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n".repeat(129);
        assert_eq!(
            read("multipart/form-data; boundary=X", &format!("{many}--X--")),
            None
        );
    }
}
