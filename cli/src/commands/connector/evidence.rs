//! Evidence from a fixture: verified where a secret is given and holds, else read as the profile would
//! read it and marked as not authenticated.

use std::time::Duration;

use bytes::Bytes;
use postern_contract::{CapturedRequest, Document, MalformedBody, Secret, Timestamp};
use postern_profiles::{
    BindError, Key, KeyMaterial, Malformed, Options, Outcome, Profile, Refusal, RequestParts, Step,
    Tolerance, VerifiedEvidence, Verifier,
};

use crate::captured::Fixture;
use crate::failure::Failure;
use crate::output::Exit;

/// The seed of RFC 8032's first test vector: 64 hex digits, which every profile's key decoding takes
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
/// Its public key
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// What a fixture turned out to be
pub(super) enum Reading {
    /// Evidence, to which a trigger can be held
    Evidence(Evidence),
    /// No evidence, whatever the trigger
    Malformed(MalformedBody, Authenticated),
    /// A delivery that a gateway shows to no trigger: its id is none, or its handshake has no answer
    Unusable(Malformed, Authenticated),
    /// A secret was given, and the delivery is not authentic under it
    Refused(Refusal),
}

/// Whether a secret was given and the profile's verification held
#[derive(Clone, Copy)]
pub(super) enum Authenticated {
    /// It held
    Yes,
    /// No secret was given
    No,
}

/// What a trigger looks at
pub(super) struct Evidence {
    /// The native event's name
    pub(super) event: String,
    /// The delivery's id by the provider
    pub(super) delivery: Option<String>,
    /// The body as received
    pub(super) body: Bytes,
    /// The JSON in it: the body itself, or what a form holds
    pub(super) text: Bytes,
    pub(super) authenticated: Authenticated,
}

impl Evidence {
    /// The item of a batch, or the only one
    fn read(
        evidence: &VerifiedEvidence,
        item: usize,
        body: &Bytes,
        authenticated: Authenticated,
    ) -> Result<Self, Failure> {
        let items = evidence.items();
        let item = items.get(item).ok_or_else(|| {
            let why = format!("the delivery has {} items, counted from 0", items.len());
            Failure::call("no-item", why)
        })?;
        Ok(Self {
            event: item.event().to_owned(),
            delivery: Some(item.delivery().to_owned()),
            body: body.clone(),
            text: item.document().text().clone(),
            authenticated,
        })
    }
}

/// What is looked at in a fixture
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    /// The native event's name, where it was given
    pub(super) event: Option<&'a str>,
    /// The item of a batch
    pub(super) item: usize,
}

/// Reads `fixture` for a trigger of `profile`, as of `now`
pub(super) fn read(
    fixture: &Fixture,
    profile: &'static Profile,
    look: Look<'_>,
    secret: Option<(&str, Secret)>,
    now: Timestamp,
) -> Result<Reading, Failure> {
    let event = look.event;
    match (fixture, secret) {
        (Fixture::Body(_), Some(_)) => Err(Failure::call(
            "not-a-request",
            "a bare body carries no signature: `--secret-env` needs a captured request",
        )),
        (Fixture::Body(body), None) => {
            let event = event.ok_or_else(|| {
                Failure::call("no-event", "a bare body names no native event")
                    .hint("name it with `--event`")
            })?;
            Ok(bare(body, event))
        }
        (Fixture::Request(request, body), Some((name, secret))) => {
            verified(request, body, profile, look, name, secret, now)
        }
        (Fixture::Request(request, body), None) => unverified(request, body, profile, look, now),
    }
}

fn bare(body: &Bytes, event: &str) -> Reading {
    match Document::parse(body.clone()) {
        Ok(_) => Reading::Evidence(Evidence {
            event: event.to_owned(),
            delivery: None,
            body: body.clone(),
            text: body.clone(),
            authenticated: Authenticated::No,
        }),
        Err(why) => Reading::Malformed(why, Authenticated::No),
    }
}

