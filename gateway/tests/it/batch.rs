//! Deliveries that carry several native events: each is decided, projected and identified on its own, and
//! all of them are committed and acknowledged as one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::Request;
use postern_gateway::journal;
use postern_gateway::store::{Options, Step, StoreFault};
use postern_profiles::Catalogue;
use serde_json::{Value, json};

use crate::world::{SECRET, Setup, World};

fn setup() -> Setup {
    let mut setup = Setup::new();
    let profile = Catalogue::embedded().get("line").unwrap();
    setup.profile_digest = profile.digest();
    setup.declaration = json!({
        "connector": "chat", "trigger": "said", "verificationProfile": "line",
        "nativeEvents": ["message"], "match": {"/message/type": "text"},
        "normalize": {"repository": "/repository/full_name", "text": "/message/text"},
        "resources": {"repository": "repositories"}, "resourceOrigins": ["https://github.com"],
    });
    setup.source["profile"] = json!("line");
    // One at a time, so that the events do not mingle
    setup.destination = json!({
        "kind": "command", "argv": ["sh", "-c", "cat >> out"], "cwd": ".", "concurrency": 1,
    });
    setup
}

fn message(id: &str, text: &str) -> Value {
    json!({
        "type": "message", "webhookEventId": id, "message": {"type": "text", "text": text},
        "repository": {"full_name": "o/r"},
    })
}

fn batch(events: &[Value]) -> Request<Body> {
    let body = json!({ "destination": "U1", "events": events }).to_string();
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let mac = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
    Request::post("/hooks/github")
        .header("x-line-signature", mac)
        .body(Body::from(body))
        .unwrap()
}

/// How many events the store has
fn stored(world: &World) -> usize {
    world.reader().events(100).unwrap().len()
}

/// Text and item of every event that reaches its destination, once `count` have
async fn dispatched(world: &World, count: usize) -> Vec<(String, String)> {
    let file = world.dir().join("out");
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let out = std::fs::read_to_string(&file).unwrap_or_default();
        let events: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&out)
            .into_iter()
            .collect();
        let events = events.unwrap_or_default();
        if events.len() >= count {
            let item = |event: &Value| {
                let data = &event["data"];
                let delivery = data["source"]["delivery"].as_str().unwrap();
                let text = data["fields"]["text"].as_str().unwrap().to_owned();
                (text, delivery.rsplit('#').next().unwrap().to_owned())
            };
            let mut items: Vec<_> = events.iter().map(item).collect();
            items.sort();
            return items;
        }
        assert!(std::time::Instant::now() < patience, "{out}");
        tokio::task::yield_now().await;
    }
}

fn items(items: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(text, id): &(&str, &str)| ((*text).to_owned(), (*id).to_owned());
    items.iter().map(owned).collect()
}

#[tokio::test]
async fn each_item_is_an_event_of_its_own_and_one_answer_tells_them_all() {
    let world = World::open(setup());
    let events = [
        message("01A", "one"),
        json!({ "type": "follow", "webhookEventId": "01B" }),
        message("01C", "two"),
        json!({ "type": "message", "webhookEventId": "01D", "message": {"type": "image"} }),
        // Nobody may act on another repository
        {
            let mut other = message("01E", "elsewhere");
            other["repository"]["full_name"] = json!("o/other");
            other
        },
    ];
    let answer = world.send(batch(&events)).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(answer.events().len(), 2);
    let said = dispatched(&world, 2).await;
    assert_eq!(said, items(&[("one", "01A"), ("two", "01C")]));
    // The same delivery again is a copy of all of it
    let copy = world.send(batch(&events)).await;
    assert_eq!((copy.status, copy.events()), (200, answer.events()));
    assert_eq!(stored(&world), 2);
    // The log has one line for all, with what the trigger said of each kind of item
    let line = world.last_line();
    assert_eq!(
        line.events,
        answer
            .events()
            .iter()
            .map(|e| e.parse().unwrap())
            .collect::<Vec<_>>()
    );
    assert_eq!(line.event.as_deref(), Some("follow,message"));
}

#[tokio::test]
async fn items_of_one_id_are_two_events_and_equal_items_are_told_by_their_place() {
    let world = World::open(setup());
    let answer = world
        .send(batch(&[
            message("01A", "one"),
            message("01A", "two"),
            message("", "three"),
        ]))
        .await;
    assert_eq!(answer.events().len(), 3, "{}", answer.body);
    let said = dispatched(&world, 3).await;
    let expected = [("one", "01A"), ("three", "[2]"), ("two", "[1]")];
    assert_eq!(said, items(&expected));
}

#[tokio::test]
async fn a_batch_is_committed_whole_or_not_at_all() {
    for step in [Step::Judged, Step::BeforeAppend, Step::BeforeSync] {
        let broken = Arc::new(AtomicBool::new(true));
        let hook = Arc::clone(&broken);
        let mut setup = setup();
        // Dispatching asks the store too: only the delivery comes to the step
        setup.destination = json!({"kind": "command", "argv": ["true"]});
        setup.options = Options::at_each_step(move |at| {
            if at == step && hook.load(Ordering::SeqCst) {
                return Err(StoreFault::Io("write", "no space left".to_owned()));
            }
            Ok(())
        });
        let world = World::open(setup);
        let events = [message("01A", "one"), message("01B", "two")];
        assert_eq!(world.send(batch(&events)).await.status, 503, "{step:?}");
        assert_eq!(stored(&world), 0);
        broken.store(false, Ordering::SeqCst);
        let again = world.send(batch(&events)).await;
        assert_eq!((again.status, again.events().len()), (202, 2), "{step:?}");
        assert_eq!(stored(&world), 2);
    }
}

#[tokio::test]
async fn a_large_batch_is_one_line_of_the_log() {
    let world = World::open(setup());
    let events: Vec<Value> = (0..2_000)
        .map(|n| match n % 2 {
            0 => message(&format!("e{n}"), &format!("t{n}")),
            _ => json!({ "type": "follow", "webhookEventId": format!("e{n}") }),
        })
        .collect();
    let answer = world.send(batch(&events)).await;
    assert_eq!((answer.status, answer.events().len()), (202, 1_000));
    let path = world.config.log.path.clone();
    let _kept = world.end();
    let lines = journal::read(&path, 10, |_| true).unwrap();
    assert_eq!(lines.len(), 1);
    let said = &lines[0].candidates;
    let counted: usize = said.iter().map(|said| said.others + 1).sum();
    // Of each event of the trigger's kind it said something once; alike ones are counted
    assert_eq!(
        (said.len() <= 2, counted >= 1_000),
        (true, true),
        "{said:?}"
    );
}
