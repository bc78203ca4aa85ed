//! Lists `connectors/*.md`, so that a new connector is a data file alone.

use std::fmt::Write as _;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let dir = Path::new("../connectors");
    println!("cargo:rerun-if-changed=../connectors");
    let mut files: Vec<_> = std::fs::read_dir(dir)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "md"));
    files.sort();
    let mut code = String::from("&[\n");
    for file in files {
        let path = std::fs::canonicalize(&file)?;
        let stem = file.file_stem().map(|s| s.to_string_lossy().into_owned());
        let stem = stem.unwrap_or_default();
        let _ = writeln!(code, "({stem:?}, include_str!({path:?})),");
    }
    code.push(']');
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo tells a build script by it where to write"
    )]
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&out).join("connectors.rs"), code)
}
