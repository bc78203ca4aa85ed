//! The verifier of one source: authenticates the exact bytes first, holds the signed timestamp to its
//! tolerances, and only then reads the body.

use std::time::Duration;

use bytes::Bytes;
use postern_contract::{Document, Resolution, Secret, Sha256Hex, Timestamp};

use crate::evidence::{Malformed, ReplayKey, ReplayKind, VerifiedEvidence};
use crate::form;
use crate::handshake::{Answer, Asked};
use crate::instant::instant;
use crate::key::{self, BindError, Key};
use crate::profile::{
    Auth, Event, HandshakeAuth, Integrity, Part, Profile, Reply, TimestampRule, TimestampSource,
};
use crate::refusal::{Refusal, Step};
use crate::request::{HeaderSource, OneHeader, RequestParts};
use crate::scheme::{LiveKey, Ready};
use crate::signature::{Read, content, one, read_header};
use crate::source::{Found, Source};

/// The most bytes of a setup request: it is read though nobody has signed it
const MAX_SETUP: usize = 4_096;

/// A source's own tolerances
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// How old; absent: the profile's bound
    pub past: Option<Duration>,
    /// How far ahead; absent: the profile's bound
    pub future: Option<Duration>,
}

/// A profile with keys
#[derive(Debug)]
pub struct Verifier {
    profile: &'static Profile,
    /// The keys of each alternative of the profile
    keys: Vec<Vec<LiveKey>>,
    tolerance: Tolerance,
}

/// What a request turned out to be
pub enum Outcome {
    /// An authentic delivery
    Verified(Box<VerifiedEvidence>),
    /// A handshake and its answer
    Handshake(Reply),
    /// Authentic, and yet no evidence
    Malformed(Malformed),
    /// Not authentic
    Refused(Refusal),
}

impl Profile {
    /// Binds keys: decodes each strictly, and refuses what could never verify anything
    pub fn bind(
        &'static self,
        keys: Vec<Key>,
        tolerance: Tolerance,
    ) -> Result<Verifier, BindError> {
        let has_setup = (self.declared.handshake.iter()).any(|h| h.verify == HandshakeAuth::Setup);
        if keys.is_empty() && !has_setup {
            return Err(BindError::NoKey);
        }
        let given = [tolerance.past, tolerance.future];
        if given.iter().flatten().any(Duration::is_zero) {
            return Err(BindError::Tolerance);
        }
        if self.tolerance().is_none() && given.iter().any(Option::is_some) {
            return Err(BindError::NoTimestamp);
        }
        let bound = (self.declared.auth.iter())
            .map(|auth| keys.iter().map(|key| live(auth, key)).collect())
            .collect::<Result<_, _>>()?;
        Ok(Verifier {
            profile: self,
            keys: bound,
            tolerance,
        })
    }
}

/// A delivery read without authenticating it: for trials and fixtures, never for a gateway
pub struct Unverified {
    /// The native event's name, where the profile finds one
    pub event: Option<String>,
    /// The delivery's id by the provider
    pub delivery: Option<String>,
    /// The JSON text of the evidence
    pub evidence: Bytes,
}

impl Profile {
    /// Reads a request as if it were authentic
    pub fn read_unverified(&self, request: &RequestParts<'_>) -> Unverified {
        let evidence = self.form(request).unwrap_or_else(|| request.body.clone());
        let id = self
            .declared
            .auth
            .iter()
            .find_map(|auth| one(request.headers, auth.id_header.as_deref()?));
        let document = Document::parse(evidence.clone()).ok();
        let document = document.as_ref();
        Unverified {
            event: document.and_then(|d| self.event(request.headers, d, id)),
            delivery: (self.declared.delivery.as_ref())
                .and_then(|source| source.read(request.headers, document?, id).name()),
            evidence,
        }
    }

    fn form(&self, request: &RequestParts<'_>) -> Option<Bytes> {
        let form = self.declared.form.as_ref()?;
        if !form::is_form(request.headers, request.body) {
            return None;
        }
        // A form that is no text is no JSON either: it stays what it is
        form::evidence(form, request.body)
    }

