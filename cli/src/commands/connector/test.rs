//! `postern connector <id> test --phase trigger`: one trigger on one fixture, offline. It reports a match
//! or the one reason against it, and claims nothing live.

use std::path::PathBuf;

use postern_compiler::trial::{self, Delivery, Trial};
use postern_contract::{EventId, Fault as _, Timestamp};
use postern_predicates::{Binding, Nonmatch, Reason, Trace, Trigger};
use postern_profiles::Step;
use serde::Serialize;

use super::declaration::Declaration;
use super::evidence::{self, Authenticated, Look, Reading};
use crate::captured::Fixture;
use crate::commands::{predicate, profile};
use crate::environment;
use crate::failure::Failure;
use crate::input;
use crate::output::{Exit, Output};

pub(super) const EXAMPLES: &str = "\
Examples:
  postern connector github test --phase trigger --trigger issue-opened --fixture delivery.json
  postern connector github test --phase trigger --trigger issue-opened \\
      --fixture body.json --event issues --binding binding.json
  SECRET=… postern connector github test --phase trigger --trigger issue-opened \\
      --fixture delivery.json --secret-env SECRET --now 2026-01-31T12:00:00Z";

/// What of a connector is tested; the specification's other phases are not in this version
#[derive(Clone, Copy)]
enum Phase {
    Trigger,
}

#[derive(clap::Args)]
pub(super) struct Args {
    /// What is tested: this version tests `trigger` alone
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    phase: Phase,
    /// The trigger's name
    #[arg(long, value_name = "NAME")]
    trigger: String,
    /// A captured request `{method, url, headers, body | body_base64}`, or a bare JSON body; `-` reads it
    /// from standard input
    #[arg(long, value_name = "FILE")]
    fixture: PathBuf,
    /// The native event's name, where the fixture does not say it
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Of a delivery of several events, which is looked at, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    item: usize,
    /// `{resources: {collection: [member, …]}}`; absent: the declaration's own resources
    #[arg(long, value_name = "FILE")]
    binding: Option<PathBuf>,
    /// The environment variable that holds the secret: verify the request before it is read
    #[arg(long, value_name = "NAME")]
    secret_env: Option<String>,
    /// Verify as of this time (RFC 3339) instead of now
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
}

fn phase(text: &str) -> Result<Phase, String> {
    match text {
        "trigger" => Ok(Phase::Trigger),
        "safe-output" | "agent" => Err("this version tests phase `trigger` alone".to_owned()),
        _ => Err("want `trigger`".to_owned()),
    }
}

/// The result; `operational` is false whatever came out: nothing here is live
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tested {
    #[serde(flatten)]
    trial: Trial,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<EventId>,
    /// Why no trigger sees the delivery: the step of the verification that failed, or of reading it
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    authenticated: bool,
    operational: bool,
    declaration: String,
}

/// What to do where the declaration's own resources are an import's to give
const UNBOUND: &str = "the declaration's own resources do not hold it: pass `--binding FILE` with `{\"resources\": {collection: [member, …]}}`";
/// What to do where a recorded request was never signed
const UNSIGNED: &str = "recorded requests are often kept unsigned: without `--secret-env` the trigger is tested all the same";

/// Runs it
pub(super) fn run(args: Args, declaration: &Declaration, output: &Output) -> Result<Exit, Failure> {
    let grants = match &args.binding {
        Some(path) => {
            let document = input::document(path)?;
            let about = path.display().to_string();
            let grants = Binding::parse(&document);
            Some(grants.map_err(|e| Failure::refused(&e).about(&about))?)
        }
        None => None,
    };
    let own = grants.is_none();
    let Phase::Trigger = args.phase;
    let trigger = declaration.trigger(&args.trigger, grants)?;
    let profile = profile::find(trigger.profile())?;
    let fixture = Fixture::read(&args.fixture)?;
    let secret = match &args.secret_env {
        Some(name) => Some((name.as_str(), environment::secret(name)?)),
        None => None,
    };
    let now = args.now.unwrap_or_else(environment::now);
    let look = Look {
        event: args.event.as_deref(),
        item: args.item,
    };
    let reading = evidence::read(&fixture, profile, look, secret, now)?;
    let mut tested = judge(&trigger, reading, now, declaration.place())?;
    let reason = tested
        .trial
        .nonmatch
        .as_ref()
        .map(|nonmatch| nonmatch.reason);
    if own && reason == Some(Reason::ResourceNotGranted) {
        tested.hint = Some(UNBOUND.to_owned());
    }
    if !output.json() {
        output.note(&format!("the declaration is {}", tested.declaration));
        if !tested.authenticated && tested.refused.is_none() {
            output.note("the fixture was not authenticated: that takes `--secret-env`");
        }
    }
    output.result(&tested, || human(&trigger, &tested))?;
    if let (Some(hint), false) = (&tested.hint, output.json()) {
        output.hint(hint);
    }
    Ok(Exit::answer(tested.trial.matched))
}

