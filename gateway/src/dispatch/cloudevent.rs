//! A canonical event as a CloudEvent 1.0: structured, or binary by the HTTP protocol binding.

use bytes::Bytes;
use postern_contract::CanonicalEvent;

use crate::store::Claimed;

/// The structured form's media type
pub const STRUCTURED: &str = "application/cloudevents+json";

/// An event on its way out
pub struct CloudEvent<'a> {
    /// Context attributes in order, extensions last
    attributes: Vec<(&'static str, String)>,
    data: &'a Bytes,
}

impl<'a> CloudEvent<'a> {
    /// Reads what the attributes need of the stored event
    pub fn new(claimed: &'a Claimed) -> Result<Self, serde_json::Error> {
        // Our own RFC 8785 bytes, no delivery
        let event: CanonicalEvent = serde_json::from_slice(&claimed.document)?;
        Ok(Self {
            attributes: vec![
                ("specversion", "1.0".to_owned()),
                ("id", claimed.event.to_string()),
                ("source", format!("/postern/{}", claimed.source)),
                ("type", format!("{}.{}", event.connector, event.trigger)),
                ("time", event.source.received_at),
                ("datacontenttype", "application/json".to_owned()),
                ("subscriptiondigest", claimed.subscription.to_string()),
                ("triggerdigest", claimed.trigger.to_string()),
            ],
            data: &claimed.document,
        })
    }

    /// The whole event as one line of JSON. The canonical event goes in byte for byte.
    pub fn structured(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.data.len() + 512);
        out.push(b'{');
        for (name, value) in &self.attributes {
            out.extend_from_slice(format!("\"{name}\":").as_bytes());
            out.extend_from_slice(
                serde_json::Value::from(value.as_str())
                    .to_string()
                    .as_bytes(),
            );
            out.push(b',');
        }
        out.extend_from_slice(b"\"data\":");
        out.extend_from_slice(self.data);
        out.push(b'}');
        out.into()
    }

    /// The attributes as `ce-` headers; `datacontenttype` is the content type
    pub fn headers(&self) -> impl Iterator<Item = (String, String)> {
        (self.attributes.iter()).map(|(name, value)| match *name {
            "datacontenttype" => ("content-type".to_owned(), value.clone()),
            name => (format!("ce-{name}"), percent_encoded(value)),
        })
    }

    /// The binary form's body
    pub fn data(&self) -> &'a Bytes {
        self.data
    }
}

/// HTTP binding, section 3.1.3.2: blanks, quotes, percent signs and what is no printable ASCII
fn percent_encoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for b in value.bytes() {
        if matches!(b, 0x21..=0x7e) && b != b'"' && b != b'%' {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::percent_encoded;

    #[test]
    fn header_values_are_encoded_as_the_binding_says() {
        // The binding's own example, and each kind of character
        assert_eq!(
            percent_encoded("Euro \u{20ac} \u{1f600}"),
            "Euro%20%E2%82%AC%20%F0%9F%98%80"
        );
        for (value, encoded) in [
            ("a b", "a%20b"),
            ("\"", "%22"),
            ("%", "%25"),
            ("~!/:", "~!/:"),
            ("\n\x7f", "%0A%7F"),
        ] {
            assert_eq!(percent_encoded(value), encoded);
        }
    }
}