    fn event(
        &self,
        headers: &dyn HeaderSource,
        document: &Document,
        signed_id: Option<&[u8]>,
    ) -> Option<String> {
        let read = |source: &Source| source.read(headers, document, signed_id);
        match &self.declared.event {
            // What is no name is not made good by the next place
            Event::First(sources) => (sources.iter().map(read))
                .find(|found| *found != Found::Nothing)
                .and_then(Found::name),
            Event::Join(sources) => {
                let names: Option<Vec<String>> = sources.iter().map(|s| read(s).name()).collect();
                names.map(|names| names.join("."))
            }
        }
    }
}

fn live(auth: &Auth, key: &Key) -> Result<LiveKey, BindError> {
    let decoded: Secret = key::decode(key, auth.scheme, auth.key)?;
    let ready = Ready::new(auth.scheme, decoded)
        .ok_or_else(|| BindError::Encoding(key.name.clone(), "a key of the profile's scheme"))?;
    Ok(LiveKey {
        name: key.name.clone(),
        not_after: key.not_after,
        ready,
    })
}

impl Verifier {
    /// The profile
    pub fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// Past and future tolerance of signed timestamps together
    pub fn tolerated(&self) -> Duration {
        let (past, future) = self.profile.tolerance().unwrap_or_default();
        self.tolerance.past.unwrap_or(past) + self.tolerance.future.unwrap_or(future)
    }

    /// Verifies a request as of `now`
    pub fn verify(&self, request: &RequestParts<'_>, now: Timestamp) -> Outcome {
        match self.authenticate(request, now) {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    fn authenticate(&self, request: &RequestParts<'_>, now: Timestamp) -> Result<Outcome, Refusal> {
        if request.method != "POST" {
            return Err(Step::Method.into());
        }
        if self.keys.iter().all(Vec::is_empty) {
            return self.set_up(request);
        }
        let (auth, keys, header) = self.alternative(request.headers)?;
        let read = read_header(auth, header, request.headers)?;
        // Where the form's field is what is signed, it has to be read first; else nothing is read yet
        let form = (auth.content.contains(&Part::Evidence))
            .then(|| self.profile.form(request))
            .flatten();
        let content = content(auth, &read, request.body, form.as_ref())?;
        let mut any_live = false;
        let mut held = None;
        for key in keys.iter().filter(|key| key.is_live(now)) {
            any_live = true;
            if held.is_none() && key.verify(&content, &read.candidates).is_some() {
                held = Some(key);
            }
        }
        let key = match held {
            Some(key) => key,
            None if any_live => return Err(Step::SignatureMismatch.into()),
            None => return Err(Step::NoLiveKey.into()),
        };
        let text = match &form {
            Some(text) => text.clone(),
            None => self
                .profile
                .form(request)
                .unwrap_or_else(|| request.body.clone()),
        };
        self.read(request, auth, key, &read, &content, text, now)
    }

    /// Everything that is read of an authentic request
    #[expect(
        clippy::too_many_arguments,
        reason = "the facts of one authentic request"
    )]
    fn read(
        &self,
        request: &RequestParts<'_>,
        auth: &Auth,
        key: &LiveKey,
        read: &Read<'_>,
        content: &[&[u8]],
        text: Bytes,
        now: Timestamp,
    ) -> Result<Outcome, Refusal> {
        let mut signed_at = None;
        if let (Some(rule), Some(text)) = (&auth.timestamp, read.timestamp) {
            signed_at = Some(self.in_time(rule, text, now)?);
        }
        let document = Document::parse(text);
        if let Some(rule) = &auth.timestamp
            && let TimestampSource::Json(pointer) = &rule.from
        {
            let found = document.as_ref().ok().map(|d| d.resolve(pointer));
            let digits = match found {
                Some(Resolution::Resolved(value)) => value.number_text().or(value.as_str()),
                _ => None,
            };
            let digits = digits.ok_or(Step::TimestampMissing)?;
            signed_at = Some(self.in_time(rule, digits.as_bytes(), now)?);
        }
        let document = match document {
            Ok(document) => document,
            Err(why) => return Ok(Outcome::Malformed(why.into())),
        };
        let asked = Asked {
            headers: request.headers,
            document: &document,
            key: Some(key),
        };
        match asked.answer(&self.profile.declared.handshake, HandshakeAuth::Signed) {
            Answer::Reply(reply) => return Ok(Outcome::Handshake(reply)),
            Answer::Incomplete => return Ok(Outcome::Malformed(Malformed::Handshake)),
            Answer::NoHandshake => {}
        }
        let Some(event) = self.profile.event(request.headers, &document, read.id) else {
            return Ok(Outcome::Malformed(Malformed::NoEvent));
        };
        let source = self.profile.declared.delivery.as_ref();
        let delivery = match source.map(|s| s.read(request.headers, &document, read.id)) {
            Some(Found::Name(id)) => Some(id),
            Some(Found::Nothing) | None => None,
            Some(Found::Unusable) => return Ok(Outcome::Malformed(Malformed::Delivery)),
        };
        let body_sha256 = Sha256Hex::of(request.body);
        let replay_keys = self.replay_keys(delivery.as_deref(), content, request.body, body_sha256);
        Ok(Outcome::Verified(Box::new(VerifiedEvidence {
            event,
            delivery,
            document,
            key_name: key.name.clone(),
            replay_keys,
            signed_at,
            body_sha256,
        })))
    }

