//! Keys from the network: what a profile's verifier wants is fetched by egress, once for all who wait, and
//! kept. Nobody can make the gateway ask without end: a source has a budget, and a failure is remembered.
//! What cannot be fetched makes a delivery neither authentic nor false: its sender is told to try again.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use postern_contract::fault::Fault as _;
use postern_contract::{Digest, Name, Timestamp};
use postern_egress::{Client, NotSent, Outbound};
use postern_profiles::{FetchedKey, FetchedKeys, KeyFault, KeyRequest, Outcome};
use rustls_pki_types::TrustAnchor;
use tokio::time::Instant;

use crate::receive::RawDelivery;
use crate::sources::Source;
use crate::verify::verify;

/// How long fetching a key may take: senders wait for it
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a failure stands for everybody who wants the same key
const FAILED: Duration = Duration::from_secs(2);
/// The most fetches of a source in a minute
const BUDGET: u32 = 30;
/// The most keys that are kept
const MAX_KEYS: usize = 1_024;
/// The most fetches for one delivery: a profile may want one key of each of two groups
const MAX_TURNS: usize = 4;

/// Why a key could not be had
#[derive(Clone, Debug, thiserror::Error)]
#[error("the key of {host}: {why}")]
pub struct NoKey {
    /// Who was asked
    pub host: String,
    /// Stable code
    pub code: &'static str,
    /// What came of it
    pub why: String,
}

/// The keys that have been fetched, and those that are under way
#[derive(Default)]
pub struct NetworkKeys {
    fetched: ArcSwap<FetchedKeys>,
    flights: Mutex<HashMap<Digest, Arc<Flight>>>,
    spent: Mutex<HashMap<Name, (Instant, u32)>>,
}

/// One key under way: whoever holds the lock asks, and the others wait for what it finds
#[derive(Default)]
struct Flight(tokio::sync::Mutex<Option<(Instant, NoKey)>>);

/// The roots of the system
static ANCHORS: LazyLock<Vec<TrustAnchor<'static>>> = LazyLock::new(|| {
    let found = rustls_native_certs::load_native_certs();
    let anchors = found.certs.iter().filter_map(|root| {
        let anchor = webpki::anchor_from_trusted_cert(root).ok()?;
        Some(anchor.to_owned())
    });
    anchors.collect()
});

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NetworkKeys {
    /// Verifies a delivery, and fetches the keys that it takes
    pub async fn verify(
        &self,
        source: &Source,
        raw: &RawDelivery,
        client: &Client,
    ) -> Result<Outcome, NoKey> {
        let mut turns = 0;
        loop {
            let fetched = self.fetched.load_full();
            let wanted = match verify(source, raw, &fetched) {
                Outcome::Wanted(request) => request,
                outcome => return Ok(outcome),
            };
            turns += 1;
            if turns > MAX_TURNS {
                return Err(no_key(&wanted, "key-answer", "it is too old when it comes"));
            }
            self.fetch(&source.name, &wanted, &fetched, client, raw.received_at)
                .await?;
        }
    }

    /// Fetches a key, unless somebody has since `seen`
    async fn fetch(
        &self,
        source: &Name,
        request: &KeyRequest,
        seen: &FetchedKeys,
        client: &Client,
        now: Timestamp,
    ) -> Result<(), NoKey> {
        let id = request.id();
        let flight = Arc::clone(lock(&self.flights).entry(id).or_default());
        let mut failed = flight.0.lock().await;
        let found = self.fetched.load_full();
        let same = match (found.get(request), seen.get(request)) {
            (Some(found), Some(seen)) => Arc::ptr_eq(found, seen),
            (found, seen) => found.is_none() && seen.is_none(),
        };
        if !same {
            return Ok(());
        }
        if let Some((at, why)) = &*failed
            && at.elapsed() < FAILED
        {
            return Err(why.clone());
        }
        let asked = match self.spend(source) {
            true => ask(request, client, now).await,
            false => Err(no_key(
                request,
                "key-budget",
                "the source has asked too often in this minute",
            )),
        };
        let ended = match asked {
            Ok(key) => {
                self.keep(request, &key);
                *failed = None;
                Ok(())
            }
            // What was fetched before still counts for a while
            Err(why) => match found.get(request).and_then(|key| key.prolonged(now)) {
                Some(key) => {
                    tracing::warn!(%source, code = why.code, "{why}; the last one still counts");
                    self.keep(request, &key);
                    Ok(())
                }
                None => {
                    *failed = Some((Instant::now(), why.clone()));
                    Err(why)
                }
            },
        };
        drop(failed);
        self.forget();
        ended
    }

    fn keep(&self, request: &KeyRequest, key: &FetchedKey) {
        self.fetched.rcu(|keys| {
            let mut keys = FetchedKeys::clone(keys);
            keys.insert(request, key.clone(), MAX_KEYS);
            keys
        });
    }

    /// Whether the source may ask once more
    fn spend(&self, source: &Name) -> bool {
        let mut spent = lock(&self.spent);
        let (since, times) = (spent.entry(source.clone())).or_insert((Instant::now(), 0));
        if since.elapsed() >= Duration::from_secs(60) {
            (*since, *times) = (Instant::now(), 0);
        }
        *times = times.saturating_add(1);
        *times <= BUDGET
    }

    /// Forgets the flights that nobody waits for and whose failure is over
    fn forget(&self) {
        lock(&self.flights).retain(|_, flight| {
            let failed = flight
                .0
                .try_lock()
                .map(|failed| (failed.as_ref()).is_some_and(|(at, _)| at.elapsed() < FAILED));
            Arc::strong_count(flight) > 1 || failed.unwrap_or(true)
        });
    }
}

fn no_key(request: &KeyRequest, code: &'static str, why: impl ToString) -> NoKey {
    NoKey {
        host: request.url.host_str().unwrap_or_default().to_owned(),
        code,
        why: why.to_string(),
    }
}

/// Asks once
async fn ask(request: &KeyRequest, client: &Client, now: Timestamp) -> Result<FetchedKey, NoKey> {
    let outbound = outbound(request).ok_or_else(|| {
        let why = "a header for it is none: check the source's credential";
        no_key(request, "key-request", why)
    })?;
    let sent = match &request.body {
        Some(_) => client.post(outbound).await,
        None => client.get(outbound).await,
    };
    let answer = sent.map_err(|why: NotSent| no_key(request, why.code(), &why))?;
    match answer.status.as_u16() {
        200..=299 => (request.read(&answer.body, &ANCHORS, now))
            .map_err(|why: KeyFault| no_key(request, why.code(), &why)),
        404 | 410 => Ok(FetchedKey::none(now)),
        status => Err(no_key(
            request,
            "key-status",
            format!("it is answered {status}"),
        )),
    }
}

fn outbound(request: &KeyRequest) -> Option<Outbound> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    for (name, value) in &request.headers {
        let mut value = HeaderValue::from_bytes(value.expose()).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str()).ok()?, value);
    }
    let body = match &request.body {
        Some(body) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Bytes::copy_from_slice(body.expose())
        }
        None => Bytes::new(),
    };
    Some(Outbound {
        url: request.url.clone(),
        headers,
        body,
        timeout: TIMEOUT,
    })
}
