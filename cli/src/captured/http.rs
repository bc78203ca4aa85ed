//! A request as it stands on the wire (HTTP/1.1), for those who have captured one with a proxy or netcat.

use bytes::Bytes;
use postern_contract::CapturedRequest;
use postern_contract::request::HeaderValues;

/// The most headers
const MAX_HEADERS: usize = 128;

/// Reads one; `None` where the text is none at all, and else what is wrong with it
pub fn parse(text: &Bytes) -> Option<Result<(CapturedRequest, Bytes), String>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let parsed = head.parse(text);
    let (Some(method), Some(target), Some(_)) = (head.method, head.path, head.version) else {
        return None;
    };
    Some(match parsed {
        Ok(httparse::Status::Complete(end)) => read(&head, method, target, text.slice(end..)),
        Ok(httparse::Status::Partial) => Err("no empty line ends its headers".to_owned()),
        Err(e) => Err(e.to_string()),
    })
}

fn read(
    head: &httparse::Request<'_, '_>,
    method: &str,
    target: &str,
    body: Bytes,
) -> Result<(CapturedRequest, Bytes), String> {
    let mut request = CapturedRequest {
        method: method.to_owned(),
        ..CapturedRequest::default()
    };
    let mut host = String::new();
    let mut length = None;
    for header in head.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        let value = std::str::from_utf8(header.value)
            .map_err(|_| format!("the header `{name}` is no UTF-8"))?;
        match name.as_str() {
            "host" => value.clone_into(&mut host),
            "content-length" => length = value.parse::<usize>().ok(),
            "transfer-encoding" => {
                return Err("the body is in chunks: give it as it is".to_owned());
            }
            _ => {}
        }
        match request.headers.entry(name) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(HeaderValues::Many(vec![value.to_owned()]));
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                if let HeaderValues::Many(values) = entry.get_mut() {
                    values.push(value.to_owned());
                }
            }
        }
    }
    request.url = match target.starts_with('/') {
        // The scheme does not show on the wire: providers post to https
        true => format!("https://{host}{target}"),
        false => target.to_owned(),
    };
    let body = match length {
        // An editor puts a newline behind the last line
        Some(length) if length < body.len() => body.slice(..length),
        Some(length) if length > body.len() => {
            return Err(format!(
                "Content-Length is {length}, and the body has {} bytes",
                body.len()
            ));
        }
        _ => body,
    };
    Ok((request, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Result<(CapturedRequest, Bytes), String>> {
        super::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn a_request_on_the_wire_is_read_as_it_stands() {
        let text = "POST /hooks/x?a=1 HTTP/1.1\r\nHost: h.example\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 4\r\n\r\na\r\nb\n";
        let (request, body) = parse(text).unwrap().unwrap();
        assert_eq!(request.method, "POST");
        assert_eq!(request.url, "https://h.example/hooks/x?a=1");
        let values: Vec<&str> = request.headers["x-a"].iter().collect();
        assert_eq!(values, ["1", "2"]);
        assert_eq!(body.as_ref(), b"a\r\nb");
        assert!(parse(r#"{"method":"POST","url":"u"}"#).is_none());
        assert!(parse("").is_none());
        let fault = |text: &str| parse(text).unwrap().unwrap_err();
        assert!(fault("POST / HTTP/1.1\r\nHost: h").contains("empty line"));
        assert!(fault("POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nab").contains("2 bytes"));
        assert!(fault("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n").contains("chunks"));
    }
}
