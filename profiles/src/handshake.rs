//! Handshakes: requests that want an answer instead of a delivery. What is echoed is reflected input: it
//! is short, plain text that no browser sniffs, and only where the profile says so. What nobody has signed
//! is signed for no one: a MAC of it is given of short words alone, which no delivery consists of.

use std::borrow::Cow;

use base64::Engine as _;
use postern_contract::{Resolution, Secret};
use url::Url;

use crate::facts::View;
use crate::profile::{Handshake, HandshakeAuth, Reply, ReplyValue, Told, VERIFY_TOKEN};
use crate::request::OneHeader;
use crate::scheme::LiveKey;
use crate::source::Source;

/// The most bytes that are echoed
const MAX_ECHO: usize = 1_024;
/// The most bytes of a word that is signed though nobody has signed it
const MAX_WORD: usize = 64;
const PLAIN: &str = "text/plain; charset=utf-8";

/// A request that may be a handshake
pub(crate) struct Asked<'a> {
    pub(crate) view: View<'a>,
    /// The key that verified it; where nobody has signed it, the source's first
    pub(crate) key: Option<&'a LiveKey>,
    pub(crate) signed: bool,
}

/// What must be done before a handshake is answered
#[derive(Debug)]
pub enum Then {
    /// Nothing
    Nothing,
    /// The address must have been visited: what confirms a subscription
    Visit(Url),
    /// As [`Then::Visit`], but the operator has not said of whom: the parameter of this name is missing
    NoVisit(String),
    /// The secret must have been stored: deliveries will be signed with it
    Learn(Secret),
}

/// What a request asks for
pub(crate) enum Answer {
    /// To be taken as a delivery
    NoHandshake,
    /// This reply
    Reply(Reply, Then),
    /// A reply that cannot be made of it
    Incomplete,
}

