//! What the headers claim: the signature's candidates, the signed id and the timestamp, and the bytes that
//! they are said to be signed over. Nothing here is authentic yet, and nothing of the body is read.

use bytes::Bytes;

use crate::profile::{Auth, Parser, Part, TimestampSource};
use crate::refusal::{Refusal, Step};
use crate::request::{HeaderSource, OneHeader};
use crate::scheme::{self, Candidate};

/// What the signature header gave
pub(crate) struct Read<'a> {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) timestamp: Option<&'a [u8]>,
    pub(crate) id: Option<&'a [u8]>,
}

/// The candidates of the signature header, and the signed id and timestamp beside it
pub(crate) fn read_header<'a>(
    auth: &Auth,
    header: &'a [u8],
    headers: &'a dyn HeaderSource,
) -> Result<Read<'a>, Refusal> {
    let mut texts: Vec<&[u8]> = Vec::new();
    let mut pair = None;
    match &auth.parser {
        Parser::Raw => texts.push(header),
        Parser::Prefix { prefix } => texts.extend(header.strip_prefix(prefix.as_bytes())),
        Parser::List { separator, prefix } => texts.extend(
            items(header, *separator).filter_map(|item| item.strip_prefix(prefix.as_bytes())),
        ),
        Parser::Pairs {
            separator,
            signature,
            timestamp,
        } => {
            for item in items(header, *separator) {
                let Some(at) = item.iter().position(|b| *b == b'=') else {
                    continue;
                };
                let (name, value) = item.split_at_checked(at).unwrap_or_default();
                let value = value.get(1..).unwrap_or_default();
                if name == signature.as_bytes() {
                    texts.push(value);
                } else if name == timestamp.as_bytes() && pair.replace(value).is_some() {
                    return Err(Step::TimestampMissing.into());
                }
            }
        }
    }
    let most = scheme::max_candidates(auth.scheme);
    if texts.is_empty() || texts.len() > most || texts.iter().all(|t| t.is_empty()) {
        return Err(Step::SignatureMalformed.into());
    }
    let candidates: Vec<Candidate> = (texts.iter())
        .filter_map(|text| Candidate::decode(auth.scheme, auth.encoding, text))
        .collect();
    if candidates.is_empty() {
        return Err(Step::SignatureUndecodable.into());
    }
    let timestamp = match auth.timestamp.as_ref().map(|rule| &rule.from) {
        Some(TimestampSource::Header(name)) => {
            Some(one(headers, name).ok_or(Step::TimestampMissing)?)
        }
        Some(TimestampSource::Pair) => Some(pair.ok_or(Step::TimestampMissing)?),
        Some(TimestampSource::Json(_)) | None => None,
    };
    let id = match &auth.id_header {
        Some(name) => Some(one(headers, name).ok_or(Step::IdMissing)?),
        None => None,
    };
    Ok(Read {
        candidates,
        timestamp,
        id,
    })
}

pub(crate) fn one<'a>(headers: &'a dyn HeaderSource, name: &str) -> Option<&'a [u8]> {
    match headers.one(name) {
        OneHeader::One(value) if !value.is_empty() => Some(value),
        _ => None,
    }
}

/// The items of a list, without the blanks around them
fn items(header: &[u8], separator: char) -> impl Iterator<Item = &[u8]> {
    header
        .split(move |b| char::from(*b) == separator)
        .map(<[u8]>::trim_ascii)
}

/// The signed content, in parts and without a copy
pub(crate) fn content<'a>(
    auth: &'a Auth,
    read: &Read<'a>,
    body: &'a Bytes,
    form: Option<&'a Bytes>,
) -> Result<Vec<&'a [u8]>, Refusal> {
    (auth.content.iter())
        .map(|part| match part {
            Part::Body => Ok(body.as_ref()),
            Part::Evidence => Ok(form.unwrap_or(body).as_ref()),
            Part::Timestamp => read.timestamp.ok_or_else(|| Step::TimestampMissing.into()),
            Part::Id => read.id.ok_or_else(|| Step::IdMissing.into()),
            Part::Literal(text) => Ok(text.as_bytes()),
        })
        .collect()
}
