//! Handshakes: requests that want an answer instead of a delivery. What is echoed is reflected input: it
//! is short, plain text that no browser sniffs, and only where the profile says so.

use postern_contract::{Document, Pointer, Resolution};

use crate::profile::{Handshake, HandshakeAuth, Reply, ReplyValue};
use crate::scheme::LiveKey;

/// The most bytes that are echoed
const MAX_ECHO: usize = 1_024;

/// The answer to the first handshake of the profile that the document is
pub(crate) fn answer(
    handshakes: &[Handshake],
    auth: HandshakeAuth,
    document: &Document,
    key: Option<&LiveKey>,
) -> Option<Reply> {
    (handshakes.iter())
        .filter(|handshake| handshake.verify == auth)
        .find(|handshake| is_met(handshake, document))
        .and_then(|handshake| reply(handshake, document, key))
}

fn is_met(handshake: &Handshake, document: &Document) -> bool {
    let Resolution::Resolved(value) = document.resolve(&handshake.at) else {
        return false;
    };
    match &handshake.equals {
        None => value.as_str().is_some(),
        Some(toml::Value::String(text)) => value.as_str() == Some(text),
        Some(toml::Value::Integer(n)) => value.number_text() == Some(&n.to_string()),
        Some(_) => false,
    }
}

/// `None` where the request lacks what the answer needs: it is then no handshake
fn reply(handshake: &Handshake, document: &Document, key: Option<&LiveKey>) -> Option<Reply> {
    let rule = &handshake.reply;
    let plain = "text/plain; charset=utf-8";
    let (body, content_type) = if let Some(pointer) = &rule.echo {
        (text(document, pointer)?.to_owned(), plain)
    } else if !rule.json.is_empty() {
        let mut object = serde_json::Map::new();
        for (name, value) in &rule.json {
            let value = match value {
                ReplyValue::Echo(pointer) => text(document, pointer)?.to_owned(),
                ReplyValue::Hmac(pointer) => {
                    hex::encode(key?.mac(text(document, pointer)?.as_bytes())?)
                }
            };
            object.insert(name.clone(), value.into());
        }
        (
            serde_json::Value::from(object).to_string(),
            "application/json",
        )
    } else {
        (rule.body.clone().unwrap_or_default(), plain)
    };
    Some(Reply {
        status: rule.status,
        body,
        content_type: rule
            .content_type
            .clone()
            .unwrap_or_else(|| content_type.to_owned()),
    })
}

fn text<'d>(document: &'d Document, pointer: &Pointer) -> Option<&'d str> {
    match document.resolve(pointer) {
        Resolution::Resolved(value) => value.as_str().filter(|text| text.len() <= MAX_ECHO),
        Resolution::Absent | Resolution::Unreachable => None,
    }
}
