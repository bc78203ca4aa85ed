//! Plays the provider: signs a recorded delivery by its profile, for `postern send` and tests.

mod keys;

pub use self::keys::TrialKey;

use bytes::Bytes;
use postern_contract::request::HeaderValues;
use postern_contract::{CapturedRequest, Pointer, Secret, Sha256Hex, Timestamp};
use serde_json::Value;

use crate::encoding::Encoding;
use crate::facts::{Facts, Params, View};
use crate::jwt;
use crate::key::{self, BindError, Key};
use crate::native::array;
use crate::profile::{Auth, Parser, Place, Profile, SchemeKind, TimestampSource, Unit};
use crate::request::{OneHeader, RequestParts};
use crate::scheme;
use crate::signature::{Set, contents, one};
use crate::source::Source;

/// Why a delivery cannot be signed
#[derive(Debug, thiserror::Error)]
pub enum NotSigned {
    /// The key does not fit the profile
    #[error(transparent)]
    Key(#[from] BindError),
    /// An Ed25519 key is signed with a seed
    #[error("to sign, this profile takes the private seed: 64 hex digits")]
    Seed,
    /// A public-key signature is made with a private key
    #[error(
        "to sign, this profile takes the private key in PEM (PKCS #8): `postern profile key` makes one"
    )]
    Private,
    /// No library signs so that can be trusted with a private key
    #[error("RSA with SHA-1 is verified and never signed here")]
    Sha1,
    /// The scheme takes no such key
    #[error("the scheme cannot sign with this key")]
    Scheme,
    /// The profile's signature stands where the body has no place for it
    #[error("the body has no place `{0}` for the signature: it is no object of JSON")]
    Place(String),
    /// What is to be signed is not there
    #[error("what this profile signs is not in the request: {0}")]
    Content(&'static str),
}

/// A request as its provider would send it
pub struct Signed {
    /// With the headers and query that authenticate it
    pub request: CapturedRequest,
    /// The body, which some providers put the signature into
    pub body: Bytes,
}

impl Profile {
    /// Signs `request`, whose body is `body`, so that it verifies as of `now`. A timestamp inside the body
    /// stays what it is.
    pub fn sign(
        &self,
        request: &CapturedRequest,
        body: &Bytes,
        secret: &Secret,
        params: &Params,
        now: Timestamp,
    ) -> Result<Signed, NotSigned> {
        if let Some(special) = self.specialised(params).map_err(BindError::Generic)? {
            return special.sign(request, body, secret, params, now);
        }
        let key = Key {
            name: "secret".to_owned(),
            id: None,
            material: key::KeyMaterial::Secret(secret.clone()),
            not_after: None,
        };
        let mut signed = Signed {
            request: request.clone(),
            body: body.clone(),
        };
        let met = |auth: &&Auth| {
            let facts = Facts::new(self, parts(request, body), params);
            auth.when.iter().all(|guard| guard.holds(&facts.view()))
        };
        let mut auth = self.declared.auth.iter().filter(met);
        let auth = auth
            .next()
            .or(self.declared.auth.first())
            .ok_or(NotSigned::Scheme)?;
        let stamp = match auth.timestamp.as_ref().map(|rule| rule.unit) {
            Some(Unit::Milliseconds) => now.unix_ms().to_string(),
            Some(Unit::Rfc3339) => now.to_string(),
            Some(Unit::Seconds) | None => now.unix().to_string(),
        };
        match auth.timestamp.as_ref().map(|rule| &rule.from) {
            Some(TimestampSource::Header(name)) => set(&mut signed.request, name, &stamp),
            Some(TimestampSource::NamedHeader { param, default }) => {
                let renamed = params.get(param).and_then(|names| names.first());
                set(&mut signed.request, renamed.unwrap_or(default), &stamp);
            }
            Some(TimestampSource::Pair | TimestampSource::Json(_)) | None => {}
        }
        if let Some(name) = &auth.id_header
            && !matches!(crate::HeaderSource::one(request, name), OneHeader::One(_))
        {
            set(&mut signed.request, name, &format!("msg_{}", now.unix_ms()));
        }
        let listed = auth.signed_headers.as_ref().map(|rule| {
            let mut names = rule.required.clone();
            if names.is_empty() {
                names = self.header_names(&signed.request);
            }
            let list = names.join(&rule.separator.to_string());
            if let Some(name) = &rule.header {
                set(&mut signed.request, name, &list);
            }
            list.into_bytes()
        });
        let digest = || Sha256Hex::of(body).to_string();
        match &auth.body_sha256 {
            Some(Source::Header(name)) => set(&mut signed.request, name, &digest()),
            Some(Source::Query(name)) => set_query(&mut signed.request, name, &digest()),
            _ => {}
        }
        let texts = self.texts(auth, &key, &signed, params, &stamp, listed, now)?;
        let facts = Facts::new(self, parts(request, body), params);
        place(auth, &facts, signed, &texts)
    }

