//! Who is attempted when: independence, limits, a poisoned queue, stopping and replacing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use postern_gateway::store::SettledAs;
use serde_json::{Value, json};

use crate::sink::{Sink, status};
use crate::stage::{Stage, within};

const PATIENT: Duration = Duration::from_secs(30);

fn to(sink: &Sink, concurrency: usize) -> Value {
    json!({
        "kind": "http",
        "url": sink.url(),
        "signing": [{ "env": "NEW" }],
        "concurrency": concurrency,
        "timeout": "20s",
    })
}

#[tokio::test]
async fn report_d50_a_slow_destination_holds_nobody_back() {
    let mut slow = Sink::holding().await;
    let mut quick = Sink::answering(|_| status(200)).await;
    let mut stage = Stage::new(&[("slow", to(&slow, 1)), ("quick", to(&quick, 8))]);
    for _ in 0..3 {
        stage.owe("slow").await;
    }
    let _running = stage.start();
    let held = slow.got().await.header("webhook-id").to_owned();
    for _ in 0..20 {
        let debt = stage.owe("quick").await;
        assert_eq!(quick.got().await.header("webhook-id"), debt.id.to_string());
        let settled = stage.settled().await;
        // Nothing of the slow one ends before it is let
        assert_eq!(
            (settled.id, settled.outcome),
            (debt.id, SettledAs::Delivered)
        );
    }
    // Busy, with more due: it asked the store for its one delivery and has left it alone since
    assert_eq!(stage.asked("slow"), 1);
    assert!(slow.is_quiet());
    slow.let_through(3);
    assert_eq!(stage.settled().await.id.to_string(), held);
    for _ in 0..2 {
        slow.got().await;
        assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
    }
}

#[tokio::test]
async fn no_more_attempts_run_at_once_than_configured() {
    let mut sink = Sink::holding().await;
    let mut stage = Stage::new(&[("sink", to(&sink, 2))]);
    for _ in 0..7 {
        stage.owe("sink").await;
    }
    let _running = stage.start();
    for n in 0..7 {
        sink.got().await;
        // The second is there before the first is answered
        if n > 0 {
            sink.let_through(1);
            assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
        }
    }
    sink.let_through(1);
    stage.settled().await;
    assert_eq!(sink.peak(), 2);
}

#[tokio::test]
async fn report_d42_a_poisoned_event_is_dead_and_the_queue_moves_on() {
    let mut sink = Sink::answering(|_| status(200)).await;
    let mut stage = Stage::new(&[("sink", to(&sink, 1))]);
    let poison = stage.owe_poison("sink").await;
    let sound = stage.owe("sink").await;
    let _running = stage.start();
    let first = stage.settled().await;
    assert_eq!(first.id, poison.id);
    assert_eq!(
        first.outcome,
        SettledAs::Dead {
            reason: "event-unreadable"
        }
    );
    assert_eq!(first.started_at, None);
    assert_eq!(sink.got().await.header("webhook-id"), sound.id.to_string());
    assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
}

#[tokio::test]
async fn cs_8_05_what_is_no_longer_admitted_does_not_leave() {
    let mut sink = Sink::answering(|_| status(500)).await;
    let mut stage = Stage::new(&[("sink", to(&sink, 1))]);
    let _running = stage.start();
    stage.owe("sink").await;
    sink.got().await;
    let (at, _) = stage.retried().await;
    // Revoked between two attempts
    stage.revoke();
    stage.until(at);
    let settled = stage.settled().await;
    assert_eq!(
        settled.outcome,
        SettledAs::Dead {
            reason: "admission-revoked"
        }
    );
    assert_eq!(settled.started_at, None);
    assert!(sink.is_quiet());
}

#[tokio::test]
async fn a_retry_is_not_made_before_its_time() {
    let mut sink = Sink::answering(|nth| status(if nth == 0 { 503 } else { 200 })).await;
    let mut stage = Stage::new(&[("sink", to(&sink, 1))]);
    let _running = stage.start();
    let failed = stage.owe("sink").await;
    sink.got().await;
    let (at, _) = stage.retried().await;
    stage.until(at.plus_ms(-1));
    // Another delivery passes it meanwhile
    let other = stage.owe("sink").await;
    assert_eq!(sink.got().await.header("webhook-id"), other.id.to_string());
    stage.settled().await;
    assert!(sink.is_quiet());
    stage.until(at);
    assert_eq!(sink.got().await.header("webhook-id"), failed.id.to_string());
    assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
}

