//! What every store must do, whichever it is: one suite, given a way to open a store on the same data.
//! Expected values follow from what is committed here; time is set by hand.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it should be"
)]

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use postern_contract::{Digest, EventId, Name, Sha256Hex, Timestamp};
use postern_gateway::store::{
    Claimed, Commit, Committed, DeliveryId, Embedded, NewEvent, Options, Owed, Settled, SettledAs,
    Store,
};
use postern_profiles::ReplayKey;

type Opened = Arc<dyn Store>;

/// 2027-01-15, in seconds
const DAY0: i64 = 1_800_000_000;
const HOUR: i64 = 3_600;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix(DAY0 + seconds).unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key(text: &str) -> ReplayKey {
    ReplayKey::from_bytes(*Digest::of(text.as_bytes()).as_bytes())
}

/// An event that owes one delivery to each of `destinations`
fn event(id: &str, destinations: &[&str]) -> NewEvent {
    let (event, subscription) = (Sha256Hex::of(id.as_bytes()), Digest::of(b"subscription"));
    let owed = destinations.iter().map(|to| Owed {
        id: DeliveryId::of(event, subscription, &name(to)),
        subscription,
        destination: name(to),
    });
    NewEvent {
        id: event,
        document: Bytes::from(format!("{{\"id\":\"{id}\"}}")),
        trigger_digest: Digest::of(b"trigger"),
        owed: owed.collect(),
    }
}

/// A delivery of `source` with one replay key per entry of `keys`, guarded for an hour
fn commit(source: &str, keys: &[&str], received: i64, events: Vec<NewEvent>) -> Commit {
    let body = Bytes::from(format!("body of {}", keys.join(" and ")));
    Commit {
        source: name(source),
        replay_keys: keys.iter().map(|text| key(text)).collect(),
        window_until: at(received + HOUR),
        received_at: at(received),
        delivery: keys.concat(),
        body_sha256: Sha256Hex::of(&body),
        body,
        events,
    }
}

fn ids(events: &[&str]) -> Vec<EventId> {
    (events.iter())
        .map(|id| Sha256Hex::of(id.as_bytes()))
        .collect()
}

fn fresh(events: &[&str]) -> Committed {
    let events = ids(events);
    Committed::Fresh { events }
}

fn replay(events: &[&str]) -> Committed {
    let events = ids(events);
    Committed::Replay { events }
}

async fn claim(store: &Opened, to: &str, now: i64, until: i64) -> Vec<Claimed> {
    store
        .claim(name(to), 100, at(now), at(until))
        .await
        .unwrap()
}

fn settled(claimed: &Claimed, now: i64, outcome: SettledAs) -> Settled {
    Settled {
        id: claimed.id,
        started_at: Some(at(now)),
        ended_at: at(now),
        detail: "an attempt".to_owned(),
        outcome,
    }
}

/// The suite. `open` opens the store, on the data of the time before; the store before is dropped first.
async fn store_contract<O, F>(open: impl Fn() -> O)
where
    O: Fn() -> F,
    F: Future<Output = Opened>,
{
    any_known_key_is_a_replay_of_its_source_alone(open()().await).await;
    copies_that_race_commit_once(open()().await).await;
    a_key_ends_with_its_window_and_an_event_is_not_made_twice(open()().await).await;
    a_known_event_may_owe_more_later(open()().await).await;
    an_event_of_two_sources_is_owed_under_each(open()().await).await;
    a_clock_that_goes_back_shortens_no_window(open()().await).await;
    what_is_claimed_is_leased(open()().await).await;
    attempts_decide_what_becomes_of_a_delivery(open()().await).await;
    what_is_killed_stays_dead_until_it_is_queued_again(open()().await).await;
    pruning_keeps_what_guards_or_is_owed(open()().await).await;
    what_is_owed_outlives_the_process(open()).await;
    the_store_is_ready(open()().await).await;
}

async fn any_known_key_is_a_replay_of_its_source_alone(store: Opened) {
    let first = commit(
        "a",
        &["id", "content"],
        0,
        vec![event("e1", &["x"]), event("e2", &["x"])],
    );
    assert_eq!(store.commit(first).await.unwrap(), fresh(&["e1", "e2"]));
    // Under another id: the content is known. Under other content: the id is known.
    for keys in [["other id", "content"], ["id", "other content"]] {
        let copy = commit("a", &keys, 1, vec![event("copy", &["x"])]);
        assert_eq!(store.commit(copy).await.unwrap(), replay(&["e1", "e2"]));
    }
    // A replay commits nothing: neither its events nor the keys that were new
    assert_eq!(claim(&store, "x", 1, 2).await.len(), 2);
    let unknown = commit("a", &["other id"], 1, vec![event("e3", &["y"])]);
    assert_eq!(store.commit(unknown).await.unwrap(), fresh(&["e3"]));
    // Another source has its own keys, and no joining of names leads from one to the other
    let elsewhere = commit("b", &["id", "content"], 1, vec![event("e4", &["y"])]);
    assert_eq!(store.commit(elsewhere).await.unwrap(), fresh(&["e4"]));
}