impl Asked<'_> {
    /// The answer to the first signed handshake that the request is
    pub(crate) fn answer(&self, handshakes: &[Handshake]) -> Answer {
        let met = (handshakes.iter())
            .filter(|handshake| handshake.verify == HandshakeAuth::Signed)
            .find(|handshake| self.meets(handshake));
        match met {
            None => Answer::NoHandshake,
            Some(handshake) => (self.reply(handshake))
                .and_then(|reply| Some(Answer::Reply(reply, self.then(handshake)?)))
                .unwrap_or(Answer::Incomplete),
        }
    }

    /// Whether the request is this handshake
    pub(crate) fn meets(&self, handshake: &Handshake) -> bool {
        let facts = self.view.facts;
        if facts.request.method != handshake.method {
            return false;
        }
        let header = |found: OneHeader<'_>| match found {
            OneHeader::One(text) => std::str::from_utf8(text).ok().map(str::to_owned),
            OneHeader::None | OneHeader::Several => None,
        };
        let (text, number) = if let Some(pointer) = &handshake.at {
            let found = facts
                .document()
                .ok()
                .map(|document| document.resolve(pointer));
            let Some(Resolution::Resolved(value)) = found else {
                return false;
            };
            if handshake.empty {
                return value
                    .items()
                    .is_some_and(|mut items| items.next().is_none());
            }
            (value.as_str().map(str::to_owned), value.number_text())
        } else if let Some(name) = &handshake.header {
            (header(facts.request.headers.one(name)), None)
        } else if let Some(name) = &handshake.query {
            (header(facts.query(name)), None)
        } else {
            // The method alone tells it: no profile loads in which POST would
            return true;
        };
        match &handshake.equals {
            None => text.is_some(),
            Some(toml::Value::String(wanted)) => text.as_ref() == Some(wanted),
            Some(toml::Value::Integer(wanted)) => number == Some(&wanted.to_string()),
            Some(_) => false,
        }
    }

    /// Whether it carries the token that the operator has given the provider
    pub(crate) fn has_token(&self, handshake: &Handshake) -> bool {
        let wanted = self.view.facts.param(VERIFY_TOKEN);
        let given = handshake.token.as_ref().and_then(|at| self.raw(at));
        wanted.zip(given).is_some_and(|(wanted, given)| {
            let wanted = Secret::new(wanted.as_bytes().to_vec());
            bool::from(wanted.equals(given.as_bytes()))
        })
    }

    /// `None` where the request lacks what the reply is made of, or has too much of it
    pub(crate) fn reply(&self, handshake: &Handshake) -> Option<Reply> {
        let rule = &handshake.reply;
        let (body, content_type) = if let Some(told) = &rule.echo {
            (self.told(told)?.into_owned(), PLAIN)
        } else if !rule.text.is_empty() {
            let texts: Option<Vec<String>> = rule.text.iter().map(|v| self.value(v)).collect();
            (texts?.concat(), PLAIN)
        } else if !rule.json.is_empty() {
            let mut object = serde_json::Map::new();
            for (name, value) in &rule.json {
                object.insert(name.clone(), self.value(value)?.into());
            }
            let text = serde_json::Value::from(object).to_string();
            (text, "application/json")
        } else {
            (rule.body.clone().unwrap_or_default(), PLAIN)
        };
        let headers = (rule.headers.iter()).map(|(name, value)| {
            let value = self.value(value)?;
            let visible = value.bytes().all(|b| matches!(b, b' '..=b'~'));
            visible.then(|| (name.clone(), value))
        });
        Some(Reply {
            status: rule.status,
            body,
            content_type: rule
                .content_type
                .clone()
                .unwrap_or_else(|| content_type.to_owned()),
            headers: headers.collect::<Option<_>>()?,
        })
    }

    /// `None` where the request lacks what is to be done, or names an address that is none of the provider
    pub(crate) fn then(&self, handshake: &Handshake) -> Option<Then> {
        if let Some(told) = &handshake.learn {
            let secret = self.told(told)?.into_owned().into_bytes();
            return Some(Then::Learn(Secret::new(secret)));
        }
        let Some(rule) = &handshake.visit else {
            return Some(Then::Nothing);
        };
        let url = rule.address(&self.view)?;
        match &rule.needs {
            Some(name) if self.view.facts.param(name).is_none() => {
                Some(Then::NoVisit(name.clone()))
            }
            _ => Some(Then::Visit(url)),
        }
    }

    fn value(&self, value: &ReplyValue) -> Option<String> {
        match value {
            ReplyValue::Echo(told) => self.told(told).map(Cow::into_owned),
            ReplyValue::Hmac(told) => Some(hex::encode(self.mac(told)?)),
            ReplyValue::HmacBase64 { of, prefix } => {
                let mac = base64::engine::general_purpose::STANDARD.encode(self.mac(of)?);
                Some(format!("{prefix}{mac}"))
            }
            ReplyValue::Const(text) => Some(text.clone()),
            ReplyValue::Param(name) => self.view.facts.param(name).map(str::to_owned),
        }
    }

    fn mac(&self, told: &Told) -> Option<Vec<u8>> {
        let text = self.told(told)?;
        let word = |text: &str| {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
            text.len() <= MAX_WORD && text.bytes().all(plain)
        };
        if !self.signed && !word(&text) {
            return None;
        }
        self.key?.mac(text.as_bytes())
    }

    fn told(&self, told: &Told) -> Option<Cow<'_, str>> {
        let text = match told {
            Told::Body(pointer) => {
                let document = self.view.facts.document().ok()?;
                match document.resolve(pointer) {
                    Resolution::Resolved(value) => Cow::Borrowed(value.as_str()?),
                    Resolution::Absent | Resolution::Unreachable => return None,
                }
            }
            Told::At(source) => self.raw(source)?,
        };
        (!text.is_empty() && text.len() <= MAX_ECHO).then_some(text)
    }

    /// A text as it stands, longer than a name may be
    fn raw(&self, source: &Source) -> Option<Cow<'_, str>> {
        let facts = self.view.facts;
        let found = match source {
            Source::Header(name) => facts.request.headers.one(name),
            Source::Query(name) => facts.query(name),
            other => return other.read(&self.view).name().map(Cow::Owned),
        };
        match found {
            OneHeader::One(text) => std::str::from_utf8(text).ok().map(Cow::Borrowed),
            OneHeader::None | OneHeader::Several => None,
        }
    }
}
