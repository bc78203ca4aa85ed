//! What a delivery costs here: `cargo bench -p postern-predicates`. Deciding is measured with allocations,
//! for the path that does not match should have next to none; parsing beside `serde_json::Value`, which
//! rounds numbers and drops repeated keys.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark ends where something is not as it should be"
)]

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use postern_contract::{Digest, Document, Scalar};
use postern_predicates::{Decision, Trigger};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const DECLARED: &str = r#"{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["issues"],
    "match":{"/action":["opened","reopened"],"/repository/private":false},
    "when":{"all":[{"absent":{"pointer":"/issue/pull_request"}},{"matches":{"pointer":"/issue/title","pattern":"^\\w+"}},
        {"item":{"pointer":"/issue/labels","some":{"equals":{"pointer":"/name","value":"bug"}}}}]},
    "normalize":{"number":{"pointer":"/issue/number","type":"integer"},"repository":{"pointer":"/repository/full_name","type":"string"},
        "labels":"/issue/labels/*/name",
        "url":{"pointer":"/issue/html_url","type":"url","prefix":"https://forge.test/{+repository}/issues/{number}"}},
    "resources":{"repository":"repositories"},"resourceOrigins":["https://forge.test"]}"#;

fn main() {
    divan::main();
}

fn trigger() -> Trigger {
    let declared = Document::parse(DECLARED.into()).unwrap();
    let grants = [(
        "repositories".to_owned(),
        vec![Scalar::String("o/r".to_owned())],
    )];
    Trigger::compile(&declared, Digest::of(b""), grants.into()).unwrap()
}

/// A body of about so many bytes; what is decided on stands behind the bulk
fn body(bytes: usize, action: &str) -> Bytes {
    let commit = r#"{"id":"9fceb02d0ae598e95dc970b74767f19372d61af8","distinct":true,"message":"Mend it\nfor \"all\"","added":["a/b.rs","c.md"],"count":12345,"ratio":0.25}"#;
    let bulk = vec![commit; bytes / commit.len()].join(",");
    let body = format!(
        r#"{{"bulk":[{bulk}],"action":"{action}","issue":{{"number":7,"title":"It breaks","html_url":"https://forge.test/o/r/issues/7","labels":[{{"name":"p1"}},{{"name":"bug"}}]}},"repository":{{"full_name":"o/r","private":false}}}}"#
    );
    body.into()
}

fn decided(bencher: Bencher<'_, '_>, event: &str, action: &str, matches: bool) {
    let (trigger, body) = (trigger(), Document::parse(body(10_000, action)).unwrap());
    let found = trigger.decide(event, &body);
    assert_eq!(matches!(found, Decision::Match(_)), matches, "{found:?}");
    bencher.bench_local(|| trigger.decide(black_box(event), black_box(&body)));
}

#[divan::bench]
fn decide_match(bencher: Bencher<'_, '_>) {
    decided(bencher, "issues", "opened", true);
}

#[divan::bench]
fn decide_match_not_true(bencher: Bencher<'_, '_>) {
    decided(bencher, "issues", "closed", false);
}

#[divan::bench]
fn decide_event_not_listed(bencher: Bencher<'_, '_>) {
    decided(bencher, "push", "opened", false);
}

#[divan::bench]
fn load_frozen(bencher: Bencher<'_, '_>) {
    let frozen = trigger().document().clone();
    bencher.bench_local(|| Trigger::load(black_box(frozen.clone())).unwrap());
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn parse_document(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = body(bytes, "opened");
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| Document::parse(black_box(body.clone())).unwrap());
}

#[divan::bench(args = [1_000, 10_000, 100_000])]
fn parse_serde_json(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = body(bytes, "opened");
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| serde_json::from_slice::<serde_json::Value>(black_box(&body)).unwrap());
}
