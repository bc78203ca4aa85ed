//! Running the binary, in an environment that holds nothing but what a test sets.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Standard output as the one JSON value that it must be
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("{e}: `{}` (stderr: {})", self.out, self.err))
    }
    pub fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

pub struct Call {
    command: Command,
    input: Vec<u8>,
}

pub fn postern(args: &[&str]) -> Call {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postern"));
    command
        .args(args)
        .env_clear()
        .env("COLUMNS", "100")
        // git is asked for the remote
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Call {
        command,
        input: Vec::new(),
    }
}

impl Call {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }
    pub fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }
    pub fn run(mut self) -> Ran {
        let mut child = self.command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input;
        let writer = std::thread::spawn(move || {
            // A command that reads no input closes it
            let _ = stdin.write_all(&input);
        });
        let ended = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran {
            code: ended.status.code().expect("no signal ends it"),
            out: String::from_utf8(ended.stdout).unwrap(),
            err: String::from_utf8(ended.stderr).unwrap(),
        }
    }
}

/// A path in the repository
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The same as text
pub fn in_repository(path: &str) -> String {
    repository(path).to_str().unwrap().to_owned()
}

/// A directory with one file
pub fn with_file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}
