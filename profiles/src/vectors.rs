//! Vector lines: one recorded request, its keys and the time, and what a verifier must say. Shared by
//! `postern profile check` and by tests.

use std::collections::BTreeMap;

use base64::Engine as _;
use bytes::Bytes;
use postern_contract::{CapturedRequest, Secret, Timestamp};
use serde::Deserialize;

use crate::catalogue::Catalogue;
use crate::facts::Params;
use crate::key::{Key, KeyMaterial};
use crate::profile::{Profile, Reply, VERIFY_TOKEN};
use crate::request::RequestParts;
use crate::verifier::{Options, Outcome};

/// What a line showed
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The verifier says what the line expects
    Pass,
    /// It does not
    Fail {
        /// The line
        id: String,
        /// What it said
        why: String,
    },
}

#[derive(Deserialize)]
struct Line {
    id: String,
    scheme: String,
    #[serde(default)]
    kind: String,
    request: CapturedRequest,
    secret: Option<String>,
    secrets: Option<Vec<String>>,
    public_key: Option<PublicKey>,
    #[serde(default)]
    params: BTreeMap<String, Texts>,
    now: i64,
    expect: Expect,
    expect_response: Option<Response>,
}

/// One text or several
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct PublicKey {
    format: String,
    /// Text, or a JSON Web Key or set
    value: serde_json::Value,
    /// Where a certificate stands: it is the key of deliveries that name this address alone
    cert_url: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Accept,
    Reject,
}

