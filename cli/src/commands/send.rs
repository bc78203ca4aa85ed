//! `postern send`: plays a provider. A recorded delivery is signed by its profile, as of now, and posted.
//! The secret comes from the environment alone, and the target from whoever types it.

mod guess;

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use postern_contract::{CapturedRequest, Secret, Timestamp};
use postern_egress::{Allowed, Answer, Client, NotSent, Outbound};
use postern_profiles::Params;
use serde::Serialize;

use crate::captured;
use crate::commands::profile;
use crate::environment;
use crate::failure::Failure;
use crate::input;
use crate::output::{Exit, Output};

const EXAMPLES: &str = "\
Examples:
  SECRET=… postern send delivery.json --to http://127.0.0.1:8080/hooks/github --secret-env SECRET
  postern send delivery.json --to http://127.0.0.1:8080/hooks/x --profile telnyx --key private.key
  postern send delivery.json --to http://127.0.0.1:8080/hooks/github --as-is";

/// Play a provider: sign a recorded delivery by its profile and post it
///
/// Exits 0 on a 2xx, 1 on another status, 3 where there is no answer.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The captured request `{method, url, headers, body | body_base64}`, or `-`
    fixture: PathBuf,
    /// Where to post it
    #[arg(long, value_name = "URL")]
    to: url::Url,
    /// The environment variable that holds the secret; for Ed25519 the private seed in hex
    #[arg(long, value_name = "NAME", required_unless_present_any = ["as_is", "key"])]
    secret_env: Option<String>,
    /// Or the file that holds the secret or private key, as `postern profile key` makes one
    #[arg(long, value_name = "FILE", conflicts_with = "secret_env")]
    key: Option<PathBuf>,
    /// The verification profile; absent: told by the fixture's headers, where only one fits
    #[arg(long, value_name = "ID")]
    profile: Option<String>,
    /// A parameter of the profile, as the source has it
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = param)]
    params: Vec<(String, String)>,
    /// Sign as of this time (RFC 3339) instead of now
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// Post it as recorded, with its own signature or none
    #[arg(long, conflicts_with_all = ["secret_env", "key", "profile", "params", "now"])]
    as_is: bool,
}

#[derive(Serialize)]
struct Answered {
    status: u16,
    body: String,
}

/// How long a gateway may take
const TIMEOUT: Duration = Duration::from_secs(30);

/// Signs and posts it
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    let (mut request, mut body) = captured::request(&args.fixture)?;
    if request.method != "POST" {
        let why = format!(
            "the fixture's method is `{}`: deliveries are posted",
            request.method
        );
        return Err(Failure::call("not-a-delivery", why));
    }
    args.to.as_str().clone_into(&mut request.url);
    let secret = match (&args.secret_env, &args.key) {
        (Some(name), _) => Some(environment::secret(name)?),
        (None, Some(file)) => Some(Secret::new(without_newline(input::bytes(file)?.to_vec()))),
        (None, None) => None,
    };
    if let Some(secret) = secret {
        let profile = match &args.profile {
            Some(id) => profile::find(id)?,
            None => guess::profile(&request)?,
        };
        let now = args.now.unwrap_or_else(environment::now);
        let mut params = Params::new();
        for (name, value) in args.params {
            params.entry(name).or_default().push(value);
        }
        let signed = profile
            .sign(&request, &body, &secret, &params, now)
            .map_err(|e| Failure::call("not-signed", format!("`{}`: {e}", profile.id())))?;
        (request, body) = (signed.request, signed.body);
        if !output.json() {
            output.note(&format!("signed as `{}` at {now}", profile.id()));
        }
    }
    let answer = post(Outbound {
        // Some providers sign in the query
        url: (request.url.parse())
            .map_err(|_| Failure::call("usage", "`--to` is no URL any more once it is signed"))?,
        headers: recorded(&request)?,
        body,
        timeout: TIMEOUT,
    })?;
    let answered = Answered {
        status: answer.status.as_u16(),
        body: String::from_utf8_lossy(&answer.body).into_owned(),
    };
    output.result(&answered, || {
        format!("{}\n{}", answer.status, answered.body)
    })?;
    Ok(Exit::answer(answer.status.is_success()))
}

/// A file's one newline at its end is no part of its secret, as for the gateway
fn without_newline(mut text: Vec<u8>) -> Vec<u8> {
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    text
}

/// `NAME=VALUE`
pub fn param(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a parameter is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Headers that belong to one connection, or that the client sets
const OWN: [&str; 6] = [
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "accept-encoding",
    "expect",
];

/// The fixture's headers, repeated ones in their order
fn recorded(request: &CapturedRequest) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, values) in &request.headers {
        if OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            continue;
        }
        for value in values.iter() {
            let (name, value) = header(name, value)?;
            headers.append(name, value);
        }
    }
    Ok(headers)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let why = || {
        Failure::call(
            "not-a-header",
            format!("the header `{name}` cannot be sent"),
        )
    };
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| why())?;
    Ok((
        key,
        HeaderValue::from_bytes(value.as_bytes()).map_err(|_| why())?,
    ))
}

/// Posts to whatever address was typed: the guard keeps configured destinations from reaching inwards, and
/// here the operator names the target on their own machine.
fn post(outbound: Outbound) -> Result<Answer, Failure> {
    let mut entries = vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()];
    if let (Some(url::Host::Domain(host)), Some(port)) =
        (outbound.url.host(), outbound.url.port_or_known_default())
    {
        entries.push(format!("{host}:{port}"));
    }
    let allowed = Allowed::parse(&entries).map_err(|e| Failure::call("usage", e.to_string()))?;
    let unsent = |e: NotSent| match e {
        NotSent::Url(_) => Failure::of(Exit::Call, &e).about("--to"),
        _ => Failure::of(Exit::Around, &e),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::around("runtime", e.to_string()))?;
    runtime
        .block_on(async { Client::new(allowed)?.post(outbound).await })
        .map_err(unsent)
}
