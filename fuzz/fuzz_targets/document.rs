//! Any bytes: a document or a fault, never a panic; what parses reads back through every view.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_contract::{Document, Value};

fn walk(value: Value<'_>) -> usize {
    let items = value.items().into_iter().flatten().map(walk).sum::<usize>();
    let members = value.members().into_iter().flatten();
    let members = members.map(|(key, value)| key.len() + walk(value)).sum::<usize>();
    let text = value.as_str().or(value.number_text()).map_or(0, str::len);
    items + members + text
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(document) = Document::parse(bytes.to_vec().into()) {
        walk(document.root());
        let _ = document.repeated_key();
    }
});
