//! Any text as a workflow: diagnostics or subscriptions, and the same ones twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_compiler::{Compiler, Sources};

fuzz_target!(|text: &str| {
    let mut sources = Sources::default();
    sources.insert(".github/workflows/w.md", text);
    let compile = || {
        let compiler = Compiler { sources: &sources, repository: Some("o/r") };
        let compiled = compiler.compile(".github/workflows/w.md");
        compiled.selected.iter().map(|s| s.digest).collect::<Vec<_>>()
    };
    assert_eq!(compile(), compile());
});
