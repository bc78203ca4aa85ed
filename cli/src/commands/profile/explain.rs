//! `postern profile explain`: why a captured delivery does not verify. Shows the step that failed, what is
//! said to be signed, and the usual mistakes that would explain it; never a secret or a signature.

use std::path::PathBuf;

use postern_contract::Timestamp;
use postern_contract::fault::Fault as _;
use postern_profiles::explain::{Explanation, Found, Mistake, Said, Trial};
use postern_profiles::{Catalogue, Key, KeyMaterial, Options, Params, Profile};
use serde::Serialize;

use crate::captured;
use crate::environment;
use crate::failure::Failure;
use crate::input;
use crate::output::{Exit, Output};

/// What to explain
#[derive(clap::Args)]
pub struct Args {
    /// The profile's id, or an alias
    id: String,
    /// The captured request: `{method, url, headers, body | body_base64}`, or as it stands on the wire
    /// (HTTP/1.1); `-` for standard input
    request: PathBuf,
    /// The environment variable that holds a secret; several are tried by turns
    #[arg(long = "secret-env", value_name = "NAME")]
    secrets: Vec<String>,
    /// The file that holds a public key; several are tried by turns
    #[arg(long = "public-key", value_name = "FILE")]
    public: Vec<PathBuf>,
    /// A parameter of the profile, as the source has it
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = crate::commands::send::param)]
    params: Vec<(String, String)>,
    /// As of this time (RFC 3339) instead of now
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
}

impl Args {
    /// The profile's id
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    profile: &'static str,
    verifies: bool,
    /// `verified`, `handshake`, or the code of what is wrong
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    signed: Vec<String>,
    mistakes: Vec<MistakeLine>,
    tried: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MistakeLine {
    mistake: Mistake,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    off_by_seconds: Option<i64>,
}

/// Explains it; exits 0 where it verifies, and 1 where it does not
pub fn run(
    args: Args,
    catalogue: &'static Catalogue,
    profile: &'static Profile,
    output: &Output,
) -> Result<Exit, Failure> {
    let (request, body) = captured::request(&args.request)?;
    let mut keys = Vec::new();
    for name in &args.secrets {
        keys.push(key(name, KeyMaterial::Secret(environment::secret(name)?)));
    }
    for file in &args.public {
        let text = String::from_utf8(input::bytes(file)?.to_vec())
            .map_err(|_| Failure::call("not-a-key", format!("`{}` is no text", file.display())))?;
        let name = file.display().to_string();
        keys.push(key(&name, KeyMaterial::Public(text.trim().to_owned())));
    }
    if keys.is_empty() {
        let why = "there is no key to hold the delivery to";
        return Err(Failure::call("no-key", why).hint("give `--secret-env`, or `--public-key`"));
    }
    let mut params = Params::new();
    for (name, value) in args.params {
        params.entry(name).or_default().push(value);
    }
    let trial = Trial {
        request,
        body,
        keys,
        options: Options {
            params,
            ..Options::default()
        },
        now: args.now.unwrap_or_else(environment::now),
    };
    let explanation = profile.explain(&trial, catalogue);
    if let Said::NotBound(why) = &explanation.said
        && explanation.mistakes.is_empty()
    {
        return Err(Failure::of(Exit::Call, why));
    }
    let explained = explained(profile, explanation);
    output.result(&explained, || told(&explained))?;
    Ok(Exit::answer(explained.verifies))
}

fn key(name: &str, material: KeyMaterial) -> Key {
    Key {
        name: name.to_owned(),
        id: None,
        material,
        not_after: None,
    }
}

fn explained(profile: &'static Profile, explanation: Explanation) -> Explained {
    let (code, message, hint, key) = match &explanation.said {
        Said::Verified(key) => {
            let message = format!("the delivery verifies, by the key `{key}`");
            ("verified", message, None, Some(key.clone()))
        }
        Said::Handshake => ("handshake", "it is a handshake".to_owned(), None, None),
        Said::Malformed(why) => (why.code(), why.to_string(), None, None),
        Said::Refused(why) => {
            let detail = why.detail.iter().map(|detail| format!(": {detail}"));
            let message = format!("{why}{}", detail.collect::<String>());
            (why.code(), message, why.hint(), None)
        }
        Said::Wanted(host) => {
            let message = format!("the key is at `{host}`: give it with `--public-key`");
            ("key-wanted", message, None, None)
        }
        Said::NotBound(why) => (why.code(), why.to_string(), why.hint(), None),
    };
    Explained {
        profile: profile.id(),
        verifies: explanation.said.is_authentic(),
        code: code.to_owned(),
        message,
        hint,
        key,
        signed: explanation.contents,
        mistakes: explanation.mistakes.into_iter().map(line).collect(),
        tried: explanation.tried,
    }
}

fn line(found: Found) -> MistakeLine {
    MistakeLine {
        mistake: found.mistake,
        message: found.mistake.text(),
        detail: found.detail,
        key: found.key,
        off_by_seconds: found.off_by_seconds,
    }
}

fn told(explained: &Explained) -> String {
    let mut lines = vec![match explained.verifies {
        true => format!("verifies: {}", explained.message),
        false => format!(
            "does not verify: {} ({})",
            explained.message, explained.code
        ),
    }];
    for signed in &explained.signed {
        lines.push(format!("signed, as the profile has it: {signed}"));
    }
    if explained.verifies {
        return lines.join("\n");
    }
    for found in &explained.mistakes {
        let mut told = format!("it would verify: {}", found.message);
        if let Some(detail) = &found.detail {
            told.push_str(&format!(": {detail}"));
        }
        if let Some(key) = &found.key {
            told.push_str(&format!("; by the key `{key}`"));
        }
        if let Some(seconds) = found.off_by_seconds {
            let side = if seconds < 0 { "ahead" } else { "old" };
            told.push_str(&format!("; its timestamp is {} s {side}", seconds.abs()));
        }
        lines.push(told);
    }
    if explained.mistakes.is_empty() {
        let tried = explained.tried;
        lines.push(format!(
            "none of {tried} usual mistakes explains it: the secret is most likely another one"
        ));
        lines.extend(explained.hint.iter().map(|hint| format!("hint: {hint}")));
    }
    lines.join("\n")
}