    /// A signed id is the identity. An unsigned one can be changed by whoever copies the delivery, so that
    /// what is covered counts too; a token covers nothing, so that the body stands in.
    fn replay_keys(
        &self,
        id: Option<&str>,
        content: &[&[u8]],
        body: &Bytes,
        body_sha256: Sha256Hex,
    ) -> Vec<ReplayKey> {
        let signed = (self.profile.declared.delivery.as_ref())
            .is_some_and(|source| self.profile.covers(source));
        let by_id = id.map(|id| ReplayKey::new(ReplayKind::Id, &[id.as_bytes()]));
        let covered = || {
            // The body stands for itself by its digest, which is known already
            let digest = body_sha256.as_bytes().as_slice();
            let part = |part: &&'_ [u8]| {
                if std::ptr::eq(*part, body.as_ref()) {
                    digest.to_vec()
                } else {
                    part.to_vec()
                }
            };
            let parts: Vec<Vec<u8>> = match self.profile.integrity() {
                Integrity::None => vec![digest.to_vec()],
                Integrity::Full | Integrity::Partial => content.iter().map(part).collect(),
            };
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            ReplayKey::new(ReplayKind::Content, &parts)
        };
        match by_id {
            Some(key) if signed => vec![key],
            Some(key) => vec![key, covered()],
            None => vec![covered()],
        }
    }

    /// A source without keys answers the profile's setup request, and refuses everything else
    fn set_up(&self, request: &RequestParts<'_>) -> Result<Outcome, Refusal> {
        let document = Some(request.body)
            .filter(|body| body.len() <= MAX_SETUP)
            .and_then(|body| Document::parse(body.clone()).ok())
            .ok_or(Step::NoLiveKey)?;
        let asked = Asked {
            headers: request.headers,
            document: &document,
            key: None,
        };
        match asked.answer(&self.profile.declared.handshake, HandshakeAuth::Setup) {
            Answer::Reply(reply) => Ok(Outcome::Handshake(reply)),
            Answer::Incomplete | Answer::NoHandshake => Err(Step::NoLiveKey.into()),
        }
    }

    /// The first alternative whose header is present: a wrong signature in it is not made good by another
    fn alternative<'r>(
        &self,
        headers: &'r dyn HeaderSource,
    ) -> Result<(&Auth, &[LiveKey], &'r [u8]), Refusal> {
        for (auth, keys) in self.profile.declared.auth.iter().zip(&self.keys) {
            match headers.one(&auth.header) {
                OneHeader::One(header) => return Ok((auth, keys, header)),
                OneHeader::Several => return Err(Step::SignatureRepeated.into()),
                OneHeader::None => {}
            }
        }
        Err(Step::SignatureMissing.into())
    }

    fn in_time(
        &self,
        rule: &TimestampRule,
        text: &[u8],
        now: Timestamp,
    ) -> Result<Timestamp, Refusal> {
        let at = instant(rule.unit, text).ok_or(Step::TimestampMalformed)?;
        let seconds = |own: Option<Duration>, profile: u32| {
            own.map_or(i64::from(profile) * 1000, |d| {
                i64::try_from(d.as_millis()).unwrap_or(i64::MAX)
            })
        };
        let age = now.unix_ms().saturating_sub(at.unix_ms());
        let step = if age > seconds(self.tolerance.past, rule.past_seconds) {
            Step::TimestampOld
        } else if age.saturating_neg() > seconds(self.tolerance.future, rule.future_seconds) {
            Step::TimestampAhead
        } else {
            return Ok(at);
        };
        Err(Refusal {
            step,
            detail: Some(format!("off by {} s", age.saturating_abs() / 1000)),
        })
    }
}
