//! The verifier of one source: authenticates the exact bytes first, holds the signed timestamp to its
//! tolerances, and only then reads the body.

mod bind;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use postern_contract::{Document, Sha256Hex, Timestamp};
use subtle::ConstantTimeEq;

pub use self::bind::{Options, Tolerance};
use crate::encoding::Encoding;
use crate::evidence::{Item, Malformed, ReplayKey, ReplayKind, VerifiedEvidence, delivery_name};
use crate::facts::{Facts, View};
use crate::handshake::{Answer, Asked, Then};
use crate::instant::instant;
use crate::jwt::{Rules, Token};
use crate::native::array;
use crate::network::{FetchedKeys, KeyRequest, Lookup, look_up};
use crate::profile::{
    Auth, HandshakeAuth, Integrity, Profile, Reply, TimestampRule, TimestampSource,
};
use crate::refusal::{Refusal, Step};
use crate::request::RequestParts;
use crate::scheme::{LiveKey, Ready};
use crate::signature::{self, Read, contents};
use crate::source::{Found, Source};

/// The most bytes of a setup request: it is read though nobody has signed it
const MAX_SETUP: usize = 4_096;

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
        let document = facts.document().ok();
        let Some(array) = document.and_then(|document| array(document, each)) else {
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
