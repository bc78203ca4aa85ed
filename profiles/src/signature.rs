//! What the request claims: the signature's candidates, the signed id and the timestamp, and the bytes that
//! they are said to be signed over. Nothing here is authentic yet, and of the body no more is read than what
//! the profile's content names.

use std::borrow::Cow;

use postern_contract::{Kind, Pointer, Resolution, Value};

use crate::canonical;
use crate::facts::View;
use crate::profile::{
    Auth, Canonical, Parser, Part, Place, SignedHeaders, TimestampRule, TimestampSource,
};
use crate::refusal::{Refusal, Step};
use crate::request::{HeaderSource, OneHeader};
use crate::scheme::{self, Candidate};

/// What stands where the signature does
pub(crate) struct Read<'a> {
    /// Candidates that share a timestamp: one set, but for providers that send several
    pub(crate) sets: Vec<Set<'a>>,
    pub(crate) id: Option<&'a [u8]>,
}

/// Candidates and the timestamp that they are signed with
#[derive(Default)]
pub(crate) struct Set<'a> {
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) timestamp: Option<Cow<'a, [u8]>>,
    /// The pair that lists signed headers
    listed: Option<Vec<u8>>,
}

impl<'a> Set<'a> {
    /// What a signer begins with
    pub(crate) fn stamped(timestamp: &'a [u8], listed: Option<Vec<u8>>) -> Self {
        Self {
            candidates: Vec::new(),
            timestamp: Some(Cow::Borrowed(timestamp)),
            listed,
        }
    }
    /// The list of signed headers
    pub(crate) fn listed(&self) -> Option<&[u8]> {
        self.listed.as_deref()
    }
}

/// The most sets: each costs as much as the whole body
const MAX_SETS: usize = 4;

/// Bytes that are said to be signed, in parts
pub(crate) type Content<'a> = Vec<Cow<'a, [u8]>>;

/// The texts where a signature or token may stand, of those that are there
pub(crate) fn texts<'a>(auth: &Auth, view: &View<'a>) -> Result<Vec<Cow<'a, [u8]>>, Refusal> {
    let one = |found: OneHeader<'a>| match found {
        OneHeader::One(text) => Ok(Some(Cow::Borrowed(text))),
        OneHeader::Several => Err(Refusal::from(Step::SignatureRepeated)),
        OneHeader::None => Ok(None),
    };
    let mut texts = Vec::new();
    match &auth.from {
        None => {
            let renamed = auth
                .header_param
                .as_deref()
                .and_then(|name| view.facts.param(name));
            let first = renamed.or(auth.header.as_deref());
            for name in first
                .into_iter()
                .chain(auth.more_headers.iter().map(String::as_str))
            {
                texts.extend(one(view.facts.request.headers.one(name))?);
            }
        }
        Some(Place::Query(name)) => texts.extend(one(view.facts.query(name))?),
        Some(Place::Json(pointer)) => {
            if let Some(value) = json(view, pointer) {
                let text = value.as_str().ok_or(Step::SignatureMalformed)?;
                texts.push(Cow::Borrowed(text.as_bytes()));
            }
        }
    }
    Ok(texts)
}

/// What stands at a pointer of the item, or of the evidence where there is none
pub(crate) fn json<'a>(view: &View<'a>, pointer: &Pointer) -> Option<Value<'a>> {
    let root = match view.item {
        Some(item) => item,
        None => view.facts.document().ok()?.root(),
    };
    match root.resolve(pointer) {
        Resolution::Resolved(value) if value.kind() != Kind::Null => Some(value),
        _ => None,
    }
}

