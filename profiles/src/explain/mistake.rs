//! The closed list of usual mistakes, and how each is tried: a secret, a body, a URL or a reading of the
//! profile that is a little other than what was given.

use bytes::Bytes;
use postern_contract::{Document, Secret, Timestamp};
use serde::Serialize;
use url::Url;

use super::rewrite::{STYLES, rewritten};
use super::{Found, Said, Trial, at_any_time, hold};
use crate::catalogue::Catalogue;
use crate::encoding::Encoding;
use crate::key::KeyMaterial;
use crate::profile::{Auth, KeyDecoding, Parser, Profile, Unit};
use crate::refusal::Step;

/// A usual mistake
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    /// The clock, or the delivery's age
    Clock,
    /// Seconds for milliseconds, or the other way round
    ClockUnit,
    /// Blanks or a line end around the secret
    SecretBlanks,
    /// Quotation marks around the secret
    SecretQuotes,
    /// The provider has a newline in the secret
    SecretNewline,
    /// A prefix of the secret kept or taken away
    SecretPrefix,
    /// The secret's hex or Base64 read wrongly
    SecretEncoding,
    /// Another of the given keys has signed it, of an id that the delivery does not name
    KeyId,
    /// The signature's hex or Base64 read wrongly
    SignatureEncoding,
    /// A prefix of the signature kept or taken away
    SignaturePrefix,
    /// The body was parsed and written again
    BodyRewritten,
    /// Line ends of the body were changed
    BodyLineEnds,
    /// A line end was put behind the body, or taken away
    BodyNewline,
    /// JSON in place of the form that carried it, or the other way round
    BodyForm,
    /// The URL as it was seen is not the one that is registered
    Url,
    /// Another profile
    OtherProfile,
}

impl Mistake {
    /// What it is, and how to mend it
    pub fn text(self) -> &'static str {
        match self {
            Self::Clock => {
                "the signature is right, and its timestamp is outside of the tolerance: check this machine's clock, or whether the delivery waited"
            }
            Self::ClockUnit => {
                "the timestamp is in another unit: seconds where the profile has milliseconds, or the other way round"
            }
            Self::SecretBlanks => {
                "the secret has blanks or a line end around it that the provider does not have: take them away"
            }
            Self::SecretQuotes => "the secret has quotation marks around it: take them away",
            Self::SecretNewline => {
                "the provider was given the secret with a newline at its end: give it the secret again"
            }
            Self::SecretPrefix => {
                "the secret's prefix (`whsec_`, `v1,`) is kept where the provider takes it away, or missing where it is kept"
            }
            Self::SecretEncoding => {
                "the secret is read in another encoding than the provider reads it in"
            }
            Self::KeyId => {
                "the key is right, and the delivery names another id: bind it under that id"
            }
            Self::SignatureEncoding => "the signature is written in another encoding",
            Self::SignaturePrefix => "the signature lacks its prefix, or has one too many",
            Self::BodyRewritten => {
                "something before postern parsed the body and wrote it again: pass the bytes on as they came"
            }
            Self::BodyLineEnds => {
                "something before postern changed the body's line ends: pass the bytes on as they came"
            }
            Self::BodyNewline => {
                "a newline at the body's end was added or taken away: pass the bytes on as they came"
            }
            Self::BodyForm => {
                "the body is the JSON of a form, or the form of JSON: pass the bytes on as they came"
            }
            Self::Url => {
                "the provider signed another URL: set `base_url` or `callback_url` to what is registered there"
            }
            Self::OtherProfile => "the delivery verifies by another profile",
        }
    }
}

/// A trial with one thing changed
pub(super) struct Variation {
    mistake: Mistake,
    detail: Option<String>,
    profile: Profile,
    trial: Trial,
}