    /// The headers of the request that name its event and its id
    fn header_names(&self, request: &CapturedRequest) -> Vec<String> {
        let delivery = self.declared.delivery.iter();
        let sources = (delivery.flat_map(|d| d.sources())).chain(self.declared.event.sources());
        let named = sources.filter_map(|source| match source {
            Source::Header(name) => Some(name),
            _ => None,
        });
        let there = named.filter(|name| one(request, name).is_some());
        there.map(|name| name.to_ascii_lowercase()).collect()
    }

    /// The signature's text; one for every item where each is signed
    #[expect(clippy::too_many_arguments, reason = "the facts of one request")]
    fn texts(
        &self,
        auth: &Auth,
        key: &Key,
        signed: &Signed,
        params: &Params,
        stamp: &str,
        listed: Option<Vec<u8>>,
        now: Timestamp,
    ) -> Result<Vec<String>, NotSigned> {
        let facts = Facts::new(self, parts(&signed.request, &signed.body), params);
        let secret = secret(auth, key)?;
        let whole = facts.view();
        let mut views = vec![whole];
        if let Some(each) = &auth.each {
            let array = (facts.document().ok()).and_then(|document| array(document, each));
            let items = array.into_iter().filter_map(|array| array.items());
            views = (items.flatten())
                .map(|item| View {
                    item: Some(item),
                    ..whole
                })
                .collect();
        }
        let set = Set::stamped(stamp.as_bytes(), listed);
        let id = auth
            .id_header
            .as_deref()
            .and_then(|name| one(&signed.request, name));
        let mut texts = Vec::new();
        for view in &views {
            if let Some(rules) = &auth.jwt {
                let token = jwt::sign(rules, &facts, &secret, now);
                let public = rules.algorithms.iter().any(|alg| alg.is_public());
                let fault = if public {
                    NotSigned::Private
                } else {
                    NotSigned::Scheme
                };
                texts.push(token.ok_or(fault)?);
                continue;
            }
            let spelled = contents(auth, &set, id, view);
            let spelled = spelled.map_err(|e| NotSigned::Content(e.step.code()))?;
            let content = spelled.first().ok_or(NotSigned::Scheme)?;
            let content: Vec<&[u8]> = content.iter().map(AsRef::as_ref).collect();
            let bytes = scheme::sign(auth.scheme, &secret, &content);
            let bytes = bytes.ok_or(match auth.scheme {
                SchemeKind::RsaSha1 => NotSigned::Sha1,
                SchemeKind::RsaSha256 | SchemeKind::EcdsaP256Sha256 => NotSigned::Private,
                _ => NotSigned::Scheme,
            })?;
            texts.push(match auth.encoding {
                Some(encoding) => encoding.encode(&bytes),
                None if auth.scheme == SchemeKind::Basic => {
                    format!("Basic {}", Encoding::Base64.encode(&bytes))
                }
                None => String::from_utf8_lossy(&bytes).into_owned(),
            });
        }
        let key_id = auth
            .key_id
            .as_ref()
            .and_then(|source| source.read(&whole).name());
        let list = set
            .listed()
            .map(|list| String::from_utf8_lossy(list).into_owned());
        let pair = auth
            .signed_headers
            .as_ref()
            .and_then(|rule| rule.pair.as_deref())
            .zip(list);
        Ok(texts
            .iter()
            .map(|text| written(auth, text, stamp, key_id.as_deref(), &pair))
            .collect())
    }
}

fn parts<'a>(request: &'a CapturedRequest, body: &'a Bytes) -> RequestParts<'a> {
    RequestParts {
        method: &request.method,
        url: &request.url,
        headers: request,
        body,
    }
}

fn secret(auth: &Auth, key: &Key) -> Result<Secret, NotSigned> {
    let key::KeyMaterial::Secret(secret) = &key.material else {
        return Err(NotSigned::Scheme);
    };
    if auth.scheme == SchemeKind::Ed25519 {
        let seed = hex::decode(secret.expose()).map_err(|_| NotSigned::Seed)?;
        return Ok(Secret::new(seed));
    }
    if auth.is_public() {
        // A file in PEM ends with a newline
        return Ok(secret.clone());
    }
    Ok(key::decode(key, secret, auth.scheme, auth.key)?)
}

