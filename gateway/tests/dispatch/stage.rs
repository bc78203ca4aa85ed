//! The dispatcher over an embedded store that tells what is asked of it, with a clock and an admission
//! that the test sets.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use postern_contract::{
    CanonicalEvent, Digest, EventSource, FieldValue, Name, Scalar, Sha256Hex, Timestamp, canonical,
};
use postern_egress::{Allowed, Client};
use postern_gateway::admission::NotAdmitted;
use postern_gateway::clock::Clock;
use postern_gateway::config::DestinationConfig;
use postern_gateway::dispatch::destination::DestinationFault;
use postern_gateway::dispatch::{Destination, Dispatcher, Running, StillAdmitted, Wake};
use postern_gateway::metrics::Metrics;
use postern_gateway::store::{
    BoxFuture, Claimed, Commit, Committed, DeliveryId, Embedded, NewEvent, Options, Owed, Settled,
    SettledAs, Store, StoreFault,
};
use tokio::sync::mpsc;

/// 2023-11-14T22:13:20Z
pub const BEGIN: i64 = 1_700_000_000;

/// A test that waits longer than this has failed
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    (tokio::time::timeout(Duration::from_secs(30), future).await).expect("it never happened")
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn environment(variable: &str) -> Option<Vec<u8>> {
    match variable {
        "NEW" => Some(b"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".to_vec()),
        "OLD" => Some(b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_vec()),
        "SEEN" => Some(b"a b=c\xff".to_vec()),
        _ => None,
    }
}

/// A destination as configured; faults are told by their code and text
pub fn destination(
    named: &str,
    config: serde_json::Value,
    allow: &[&str],
) -> Result<Destination, Vec<DestinationFault>> {
    let config: DestinationConfig = serde_json::from_value(config).unwrap();
    Destination::new(&name(named), &config, &allowed(allow), &environment)
}

fn allowed(entries: &[&str]) -> Allowed {
    let entries: Vec<String> = entries.iter().map(|e| (*e).to_owned()).collect();
    Allowed::parse(&entries).unwrap()
}

pub struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

/// Forwards to the store, tells what is settled, and counts what is asked
struct Watched {
    inner: Embedded,
    settled: mpsc::UnboundedSender<Settled>,
    asked: Mutex<BTreeMap<Name, usize>>,
    broken: AtomicBool,
    refused: AtomicUsize,
}

impl Watched {
    fn count(&self, destination: &Name) {
        *self
            .asked
            .lock()
            .unwrap()
            .entry(destination.clone())
            .or_default() += 1;
    }
}

impl Store for Watched {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Committed, StoreFault>> {
        self.inner.commit(commit)
    }
    fn claim(
        &self,
        destination: Name,
        limit: usize,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> BoxFuture<'_, Result<Vec<Claimed>, StoreFault>> {
        self.count(&destination);
        if self.broken.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Box::pin(async {
                Err(StoreFault::Io("claim", "broken by the test".to_owned()))
            });
        }
        self.inner.claim(destination, limit, now, lease_until)
    }
    fn settle(&self, settled: Vec<Settled>) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(async move {
            self.inner.settle(settled.clone()).await?;
            for one in settled {
                let _ = self.settled.send(one);
            }
            Ok(())
        })
    }
    fn kill(
        &self,
        subscription: Digest,
        reason: &'static str,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        self.inner.kill(subscription, reason, now)
    }
    fn requeue(
        &self,
        deliveries: Vec<DeliveryId>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        self.inner.requeue(deliveries, now)
    }
    fn next_due(&self, destination: Name) -> BoxFuture<'_, Result<Option<Timestamp>, StoreFault>> {
        self.count(&destination);
        self.inner.next_due(destination)
    }
    fn prune(&self, now: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<(), StoreFault>> {
        self.inner.prune(now, before)
    }
    fn ready(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        self.inner.ready()
    }
}

struct Admission(AtomicBool);

impl StillAdmitted for Admission {
    fn still_admitted(&self, _: &Claimed, _: &Name, _: Timestamp) -> Result<(), NotAdmitted> {
        if self.0.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err(NotAdmitted::NoAdmission)
        }
    }
}

pub struct Stage {
    pub dispatcher: Dispatcher,
    pub destinations: BTreeMap<Name, Arc<Destination>>,
    clock: Arc<TestClock>,
    store: Arc<Watched>,
    admission: Arc<Admission>,
    settled: mpsc::UnboundedReceiver<Settled>,
    committed: AtomicUsize,
    _dir: tempfile::TempDir,
}

impl Stage {
    /// These destinations, with loopback on the operator's list; nothing runs yet
    pub fn new(destinations: &[(&str, serde_json::Value)]) -> Self {
        Self::allowing(&["127.0.0.0/8"], destinations)
    }

