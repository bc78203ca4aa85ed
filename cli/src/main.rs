//! The one binary, `postern`.
fn main() {}