fn verified(
    request: &CapturedRequest,
    body: &Bytes,
    profile: &'static Profile,
    look: Look<'_>,
    name: &str,
    secret: Secret,
    now: Timestamp,
) -> Result<Reading, Failure> {
    let public = String::from_utf8_lossy(secret.expose()).into_owned();
    let verifier = bind(profile, name, secret, &public, Options::default())
        .map_err(|e| Failure::of(Exit::Call, &e))?;
    match verifier.verify(&parts(request, body), now) {
        Outcome::Verified(evidence) => {
            let evidence = Evidence::read(&evidence, look.item, body, Authenticated::Yes)?;
            match look.event {
                Some(event) if event != evidence.event => {
                    let own = &evidence.event;
                    let why = format!("`--event {event}`: the authentic delivery is `{own}`");
                    Err(Failure::call("other-event", why))
                }
                _ => Ok(Reading::Evidence(evidence)),
            }
        }
        Outcome::Malformed(Malformed::Body(why)) => Ok(Reading::Malformed(why, Authenticated::Yes)),
        Outcome::Malformed(why @ Malformed::NoEvent) => Err(no_event(&why.to_string())),
        Outcome::Malformed(why) => Ok(Reading::Unusable(why, Authenticated::Yes)),
        Outcome::Handshake(..) => Err(handshake()),
        Outcome::Refused(refusal) => Ok(Reading::Refused(refusal)),
        // A key is bound: none is fetched
        Outcome::Wanted(_) => Ok(Reading::Refused(Step::NoLiveKey.into())),
    }
}

/// Reads an unsigned fixture with the verifier's own code: it is signed with a published test key, and
/// timestamps of any age pass. This authenticates nothing, and the result says so.
fn unverified(
    request: &CapturedRequest,
    body: &Bytes,
    profile: &'static Profile,
    look: Look<'_>,
    now: Timestamp,
) -> Result<Reading, Failure> {
    let event = look.event;
    let ever = profile.tolerance().map(|_| Duration::MAX);
    let options = Options {
        tolerance: Tolerance {
            past: ever,
            future: ever,
        },
        // Any text does: it is signed and verified with the same
        params: (profile.params().into_iter())
            .filter(|(_, needed)| *needed)
            .map(|(name, _)| (name, vec!["test".to_owned()]))
            .collect(),
        ..Options::default()
    };
    let secret = || Secret::new(SEED.as_bytes().to_vec());
    let unreadable =
        |why: String| Failure::call("not-readable", format!("the fixture cannot be read: {why}"));
    let signed = profile
        .sign(request, body, &secret(), &options.params, now)
        .map_err(|e| unreadable(e.to_string()))?;
    let (request, body) = (&signed.request, &signed.body);
    let verifier =
        bind(profile, "test", secret(), PUBLIC, options).map_err(|e| unreadable(e.to_string()))?;
    match (verifier.verify(&parts(request, body), now), event) {
        (Outcome::Verified(evidence), named) => {
            let mut evidence = Evidence::read(&evidence, look.item, body, Authenticated::No)?;
            evidence.event = named.map_or(evidence.event, str::to_owned);
            Ok(Reading::Evidence(evidence))
        }
        (Outcome::Malformed(Malformed::Body(why)), _) => {
            Ok(Reading::Malformed(why, Authenticated::No))
        }
        // The body may still be evidence, of the event that was named
        (Outcome::Malformed(_) | Outcome::Refused(_) | Outcome::Wanted(_), Some(event)) => {
            Ok(bare(body, event))
        }
        (Outcome::Malformed(why @ Malformed::NoEvent), None) => Err(no_event(&why.to_string())),
        // An unsigned sample may lack a usable id: what the trigger says of its body is still worth knowing
        (Outcome::Malformed(why), None) => {
            let read = profile.read_unverified(&parts(request, body));
            let read = read.into_iter().nth(look.item);
            Ok(match read.map(|read| (read.event, read.evidence)) {
                Some((Some(event), evidence)) => bare(&evidence, &event),
                _ => Reading::Unusable(why, Authenticated::No),
            })
        }
        (Outcome::Refused(refusal), None) => Err(no_event(&refusal.to_string())),
        (Outcome::Wanted(_), None) => Err(no_event(&Step::NoLiveKey.to_string())),
        (Outcome::Handshake(..), _) => Err(handshake()),
    }
}

fn no_event(why: &str) -> Failure {
    Failure::call(
        "no-event",
        format!("the fixture names no native event: {why}"),
    )
    .hint("name it with `--event`")
}

fn handshake() -> Failure {
    Failure::no(
        "handshake",
        "the fixture is a handshake: the gateway answers it, and no trigger sees it",
    )
}

/// Binds the secret, or the public key where the profile takes one
fn bind(
    profile: &'static Profile,
    name: &str,
    secret: Secret,
    public: &str,
    options: Options,
) -> Result<Verifier<'static>, BindError> {
    let bind = |material| {
        let key = Key {
            name: name.to_owned(),
            id: None,
            material,
            not_after: None,
        };
        profile.bind(vec![key], options.clone())
    };
    match bind(KeyMaterial::Secret(secret)) {
        Err(BindError::OtherKind(..)) => bind(KeyMaterial::Public(public.to_owned())),
        bound => bound,
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