#[tokio::test]
async fn a_stop_lets_attempts_end_and_takes_no_more() {
    let mut sink = Sink::holding().await;
    let mut stage = Stage::new(&[("sink", to(&sink, 1))]);
    let first = stage.owe("sink").await;
    let second = stage.owe("sink").await;
    let running = stage.start();
    sink.got().await;
    let stopping = tokio::spawn(running.stop(PATIENT));
    // Stopped for certain: a task that is told so looks before anything else
    tokio::task::yield_now().await;
    sink.let_through(2);
    within(stopping).await.unwrap();
    let settled = stage.settled().await;
    assert_eq!(
        (settled.id, settled.outcome),
        (first.id, SettledAs::Delivered)
    );
    assert!(sink.is_quiet());
    let _running = stage.start();
    assert_eq!(sink.got().await.header("webhook-id"), second.id.to_string());
}

#[tokio::test]
async fn what_a_stop_cuts_off_is_made_again_after_its_lease() {
    let mut sink = Sink::holding().await;
    let mut stage = Stage::new(&[("sink", to(&sink, 1))]);
    let debt = stage.owe("sink").await;
    let running = stage.start();
    sink.got().await;
    within(running.stop(Duration::ZERO)).await;
    let _running = stage.start();
    // Leased: nobody else takes it
    let other = stage.owe("sink").await;
    assert_eq!(sink.got().await.header("webhook-id"), other.id.to_string());
    assert!(stage.nothing_settled());
    sink.let_through(2);
    stage.settled().await;
    // The timeout of an attempt, and 30 s
    stage.until(stage.now().plus_ms(50_000));
    assert_eq!(sink.got().await.header("webhook-id"), debt.id.to_string());
    sink.let_through(1);
    let settled = stage.settled().await;
    assert_eq!(
        (settled.id, settled.outcome),
        (debt.id, SettledAs::Delivered)
    );
}

#[tokio::test]
async fn destinations_are_replaced_without_cutting_attempts_off() {
    let mut old = Sink::holding().await;
    let mut new = Sink::answering(|_| status(200)).await;
    let mut stage = Stage::new(&[("sink", to(&old, 1)), ("gone", to(&new, 1))]);
    let first = stage.owe("sink").await;
    let running = stage.start();
    old.got().await;
    let gone = stage
        .destinations
        .remove(&crate::stage::name("gone"))
        .unwrap();
    let moved = crate::stage::destination("sink", to(&new, 1), &["127.0.0.0/8"]).unwrap();
    stage.destinations = BTreeMap::from([(moved.name.clone(), Arc::new(moved))]);
    let running = stage.dispatcher.replace(running, &stage.destinations);
    // The new address counts from now on; a destination that is gone gets nothing
    let waiting = stage.owe("gone").await;
    let second = stage.owe("sink").await;
    assert_eq!(new.got().await.header("webhook-id"), second.id.to_string());
    assert_eq!(stage.settled().await.id, second.id);
    old.let_through(1);
    let settled = stage.settled().await;
    assert_eq!(
        (settled.id, settled.outcome),
        (first.id, SettledAs::Delivered)
    );
    assert!(new.is_quiet() && stage.nothing_settled());
    // Configured again, it gets what it is owed
    stage.destinations.insert(gone.name.clone(), gone);
    let _running = stage.dispatcher.replace(running, &stage.destinations);
    assert_eq!(new.got().await.header("webhook-id"), waiting.id.to_string());
}

#[tokio::test]
async fn a_stop_waits_for_attempts_that_were_begun_before_a_replacement() {
    let mut sink = Sink::holding().await;
    let mut stage = Stage::new(&[("sink", to(&sink, 1))]);
    let debt = stage.owe("sink").await;
    let running = stage.start();
    sink.got().await;
    let running = stage.dispatcher.replace(running, &BTreeMap::new());
    let stopping = tokio::spawn(running.stop(PATIENT));
    sink.let_through(1);
    within(stopping).await.unwrap();
    let settled = stage.settled().await;
    assert_eq!(
        (settled.id, settled.outcome),
        (debt.id, SettledAs::Delivered)
    );
}

#[tokio::test]
async fn a_store_that_fails_is_asked_again() {
    let mut sink = Sink::answering(|_| status(200)).await;
    let mut stage = Stage::new(&[("sink", to(&sink, 1))]);
    stage.break_store(true);
    let _running = stage.start();
    let debt = stage.owe("sink").await;
    within(async {
        while stage.refused_claims() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    stage.break_store(false);
    assert_eq!(sink.got().await.header("webhook-id"), debt.id.to_string());
    assert_eq!(stage.settled().await.outcome, SettledAs::Delivered);
}
