//! The verifier of one source: authenticates the exact bytes first, holds the signed timestamp to its
//! tolerances, and only then reads the body.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use postern_contract::{Document, Kind, Resolution, Secret, Sha256Hex, Timestamp};
use subtle::ConstantTimeEq;

use crate::encoding::Encoding;
use crate::evidence::{Item, Malformed, ReplayKey, ReplayKind, VerifiedEvidence, delivery_name};
use crate::facts::{Facts, Params, View};
use crate::handshake::{Answer, Asked, Then};
use crate::instant::instant;
use crate::jwt::{Rules, Token};
use crate::key::{self, BindError, Key};
use crate::network::{FetchedKeys, KeyRequest, Lookup, look_up};
use crate::profile::{
    Auth, Delivery, Event, HandshakeAuth, Integrity, Profile, Reply, TimestampRule, TimestampSource,
};
use crate::refusal::{Refusal, Step};
use crate::request::RequestParts;
use crate::scheme::{LiveKey, Ready};
use crate::signature::{self, Read, contents, one};
use crate::source::{Found, Source};

/// The most bytes of a setup request: it is read though nobody has signed it
const MAX_SETUP: usize = 4_096;

/// The most items of a batch
const MAX_ITEMS: usize = 10_000;

/// A source's own tolerances
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// How old; absent: the profile's bound
    pub past: Option<Duration>,
    /// How far ahead; absent: the profile's bound
    pub future: Option<Duration>,
}

/// What a source says beside its keys
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its own tolerances
    pub tolerance: Tolerance,
    /// The profile's parameters
    pub params: Params,
    /// The operator holds the source in setup: the handshake that brings a secret is answered
    pub setup: bool,
    /// What keys are fetched with, where the profile's key server wants it
    pub credential: Option<Secret>,
}

/// A profile with keys
#[derive(Debug)]
pub struct Verifier<'p> {
    profile: &'p Profile,
    /// The same as the source's parameters make it, where it is the generic one
    special: Option<Box<Profile>>,
    /// The keys of each alternative of the profile
    keys: Vec<Vec<LiveKey>>,
    /// Whether keys are fetched: only where none is bound
    fetches: bool,
    options: Options,
}

/// What a request turned out to be
pub enum Outcome {
    /// An authentic delivery
    Verified(Box<VerifiedEvidence>),
    /// A handshake: its answer, and what must be done before it is given
    Handshake(Reply, Then),
    /// Authentic, and yet no evidence
    Malformed(Malformed),
    /// Not authentic
    Refused(Refusal),
    /// Not known before a key is fetched
    Wanted(Box<KeyRequest>),
}

/// Why verification ends without a proof
enum Halt {
    Refused(Refusal),
    /// What stands where the signature does is none of this alternative
    Other,
    Wanted(Box<KeyRequest>),
}

impl<R: Into<Refusal>> From<R> for Halt {
    fn from(why: R) -> Self {
        Self::Refused(why.into())
    }
}

