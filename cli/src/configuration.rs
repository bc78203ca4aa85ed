//! Reads `postern.toml`: what is wrong with it is said with its place in the file.

use std::path::Path;

use figment::Figment;
use figment::providers::{Format as _, Toml};
use postern_gateway::config::Config;
use postern_gateway::{Faults, Loaded, files};

use crate::environment;
use crate::failure::Failure;
use crate::output::Output;

/// The most bytes of a configuration
const MAX_BYTES: u64 = 4 << 20;

/// The configuration in `file`, its relative paths taken from the file's directory
pub fn read(file: &Path) -> Result<Config, Failure> {
    let bytes = files::read(file, MAX_BYTES).map_err(|e| {
        Failure::unreadable(file, &e)
            .hint("see docs/how-to/run-the-gateway.md for a first configuration")
    })?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let why = format!("`{}`: {}", file.display(), e.utf8_error());
        Failure::call("configuration", why)
    })?;
    let config: Config = Figment::from(Toml::string(&text)).extract().map_err(|e| {
        let said: Vec<String> = e.into_iter().map(|e| plain(&e.to_string())).collect();
        Failure::call(
            "configuration",
            format!("`{}`: {}", file.display(), said.join("; ")),
        )
    })?;
    let base = file.parent().unwrap_or(Path::new("."));
    Ok(config.rooted_at(base))
}

/// figment has profiles, which we do not use, and a name for text: they say nothing to an operator
fn plain(said: &str) -> String {
    said.replace("\"default.", "\"")
        .replace(" in TOML source string", "")
}

/// Everything that the configuration names, checked; every fault is said
pub fn load(config: &Config, output: &Output) -> Result<Loaded, Failure> {
    Loaded::new(config, &environment::bytes).map_err(|faults| first(faults, output))
}

/// Says every fault but the last, which becomes the command's own
pub fn first(faults: Faults, output: &Output) -> Failure {
    let mut failures: Vec<Failure> = (faults.0.iter())
        .map(|fault| Failure::refused(&**fault))
        .collect();
    let last = failures.pop();
    for failure in failures {
        output.failure(&failure);
    }
    last.unwrap_or_else(|| Failure::around("start", "the gateway does not start"))
}
