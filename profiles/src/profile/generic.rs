//! The generic profile: how an operator says by parameters what a data file says of a listed provider. What
//! comes of it is checked as a data file is, so that it accepts no more.

use super::{
    Auth, Declared, Delivery, Event, Form, KeyDecoding, Parser, Part, Profile, SchemeKind,
    TimestampRule, TimestampSource, Unit, check,
};
use crate::encoding::Encoding;
use crate::facts::Params;
use crate::source::Source;

/// The tolerance of a signed timestamp; the source's own `past` and `future` replace it
const TOLERANCE_SECONDS: u32 = 300;

/// Every parameter, and what it says
pub const GENERIC_PARAMS: &[(&str, &str)] = &[
    ("header", "the signature's header; `X-Signature`"),
    ("algorithm", "`sha256`, `sha1` or `sha512`; `sha256`"),
    (
        "encoding",
        "of the signature: `hex`, `hex-lower`, `base64`, `base64url` or `base64url-unpadded`; `hex`",
    ),
    (
        "key_encoding",
        "of the secret: `text`, `hex`, `base64` or `whsec`; `text`",
    ),
    (
        "prefix",
        "what stands before the signature, such as `sha256=`",
    ),
    (
        "separator",
        "what stands between several signatures, or between the pairs of `t=1,v1=…`",
    ),
    (
        "signature_key",
        "the name of the signature's pair, such as `v1`, where the header has pairs",
    ),
    (
        "timestamp_key",
        "the name of the timestamp's pair, such as `t`",
    ),
    (
        "content",
        "what is signed, such as `{timestamp}.{body}`: `{body}`, `{timestamp}`, `{id}`, `{method}`, `{url}`, `{path-and-query}`, `{header:NAME}`, and texts between them; `{body}`",
    ),
    ("timestamp_header", "the header of `{timestamp}`"),
    (
        "timestamp_unit",
        "`seconds`, `milliseconds` or `rfc3339`; `seconds`",
    ),
    (
        "id_header",
        "the header of `{id}`, which is the delivery's id then",
    ),
    ("delivery_header", "the header of the delivery's id"),
    (
        "delivery_pointer",
        "or where in the body it stands (RFC 6901)",
    ),
    (
        "form_field",
        "the field that holds the JSON, where the body is a form",
    ),
    ("event_header", "the header of the event's name"),
    ("event_pointer", "or where in the body it stands (RFC 6901)"),
];

impl Profile {
    /// The profile as parameters make it; nothing where it is not the generic one
    pub(crate) fn specialised(&self, params: &Params) -> Result<Option<Self>, String> {
        if !self.declared.generic {
            return Ok(None);
        }
        let mut special = self.clone();
        special.declared.generic = false;
        apply(&mut special.declared, params)?;
        check::check(&special.declared)?;
        Ok(Some(special))
    }
}

fn apply(declared: &mut Declared, params: &Params) -> Result<(), String> {
    let get = |name: &str| params.get(name)?.first().map(String::as_str);
    let one = |name: &str| match get(name) {
        None => Ok(None),
        Some(text) => {
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(Some(c)),
                _ => Err(format!("`{name}` is one character")),
            }
        }
    };
    let auth = (declared.auth.first_mut()).ok_or("the generic profile has no `auth`")?;
    if let Some(header) = get("header") {
        auth.header = Some(header.to_owned());
    }
    if let Some(name) = get("algorithm") {
        auth.scheme = match name {
            "sha1" => SchemeKind::HmacSha1,
            "sha256" => SchemeKind::HmacSha256,
            "sha512" => SchemeKind::HmacSha512,
            _ => return Err(unknown("algorithm", name)),
        };
    }
    if let Some(name) = get("encoding") {
        auth.encoding = Some(known::<Encoding>("encoding", name)?);
    }
    if let Some(name) = get("key_encoding") {
        auth.key = known::<KeyDecoding>("key_encoding", name)?;
    }
    let prefix = get("prefix").map(str::to_owned);
    let separator = one("separator")?;
    let pairs = get("signature_key").or(get("timestamp_key")).is_some();
    auth.parser = match (pairs, separator, prefix) {
        (true, _, Some(_)) => return Err("`prefix` goes without pairs".to_owned()),
        (true, separator, None) => Parser::Pairs {
            separator: separator.unwrap_or(','),
            signature: get("signature_key").unwrap_or("v1").to_owned(),
            timestamp: get("timestamp_key").unwrap_or("t").to_owned(),
        },
        (false, Some(separator), prefix) => Parser::List {
            separator,
            prefix: prefix.unwrap_or_default(),
        },
        (false, None, Some(prefix)) => Parser::Prefix { prefix },
        (false, None, None) => Parser::Raw,
    };
    if let Some(text) = get("content") {
        auth.content = template(text)?;
    }
    timestamp(auth, pairs, &get)?;
    auth.id_header = get("id_header").map(str::to_owned);
    if auth.id_header.is_some() {
        declared.delivery = Some(Delivery::One(Source::SignedId));
    }
    if let Some(source) = place(&get, "delivery")? {
        declared.delivery = Some(Delivery::One(source));
    }
    if let Some(field) = get("form_field") {
        declared.form = Some(Form {
            field: Some(field.to_owned()),
            always: false,
        });
    }
    if let Some(source) = place(&get, "event")? {
        declared.event = Event::First(vec![source]);
    }
    Ok(())
}

