//! Speaks the line protocol of `predicates/conformance/README.md` on standard input and output, as
//! `postern predicate eval --lines` does, for the parity test.

use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", postern_predicates::conformance::answer(&line?))?;
    }
    out.flush()
}