/// The candidates in those texts, and the signed id and timestamps beside them; nothing where no item is one
/// of this alternative
pub(crate) fn read<'a>(
    auth: &'a Auth,
    texts: &[Cow<'a, [u8]>],
    view: &View<'a>,
) -> Result<Option<Read<'a>>, Refusal> {
    let mut sets = Vec::new();
    let mut found = 0;
    let mut blank = true;
    for text in texts {
        for raw in split(auth, text)? {
            found += raw.texts.len();
            blank &= raw.texts.iter().all(|(text, _)| text.is_empty());
            let candidates = (raw.texts.iter())
                .filter_map(|(text, id)| {
                    Candidate::decode(auth.scheme, auth.encoding, text, id.as_deref())
                })
                .collect();
            sets.push(Set {
                candidates,
                timestamp: raw.timestamp.map(Cow::Owned),
                listed: raw.listed,
            });
        }
    }
    // An empty text is no signature of another kind
    let empty = texts.iter().all(|text| text.trim_ascii().is_empty());
    if found == 0 && !empty {
        return Ok(None);
    }
    if blank || found > scheme::max_candidates(auth.scheme) || sets.len() > MAX_SETS {
        return Err(Step::SignatureMalformed.into());
    }
    sets.retain(|set| !set.candidates.is_empty());
    if sets.is_empty() {
        return Err(Step::SignatureUndecodable.into());
    }
    if let Some(rule) = &auth.timestamp {
        for set in &mut sets {
            if !auth.parser.has_timestamp() || rule.from != TimestampSource::Pair {
                set.timestamp = stated(rule, view)?;
            } else if set.timestamp.is_none() {
                return Err(Step::TimestampMissing.into());
            }
        }
    }
    let headers = view.facts.request.headers;
    let id = match &auth.id_header {
        Some(name) => Some(one(headers, name).ok_or(Step::IdMissing)?),
        None => None,
    };
    Ok(Some(Read { sets, id }))
}

/// The timestamp where it stands beside the signature; one in a body that is signed whole is read later
fn stated<'a>(rule: &TimestampRule, view: &View<'a>) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
    let headers = view.facts.request.headers;
    let name = match &rule.from {
        TimestampSource::Header(name) => name,
        TimestampSource::NamedHeader { param, default } => {
            view.facts.param(param).unwrap_or(default)
        }
        TimestampSource::Pair | TimestampSource::Json(_) => return Ok(None),
    };
    let text = one(headers, name).ok_or(Step::TimestampMissing)?;
    Ok(Some(Cow::Borrowed(text)))
}

/// One text of a signature, cut as the parser says
#[derive(Default)]
struct Raw {
    texts: Vec<(Vec<u8>, Option<String>)>,
    timestamp: Option<Vec<u8>>,
    listed: Option<Vec<u8>>,
}

fn split(auth: &Auth, text: &[u8]) -> Result<Vec<Raw>, Refusal> {
    let plain = |texts: &mut dyn Iterator<Item = &[u8]>| Raw {
        texts: texts.map(|text| (text.to_vec(), None)).collect(),
        ..Raw::default()
    };
    let listed = (auth.signed_headers.as_ref()).and_then(|headers| headers.pair.as_deref());
    Ok(match &auth.parser {
        Parser::Raw => vec![plain(&mut std::iter::once(text))],
        Parser::Prefix { prefix } => {
            vec![plain(&mut text.strip_prefix(prefix.as_bytes()).into_iter())]
        }
        Parser::OptionalPrefix { prefix } => {
            let bare = text.strip_prefix(prefix.as_bytes()).unwrap_or(text);
            vec![plain(&mut std::iter::once(bare))]
        }
        Parser::List { separator, prefix } => {
            let mut found =
                items(text, *separator).filter_map(|item| item.strip_prefix(prefix.as_bytes()));
            vec![plain(&mut found)]
        }
        Parser::Pairs {
            separator,
            signature,
            timestamp,
        } => vec![pairs(text, *separator, signature, timestamp, listed)?],
        Parser::Sets {
            between,
            separator,
            signature,
            timestamp,
        } => items(text, *between)
            .map(|set| pairs(set, *separator, signature, timestamp, listed))
            .collect::<Result<_, _>>()?,
        Parser::Positional { separator } => {
            let mut found = items(text, *separator);
            let timestamp = found.next().map(<[u8]>::to_vec);
            vec![Raw {
                timestamp,
                ..plain(&mut found)
            }]
        }
        Parser::Keyed {
            separator,
            within,
            algorithm,
        } => {
            let texts = items(text, *separator)
                .filter_map(|item| keyed(item, *within, algorithm.as_deref()))
                .collect();
            vec![Raw {
                texts,
                ..Raw::default()
            }]
        }
    })
}

