//! What is posted: a real push of the fixtures, cut or grown to the size asked for, made unique where the
//! path under test commits events, and signed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The secret of the source under load
pub const SECRET: &str = "It's a Secret to Everybody";
/// Forty hex digits that every request replaces with its number
const SERIAL: &str = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";

/// The requests of one target
pub struct Plan {
    /// The status that counts as an answer
    pub expect: u16,
    path: &'static str,
    event: &'static str,
    body: Vec<u8>,
    serial: Vec<usize>,
    signing: Signing,
}

/// How a target's requests are signed
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Signing {
    /// By the secret of the source
    Right,
    /// By another secret
    Wrong,
}

impl Plan {
    /// Requests to `path` with a push of `size` bytes to `branch`
    pub fn new(
        path: &'static str,
        size: usize,
        branch: &str,
        signing: Signing,
        expect: u16,
    ) -> Self {
        let body = push(size, branch);
        let serial = positions(&body, SERIAL.as_bytes());
        Self {
            expect,
            path,
            event: "push",
            body,
            serial,
            signing,
        }
    }

    /// Writes request number `n`
    pub fn request(&self, n: u64, out: &mut Vec<u8>) {
        let mut body = self.body.clone();
        let digits = format!("{n:040x}");
        for at in &self.serial {
            body[*at..*at + 40].copy_from_slice(digits.as_bytes());
        }
        let secret = match self.signing {
            Signing::Right => SECRET,
            Signing::Wrong => "another secret",
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(&body);
        let signature = hex::encode(mac.finalize().into_bytes());
        out.clear();
        out.extend_from_slice(
            format!(
                "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 user-agent: load\r\nx-github-event: {}\r\nx-github-delivery: {digits}\r\n\
                 x-hub-signature-256: sha256={signature}\r\ncontent-length: {}\r\n\r\n",
                self.path,
                self.event,
                body.len()
            )
            .as_bytes(),
        );
        out.extend_from_slice(&body);
    }
}

fn positions(body: &[u8], what: &[u8]) -> Vec<usize> {
    (0..body.len().saturating_sub(what.len() - 1))
        .filter(|at| body[*at..].starts_with(what))
        .collect()
}

/// A recorded push with `size` bytes: commits are repeated or members left out until it fits, and a last
/// member fills up
fn push(size: usize, branch: &str) -> Vec<u8> {
    let recorded = include_str!("../../../fixtures/load/push.json");
    let mut body: serde_json::Value = serde_json::from_str(recorded).unwrap();
    body["ref"] = format!("refs/heads/{branch}").into();
    body["after"] = SERIAL.into();
    let small = serde_json::json!({
        "ref": body["ref"], "after": body["after"], "deleted": body["deleted"],
        "before": body["before"], "created": body["created"], "forced": body["forced"],
        "repository": {
            "full_name": body["repository"]["full_name"], "name": body["repository"]["name"],
            "html_url": body["repository"]["html_url"], "default_branch": body["repository"]["default_branch"],
        },
        "pusher": body["pusher"],
        "sender": { "login": body["sender"]["login"], "type": body["sender"]["type"] },
    });
    if body.to_string().len() + 20 > size {
        body = small;
    }
    let commit = body["head_commit"].clone();
    while !commit.is_null() && body.to_string().len() + commit.to_string().len() + 40 < size {
        if let Some(commits) = body["commits"].as_array_mut() {
            commits.push(commit.clone());
        }
    }
    let missing = size.saturating_sub(body.to_string().len() + ",\"filler\":\"\"".len());
    body["filler"] = ".".repeat(missing).into();
    body.to_string().into_bytes()
}