impl Profile {
    /// Binds keys and parameters: decodes each key strictly, and refuses what could never verify anything
    pub fn bind(&self, keys: Vec<Key>, options: Options) -> Result<Verifier<'_>, BindError> {
        let special = self
            .specialised(&options.params)
            .map_err(BindError::Generic)?;
        let rules = special.as_ref().unwrap_or(self);
        let has_setup = (rules.declared.handshake.iter()).any(|h| h.verify == HandshakeAuth::Setup);
        let fetches = keys.is_empty() && rules.fetches_keys();
        if keys.is_empty() && !has_setup && !fetches {
            return Err(BindError::NoKey);
        }
        match (&options.credential, fetches && rules.needs_credential()) {
            (None, true) => return Err(BindError::NoCredential),
            (Some(_), false) => return Err(BindError::UnusedCredential),
            _ => {}
        }
        let Tolerance { past, future } = options.tolerance;
        if [past, future].iter().flatten().any(Duration::is_zero) {
            return Err(BindError::Tolerance);
        }
        if rules.tolerance().is_none() && (past.is_some() || future.is_some()) {
            return Err(BindError::NoTimestamp);
        }
        let known = self.params();
        if let Some(name) = options
            .params
            .keys()
            .find(|name| !known.contains_key(*name))
        {
            return Err(BindError::UnknownParam(name.clone()));
        }
        let given = |name: &String| options.params.get(name).is_some_and(|v| !v.is_empty());
        if let Some((name, _)) = known.iter().find(|(name, needed)| **needed && !given(name)) {
            return Err(BindError::NoParam(name.clone()));
        }
        let fetching = (rules.declared.auth.iter()).filter_map(|auth| auth.fetch.as_ref());
        let mut asked = fetching.flat_map(|rule| rule.needed_params());
        if fetches && let Some(name) = asked.find(|name| !given(&(*name).to_owned())) {
            return Err(BindError::NoParam(name.to_owned()));
        }
        // Where a parameter says which key the deliveries name, a key without an id is that one
        let named = |auth: &Auth| match &auth.key_id {
            Some(Source::Param(name)) => options.params.get(name)?.first().cloned(),
            _ => None,
        };
        let mut bound: Vec<Vec<LiveKey>> = rules.declared.auth.iter().map(|_| Vec::new()).collect();
        for key in &keys {
            // Alternatives may take keys of different kinds: a key is one of those that it fits
            let mut fault = None;
            let mut fits = false;
            for (auth, live) in rules.declared.auth.iter().zip(&mut bound) {
                match key::prepare(key, auth) {
                    Ok(ready) => {
                        fits = true;
                        live.push(LiveKey {
                            name: key.name.clone(),
                            id: key.id.clone().or_else(|| named(auth)),
                            not_after: key.not_after,
                            ready,
                        });
                    }
                    Err(e) => fault = fault.or(Some(e)),
                }
            }
            if let Some(fault) = fault.filter(|_| !fits) {
                return Err(fault);
            }
        }
        let verifier = Verifier {
            profile: self,
            special: special.clone().map(Box::new),
            keys: bound,
            fetches,
            options,
        };
        let usable = |group: &Option<&str>| {
            let mut alternatives = verifier.alternatives(*group);
            alternatives.any(|(auth, keys)| !keys.is_empty() || fetches && auth.is_fetched())
        };
        if (fetches || !keys.is_empty()) && !rules.groups().iter().all(usable) {
            return Err(BindError::NoKey);
        }
        Ok(verifier)
    }

    /// The groups of alternatives, each of which must hold
    fn groups(&self) -> BTreeSet<Option<&str>> {
        (self.declared.auth.iter())
            .map(|auth| auth.group.as_deref())
            .collect()
    }
}

/// A native event read without authenticating it: for trials and fixtures, never for a gateway
pub struct Unverified {
    /// The native event's name, where the profile finds one
    pub event: Option<String>,
    /// The delivery's id by the provider; of a batch, what canonical events call the item
    pub delivery: Option<String>,
    /// The JSON text of the evidence
    pub evidence: Bytes,
}

impl Profile {
    /// Reads a request as if it were authentic: its one event, or those of the batch
    pub fn read_unverified(&self, request: &RequestParts<'_>) -> Vec<Unverified> {
        let params = Params::new();
        let facts = Facts::new(self, *request, &params);
        let id = (self.declared.auth.iter())
            .find_map(|auth| one(request.headers, auth.id_header.as_deref()?));
        let view = View {
            signed_id: id,
            ..facts.view()
        };
        let parses = facts.document().is_ok();
        let delivery = self.delivery(&view).name().filter(|_| parses);
        if let Ok(Some(items)) = self.batch(&view, delivery.as_deref()) {
            let read = |item: Item| Unverified {
                event: Some(item.event),
                delivery: Some(item.delivery),
                evidence: item.document.text().clone(),
            };
            return items.into_iter().map(read).collect();
        }
        vec![Unverified {
            event: self.event(&view).filter(|_| parses),
            delivery,
            evidence: facts.evidence().clone(),
        }]
    }

