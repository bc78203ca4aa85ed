//! Group commit on the disk of the temporary directory: `cargo bench -p postern-gateway --bench store`.
//! Items are deliveries of 8 KiB with one event that owes one delivery, each answered only when durable.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark ends where something is not as it should be"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use postern_contract::{Digest, Sha256Hex, Timestamp};
use postern_gateway::store::{Commit, DeliveryId, Embedded, NewEvent, Options, Owed, Store};
use postern_profiles::ReplayKey;
use tokio::runtime::Runtime;

/// Deliveries of one iteration
const DELIVERIES: u64 = 2_048;
const BODY: usize = 8 << 10;

fn main() {
    divan::main();
}

fn commit(n: u64, body: &Bytes, body_sha256: Sha256Hex) -> Commit {
    let id = Sha256Hex::of(&n.to_be_bytes());
    let subscription = Digest::of(b"subscription");
    let destination = "sink".parse().unwrap();
    Commit {
        source: "source".parse().unwrap(),
        replay_keys: vec![
            ReplayKey::from_bytes(*id.as_bytes()),
            ReplayKey::from_bytes(*Digest::of(id.as_bytes()).as_bytes()),
        ],
        window_until: Timestamp::from_unix(1_800_604_800).unwrap(),
        received_at: Timestamp::from_unix(1_800_000_000).unwrap(),
        delivery: id.to_string(),
        body: body.clone(),
        body_sha256,
        events: vec![NewEvent {
            id,
            document: Bytes::from(vec![b'e'; 1_000]),
            trigger_digest: Digest::of(b"trigger"),
            owed: vec![Owed {
                id: DeliveryId::of(id, subscription, &destination),
                subscription,
                destination,
            }],
        }],
    }
}

/// As many commits at once as there are tasks
#[divan::bench(args = [1, 32, 256], sample_count = 5, sample_size = 1)]
fn group_commit(bencher: Bencher<'_, '_>, tasks: u64) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(dir.path(), Options::default()).unwrap());
    let runtime = Runtime::new().unwrap();
    let body = Bytes::from(vec![b'x'; BODY]);
    let hash = Sha256Hex::of(&body);
    let next = Arc::new(AtomicU64::new(0));
    bencher
        .counter(ItemsCount::new(DELIVERIES))
        .counter(BytesCount::new(DELIVERIES * BODY as u64))
        .bench(|| {
            let end = next.load(Ordering::Relaxed) + DELIVERIES;
            runtime.block_on(async {
                let mut all = tokio::task::JoinSet::new();
                for _ in 0..tasks {
                    let (store, next, body) = (Arc::clone(&store), Arc::clone(&next), body.clone());
                    all.spawn(async move {
                        loop {
                            let n = next.fetch_add(1, Ordering::Relaxed);
                            if n >= end {
                                break;
                            }
                            store.commit(commit(n, &body, hash)).await.unwrap();
                        }
                    });
                }
                while let Some(done) = all.join_next().await {
                    done.unwrap();
                }
            });
            next.store(end, Ordering::Relaxed);
        });
}