impl Variation {
    /// What it would explain, if it does
    pub(super) fn holds(&self, now: Timestamp) -> Option<Found> {
        let in_time = hold(&self.profile, &self.trial);
        let (said, late) = match in_time {
            Said::Refused(why) if matches!(why.step, Step::TimestampOld | Step::TimestampAhead) => {
                (
                    hold(&self.profile, &at_any_time(&self.profile, &self.trial)),
                    true,
                )
            }
            said => (said, false),
        };
        let key = match &said {
            Said::Verified(key) => Some(key.clone()),
            said if said.is_authentic() => None,
            _ => return None,
        };
        Some(Found {
            mistake: self.mistake,
            detail: self.detail.clone(),
            key,
            off_by_seconds: late.then(|| self.off_by(now)).flatten(),
        })
    }

    /// How far ahead of its timestamp this machine is
    fn off_by(&self, now: Timestamp) -> Option<i64> {
        let trial = at_any_time(&self.profile, &self.trial);
        let verifier = (self.profile)
            .bind(trial.keys.clone(), trial.options.clone())
            .ok()?;
        match verifier.verify(&super::parts(&trial), now) {
            crate::Outcome::Verified(evidence) => {
                let signed = evidence.signed_at()?;
                Some((now.unix_ms() - signed.unix_ms()) / 1_000)
            }
            _ => None,
        }
    }
}

/// Every mistake that can be tried on this profile and request
pub(super) fn variations<'t>(
    profile: &'t Profile,
    trial: &'t Trial,
    catalogue: &'t Catalogue,
) -> impl Iterator<Item = Variation> + 't {
    let of = |mistake, detail: Option<String>, profile: Profile, trial: Trial| Variation {
        mistake,
        detail,
        profile,
        trial,
    };
    let same = std::iter::once(of(Mistake::Clock, None, profile.clone(), trial.clone()));
    let secrets =
        secrets(trial).map(move |(mistake, trial)| of(mistake, None, profile.clone(), trial));
    let newline = newline(profile, trial)
        .into_iter()
        .map(move |(profile, trial)| of(Mistake::SecretNewline, None, profile, trial));
    let readings =
        readings(profile).map(move |(mistake, profile)| of(mistake, None, profile, trial.clone()));
    let ids = ids(trial).map(move |trial| of(Mistake::KeyId, None, profile.clone(), trial));
    let bodies = bodies(trial).map(move |(mistake, detail, body)| {
        let mut trial = trial.clone();
        trial.body = body;
        of(mistake, detail, profile.clone(), trial)
    });
    let urls = urls(profile, trial).map(move |url| {
        let mut trial = trial.clone();
        let detail = Some(format!("`{url}`"));
        trial.options.params.remove("base_url");
        trial.options.params.remove("callback_url");
        trial.request.url = url;
        of(Mistake::Url, detail, profile.clone(), trial)
    });
    let others = catalogue.iter().filter(|other| other.id() != profile.id());
    let others = others.map(move |other| {
        let mut trial = trial.clone();
        let known = other.params();
        trial
            .options
            .params
            .retain(|name, _| known.contains_key(name));
        let detail = Some(format!("`{}`", other.id()));
        of(Mistake::OtherProfile, detail, other.clone(), trial)
    });
    same.chain(secrets)
        .chain(newline)
        .chain(readings)
        .chain(ids)
        .chain(bodies)
        .chain(urls)
        .chain(others)
}

/// Every given secret, spelled otherwise; each time all keys are changed alike
fn secrets(trial: &Trial) -> impl Iterator<Item = (Mistake, Trial)> {
    type Spelling = fn(&[u8]) -> Option<Vec<u8>>;
    const SPELLINGS: [(Mistake, Spelling); 5] = [
        (Mistake::SecretBlanks, |text| {
            Some(text.trim_ascii().to_vec())
        }),
        (Mistake::SecretQuotes, |text| {
            let inner = |mark: &[u8]| text.strip_prefix(mark)?.strip_suffix(mark);
            inner(b"\"").or_else(|| inner(b"'")).map(<[u8]>::to_vec)
        }),
        (Mistake::SecretPrefix, |text| {
            text.strip_prefix(b"v1,").map(<[u8]>::to_vec)
        }),
        (Mistake::SecretPrefix, |text| {
            text.strip_prefix(b"whsec_").map(<[u8]>::to_vec)
        }),
        (Mistake::SecretPrefix, |text| {
            Some([b"whsec_", text].concat())
        }),
    ];
    SPELLINGS.into_iter().filter_map(|(mistake, spelling)| {
        let mut changed = false;
        let mut trial = trial.clone();
        for key in &mut trial.keys {
            if let KeyMaterial::Secret(secret) = &mut key.material
                && let Some(text) = spelling(secret.expose())
                && text != secret.expose()
            {
                *secret = Secret::new(text);
                changed = true;
            }
        }
        changed.then_some((mistake, trial))
    })
}

