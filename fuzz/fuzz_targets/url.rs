//! Any text as a URL: its canonical spelling is its own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_predicates::url::CanonicalUrl;

fuzz_target!(|text: &str| {
    if let Some(url) = CanonicalUrl::read(text) {
        assert_eq!(CanonicalUrl::read(url.as_str()), Some(url.clone()));
        assert!(url.as_str().starts_with(url.origin()));
    }
});
