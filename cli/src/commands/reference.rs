//! `postern reference`: the reference pages, made from what the program itself holds: the shapes of the
//! documents, the commands, the catalogue. With `--check` nothing is written, and stale pages are named.

mod pages;
mod shapes;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::Failure;
use crate::input;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  postern reference --out docs/reference
  postern reference --out docs/reference --check";

/// Write the reference pages, or check that they are fresh
#[derive(clap::Args)]
#[command(hide = true, after_help = EXAMPLES)]
pub struct Args {
    /// The directory
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write nothing; exit 1 and name the pages that differ
    #[arg(long)]
    check: bool,
}

/// A generated file
struct Page {
    name: String,
    text: String,
}

#[derive(Serialize)]
struct Report {
    written: Vec<String>,
    unchanged: usize,
    stale: Vec<String>,
}

/// Writes or checks them
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let mut pages = shapes::pages()?;
    pages.push(pages::commands());
    pages.push(pages::profiles()?);
    let mut report = Report {
        written: Vec::new(),
        unchanged: 0,
        stale: Vec::new(),
    };
    for page in pages {
        let path = args.out.join(&page.name);
        if input::text_if_there(&path)?.as_ref() == Some(&page.text) {
            report.unchanged += 1;
        } else if args.check {
            report.stale.push(page.name);
        } else {
            write(&args.out, &path, &page.text)?;
            report.written.push(page.name);
        }
    }
    output.result(&report, || {
        let named = |word: &str, names: &[String]| {
            names
                .iter()
                .map(|name| format!("{word} {name}\n"))
                .collect::<String>()
        };
        let changed = named("wrote", &report.written) + &named("stale", &report.stale);
        format!("{changed}{} unchanged", report.unchanged)
    })?;
    Ok(Exit::answer(report.stale.is_empty()))
}

fn write(dir: &Path, path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| Failure::unwritable(dir, &e))?;
    std::fs::write(path, text).map_err(|e| Failure::unwritable(path, &e))
}