/// Secrets with a newline at their end. No key is bound with one: it goes in as hex.
fn newline(profile: &Profile, trial: &Trial) -> Option<(Profile, Trial)> {
    let mut profile = profile.clone();
    let mut auth = profile.declared.auth.iter_mut();
    if !auth.all(|auth| std::mem::replace(&mut auth.key, KeyDecoding::Hex) == KeyDecoding::Text) {
        return None;
    }
    let mut trial = trial.clone();
    for key in &mut trial.keys {
        if let KeyMaterial::Secret(secret) = &mut key.material {
            let text = Secret::new([secret.expose(), b"\n"].concat());
            *secret = Secret::new(Encoding::Hex.encode(text.expose()).into_bytes());
        }
    }
    Some((profile, trial))
}

/// The profile, read otherwise
fn readings(profile: &Profile) -> impl Iterator<Item = (Mistake, Profile)> {
    let with = |mistake, change: &dyn Fn(&mut Auth)| {
        let mut profile = profile.clone();
        profile.declared.auth.iter_mut().for_each(change);
        (mistake, profile)
    };
    let mut all = Vec::new();
    for decoding in [
        KeyDecoding::Text,
        KeyDecoding::Hex,
        KeyDecoding::Base64,
        KeyDecoding::Whsec,
    ] {
        if profile
            .declared
            .auth
            .iter()
            .any(|auth| auth.key != decoding)
        {
            all.push(with(Mistake::SecretEncoding, &|auth| auth.key = decoding));
        }
    }
    for encoding in [
        Encoding::Hex,
        Encoding::Base64,
        Encoding::Base64url,
        Encoding::Base64urlUnpadded,
    ] {
        if (profile.declared.auth.iter()).any(|auth| auth.encoding.is_some_and(|e| e != encoding)) {
            all.push(with(Mistake::SignatureEncoding, &|auth| {
                auth.encoding = auth.encoding.map(|_| encoding);
            }));
        }
    }
    let prefixed = |auth: &Auth| matches!(auth.parser, Parser::Prefix { .. } | Parser::Raw);
    if profile.declared.auth.iter().any(prefixed) {
        all.push(with(Mistake::SignaturePrefix, &|auth| {
            if matches!(auth.parser, Parser::Prefix { .. }) {
                auth.parser = Parser::Raw;
            }
        }));
        for prefix in ["sha256=", "sha1=", "Bearer ", "v1=", "v0="] {
            all.push(with(Mistake::SignaturePrefix, &|auth| {
                if matches!(auth.parser, Parser::Raw | Parser::Prefix { .. }) {
                    auth.parser = Parser::Prefix {
                        prefix: prefix.to_owned(),
                    };
                }
            }));
        }
    }
    let stamped = |auth: &Auth| auth.timestamp.is_some();
    if profile.declared.auth.iter().any(stamped) {
        all.push(with(Mistake::ClockUnit, &|auth| {
            if let Some(rule) = &mut auth.timestamp {
                rule.unit = match rule.unit {
                    Unit::Seconds => Unit::Milliseconds,
                    Unit::Milliseconds | Unit::Rfc3339 => Unit::Seconds,
                };
            }
        }));
    }
    all.into_iter()
}

/// Keys that count whatever the delivery names
fn ids(trial: &Trial) -> impl Iterator<Item = Trial> {
    let named = trial.keys.iter().any(|key| key.id.is_some());
    let mut trial = trial.clone();
    trial.keys.iter_mut().for_each(|key| key.id = None);
    named.then_some(trial).into_iter()
}

