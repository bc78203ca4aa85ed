//! Any text as a line of the conformance protocol: one line of answer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert!(!postern_predicates::conformance::answer(text).contains('\n'));
});