    /// The items of a batch; nothing where the body is one event. A body that repeats a key is never taken
    /// apart: as a whole it is ambiguous to every trigger.
    fn batch(
        &self,
        view: &View<'_>,
        delivery: Option<&str>,
    ) -> Result<Option<Vec<Item>>, Malformed> {
        let whole = view.facts.document().ok();
        let whole = whole.filter(|document| document.repeated_key().is_none());
        let Some((batch, whole)) = self.declared.batch.as_ref().zip(whole) else {
            return Ok(None);
        };
        let array = |at| match whole.resolve(at) {
            Resolution::Resolved(value) if value.kind() == Kind::Array => Some(value),
            _ => None,
        };
        let Some(array) = batch.at.iter().find_map(array) else {
            return Ok(None);
        };
        if array.len() > MAX_ITEMS {
            return Err(Malformed::Batch(MAX_ITEMS));
        }
        let delivery = delivery_name(delivery, view.facts.body_sha256());
        let mut items = Vec::new();
        let mut ids = BTreeSet::new();
        for (index, item) in array.items().into_iter().flatten().enumerate() {
            let view = View {
                item: Some(item),
                ..*view
            };
            // An item that names no event is nothing to any trigger
            let Some(event) = self.event(&view) else {
                continue;
            };
            let id = batch.id.as_ref().and_then(|id| id.read(&view).name());
            // Two items of one name would be one event, and the second of them lost
            let id = id.filter(|id| ids.insert(id.clone()));
            let id = id.unwrap_or_else(|| format!("[{index}]"));
            items.push(Item {
                event,
                delivery: format!("{delivery}#{id}"),
                document: item.to_document()?,
            });
        }
        if items.is_empty() && !array.is_empty() {
            return Err(Malformed::NoEvent);
        }
        Ok(Some(items))
    }

    fn event(&self, view: &View<'_>) -> Option<String> {
        let join = |sources: &[Source]| {
            let names: Option<Vec<String>> = sources.iter().map(|s| s.read(view).name()).collect();
            names.map(|names| names.join("."))
        };
        match &self.declared.event {
            // What is no name is not made good by the next place
            Event::First(sources) => first(sources, view).name(),
            Event::Join(sources) => join(sources),
            Event::Any(lists) => lists.iter().find_map(|sources| join(sources)),
        }
    }

    fn delivery(&self, view: &View<'_>) -> Found {
        match &self.declared.delivery {
            None => Found::Nothing,
            Some(Delivery::One(source)) => source.read(view),
            Some(Delivery::First { first: sources }) => first(sources, view),
            Some(Delivery::Join { join }) => {
                let mut names = Vec::new();
                for source in join {
                    match source.read(view) {
                        Found::Name(name) => names.push(name),
                        other => return other,
                    }
                }
                Found::Name(names.join(":"))
            }
        }
    }
}

/// The first place where something stands
fn first(sources: &[Source], view: &View<'_>) -> Found {
    let mut found = sources.iter().map(|source| source.read(view));
    found
        .find(|found| *found != Found::Nothing)
        .unwrap_or(Found::Nothing)
}

/// What an alternative has shown: who signed, and what
struct Proof<'v> {
    key: &'v LiveKey,
    id: Option<Vec<u8>>,
    signed_at: Option<Timestamp>,
    claims: Option<Document>,
    /// What was signed, as replays of it are recognised: of items that are signed each, one an item
    covered: Vec<ReplayKey>,
}