/// The body as it may have been before something changed it
fn bodies(trial: &Trial) -> impl Iterator<Item = (Mistake, Option<String>, Bytes)> {
    let body = &trial.body;
    let mut all: Vec<(Mistake, Option<String>, Vec<u8>)> = Vec::new();
    let lines = body.iter().filter(|b| **b == b'\n').count();
    if lines > 0 {
        let mut bare = body.to_vec();
        bare.retain(|b| *b != b'\r');
        let mut crlf = Vec::with_capacity(bare.len() + lines);
        for byte in &bare {
            if *byte == b'\n' {
                crlf.push(b'\r');
            }
            crlf.push(*byte);
        }
        all.push((Mistake::BodyLineEnds, Some("CRLF".to_owned()), crlf));
        all.push((Mistake::BodyLineEnds, Some("LF".to_owned()), bare));
    }
    for end in [&b"\n"[..], b"\r\n"] {
        all.push((Mistake::BodyNewline, None, [body, end].concat()));
        if let Some(bare) = body.strip_suffix(end) {
            all.push((Mistake::BodyNewline, None, bare.to_vec()));
        }
    }
    if let Ok(document) = Document::parse(body.clone()) {
        for (name, style) in STYLES {
            let text = rewritten(&document, style).into_bytes();
            all.push((Mistake::BodyRewritten, Some(format!("it was {name}")), text));
        }
        let json = std::str::from_utf8(body).unwrap_or_default();
        for field in ["payload", "data"] {
            let form = form_urlencoded::Serializer::new(String::new())
                .append_pair(field, json)
                .finish();
            let detail = Some(format!("the field `{field}`"));
            all.push((Mistake::BodyForm, detail, form.into_bytes()));
        }
    } else {
        for (field, value) in form_urlencoded::parse(body).filter(|(_, v)| v.starts_with('{')) {
            let detail = Some(format!("the field `{field}`"));
            all.push((Mistake::BodyForm, detail, value.into_owned().into_bytes()));
        }
    }
    // What two mistakes would have made is told as the first
    let mut known = std::collections::BTreeSet::from([body.to_vec()]);
    (all.into_iter())
        .filter(move |(_, _, text)| known.insert(text.clone()))
        .map(|(mistake, detail, text)| (mistake, detail, Bytes::from(text)))
}

/// The URL as it may be registered, where it is signed
fn urls(profile: &Profile, trial: &Trial) -> impl Iterator<Item = String> {
    let params = profile.params();
    let signed = params.contains_key("base_url") || params.contains_key("callback_url");
    let mut all: Vec<String> = Vec::new();
    let given = ["base_url", "callback_url"].iter();
    let given = given.filter_map(|name| trial.options.params.get(*name)?.first());
    let seen = std::iter::once(&trial.request.url).chain(given);
    for url in seen.filter(|_| signed) {
        let Ok(parsed) = Url::parse(url) else {
            continue;
        };
        let mut changed = vec![url.clone()];
        let mut with = |change: &dyn Fn(&mut Url)| {
            let mut url = parsed.clone();
            change(&mut url);
            changed.push(url.to_string());
        };
        with(&|_| {});
        with(&|url| url.set_query(None));
        with(&|url| _ = url.set_port(None));
        let other = if parsed.scheme() == "https" {
            "http"
        } else {
            "https"
        };
        with(&|url| _ = url.set_scheme(other));
        with(&|url| {
            _ = url.set_port(None);
            _ = url.set_scheme("https");
        });
        for url in changed {
            let (path, query) = url
                .split_once('?')
                .map_or((url.as_str(), None), |(p, q)| (p, Some(q)));
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            let slashed = match path.strip_suffix('/') {
                Some(bare) => format!("{bare}{query}"),
                None => format!("{path}/{query}"),
            };
            all.extend([url.clone(), slashed]);
        }
    }
    all.sort_unstable();
    all.dedup();
    let as_is = (trial.request.url.clone(), trial.options.params.is_empty());
    all.into_iter()
        .filter(move |url| !(as_is.1 && *url == as_is.0))
}