#[derive(Deserialize)]
struct Response {
    status: u16,
    body: Option<String>,
    body_contains: Option<String>,
    body_json: Option<serde_json::Value>,
    content_type: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// Holds the catalogue to one line
pub fn check(line: &str, catalogue: &'static Catalogue) -> Verdict {
    // Test data of our own, no delivery: serde reads it
    let line: Line = match serde_json::from_str(line) {
        Ok(line) => line,
        Err(e) => {
            return Verdict::Fail {
                id: "?".to_owned(),
                why: format!("no vector line: {e}"),
            };
        }
    };
    match judge(&line, catalogue) {
        Ok(()) => Verdict::Pass,
        Err(why) => Verdict::Fail { id: line.id, why },
    }
}

fn judge(line: &Line, catalogue: &'static Catalogue) -> Result<(), String> {
    let profile =
        (catalogue.get(&line.scheme)).ok_or_else(|| format!("no profile `{}`", line.scheme))?;
    let outcome = profile
        .bind(keys(line, profile)?, options(line, profile))
        .map_err(|e| format!("does not bind: {e}"))
        .and_then(|verifier| {
            let body = body(&line.request)?;
            let now = Timestamp::from_unix(line.now).map_err(|e| e.to_string())?;
            let parts = RequestParts {
                method: &line.request.method,
                url: &line.request.url,
                headers: &line.request,
                body: &body,
            };
            let address = (line.public_key.as_ref()).and_then(|key| key.cert_url.as_deref());
            if let Some(address) = address
                && let Ok(fetching) = profile.bind(Vec::new(), options(line, profile))
                && let Outcome::Wanted(request) = fetching.verify(&parts, now)
                && request.url.as_str() != address
            {
                return Ok(Outcome::Wanted(request));
            }
            Ok(verifier.verify(&parts, now))
        })?;
    let ack = profile.ack();
    let (said, reply) = match &outcome {
        Outcome::Verified(_) | Outcome::Malformed(_) => (Expect::Accept, ack.accepted.as_ref()),
        Outcome::Handshake(reply, _) => (Expect::Accept, Some(reply)),
        // A line brings every key that it may be verified by
        Outcome::Refused(_) | Outcome::Wanted(_) => (Expect::Reject, ack.refused.as_ref()),
    };
    if said != line.expect {
        return Err(match outcome {
            Outcome::Refused(refusal) => format!("refused: {refusal}"),
            Outcome::Wanted(_) => "the line has no key".to_owned(),
            _ => "accepted".to_owned(),
        });
    }
    match (&line.expect_response, reply) {
        (Some(wanted), Some(reply)) => answered(wanted, reply),
        // The gateway's own answers: one refusal for every cause, and acceptances with or without events
        (Some(wanted), None) if said == Expect::Reject && wanted.status == 401 => Ok(()),
        (Some(wanted), None)
            if said == Expect::Accept && [200, 202, 204].contains(&wanted.status) =>
        {
            Ok(())
        }
        (Some(_), None) => Err("no reply".to_owned()),
        (None, _) => Ok(()),
    }
}

/// The parameters of the line that the profile knows: a line has one set for several verifiers. What a
/// handshake does not need is filled in.
fn options(line: &Line, profile: &Profile) -> Options {
    let known = profile.params();
    let mut params: Params = (line.params.iter())
        .filter(|(name, _)| known.contains_key(*name))
        .map(|(name, value)| {
            let texts = match value {
                Texts::One(text) => vec![text.clone()],
                Texts::Many(texts) => texts.clone(),
            };
            (name.clone(), texts)
        })
        .collect();
    if line.kind == "handshake" {
        for (name, _) in known.iter().filter(|(_, needed)| **needed) {
            (params.entry(name.clone())).or_insert_with(|| vec!["unused".to_owned()]);
        }
        // No line has a parameter for it
        if known.contains_key(VERIFY_TOKEN)
            && let Some(token) = line.secret.clone().or_else(|| asked_token(line))
        {
            (params.entry(VERIFY_TOKEN.to_owned())).or_insert_with(|| vec![token]);
        }
    }
    Options {
        params,
        ..Options::default()
    }
}

/// The token of the request itself, where the line says of no token that it is the operator's
fn asked_token(line: &Line) -> Option<String> {
    let url = url::Url::parse(&line.request.url).ok()?;
    let (_, token) = url
        .query_pairs()
        .find(|(name, _)| name.ends_with(VERIFY_TOKEN))?;
    Some(token.into_owned())
}

fn keys(line: &Line, profile: &'static Profile) -> Result<Vec<Key>, String> {
    // A provider that signs with two keys at once has them among its parameters
    let both = ["primary", "secondary"]
        .iter()
        .filter_map(|name| line.params.get(*name));
    let both = both.filter_map(|texts| match texts {
        Texts::One(text) => Some(text),
        Texts::Many(_) => None,
    });
    let secrets = line
        .secret
        .iter()
        .chain(line.secrets.iter().flatten())
        .chain(both);
    let mut keys: Vec<KeyMaterial> = secrets
        .map(|text| KeyMaterial::Secret(Secret::new(text.clone().into_bytes())))
        .collect();
    // What nobody signs is answered whatever the key is
    let needs_one = || profile.bind(Vec::new(), options(line, profile)).is_err();
    if line.kind == "handshake" && keys.is_empty() && line.public_key.is_none() && needs_one() {
        let unused = profile.trial_key().ok_or("no randomness")?;
        keys.push(match unused.public {
            Some(public) => KeyMaterial::Public(public),
            None => KeyMaterial::Secret(unused.private),
        });
    }
    if let Some(public) = &line.public_key {
        const FORMATS: &[&str] = &[
            "ed25519-raw-hex",
            "ed25519-raw-base64",
            "spki-der-base64",
            "spki-pem",
            "jwk",
            "jwks",
            "x509-pem",
        ];
        if !FORMATS.contains(&public.format.as_str()) {
            return Err(format!("no key of the format `{}`", public.format));
        }
        keys.push(KeyMaterial::Public(match &public.value {
            serde_json::Value::String(text) => text.clone(),
            jwk => jwk.to_string(),
        }));
    }
    let named = keys.into_iter().enumerate().map(|(n, material)| Key {
        name: format!("key {n}"),
        id: None,
        material,
        not_after: None,
    });
    Ok(named.collect())
}

/// The bytes of a captured request's body
pub fn body(request: &CapturedRequest) -> Result<Bytes, String> {
    match (&request.body, &request.body_base64) {
        (Some(text), None) => Ok(Bytes::from(text.clone())),
        (None, Some(base64)) => base64::engine::general_purpose::STANDARD
            .decode(base64)
            .map(Bytes::from)
            .map_err(|e| format!("`body_base64`: {e}")),
        (None, None) => Ok(Bytes::new()),
        (Some(_), Some(_)) => Err("`body` and `body_base64` are both there".to_owned()),
    }
}

fn answered(wanted: &Response, reply: &Reply) -> Result<(), String> {
    let json = || serde_json::from_str::<serde_json::Value>(&reply.body).ok();
    let media = reply.content_type.split(';').next().unwrap_or_default();
    let header = |(name, value): (&String, &String)| {
        let mut given = reply.headers.iter();
        given.any(|(known, v)| known.eq_ignore_ascii_case(name) && v == value)
            // The gateway sends it with every reply
            || name.eq_ignore_ascii_case("x-content-type-options") && value == "nosniff"
    };
    let headers = wanted.headers.iter().all(header);
    let same = wanted.status == reply.status
        && wanted.body.as_ref().is_none_or(|b| *b == reply.body)
        && (wanted.body_contains.as_ref()).is_none_or(|b| reply.body.contains(b.as_str()))
        && (wanted.body_json.as_ref()).is_none_or(|b| json().as_ref() == Some(b))
        && wanted.content_type.as_ref().is_none_or(|t| t == media)
        && headers;
    if same {
        Ok(())
    } else {
        Err(format!("answered {} `{}`", reply.status, reply.body))
    }
}