impl<'p> Verifier<'p> {
    /// The profile
    pub fn profile(&self) -> &'p Profile {
        self.profile
    }

    /// What it holds deliveries to
    fn rules(&self) -> &Profile {
        self.special.as_deref().unwrap_or(self.profile)
    }

    /// The names of its keys, and when each ends
    pub fn keys(&self) -> BTreeMap<&str, Option<Timestamp>> {
        let keys = self.keys.iter().flatten();
        keys.map(|key| (key.name.as_str(), key.not_after)).collect()
    }

    /// Whether the source has this parameter
    pub fn has_param(&self, name: &str) -> bool {
        self.options.params.contains_key(name)
    }

    /// Past and future tolerance of signed timestamps together
    pub fn tolerated(&self) -> Duration {
        let (past, future) = self.rules().tolerance().unwrap_or_default();
        let own = self.options.tolerance;
        own.past.unwrap_or(past) + own.future.unwrap_or(future)
    }

    /// Verifies a request as of `now`, by the keys that are bound
    pub fn verify(&self, request: &RequestParts<'_>, now: Timestamp) -> Outcome {
        self.verify_with(request, &FetchedKeys::default(), now)
    }

    /// Verifies a request as of `now`, by the keys that are bound or have been fetched
    pub fn verify_with(
        &self,
        request: &RequestParts<'_>,
        fetched: &FetchedKeys,
        now: Timestamp,
    ) -> Outcome {
        match self.authenticate(request, fetched, now) {
            Ok(outcome) => outcome,
            Err(Halt::Refused(refusal)) => Outcome::Refused(refusal),
            Err(Halt::Other) => Outcome::Refused(Step::SignatureMalformed.into()),
            Err(Halt::Wanted(request)) => Outcome::Wanted(request),
        }
    }

    fn authenticate(
        &self,
        request: &RequestParts<'_>,
        fetched: &FetchedKeys,
        now: Timestamp,
    ) -> Result<Outcome, Halt> {
        let facts = Facts::new(self.rules(), *request, &self.options.params);
        if let Some((reply, then)) = self.unsigned(&facts, now)? {
            return Ok(Outcome::Handshake(reply, then));
        }
        if request.method != "POST" {
            return Err(Step::Method.into());
        }
        if self.keys.iter().all(Vec::is_empty) && !self.fetches {
            return Err(Step::NoLiveKey.into());
        }
        let mut proofs = Vec::new();
        for group in self.rules().groups() {
            proofs.push(self.hold(group, &facts, fetched, now)?);
        }
        Ok(self.read(facts, proofs, now)?)
    }

    /// The answer to a handshake that nobody signs
    fn unsigned(
        &self,
        facts: &Facts<'_>,
        now: Timestamp,
    ) -> Result<Option<(Reply, Then)>, Refusal> {
        let keyless = self.keys.iter().all(Vec::is_empty) && !self.fetches;
        let handshakes = self
            .rules()
            .declared
            .handshake
            .iter()
            .filter(|h| match h.verify {
                HandshakeAuth::Signed => false,
                HandshakeAuth::Setup => keyless || self.options.setup,
                HandshakeAuth::Token | HandshakeAuth::None => true,
            });
        let short = facts.request.body.len() <= MAX_SETUP;
        let asked = Asked {
            view: facts.view(),
            key: self.keys.iter().flatten().find(|key| key.is_live(now)),
            signed: false,
        };
        for handshake in handshakes.filter(|h| h.at.is_none() || short) {
            if !asked.meets(handshake) {
                continue;
            }
            if handshake.verify == HandshakeAuth::Token && !asked.has_token(handshake) {
                return Err(Step::SignatureMismatch.into());
            }
            if let Some(reply) = asked.reply(handshake) {
                return Ok(Some((reply, asked.then(handshake).ok_or(Step::Condition)?)));
            }
        }
        Ok(None)
    }

    fn alternatives(&self, group: Option<&str>) -> impl Iterator<Item = (&Auth, &[LiveKey])> {
        (self.rules().declared.auth.iter())
            .zip(self.keys.iter().map(Vec::as_slice))
            .filter(move |(auth, _)| auth.group.as_deref() == group)
    }

    /// Holds a delivery to one group: the first alternative whose signature is there decides, so that a
    /// wrong signature in it is not made good by another, but where the profile says so
    fn hold<'v>(
        &'v self,
        group: Option<&str>,
        facts: &Facts<'_>,
        fetched: &'v FetchedKeys,
        now: Timestamp,
    ) -> Result<Proof<'v>, Halt> {
        let mut refusal: Option<Refusal> = None;
        for (auth, keys) in self.alternatives(group) {
            if !auth.when.iter().all(|guard| guard.holds(&facts.view())) {
                continue;
            }
            match self.attempt(auth, keys, facts, fetched, now) {
                Ok(Some(proof)) => return Ok(proof),
                Ok(None) => {}
                Err(Halt::Other) => {
                    refusal = refusal.or(Some(Step::SignatureMalformed.into()));
                }
                Err(Halt::Refused(e)) if auth.or_next => refusal = refusal.or(Some(e)),
                Err(halt) => return Err(halt),
            }
        }
        Err(refusal.map_or_else(|| Step::SignatureMissing.into(), Halt::Refused))
    }

    /// Tries one alternative; nothing where its signature is not there
    fn attempt<'v>(
        &'v self,
        auth: &'v Auth,
        keys: &'v [LiveKey],
        facts: &Facts<'_>,
        fetched: &'v FetchedKeys,
        now: Timestamp,
    ) -> Result<Option<Proof<'v>>, Halt> {
        let Some(each) = &auth.each else {
            return self.attempt_in(auth, keys, &facts.view(), fetched, now);
        };
        // Every item is signed on its own: one that is not makes the delivery false
        let found = facts.document().ok().map(|document| document.resolve(each));
        let Some(Resolution::Resolved(array)) = found else {
            return Ok(None);
        };
        let mut whole: Option<Proof<'v>> = None;
        for item in array.items().into_iter().flatten() {
            let view = View {
                item: Some(item),
                ..facts.view()
            };
            let proof = self.attempt_in(auth, keys, &view, fetched, now)?;
            let proof = proof.ok_or(Step::SignatureMissing)?;
            match &mut whole {
                None => whole = Some(proof),
                Some(whole) => whole.covered.extend(proof.covered),
            }
        }
        Ok(whole)
    }

    fn attempt_in<'v>(
        &'v self,
        auth: &'v Auth,
        keys: &'v [LiveKey],
        view: &View<'_>,
        fetched: &'v FetchedKeys,
        now: Timestamp,
    ) -> Result<Option<Proof<'v>>, Halt> {
        let texts = signature::texts(auth, view)?;
        if texts.is_empty() {
            return Ok(None);
        }
        let certificate = match &auth.certificate {
            Some(rule) => Some(rule.address(view).ok_or(Step::CertificateUrl)?),
            None => None,
        };
        let read = signature::read(auth, &texts, view)?.ok_or(Halt::Other)?;
        let bound = keys;
        let keys = |id: Option<&str>| match self.fetches && auth.is_fetched() {
            true => {
                let credential = self.options.credential.as_ref();
                let facts = view.facts;
                match look_up(auth, id, facts, certificate, credential, fetched, now) {
                    Lookup::Key(key) => Ok(std::slice::from_ref(key)),
                    Lookup::Wanted(request) => Err(Halt::Wanted(request)),
                    Lookup::None(step) => Err(step.into()),
                }
            }
            false if bound.iter().any(|key| key.is_live(now)) => Ok(bound),
            false => Err(Step::NoLiveKey.into()),
        };
        let proof = match &auth.jwt {
            Some(rules) => {
                let mut candidates = read.sets.iter().flat_map(|set| &set.candidates);
                let (Some(text), None) = (candidates.next(), candidates.next()) else {
                    return Err(Step::SignatureMalformed.into());
                };
                let token = Token::parse(&text.bytes)
                    .filter(|token| token.is_allowed(&rules.algorithms))
                    .ok_or(Step::TokenMalformed)?;
                let keys = keys(token.kid())?;
                self.token(auth, rules, keys, token, view, now)?
            }
            None => {
                let source = auth.key_id.as_ref();
                let id = source.and_then(|source| source.read(view).name());
                self.signed(auth, keys(id.as_deref())?, id.as_deref(), &read, view, now)?
            }
        };
        if let Some(source) = &auth.body_sha256 {
            let stated = source.read(view).name().unwrap_or_default();
            let stated = Encoding::Hex.decode(stated.as_bytes()).unwrap_or_default();
            let digest = Sha256Hex::of(view.facts.request.body);
            if !bool::from(digest.as_bytes().as_slice().ct_eq(&stated)) {
                return Err(Step::BodyHash.into());
            }
        }
        Ok(Some(proof))
    }

    /// A signature, MAC or token over contents of the delivery
    fn signed<'v>(
        &'v self,
        auth: &'v Auth,
        keys: &'v [LiveKey],
        named: Option<&str>,
        read: &Read<'_>,
        view: &View<'_>,
        now: Timestamp,
    ) -> Result<Proof<'v>, Refusal> {
        let mine =
            |key: &&LiveKey| key.is_live(now) && (auth.key_id.is_none() || key.is_named(named));
        let mut fault = Refusal::from(Step::SignatureMismatch);
        for set in &read.sets {
            let mut held = None;
            for content in contents(auth, set, read.id, view)? {
                let parts: Vec<&[u8]> = content.iter().map(AsRef::as_ref).collect();
                // Every key is tried, so that the time tells nothing of which one is right
                for key in keys.iter().filter(mine) {
                    if key.verify(&parts, &set.candidates).is_some() && held.is_none() {
                        held = Some((key, vec![self.covered(&content, view)]));
                    }
                }
            }
            let Some((key, covered)) = held else { continue };
            match self.stamp(auth, set.timestamp.as_deref(), view, now) {
                Ok(signed_at) => {
                    return Ok(Proof {
                        key,
                        id: read.id.map(<[u8]>::to_vec),
                        signed_at,
                        claims: None,
                        covered,
                    });
                }
                Err(refusal) => fault = refusal,
            }
        }
        Err(fault)
    }

    /// A JSON Web Token
    fn token<'v>(
        &'v self,
        auth: &'v Auth,
        rules: &Rules,
        keys: &'v [LiveKey],
        token: Token<'_>,
        view: &View<'_>,
        now: Timestamp,
    ) -> Result<Proof<'v>, Refusal> {
        let named = match &auth.key_id {
            Some(Source::Claim(name)) => token.unverified_claim(name).map(str::to_owned),
            Some(source) => source.read(view).name(),
            None => None,
        };
        let mut held = None;
        for key in keys.iter().filter(|key| key.is_live(now)) {
            if auth.key_id.is_some() && !key.is_named(named.as_deref()) {
                continue;
            }
            let right = match &key.ready {
                Ready::JwtSecret(secret) => token.is_signed_with(&rules.algorithms, secret),
                Ready::JwtPublic(set) => token.is_signed_by(&rules.algorithms, set, now),
                _ => false,
            };
            if right && held.is_none() {
                held = Some(key);
            }
        }
        let key = held.ok_or(Step::SignatureMismatch)?;
        let claims = token.held(rules, view.facts, now)?;
        Ok(Proof {
            key,
            id: None,
            signed_at: None,
            claims: Some(claims),
            covered: vec![self.covered(&[Cow::Borrowed(view.facts.request.body.as_ref())], view)],
        })
    }

    /// What the signature covers, as replays of it are recognised. A token covers nothing, so that the body
    /// stands in.
    fn covered(&self, content: &[Cow<'_, [u8]>], view: &View<'_>) -> ReplayKey {
        let body = view.facts.request.body;
        let digest = view.facts.body_sha256();
        let digest = digest.as_bytes().as_slice();
        let parts: Vec<&[u8]> = match self.rules().integrity() {
            Integrity::None => vec![digest],
            Integrity::Full | Integrity::Partial => (content.iter())
                // The body stands for itself by its digest, which is known already
                .map(|part| {
                    if std::ptr::eq(part.as_ref(), body.as_ref()) {
                        digest
                    } else {
                        part
                    }
                })
                .collect(),
        };
        ReplayKey::new(ReplayKind::Content, &parts)
    }

    /// The signed timestamp, within its tolerances
    fn stamp(
        &self,
        auth: &Auth,
        beside: Option<&[u8]>,
        view: &View<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Refusal> {
        let Some(rule) = &auth.timestamp else {
            return Ok(None);
        };
        let text = match &rule.from {
            TimestampSource::Json(pointer) => signature::json(view, pointer)
                .and_then(|value| value.number_text().or(value.as_str()))
                .map(str::as_bytes),
            _ => beside,
        };
        let text = text.ok_or(Step::TimestampMissing)?;
        self.in_time(rule, text, now).map(Some)
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
        let Tolerance { past, future } = self.options.tolerance;
        let age = now.unix_ms().saturating_sub(at.unix_ms());
        let step = if age > seconds(past, rule.past_seconds) {
            Step::TimestampOld
        } else if age.saturating_neg() > seconds(future, rule.future_seconds) {
            Step::TimestampAhead
        } else {
            return Ok(at);
        };
        Err(Refusal {
            step,
            detail: Some(format!("off by {} s", age.saturating_abs() / 1000)),
        })
    }

    /// Everything that is read of an authentic request
    fn read(
        &self,
        facts: Facts<'_>,
        proofs: Vec<Proof<'_>>,
        now: Timestamp,
    ) -> Result<Outcome, Refusal> {
        let declared = &self.rules().declared;
        let key = proofs.first().map(|proof| proof.key);
        let key = key.filter(|key| key.is_live(now)).ok_or(Step::NoLiveKey)?;
        let view = View {
            signed_id: proofs.iter().find_map(|proof| proof.id.as_deref()),
            claims: proofs.iter().find_map(|proof| proof.claims.as_ref()),
            ..facts.view()
        };
        if !declared.require.iter().all(|guard| guard.holds(&view)) {
            return Err(Step::Condition.into());
        }
        if let Err(why) = facts.document() {
            return Ok(Outcome::Malformed(why.clone().into()));
        }
        let asked = Asked {
            view,
            key: Some(key),
            signed: true,
        };
        match asked.answer(&declared.handshake) {
            Answer::Reply(reply, then) => return Ok(Outcome::Handshake(reply, then)),
            Answer::Incomplete => return Ok(Outcome::Malformed(Malformed::Handshake)),
            Answer::NoHandshake => {}
        }
        let delivery = match self.rules().delivery(&view) {
            Found::Unusable => return Ok(Outcome::Malformed(Malformed::Delivery)),
            found => found.name(),
        };
        let body_sha256 = facts.body_sha256();
        let items = match self.rules().batch(&view, delivery.as_deref()) {
            Err(why) => return Ok(Outcome::Malformed(why)),
            Ok(Some(items)) => items,
            Ok(None) => {
                let Some(event) = self.rules().event(&view) else {
                    return Ok(Outcome::Malformed(Malformed::NoEvent));
                };
                match facts.into_document() {
                    Err(why) => return Ok(Outcome::Malformed(why.into())),
                    Ok(document) => vec![Item {
                        event,
                        delivery: delivery_name(delivery.as_deref(), body_sha256),
                        document,
                    }],
                }
            }
        };
        Ok(Outcome::Verified(Box::new(VerifiedEvidence {
            replay_keys: self.replay_keys(delivery.as_deref(), &proofs),
            delivery,
            items,
            key_name: key.name.clone(),
            signed_at: proofs.iter().find_map(|proof| proof.signed_at),
            body_sha256,
        })))
    }

    /// A signed id is the identity. An unsigned one can be changed by whoever copies the delivery, so that
    /// what is covered counts too.
    fn replay_keys(&self, id: Option<&str>, proofs: &[Proof<'_>]) -> Vec<ReplayKey> {
        let signed = (self.rules().declared.delivery.as_ref())
            .is_some_and(|source| self.rules().covers(source));
        let mut keys: Vec<ReplayKey> = Vec::new();
        keys.extend(id.map(|id| ReplayKey::new(ReplayKind::Id, &[id.as_bytes()])));
        if !signed || keys.is_empty() {
            let covered: BTreeSet<&ReplayKey> =
                proofs.iter().flat_map(|proof| &proof.covered).collect();
            keys.extend(covered);
        }
        keys
    }
}
