//! Any text as a pattern: refused, or an engine that matches without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_predicates::pattern::Pattern;

fuzz_target!(|text: &str| {
    if let Ok(pattern) = Pattern::new(text) {
        pattern.is_match(text);
    }
});
