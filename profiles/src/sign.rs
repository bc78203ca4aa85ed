//! Plays the provider: signs a recorded delivery by its profile, for `postern send` and tests.

use bytes::Bytes;
use postern_contract::{CapturedRequest, Secret, Timestamp};

use crate::form;
use crate::key::{self, BindError, Key};
use crate::profile::{Parser, Part, Profile, SchemeKind, TimestampSource, Unit};
use crate::request::{HeaderSource, OneHeader};
use crate::scheme;

/// Why a delivery cannot be signed
#[derive(Debug, thiserror::Error)]
pub enum NotSigned {
    /// The key does not fit the profile
    #[error(transparent)]
    Key(#[from] BindError),
    /// An Ed25519 key is signed with a seed
    #[error("to sign, this profile takes the private seed: 64 hex digits")]
    Seed,
    /// The scheme takes no such key
    #[error("the scheme cannot sign with this key")]
    Scheme,
}

impl Profile {
    /// The headers to set on `request`, whose body is `body`, so that it verifies as of `now`. A timestamp
    /// inside the body stays what it is.
    pub fn sign(
        &self,
        request: &CapturedRequest,
        body: &Bytes,
        secret: &Secret,
        now: Timestamp,
    ) -> Result<Vec<(String, String)>, NotSigned> {
        let auth = self.declared.auth.first().ok_or(NotSigned::Scheme)?;
        let mut headers = Vec::new();
        let stamp = match auth.timestamp.as_ref().map(|rule| rule.unit) {
            Some(Unit::Milliseconds) => now.unix_ms().to_string(),
            Some(Unit::Rfc3339) => now.to_string(),
            Some(Unit::Seconds) | None => now.unix().to_string(),
        };
        if let Some(TimestampSource::Header(name)) = auth.timestamp.as_ref().map(|r| &r.from) {
            headers.push((name.clone(), stamp.clone()));
        }
        let id = match &auth.id_header {
            Some(name) => match request.one(name) {
                OneHeader::One(id) => String::from_utf8_lossy(id).into_owned(),
                _ => {
                    let made = format!("msg_{}", now.unix_ms());
                    headers.push((name.clone(), made.clone()));
                    made
                }
            },
            None => String::new(),
        };
        let form = (self.declared.form.as_ref())
            .filter(|_| form::is_form(request, body))
            .and_then(|form| form::evidence(form, body));
        let content: Vec<&[u8]> = (auth.content.iter())
            .map(|part| match part {
                Part::Body => body.as_ref(),
                Part::Evidence => form.as_ref().unwrap_or(body).as_ref(),
                Part::Timestamp => stamp.as_bytes(),
                Part::Id => id.as_bytes(),
                Part::Literal(text) => text.as_bytes(),
            })
            .collect();
        let key = if auth.scheme == SchemeKind::Ed25519 {
            let seed = hex::decode(secret.expose()).map_err(|_| NotSigned::Seed)?;
            Secret::new(seed)
        } else {
            let key = Key {
                name: "secret".to_owned(),
                material: key::KeyMaterial::Secret(secret.clone()),
                not_after: None,
            };
            key::decode(&key, auth.scheme, auth.key)?
        };
        let signature = scheme::sign(auth.scheme, &key, &content).ok_or(NotSigned::Scheme)?;
        let text = match auth.encoding {
            Some(encoding) => encoding.encode(&signature),
            None => String::from_utf8_lossy(&signature).into_owned(),
        };
        let value = match &auth.parser {
            Parser::Raw => text,
            Parser::Prefix { prefix } | Parser::List { prefix, .. } => format!("{prefix}{text}"),
            Parser::Pairs {
                separator,
                signature,
                timestamp,
            } => format!("{timestamp}={stamp}{separator}{signature}={text}"),
        };
        headers.push((auth.header.clone(), value));
        Ok(headers)
    }
}