fn judge(
    trigger: &Trigger,
    reading: Reading,
    now: Timestamp,
    declaration: String,
) -> Result<Tested, Failure> {
    let blank = Tested {
        trial: Trial {
            matched: false,
            event: None,
            nonmatch: None,
            trace: Trace::default(),
        },
        id: None,
        refused: None,
        detail: None,
        hint: None,
        authenticated: false,
        operational: false,
        declaration,
    };
    match reading {
        // What is not authentic is never shown to a trigger
        Reading::Refused(refusal) => {
            let detail = refusal.detail.as_ref().map(|detail| format!(": {detail}"));
            let hint = match refusal.step {
                Step::SignatureMissing => Some(UNSIGNED.to_owned()),
                _ => refusal.hint(),
            };
            Ok(Tested {
                hint,
                refused: Some(refusal.step.code()),
                detail: Some(format!("{refusal}{}", detail.unwrap_or_default())),
                ..blank
            })
        }
        Reading::Unusable(why, authenticated) => Ok(Tested {
            refused: Some(why.code()),
            detail: Some(why.to_string()),
            authenticated: matches!(authenticated, Authenticated::Yes),
            ..blank
        }),
        Reading::Malformed(why, authenticated) => Ok(Tested {
            trial: Trial {
                nonmatch: Some(Nonmatch::MALFORMED),
                ..blank.trial
            },
            detail: Some(why.to_string()),
            authenticated: matches!(authenticated, Authenticated::Yes),
            ..blank
        }),
        Reading::Evidence(evidence) => {
            let trial = trial::run(
                trigger,
                &Delivery {
                    event: &evidence.event,
                    id: evidence.delivery.as_deref(),
                    body: &evidence.body,
                    evidence: evidence.text,
                    received_at: now,
                },
            );
            let id = trial.event.as_ref().map(|event| event.id()).transpose();
            Ok(Tested {
                id: id.map_err(|e| Failure::around("event", e.to_string()))?,
                trial,
                authenticated: matches!(evidence.authenticated, Authenticated::Yes),
                ..blank
            })
        }
    }
}

fn human(trigger: &Trigger, tested: &Tested) -> String {
    let name = format!("{}.{}", trigger.connector(), trigger.trigger());
    let detail = tested.detail.as_ref().map(|detail| format!(": {detail}"));
    let detail = detail.unwrap_or_default();
    let head = match (&tested.trial.event, &tested.trial.nonmatch, tested.refused) {
        (Some(event), ..) => {
            let event = serde_json::to_string_pretty(event).unwrap_or_default();
            format!("match: {name}\n{event}")
        }
        (None, Some(Nonmatch { reason, at }), _) => {
            let at = at
                .as_ref()
                .map(|at| format!(" at `{at}`"))
                .unwrap_or_default();
            format!("no match: {name}: {}{at}{detail}", reason.as_str())
        }
        (None, None, step) => format!("not authentic: {}{detail}", step.unwrap_or_default()),
    };
    let mut trace = predicate::lines(&tested.trial.trace.0);
    if !trace.is_empty() {
        trace.insert_str(0, "trace:\n");
    }
    let authenticated = if tested.authenticated { "yes" } else { "no" };
    format!("{head}\n{trace}authenticated: {authenticated}\noperational: no\n")
}