    pub fn allowing(allow: &[&str], destinations: &[(&str, serde_json::Value)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (tell, settled) = mpsc::unbounded_channel();
        let store = Arc::new(Watched {
            inner: Embedded::open(dir.path(), Options::default()).unwrap(),
            settled: tell,
            asked: Mutex::default(),
            broken: AtomicBool::new(false),
            refused: AtomicUsize::new(0),
        });
        let clock = Arc::new(TestClock(AtomicI64::new(BEGIN * 1_000)));
        let admission = Arc::new(Admission(AtomicBool::new(true)));
        let dispatcher = Dispatcher {
            store: Arc::clone(&store) as Arc<dyn Store>,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            client: Client::new(allowed(allow)).unwrap(),
            admitted: Arc::clone(&admission) as Arc<dyn StillAdmitted>,
            metrics: Arc::new(Metrics::default()),
            wake: Wake::default(),
        };
        let destinations = destinations
            .iter()
            .map(|(named, config)| {
                let one = destination(named, config.clone(), allow).unwrap();
                (name(named), Arc::new(one))
            })
            .collect();
        Self {
            dispatcher,
            destinations,
            clock,
            store,
            admission,
            settled,
            committed: AtomicUsize::new(0),
            _dir: dir,
        }
    }

    pub fn start(&self) -> Running {
        self.dispatcher.start(&self.destinations)
    }

    /// The canonical event number `n`, with `text` in it
    pub fn event(n: usize, text: &str) -> CanonicalEvent {
        let digest = Digest::of(b"any");
        let received = Timestamp::from_unix(BEGIN).unwrap();
        let source = EventSource::new(
            "github-v1",
            digest,
            digest,
            "issues",
            &format!("delivery-{n}"),
            Sha256Hex::of(text.as_bytes()),
            received,
        );
        let title = FieldValue::Scalar(Scalar::String(text.to_owned()));
        let fields = BTreeMap::from([("title".to_owned(), title)]);
        CanonicalEvent::new("github", "issue-opened", None, fields, source)
    }

    /// Commits an event that owes `destination` a delivery
    pub async fn owe(&self, destination: &str) -> Debt {
        self.owe_text(destination, "naïve \"title\"\n").await
    }

    pub async fn owe_text(&self, destination: &str, text: &str) -> Debt {
        let n = self.committed.fetch_add(1, Ordering::SeqCst);
        let event = Self::event(n, text);
        self.commit(
            destination,
            event.id().unwrap(),
            canonical::to_vec(&event).unwrap(),
        )
        .await
    }

    /// Commits a document that is no event
    pub async fn owe_poison(&self, destination: &str) -> Debt {
        let document = b"{\"kind\":\"poison\"}".to_vec();
        self.commit(destination, Sha256Hex::of(&document), document)
            .await
    }

    async fn commit(&self, destination: &str, event: Sha256Hex, document: Vec<u8>) -> Debt {
        let (subscription, destination) = (Digest::of(b"subscription"), name(destination));
        let id = DeliveryId::of(event, subscription, &destination);
        let document = Bytes::from(document);
        let committed = self.store.inner.commit(Commit {
            source: name("octo"),
            replay_keys: Vec::new(),
            window_until: self.clock.now(),
            received_at: self.clock.now(),
            delivery: event.to_string(),
            body: document.clone(),
            body_sha256: event,
            events: vec![NewEvent {
                id: event,
                document: document.clone(),
                trigger_digest: Digest::of(b"trigger"),
                owed: vec![Owed {
                    id,
                    subscription,
                    destination,
                }],
            }],
        });
        assert!(matches!(
            within(committed).await,
            Ok(Committed::Fresh { .. })
        ));
        self.dispatcher.wake.wake();
        Debt {
            id,
            event,
            document,
        }
    }

    /// What the next attempt to end came to
    pub async fn settled(&mut self) -> Settled {
        within(self.settled.recv()).await.unwrap()
    }

    /// The next attempt to end must have failed: when it is tried again, and why
    pub async fn retried(&mut self) -> (Timestamp, String) {
        let settled = self.settled().await;
        match settled.outcome {
            SettledAs::Retry { at } => (at, settled.detail),
            other => panic!("{other:?}: {}", settled.detail),
        }
    }

    pub fn nothing_settled(&mut self) -> bool {
        self.settled.try_recv().is_err()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Time passes until `at`
    pub fn until(&self, at: Timestamp) {
        self.clock.0.store(at.unix_ms(), Ordering::SeqCst);
        self.dispatcher.wake.wake();
    }

    pub fn revoke(&self) {
        self.admission.0.store(false, Ordering::SeqCst);
    }

    pub fn break_store(&self, broken: bool) {
        self.store.broken.store(broken, Ordering::SeqCst);
    }

    /// How often the store could not be claimed from
    pub fn refused_claims(&self) -> usize {
        self.store.refused.load(Ordering::SeqCst)
    }

    /// How often the store was asked about `destination`
    pub fn asked(&self, destination: &str) -> usize {
        self.store
            .asked
            .lock()
            .unwrap()
            .get(&name(destination))
            .copied()
            .unwrap_or(0)
    }
}

/// A delivery that is owed
pub struct Debt {
    pub id: DeliveryId,
    pub event: Sha256Hex,
    pub document: Bytes,
}
