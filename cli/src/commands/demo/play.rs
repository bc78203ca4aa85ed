//! What the demo plays: eight recorded deliveries, a copy, a copy under a fresh id, and a forgery. Each
//! answer is held to what it must be, so that the demo is a test too.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use postern_contract::request::HeaderValues;
use postern_contract::{CapturedRequest, Secret};
use postern_egress::{Allowed, Client, Outbound};
use postern_gateway::journal::{self, LogLine};
use postern_profiles::{Catalogue, Params, vectors};

use super::stage::{SECRET, Stage};
use crate::commands::events;
use crate::environment;
use crate::failure::Failure;
use crate::output::{Exit, Output};

/// The subscription that the demo compiles and does not admit
pub const NOT_ADMITTED: &str = "pull-request-merged";

/// Name, recording, and the status that must come
const RECORDED: &[(&str, &str, u16)] = &[
    (
        "an issue is opened",
        include_str!("../../../../fixtures/demo/01-issue-opened.json"),
        202,
    ),
    (
        "an issue is labeled",
        include_str!("../../../../fixtures/demo/02-issue-labeled.json"),
        202,
    ),
    (
        "a pull request is opened",
        include_str!("../../../../fixtures/demo/03-pull-request-opened.json"),
        202,
    ),
    (
        "an issue is commented",
        include_str!("../../../../fixtures/demo/04-issue-commented.json"),
        202,
    ),
    (
        "a branch is pushed",
        include_str!("../../../../fixtures/demo/05-push-to-branch.json"),
        202,
    ),
    (
        "a workflow run fails",
        include_str!("../../../../fixtures/demo/06-workflow-run-failed.json"),
        202,
    ),
    (
        "a pull request is merged, which nobody has admitted",
        include_str!("../../../../fixtures/demo/07-pull-request-merged.json"),
        204,
    ),
    (
        "a star, which no trigger lists",
        include_str!("../../../../fixtures/demo/08-star-created.json"),
        204,
    ),
];
/// How long the sink and the log may take
const PATIENCE: Duration = Duration::from_secs(20);

struct Posted {
    status: u16,
    body: String,
}

fn inner(e: impl std::fmt::Display) -> Failure {
    Failure::around("demo", e.to_string())
}

/// Plays everything and says what happened
pub async fn play(stage: &Stage, output: &Output) -> Result<Exit, Failure> {
    let allow = [stage.gateway_at().to_string()];
    let client = Client::new(Allowed::parse(&allow).map_err(inner)?).map_err(inner)?;
    let mut right = true;
    let mut tell = |what: &str, posted: &Posted, wanted: u16| {
        let mark = if posted.status == wanted {
            "ok"
        } else {
            "NOT AS IT MUST BE"
        };
        right &= posted.status == wanted;
        format!("{:>3}  {what}  [{mark}]\n", posted.status)
    };
    let mut seen = Vec::new();
    output.text("Real GitHub deliveries, signed and posted to a running gateway:\n")?;
    for (what, recorded, wanted) in RECORDED {
        let request: CapturedRequest = serde_json::from_str(recorded).map_err(inner)?;
        let posted = post(stage, &client, &request, SECRET).await?;
        let mut text = tell(what, &posted, *wanted);
        let line = newest(stage, &seen).await?;
        text.push_str(&decided(&line));
        seen.push(line.id);
        output.text(&text)?;
    }
    let first = RECORDED
        .first()
        .map(|(_, recorded, _)| *recorded)
        .unwrap_or_default();
    let mut request: CapturedRequest = serde_json::from_str(first).map_err(inner)?;
    output.text("\nCopies and forgeries:\n")?;
    let copy = post(stage, &client, &request, SECRET).await?;
    let mut text = tell(
        "the first delivery again: a replay, which commits nothing",
        &copy,
        200,
    );
    request
        .headers
        .retain(|name, _| !name.eq_ignore_ascii_case("x-github-delivery"));
    let fresh = HeaderValues::One("00000000-0000-4000-8000-000000000000".to_owned());
    request
        .headers
        .insert("X-GitHub-Delivery".to_owned(), fresh);
    let copy = post(stage, &client, &request, SECRET).await?;
    text.push_str(&tell(
        "the same under a fresh id, which GitHub does not sign: still a replay",
        &copy,
        200,
    ));
    let forged = post(stage, &client, &request, "a guess").await?;
    text.push_str(&tell("signed with another secret: refused", &forged, 401));
    text.push_str(&format!("       the sender sees   {}\n", forged.body));
    output.text(&text)?;
    let owed = RECORDED
        .iter()
        .filter(|(_, _, wanted)| *wanted == 202)
        .count();
    let arrived = tokio::time::timeout(PATIENCE, stage.sink.wait_for(owed))
        .await
        .is_ok();
    let got = stage.sink.got();
    output.text(&format!(
        "\nThe sink received {} of {owed} events:\n",
        got.len()
    ))?;
    for one in &got {
        output.text(&format!("       {one}\n"))?;
    }
    right &= arrived && got.len() == owed;
    output.text(if right {
        "\nEverything is as it must be.\n"
    } else {
        "\nSomething is NOT as it must be.\n"
    })?;
    Ok(Exit::answer(right))
}

async fn post(
    stage: &Stage,
    client: &Client,
    request: &CapturedRequest,
    secret: &str,
) -> Result<Posted, Failure> {
    let body: Bytes = vectors::body(request).map_err(inner)?;
    let profile = Catalogue::embedded()
        .get("github")
        .ok_or_else(|| inner("no profile"))?;
    let secret = Secret::new(secret.as_bytes().to_vec());
    let now = environment::now();
    let signed = profile
        .sign(request, &body, &secret, &Params::new(), now)
        .map_err(inner)?;
    let mut headers = HeaderMap::new();
    let all = (signed.request.headers.iter())
        .flat_map(|(name, values)| values.iter().map(move |value| (name.as_str(), value)));
    for (name, value) in all {
        let name = HeaderName::try_from(name).map_err(inner)?;
        headers.insert(name, HeaderValue::try_from(value).map_err(inner)?);
    }
    let url = format!("http://{}/hooks/github", stage.gateway_at());
    let answer = client
        .post(Outbound {
            url: url.parse().map_err(inner)?,
            headers,
            body: signed.body,
            timeout: PATIENCE,
        })
        .await
        .map_err(inner)?;
    Ok(Posted {
        status: answer.status.as_u16(),
        body: String::from_utf8_lossy(&answer.body).into_owned(),
    })
}

/// The log's line of the delivery that was just posted. The log is written off the data path, a moment
/// after the answer.
async fn newest(stage: &Stage, seen: &[String]) -> Result<LogLine, Failure> {
    let dir = &stage.config.log.path;
    let look = async {
        loop {
            let found = journal::read(dir, 1, |line| !seen.contains(&line.id)).map_err(inner)?;
            if let Some(line) = found.into_iter().next() {
                return Ok(line);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look)
        .await
        .map_err(|_| inner("the log has no line of a delivery"))?
}

fn decided(line: &LogLine) -> String {
    let mut out = String::new();
    if line.candidates.is_empty() {
        let event = line.event.as_deref().unwrap_or("-");
        out.push_str(&format!(
            "       no trigger lists the native event `{event}`\n"
        ));
    }
    for candidate in &line.candidates {
        out.push_str(&format!("       {}\n", events::said(candidate)));
    }
    out
}
