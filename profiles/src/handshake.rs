//! Handshakes: requests that want an answer instead of a delivery. What is echoed is reflected input: it
//! is short, plain text that no browser sniffs, and only where the profile says so.

use postern_contract::{Document, Pointer, Resolution};

use crate::profile::{Handshake, HandshakeAuth, Reply, ReplyValue};
use crate::request::{HeaderSource, OneHeader};
use crate::scheme::LiveKey;

/// The most bytes that are echoed
const MAX_ECHO: usize = 1_024;

/// A request that may be a handshake
pub(crate) struct Asked<'a> {
    pub(crate) headers: &'a dyn HeaderSource,
    pub(crate) document: &'a Document,
    /// The key that verified it
    pub(crate) key: Option<&'a LiveKey>,
}

/// What a request asks for
pub(crate) enum Answer {
    /// To be taken as a delivery
    NoHandshake,
    /// This reply
    Reply(Reply),
    /// A reply that cannot be made of it
    Incomplete,
}

impl Asked<'_> {
    /// The answer to the first handshake of the profile that the request is
    pub(crate) fn answer(&self, handshakes: &[Handshake], auth: HandshakeAuth) -> Answer {
        let met = (handshakes.iter())
            .filter(|handshake| handshake.verify == auth)
            .find(|handshake| self.meets(handshake));
        match met {
            None => Answer::NoHandshake,
            Some(handshake) => self
                .reply(handshake)
                .map_or(Answer::Incomplete, Answer::Reply),
        }
    }

    fn meets(&self, handshake: &Handshake) -> bool {
        let (text, number) = match (&handshake.at, &handshake.header) {
            (Some(pointer), None) => match self.document.resolve(pointer) {
                Resolution::Resolved(value) => (value.as_str(), value.number_text()),
                Resolution::Absent | Resolution::Unreachable => return false,
            },
            (None, Some(name)) => match self.headers.one(name) {
                OneHeader::One(text) => (std::str::from_utf8(text).ok(), None),
                OneHeader::None | OneHeader::Several => return false,
            },
            // A profile that has both or neither does not load
            _ => return false,
        };
        match &handshake.equals {
            None => text.is_some(),
            Some(toml::Value::String(wanted)) => text == Some(wanted),
            Some(toml::Value::Integer(wanted)) => number == Some(&wanted.to_string()),
            Some(_) => false,
        }
    }

    /// `None` where the request lacks what the reply is made of, or has too much of it
    fn reply(&self, handshake: &Handshake) -> Option<Reply> {
        let rule = &handshake.reply;
        let plain = "text/plain; charset=utf-8";
        let (body, content_type) = if let Some(pointer) = &rule.echo {
            (self.text(pointer)?.to_owned(), plain)
        } else if !rule.json.is_empty() {
            let mut object = serde_json::Map::new();
            for (name, value) in &rule.json {
                let value = match value {
                    ReplyValue::Echo(pointer) => self.text(pointer)?.to_owned(),
                    ReplyValue::Hmac(pointer) => {
                        hex::encode(self.key?.mac(self.text(pointer)?.as_bytes())?)
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

    fn text(&self, pointer: &Pointer) -> Option<&str> {
        match self.document.resolve(pointer) {
            Resolution::Resolved(value) => value.as_str().filter(|text| text.len() <= MAX_ECHO),
            Resolution::Absent | Resolution::Unreachable => None,
        }
    }
}