async fn copies_that_race_commit_once(store: Opened) {
    let racers: Vec<_> = (0..50)
        .map(|n| {
            let store = Arc::clone(&store);
            // Each copy would make an event of its own
            let one = commit("a", &["id"], 0, vec![event(&format!("e{n}"), &["x"])]);
            tokio::spawn(async move { store.commit(one).await.unwrap() })
        })
        .collect();
    let (mut fresh, mut replays) = (Vec::new(), Vec::new());
    for racer in racers {
        match racer.await.unwrap() {
            Committed::Fresh { events } => fresh.push(events),
            Committed::Replay { events } => replays.push(events),
        }
    }
    assert_eq!((fresh.len(), replays.len()), (1, 49));
    assert!(replays.iter().all(|events| *events == fresh[0]));
    let owed = claim(&store, "x", 0, 1).await;
    assert_eq!(owed.iter().map(|d| d.event).collect::<Vec<_>>(), fresh[0]);
}

async fn a_key_ends_with_its_window_and_an_event_is_not_made_twice(store: Opened) {
    let one = |received, id| commit("a", &["id"], received, vec![event(id, &["x"])]);
    assert_eq!(store.commit(one(0, "e1")).await.unwrap(), fresh(&["e1"]));
    let last = store.commit(one(HOUR - 1, "other")).await.unwrap();
    assert_eq!(last, replay(&["e1"]));
    // The window has ended: the same event is known by its id, and guarded anew
    assert_eq!(
        store.commit(one(HOUR, "e1")).await.unwrap(),
        replay(&["e1"])
    );
    assert_eq!(claim(&store, "x", HOUR, 2 * HOUR).await.len(), 1);
    let again = store.commit(one(2 * HOUR - 1, "other")).await.unwrap();
    assert_eq!(again, replay(&["e1"]));
    // And what is another event by then is one
    assert_eq!(
        store.commit(one(2 * HOUR, "e2")).await.unwrap(),
        fresh(&["e2"])
    );
    assert_eq!(
        store.commit(one(2 * HOUR, "e3")).await.unwrap(),
        replay(&["e2"])
    );
}

async fn a_known_event_may_owe_more_later(store: Opened) {
    let first = commit("a", &["id"], 0, vec![event("e1", &["x"])]);
    store.commit(first).await.unwrap();
    // After the window the event comes again, and somebody else is owed it too
    let events = vec![event("e1", &["x", "y"]), event("e2", &["y"])];
    let again = commit("a", &["id"], HOUR, events);
    assert_eq!(store.commit(again).await.unwrap(), fresh(&["e1", "e2"]));
    assert_eq!(claim(&store, "x", HOUR, 2 * HOUR).await.len(), 1);
    let owed = claim(&store, "y", HOUR, 2 * HOUR).await;
    let documents: Vec<_> = owed.iter().map(|one| one.document.as_ref()).collect();
    assert_eq!(documents, [b"{\"id\":\"e1\"}", b"{\"id\":\"e2\"}"]);
    let copy = commit("a", &["id"], HOUR + 1, vec![event("copy", &["x"])]);
    assert_eq!(store.commit(copy).await.unwrap(), replay(&["e1", "e2"]));
}

async fn an_event_of_two_sources_is_owed_under_each(store: Opened) {
    for (source, to) in [("a", "x"), ("b", "y")] {
        let commit = commit(source, &["id"], 0, vec![event("e1", &[to])]);
        assert_eq!(store.commit(commit).await.unwrap(), fresh(&["e1"]));
    }
    for (source, to) in [("a", "x"), ("b", "y")] {
        let owed = claim(&store, to, 0, HOUR).await;
        assert_eq!(owed.len(), 1);
        assert_eq!(owed[0].source.as_str(), source);
    }
}

