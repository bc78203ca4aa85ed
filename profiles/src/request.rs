//! The parts of a request that verification looks at, and headers by name wherever they are kept.

use bytes::Bytes;
use postern_contract::CapturedRequest;

/// The values of one header
pub enum OneHeader<'a> {
    /// It is missing
    None,
    /// It stands once
    One(&'a [u8]),
    /// It stands several times, which is ambiguous
    Several,
}

/// Headers by name in any case
pub trait HeaderSource {
    /// The only value of `name`
    fn one<'a>(&'a self, name: &str) -> OneHeader<'a>;
}

/// A request as it came
#[derive(Clone, Copy)]
pub struct RequestParts<'a> {
    /// The method
    pub method: &'a str,
    /// The absolute URL as the provider called it, as far as it is known
    pub url: &'a str,
    /// The headers
    pub headers: &'a dyn HeaderSource,
    /// The body, byte for byte
    pub body: &'a Bytes,
}

fn only<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> OneHeader<'a> {
    match (values.next(), values.next()) {
        (None, _) => OneHeader::None,
        (Some(value), None) => OneHeader::One(value),
        (Some(_), Some(_)) => OneHeader::Several,
    }
}

impl HeaderSource for http::HeaderMap {
    fn one<'a>(&'a self, name: &str) -> OneHeader<'a> {
        only(self.get_all(name).iter().map(http::HeaderValue::as_bytes))
    }
}

impl HeaderSource for CapturedRequest {
    fn one<'a>(&'a self, name: &str) -> OneHeader<'a> {
        only(
            (self.headers.iter())
                .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                .flat_map(|(_, values)| values.iter())
                .map(str::as_bytes),
        )
    }
}