fn timestamp<'t>(
    auth: &mut Auth,
    pairs: bool,
    get: &dyn Fn(&str) -> Option<&'t str>,
) -> Result<(), String> {
    let signed = auth.content.contains(&Part::Timestamp);
    let from = match (get("timestamp_header"), pairs) {
        (Some(_), true) => return Err("`timestamp_header` goes without pairs".to_owned()),
        (Some(name), false) => TimestampSource::Header(name.to_owned()),
        (None, true) if signed => TimestampSource::Pair,
        (None, false) if signed => {
            return Err("`{timestamp}` needs `timestamp_header` or `timestamp_key`".to_owned());
        }
        (None, _) => return Ok(()),
    };
    let unit = match get("timestamp_unit") {
        None => Unit::Seconds,
        Some(name) => known::<Unit>("timestamp_unit", name)?,
    };
    auth.timestamp = Some(TimestampRule {
        from,
        unit,
        past_seconds: TOLERANCE_SECONDS,
        future_seconds: TOLERANCE_SECONDS,
    });
    Ok(())
}

/// `<what>_header` or `<what>_pointer`
fn place<'t>(get: &dyn Fn(&str) -> Option<&'t str>, what: &str) -> Result<Option<Source>, String> {
    let (header, pointer) = (
        get(&format!("{what}_header")),
        get(&format!("{what}_pointer")),
    );
    match (header, pointer) {
        (Some(_), Some(_)) => Err(format!("`{what}_header` goes without `{what}_pointer`")),
        (Some(name), None) => Ok(Some(Source::Header(name.to_owned()))),
        (None, Some(at)) => {
            let pointer = at.parse().map_err(|e| format!("`{what}_pointer`: {e}"))?;
            Ok(Some(Source::Json(pointer)))
        }
        (None, None) => Ok(None),
    }
}

/// A value of a closed list, by its spelling in data files
fn known<T: serde::de::DeserializeOwned>(what: &str, name: &str) -> Result<T, String> {
    let value = toml::Value::String(name.to_owned());
    value.try_into().map_err(|_| unknown(what, name))
}

fn unknown(what: &str, name: &str) -> String {
    let named = GENERIC_PARAMS.iter().find(|(known, _)| *known == what);
    let says = named.map_or("", |(_, says)| says);
    format!("`{what}` is {says}, and not `{name}`")
}

/// Names in braces, and what stands between them
fn template(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, from) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if !literal.is_empty() {
            // Configurations have no other way to write them
            parts.push(Part::Literal(literal.replace("\\n", "\n")));
        }
        if from.is_empty() {
            break;
        }
        let end = from
            .find('}')
            .ok_or("`content` has a `{` without its `}`")?;
        let (name, after) = from.split_at(end + 1);
        parts.push(Part::try_from(name.to_owned())?);
        rest = after;
    }
    Ok(parts)
}
