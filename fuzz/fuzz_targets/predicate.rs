//! A predicate and a document, cut at the first NUL: both hostile.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_contract::Document;
use postern_predicates::Predicate;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |b| *b == 0);
    let (Some(declared), Some(body)) = (parts.next(), parts.next()) else {
        return;
    };
    let parse = |bytes: &[u8]| Document::parse(bytes.to_vec().into());
    if let (Ok(declared), Ok(body)) = (parse(declared), parse(body))
        && let Ok(predicate) = Predicate::compile(declared.root())
    {
        let truth = predicate.evaluate(body.root());
        assert_eq!(truth, predicate.explain(body.root()).0);
    }
});