/// The signature as the parser reads it
fn written(
    auth: &Auth,
    text: &str,
    stamp: &str,
    key_id: Option<&str>,
    listed: &Option<(&str, String)>,
) -> String {
    let key_id = key_id.unwrap_or("1");
    match &auth.parser {
        Parser::Raw => text.to_owned(),
        Parser::Prefix { prefix }
        | Parser::List { prefix, .. }
        | Parser::OptionalPrefix { prefix } => format!("{prefix}{text}"),
        Parser::Pairs {
            separator,
            signature,
            timestamp,
        }
        | Parser::Sets {
            separator,
            signature,
            timestamp,
            ..
        } => {
            let listed = listed
                .as_ref()
                .map(|(name, list)| format!("{name}={list}{separator}"));
            let listed = listed.unwrap_or_default();
            format!("{timestamp}={stamp}{separator}{listed}{signature}={text}")
        }
        Parser::Positional { separator } => format!("{stamp}{separator}{text}"),
        Parser::Keyed {
            within, algorithm, ..
        } => {
            let algorithm = algorithm.as_ref().map(|name| format!("{name}{within}"));
            format!("{key_id}{within}{}{text}", algorithm.unwrap_or_default())
        }
    }
}

fn place(
    auth: &Auth,
    facts: &Facts<'_>,
    mut signed: Signed,
    texts: &[String],
) -> Result<Signed, NotSigned> {
    let text = texts.first().map_or("", String::as_str);
    match &auth.from {
        None => {
            let renamed = auth
                .header_param
                .as_ref()
                .and_then(|name| facts.param(name));
            let name = renamed
                .or(auth.header.as_deref())
                .ok_or(NotSigned::Scheme)?;
            set(&mut signed.request, name, text);
        }
        Some(Place::Query(name)) => set_query(&mut signed.request, name, text),
        Some(Place::Json(pointer)) => {
            let fault = || NotSigned::Place(pointer.to_string());
            // Of a multipart form, the JSON stands in one part as it is
            let json = facts.evidence();
            let around = split_around(&signed.body, json);
            signed.body = match around.zip(serde_json::from_slice::<Value>(json).ok()) {
                Some(((before, after), mut value)) => {
                    let mut items: Vec<&mut Value> = match &auth.each {
                        None => vec![&mut value],
                        Some(each) => (value.pointer_mut(&each.to_string()))
                            .and_then(Value::as_array_mut)
                            .ok_or_else(fault)?
                            .iter_mut()
                            .collect(),
                    };
                    for (item, text) in items.iter_mut().zip(texts) {
                        put(item, pointer, text).ok_or_else(fault)?;
                    }
                    Bytes::from([before, value.to_string().as_bytes(), after].concat())
                }
                None => form(&signed.body, pointer, text).ok_or_else(fault)?,
            };
        }
    }
    Ok(signed)
}

/// What stands before and behind `part` in `whole`
fn split_around<'a>(whole: &'a [u8], part: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = whole.windows(part.len().max(1)).position(|w| w == part)?;
    Some((whole.get(..at)?, whole.get(at + part.len()..)?))
}

/// Sets a text of a JSON object, making the objects on the way
fn put(value: &mut Value, pointer: &Pointer, text: &str) -> Option<()> {
    let mut at = value;
    for token in pointer.tokens() {
        at = match at {
            Value::Object(members) => members
                .entry(token.text().to_owned())
                .or_insert_with(|| Value::Object(serde_json::Map::new())),
            Value::Array(items) => items.get_mut(token.text().parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    *at = Value::String(text.to_owned());
    Some(())
}

/// Sets a field of an urlencoded form
fn form(body: &Bytes, pointer: &Pointer, text: &str) -> Option<Bytes> {
    let name = pointer.tokens().last()?.text().to_owned();
    let kept = form_urlencoded::parse(body).filter(|(known, _)| *known != name);
    let form = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(kept)
        .append_pair(&name, text)
        .finish();
    Some(Bytes::from(form))
}

/// Sets a parameter of the query
fn set_query(request: &mut CapturedRequest, name: &str, value: &str) {
    let (base, query) = request.url.split_once('?').unwrap_or((&request.url, ""));
    let kept = form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known != name);
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(kept)
        .append_pair(name, value)
        .finish();
    request.url = format!("{base}?{query}");
}

/// Sets a header, whatever its case
fn set(request: &mut CapturedRequest, name: &str, value: &str) {
    request
        .headers
        .retain(|known, _| !known.eq_ignore_ascii_case(name));
    let value = HeaderValues::Many(vec![value.to_owned()]);
    request.headers.insert(name.to_owned(), value);
}