async fn a_clock_that_goes_back_shortens_no_window(store: Opened) {
    let one = |key: &str, received| commit("a", &[key], received, vec![event(key, &["x"])]);
    store.commit(one("first", 10 * HOUR)).await.unwrap();
    // Nine hours behind: by this clock, the window would end at 2 h
    store.commit(one("second", HOUR)).await.unwrap();
    for (clock, known) in [(HOUR, true), (11 * HOUR - 1, true), (11 * HOUR, false)] {
        let copy = commit("a", &["second"], clock, vec![event("copy", &["x"])]);
        let found = store.commit(copy).await.unwrap();
        assert_eq!(
            found,
            if known {
                replay(&["second"])
            } else {
                fresh(&["copy"])
            },
            "{clock}"
        );
    }
}

async fn what_is_claimed_is_leased(store: Opened) {
    for n in 0..3 {
        let one = commit(
            "a",
            &[&n.to_string()],
            n,
            vec![event(&format!("e{n}"), &["x", "y"])],
        );
        store.commit(one).await.unwrap();
    }
    assert_eq!(store.next_due(name("x")).await.unwrap(), Some(at(0)));
    assert_eq!(store.next_due(name("nobody")).await.unwrap(), None);
    // Not before they are due, the oldest first, no more than asked for, and each with its event
    let two = store.claim(name("x"), 2, at(1), at(10)).await.unwrap();
    let of = |claimed: &[Claimed]| claimed.iter().map(|one| one.event).collect::<Vec<_>>();
    assert_eq!(of(&two), ids(&["e0", "e1"]));
    assert_eq!(two[1].document, "{\"id\":\"e1\"}");
    assert_eq!(two[0].subscription, Digest::of(b"subscription"));
    assert_eq!(two[0].trigger, Digest::of(b"trigger"));
    assert_eq!((two[0].source.as_str(), two[0].attempts), ("a", 0));
    assert_eq!(of(&claim(&store, "x", 9, 20).await), ids(&["e2"]));
    assert!(claim(&store, "x", 9, 20).await.is_empty());
    // Another destination is another queue
    assert_eq!(claim(&store, "y", 9, 20).await.len(), 3);
    // A lease that has passed leaves its delivery to the next
    assert_eq!(store.next_due(name("x")).await.unwrap(), Some(at(10)));
    assert_eq!(of(&claim(&store, "x", 10, 30).await), ids(&["e0", "e1"]));
}

async fn attempts_decide_what_becomes_of_a_delivery(store: Opened) {
    for n in 0..3 {
        let one = commit(
            "a",
            &[&n.to_string()],
            n,
            vec![event(&format!("e{n}"), &["x"])],
        );
        store.commit(one).await.unwrap();
    }
    let claimed = claim(&store, "x", 5, 100).await;
    let outcomes = [
        SettledAs::Delivered,
        SettledAs::Retry { at: at(50) },
        SettledAs::Dead { reason: "gone" },
    ];
    let all = claimed
        .iter()
        .zip(outcomes)
        .map(|(one, as_)| settled(one, 6, as_));
    store.settle(all.collect()).await.unwrap();
    assert_eq!(store.next_due(name("x")).await.unwrap(), Some(at(50)));
    assert!(claim(&store, "x", 49, 100).await.is_empty());
    let again = claim(&store, "x", 50, 100).await;
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].id, again[0].attempts), (claimed[1].id, 1));
    // Where nothing was sent, nothing is counted
    let mut put_off = settled(&again[0], 51, SettledAs::Retry { at: at(60) });
    put_off.started_at = None;
    store.settle(vec![put_off]).await.unwrap();
    assert_eq!(claim(&store, "x", 60, 100).await[0].attempts, 1);
    // What has ended stays so, whatever a late attempt says
    let late = settled(&claimed[0], 70, SettledAs::Retry { at: at(70) });
    store.settle(vec![late]).await.unwrap();
    let late = settled(&claimed[2], 70, SettledAs::Delivered);
    store.settle(vec![late]).await.unwrap();
    assert_eq!(claim(&store, "x", 99, 200).await.len(), 0);
    assert_eq!(claim(&store, "x", 1_000, 2_000).await.len(), 1);
}

