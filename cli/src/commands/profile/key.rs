//! `postern profile key`: a key to try a profile out with. The private half goes into a new file, for its
//! owner alone, and is never shown.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use postern_profiles::Profile;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{Exit, Output};

/// What to make
#[derive(clap::Args)]
pub struct Args {
    /// The profile's id, or an alias
    id: String,
    /// The new file that the secret or private key goes into
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Args {
    /// The profile's id
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    public: Option<String>,
}

/// Makes it
pub fn run(args: Args, profile: &Profile, output: &Output) -> Result<Exit, Failure> {
    let key = profile
        .trial_key()
        .ok_or_else(|| Failure::around("randomness", "the system has no randomness"))?;
    let file = args.out.display().to_string();
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&args.out)
        .and_then(|mut new| {
            new.write_all(key.private.expose())?;
            new.sync_all()
        });
    written.map_err(|e| Failure::call("not-written", format!("`{file}`: {e}")))?;
    let made = Made {
        file,
        public: key.public,
    };
    output.result(&made, || match &made.public {
        Some(public) => format!(
            "the private key is in `{}`; bind the public one to the source:\n\n{public}",
            made.file
        ),
        None => format!(
            "the secret is in `{}`: bind it as the key's `file`",
            made.file
        ),
    })?;
    Ok(Exit::Done)
}