fn pairs(
    text: &[u8],
    separator: char,
    signature: &str,
    timestamp: &str,
    listed: Option<&str>,
) -> Result<Raw, Refusal> {
    let mut raw = Raw::default();
    for item in items(text, separator) {
        let Some(at) = item.iter().position(|b| *b == b'=') else {
            continue;
        };
        let (name, value) = item.split_at_checked(at).unwrap_or_default();
        let value = value.get(1..).unwrap_or_default().to_vec();
        if name == signature.as_bytes() {
            raw.texts.push((value, None));
        } else if name == timestamp.as_bytes() {
            if raw.timestamp.replace(value).is_some() {
                return Err(Step::TimestampMissing.into());
            }
        } else if listed.is_some_and(|listed| name == listed.as_bytes())
            && raw.listed.replace(value).is_some()
        {
            return Err(Step::HeaderList.into());
        }
    }
    Ok(raw)
}

/// `<id>|<signature>`, or `<id>/<algorithm>/<signature>`
fn keyed(item: &[u8], within: char, algorithm: Option<&str>) -> Option<(Vec<u8>, Option<String>)> {
    let mut parts = item.split(|b| char::from(*b) == within);
    let id = std::str::from_utf8(parts.next()?).ok()?;
    if let Some(wanted) = algorithm
        && !parts.next()?.eq_ignore_ascii_case(wanted.as_bytes())
    {
        return None;
    }
    let text = parts.next()?.to_vec();
    parts.next().is_none().then(|| (text, Some(id.to_owned())))
}

pub(crate) fn one<'a>(headers: &'a dyn HeaderSource, name: &str) -> Option<&'a [u8]> {
    match headers.one(name) {
        OneHeader::One(value) if !value.is_empty() => Some(value),
        _ => None,
    }
}

/// The items of a list, without the blanks around them
fn items(text: &[u8], separator: char) -> impl Iterator<Item = &[u8]> {
    text.split(move |b| char::from(*b) == separator)
        .map(<[u8]>::trim_ascii)
}

/// The signed content, without a copy of what stands in the request. Most profiles have one; a few have a
/// content for every spelling of the URL that their provider may have signed.
pub(crate) fn contents<'a>(
    auth: &'a Auth,
    set: &'a Set<'a>,
    id: Option<&'a [u8]>,
    view: &View<'a>,
) -> Result<Vec<Content<'a>>, Refusal> {
    let mut contents: Vec<Content<'a>> = vec![Vec::with_capacity(auth.content.len())];
    for part in &auth.content {
        let mut spelled = part_bytes(part, auth, set, id, view)?;
        let last = spelled.pop().ok_or(Step::ContentMissing)?;
        let before = contents.clone();
        contents
            .iter_mut()
            .for_each(|content| content.push(last.clone()));
        for other in spelled {
            for mut content in before.iter().cloned() {
                content.push(other.clone());
                contents.push(content);
            }
        }
    }
    Ok(contents)
}