async fn what_is_killed_stays_dead_until_it_is_queued_again(store: Opened) {
    let other = Digest::of(b"other");
    let mut one = event("e1", &["x"]);
    one.owed.push(Owed {
        id: DeliveryId::of(one.id, other, &name("x")),
        subscription: other,
        destination: name("x"),
    });
    store
        .commit(commit("a", &["1"], 0, vec![one]))
        .await
        .unwrap();
    let leased = claim(&store, "x", 0, 10).await;
    assert_eq!(leased.len(), 2);
    assert_eq!(
        store.kill(other, "admission-revoked", at(1)).await.unwrap(),
        1
    );
    assert_eq!(
        store.kill(other, "admission-revoked", at(1)).await.unwrap(),
        0
    );
    let left = claim(&store, "x", 10, 20).await;
    assert_eq!(left.len(), 1);
    assert_ne!(left[0].subscription, other);
    let done = settled(&left[0], 11, SettledAs::Delivered);
    store.settle(vec![done]).await.unwrap();
    assert_eq!(store.next_due(name("x")).await.unwrap(), None);
    // Both are sent again under the ids that they had; what is queued or unknown is not
    let ids: Vec<_> = leased.iter().map(|one| one.id).collect();
    let unknown = DeliveryId::of(Sha256Hex::of(b"nothing"), other, &name("x"));
    let asked = vec![ids[0], ids[1], unknown];
    assert_eq!(store.requeue(asked.clone(), at(30)).await.unwrap(), 2);
    assert_eq!(store.requeue(asked, at(30)).await.unwrap(), 0);
    let again = claim(&store, "x", 30, 40).await;
    assert_eq!(again.iter().map(|one| one.id).collect::<Vec<_>>(), ids);
    assert_eq!(again[0].document, "{\"id\":\"e1\"}");
}

async fn pruning_keeps_what_guards_or_is_owed(store: Opened) {
    for (n, to) in ["x", "y"].iter().enumerate() {
        let one = commit("a", &[to], n as i64, vec![event(to, &[to])]);
        store.commit(one).await.unwrap();
    }
    let claimed = claim(&store, "x", 1, 100).await;
    let done = settled(&claimed[0], 1, SettledAs::Delivered);
    store.settle(vec![done]).await.unwrap();
    let known = |key, clock, n: i64| {
        let copy = commit("a", &[key], clock, vec![event(&format!("new {n}"), &["z"])]);
        let store = Arc::clone(&store);
        async move { store.commit(copy).await.unwrap() }
    };
    // Past retention, but the guard still needs it
    store.prune(at(HOUR - 1), at(HOUR)).await.unwrap();
    assert_eq!(known("x", HOUR - 1, 0).await, replay(&["x"]));
    // The guard has ended, and retention has not
    store.prune(at(HOUR + 1), at(0)).await.unwrap();
    let same = commit("a", &["x"], 2 * HOUR, vec![event("x", &["x"])]);
    assert_eq!(store.commit(same).await.unwrap(), replay(&["x"]));
    // Both have: the event is forgotten; what is owed is not
    store.prune(at(4 * HOUR), at(4 * HOUR)).await.unwrap();
    let same = commit("a", &["x"], 4 * HOUR, vec![event("x", &["w"])]);
    assert_eq!(store.commit(same).await.unwrap(), fresh(&["x"]));
    let owed = claim(&store, "y", 4 * HOUR, 5 * HOUR).await;
    assert_eq!(owed[0].document, "{\"id\":\"y\"}");
}

async fn what_is_owed_outlives_the_process<F>(open: impl Fn() -> F)
where
    F: Future<Output = Opened>,
{
    let store = open().await;
    for n in 0..2 {
        let one = commit(
            "a",
            &[&n.to_string()],
            n,
            vec![event(&format!("e{n}"), &["x"])],
        );
        store.commit(one).await.unwrap();
    }
    let claimed = claim(&store, "x", 1, HOUR).await;
    let later = settled(&claimed[0], 2, SettledAs::Retry { at: at(60) });
    store.settle(vec![later]).await.unwrap();
    drop(store);
    let store = open().await;
    let copy = commit("a", &["1"], 3, vec![event("copy", &["x"])]);
    assert_eq!(store.commit(copy).await.unwrap(), replay(&["e1"]));
    // The lease was the other process's: it ends with it, and what waits for its time still waits
    let free = claim(&store, "x", 3, HOUR).await;
    assert_eq!(
        free.iter().map(|one| one.event).collect::<Vec<_>>(),
        ids(&["e1"])
    );
    assert_eq!(claim(&store, "x", 60, HOUR).await[0].attempts, 1);
}

async fn the_store_is_ready(store: Opened) {
    store.ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_store_keeps_the_contract() {
    // Every part of the suite gets a directory of its own
    let root = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    store_contract(|| {
        count.set(count.get() + 1);
        let dir = root.path().join(count.get().to_string());
        move || {
            let store = open(&dir);
            async move { store }
        }
    })
    .await;
}

fn open(dir: &Path) -> Opened {
    Arc::new(Embedded::open(dir, Options::default()).unwrap())
}