fn part_bytes<'a>(
    part: &'a Part,
    auth: &'a Auth,
    set: &'a Set<'a>,
    id: Option<&'a [u8]>,
    view: &View<'a>,
) -> Result<Vec<Cow<'a, [u8]>>, Refusal> {
    let facts = view.facts;
    let request = &facts.request;
    let owned = |text: String| Cow::Owned(text.into_bytes());
    let fields = || facts.fields().ok_or(Step::ContentMissing);
    let bytes = match part {
        Part::Body => Cow::Borrowed(request.body.as_ref()),
        Part::Evidence => Cow::Borrowed(facts.evidence().as_ref()),
        Part::Timestamp => match &set.timestamp {
            Some(text) => text.clone(),
            None => return Err(Step::TimestampMissing.into()),
        },
        Part::Id => Cow::Borrowed(id.ok_or(Step::IdMissing)?),
        Part::Method => Cow::Borrowed(request.method.as_bytes()),
        Part::Url => text_bytes(facts.url()),
        Part::UrlDecoded => owned(canonical::url_decoded(&facts.url())),
        Part::PathAndQuery => Cow::Borrowed(facts.path_and_query().as_bytes()),
        Part::PathAndQueryEscaped => {
            owned(canonical::path_and_query_escaped(facts.path_and_query()))
        }
        Part::CallbackUrl => match facts.param("callback_url") {
            Some(url) => Cow::Borrowed(url.as_bytes()),
            None => text_bytes(facts.url()),
        },
        Part::Header(name) => {
            Cow::Borrowed(one(request.headers, name).ok_or(Step::ContentMissing)?)
        }
        Part::HeaderNames | Part::HeaderValues | Part::HeaderPairs => {
            let rule = auth.signed_headers.as_ref().ok_or(Step::HeaderList)?;
            Cow::Owned(listed(part, rule, set, view)?)
        }
        Part::Json(pointer) => scalar(json(view, pointer).ok_or(Step::ContentMissing)?)?,
        Part::OptionalJson(pointer) => match json(view, pointer) {
            Some(value) => scalar(value)?,
            None => Cow::Borrowed(&b""[..]),
        },
        Part::Param(name) => {
            Cow::Borrowed(facts.param(name).ok_or(Step::ContentMissing)?.as_bytes())
        }
        Part::Crc32 => owned(crc32fast::hash(request.body).to_string()),
        Part::FormSorted => Cow::Owned(canonical::form_sorted(fields()?)),
        Part::Literal(text) => Cow::Borrowed(text.as_bytes()),
        Part::Line(pointer) => line(pointer, json(view, pointer).ok_or(Step::ContentMissing)?)?,
        Part::OptionalLine(pointer) => match json(view, pointer) {
            Some(value) => line(pointer, value)?,
            None => Cow::Borrowed(&b""[..]),
        },
        Part::Canonical(Canonical::UrlAndFields) => {
            let spelled =
                canonical::url_and_fields(&facts.url(), facts.fields().unwrap_or_default());
            return Ok(spelled.into_iter().map(Cow::Owned).collect());
        }
        Part::Canonical(Canonical::UrlSpellings) => {
            let spelled = canonical::url_and_fields(&facts.url(), &[]);
            return Ok(spelled.into_iter().map(Cow::Owned).collect());
        }
        Part::Canonical(Canonical::SortedUrlAndFields) => {
            let fields = facts.fields().unwrap_or_default();
            Cow::Owned(canonical::sorted_url_and_fields(&facts.url(), fields))
        }
        Part::Canonical(Canonical::PhpSerialize) => {
            let own = match &auth.from {
                Some(Place::Json(pointer)) => pointer.tokens().last().map(|token| token.text()),
                _ => None,
            };
            let signed = fields()?
                .iter()
                .filter(|(name, _)| Some(name.as_str()) != own);
            Cow::Owned(canonical::php_serialize(signed))
        }
    };
    Ok(vec![bytes])
}

fn text_bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn scalar<'a>(value: Value<'a>) -> Result<Cow<'a, [u8]>, Refusal> {
    let text = value.as_str().or_else(|| value.number_text());
    let text = text.or_else(|| value.as_bool().map(|b| if b { "true" } else { "false" }));
    let text = text.ok_or(Step::ContentMissing)?;
    Ok(Cow::Borrowed(text.as_bytes()))
}

/// `<name>\n<value>\n`
fn line<'a>(pointer: &Pointer, value: Value<'a>) -> Result<Cow<'a, [u8]>, Refusal> {
    let name = pointer.tokens().last().map_or("", |token| token.text());
    let mut out = Vec::new();
    for text in [name.as_bytes(), &*scalar(value)?] {
        out.extend_from_slice(text);
        out.push(b'\n');
    }
    Ok(Cow::Owned(out))
}

/// The headers that the delivery says are signed. The list itself is signed, and must hold what makes the
/// signature worth anything.
fn listed(
    part: &Part,
    rule: &SignedHeaders,
    set: &Set<'_>,
    view: &View<'_>,
) -> Result<Vec<u8>, Refusal> {
    let fault = || Refusal::from(Step::HeaderList);
    let headers = view.facts.request.headers;
    let list = match (&rule.header, &set.listed) {
        (Some(name), _) => one(headers, name).ok_or_else(fault)?,
        (None, Some(list)) => list,
        (None, None) => return Err(fault()),
    };
    let list = std::str::from_utf8(list).map_err(|_| fault())?;
    if *part == Part::HeaderNames {
        return Ok(list.as_bytes().to_vec());
    }
    let names: Vec<&str> = list.split(rule.separator).map(str::trim).collect();
    let has = |wanted: &String| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    if names.len() > 64 || !rule.required.iter().all(has) {
        return Err(fault());
    }
    let mut out = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let value = match headers.one(name) {
            OneHeader::One(value) => value,
            OneHeader::None | OneHeader::Several => return Err(fault()),
        };
        if *part == Part::HeaderPairs {
            if n > 0 {
                out.push(b';');
            }
            out.extend_from_slice(name.to_ascii_lowercase().as_bytes());
            out.push(b':');
        } else if n > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(value);
    }
    Ok(out)
}
