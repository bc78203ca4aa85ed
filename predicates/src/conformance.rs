//! The line protocol of `predicates/conformance/README.md`: one case object a line, one answer a line.
//! Cases are read with exact numbers, and results are compared by value. Shared by the command line and
//! by tests.

use base64::Engine as _;
use bytes::Bytes;
use postern_contract::{
    CanonicalEvent, Digest, Document, Kind, Pointer, Resolution, Sha256Hex, Value, canonical,
};

use crate::binding::{Resources, scalar};
use crate::declaration::{same, to_json};
use crate::invalid::Invalid;
use crate::predicate::Predicate;
use crate::trigger::{Decision, Trigger};
use crate::url::CanonicalUrl;

/// What a published case showed
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer is the expected one
    Pass,
    /// It is not
    Fail {
        /// The case
        id: String,
        /// What the line expects
        expected: String,
        /// What came out
        got: String,
    },
}

/// The answer line of a case line
pub fn answer(line: &str) -> String {
    let parsed = match Document::parse(Bytes::copy_from_slice(line.as_bytes())) {
        Ok(parsed) => parsed,
        Err(e) => return format!("{{\"error\":{}}}", quote(&e.to_string())),
    };
    let case = parsed.root();
    let id = case
        .member("id")
        .and_then(Value::as_str)
        .unwrap_or_default();
    format!("{{\"id\":{},\"result\":{}}}", quote(id), result(case))
}

/// Compares a published case with what it expects
pub fn check(line: &str) -> Verdict {
    let fail = |id: &str, expected: &str, got: &str| Verdict::Fail {
        id: id.to_owned(),
        expected: expected.chars().take(300).collect(),
        got: got.chars().take(300).collect(),
    };
    let parsed = match Document::parse(Bytes::copy_from_slice(line.as_bytes())) {
        Ok(parsed) => parsed,
        Err(e) => return fail("?", "a case object", &e.to_string()),
    };
    let case = parsed.root();
    let id = case.member("id").and_then(Value::as_str).unwrap_or("?");
    let expected = match (case.member("expect"), case.member("error_path")) {
        (Some(expect), _) => spell(expect),
        (None, Some(path)) => format!("{{\"error_path\":{}}}", spell(path)),
        (None, None) => return fail(id, "`expect` or `error_path`", "neither"),
    };
    let got = result(case);
    if same_answer(&expected, &got) {
        Verdict::Pass
    } else {
        fail(id, &expected, &got)
    }
}

/// Whether two answers are equal by value: objects in any key order, numbers by their exact value
pub fn same_answer(a: &str, b: &str) -> bool {
    let read = |text: &str| Document::parse(Bytes::copy_from_slice(text.as_bytes()));
    matches!((read(a), read(b)), (Ok(a), Ok(b)) if equal(a.root(), b.root()))
}

fn result(case: Value<'_>) -> String {
    let kind = case.member("kind").and_then(Value::as_str);
    let outcome = match kind.unwrap_or_default() {
        "predicate" | "predicate-invalid" => predicate(case),
        "trigger" | "trigger-invalid" => trigger(case),
        "document" => Ok(with_evidence(case, |_| "{\"evidence\":\"ok\"}".to_owned())),
        "pointer" => Ok(with_evidence(case, |body| pointer(case, body))),
        "url" => Ok(url(text(case, "url"))),
        "jcs" => Ok(with_evidence(case, |body| jcs(body.root()))),
        "event-id" => Ok(event_id(case)),
        other => Ok(format!("{{\"unknown_kind\":{}}}", quote(other))),
    };
    outcome.unwrap_or_else(|e| format!("{{\"error_path\":{}}}", quote(&e.path)))
}

/// The declaration as its own document; text that is no JSON is a fault at its root
fn declaration(case: Value<'_>, name: &str) -> Result<Document, Invalid> {
    let text = match case.member(&format!("{name}_text")) {
        Some(text) => text.as_str().unwrap_or_default().to_owned(),
        None => case.member(name).map(spell).unwrap_or_default(),
    };
    Document::parse(text.into_bytes().into()).map_err(|e| Invalid::at("", e.to_string()))
}

fn predicate(case: Value<'_>) -> Result<String, Invalid> {
    let declared = declaration(case, "predicate")?;
    let predicate = Predicate::compile(declared.root())?;
    if case.member("document").is_none() && case.member("document_base64").is_none() {
        return Ok("{\"valid\":true}".to_owned());
    }
    Ok(with_evidence(case, |body| {
        quote(predicate.evaluate(body.root()).as_str())
    }))
}

fn trigger(case: Value<'_>) -> Result<String, Invalid> {
    let declared = declaration(case, "trigger")?;
    let trigger = Trigger::compile(&declared, Digest::of(b""), grants(case))?;
    let chosen = (case.member("filters_chosen"))
        .map(|chosen| trigger.choose_declared(chosen))
        .transpose()?;
    let Some(event) = case.member("event").and_then(Value::as_str) else {
        return Ok("{\"valid\":true}".to_owned());
    };
    let Ok(body) = Document::parse(body(case)) else {
        return Ok("{\"match\":false,\"reason\":\"malformed-body\"}".to_owned());
    };
    let decision = match trigger.decide(event, &body) {
        Decision::Match(found) => match chosen.map(|chosen| chosen.admit(&body, &found)) {
            Some(Err(why)) => Decision::Nonmatch(why),
            Some(Ok(())) | None => Decision::Match(found),
        },
        nonmatch => nonmatch,
    };
    Ok(match decision {
        Decision::Nonmatch(why) => {
            let at = why.at.map(|at| format!(",\"at\":{}", quote(&at)));
            let (reason, at) = (quote(why.reason.as_str()), at.unwrap_or_default());
            format!("{{\"match\":false,\"reason\":{reason}{at}}}")
        }
        Decision::Match(found) => {
            let variant = found
                .variant()
                .map(|name| format!(",\"variant\":{}", quote(name)));
            let fields = canonical::to_vec(found.fields()).unwrap_or_default();
            format!(
                "{{\"match\":true{},\"fields\":{}}}",
                variant.unwrap_or_default(),
                String::from_utf8_lossy(&fields)
            )
        }
    })
}

/// Members that no projected value can equal (`null`, objects, numbers past the bounds) grant nothing
fn grants(case: Value<'_>) -> Resources {
    let resources = case.member("binding").and_then(|b| b.member("resources"));
    let collections = resources.and_then(Value::members).into_iter().flatten();
    collections
        .map(|(name, members)| {
            let members = members.items().into_iter().flatten();
            let bounded = |s: &postern_contract::Scalar| {
                crate::declaration::Literal::of(s).checked("").is_ok()
            };
            (
                name.to_owned(),
                members.filter_map(scalar).filter(bounded).collect(),
            )
        })
        .collect()
}

fn pointer(case: Value<'_>, body: &Document) -> String {
    let Ok(pointer) = text(case, "pointer").parse::<Pointer>() else {
        return "{\"resolution\":\"invalid\"}".to_owned();
    };
    match body.resolve(&pointer) {
        Resolution::Resolved(value) => {
            format!("{{\"resolution\":\"resolved\",\"value\":{}}}", spell(value))
        }
        Resolution::Absent => "{\"resolution\":\"absent\"}".to_owned(),
        Resolution::Unreachable => "{\"resolution\":\"unreachable\"}".to_owned(),
    }
}

fn url(text: &str) -> String {
    CanonicalUrl::read(text).map_or_else(
        || "{\"invalid\":true}".to_owned(),
        |url| {
            let (canonical, origin) = (quote(url.as_str()), quote(url.origin()));
            format!("{{\"canonical\":{canonical},\"origin\":{origin}}}")
        },
    )
}

fn jcs(value: Value<'_>) -> String {
    let Some(bytes) = rounded(value).and_then(|json| canonical::to_vec(&json).ok()) else {
        return "{\"invalid\":true}".to_owned();
    };
    let canonical = quote(&String::from_utf8_lossy(&bytes));
    format!(
        "{{\"canonical\":{canonical},\"sha256\":\"{}\"}}",
        Sha256Hex::of(&bytes)
    )
}

/// As RFC 8785 has it: every number is its nearest binary64
fn rounded(value: Value<'_>) -> Option<serde_json::Value> {
    Some(match value.kind() {
        Kind::Number => {
            let near: f64 = value.number_text()?.parse().ok()?;
            serde_json::Number::from_f64(near)?.into()
        }
        Kind::Array => (value.items()?.map(rounded))
            .collect::<Option<Vec<_>>>()?
            .into(),
        Kind::Object => serde_json::Value::Object(
            (value.members()?)
                .map(|(key, value)| Some((key.to_owned(), rounded(value)?)))
                .collect::<Option<_>>()?,
        ),
        Kind::Null | Kind::Boolean | Kind::String => to_json(value),
    })
}

/// Through the type that the gateway makes; a tree that no projection makes (a null, an integer past the
/// bounds) through the canonicalizer alone
fn event_id(case: Value<'_>) -> String {
    let Some(json) = case.member("canonical_event").and_then(rounded) else {
        return "{\"invalid\":true}".to_owned();
    };
    let id = match serde_json::from_value::<CanonicalEvent>(json.clone()) {
        Ok(event) => event.id().ok(),
        Err(_) => tree_id(json),
    };
    match id {
        Some(id) => format!("{{\"id\":\"{id}\"}}"),
        None => "{\"invalid\":true}".to_owned(),
    }
}

fn tree_id(mut json: serde_json::Value) -> Option<Sha256Hex> {
    if let Some(source) = json.get_mut("source").and_then(|s| s.as_object_mut()) {
        source.remove("receivedAt");
    }
    canonical::to_vec(&json)
        .ok()
        .map(|bytes| Sha256Hex::of(&bytes))
}

fn text<'a>(case: Value<'a>, key: &str) -> &'a str {
    case.member(key).and_then(Value::as_str).unwrap_or_default()
}

fn body(case: Value<'_>) -> Bytes {
    match case.member("document_base64").and_then(Value::as_str) {
        Some(base64) => base64::engine::general_purpose::STANDARD
            .decode(base64)
            .unwrap_or_default()
            .into(),
        None => text(case, "document").to_owned().into_bytes().into(),
    }
}

/// Calls `then` with an unambiguous document, else answers for it
fn with_evidence(case: Value<'_>, then: impl FnOnce(&Document) -> String) -> String {
    let Ok(document) = Document::parse(body(case)) else {
        return "{\"evidence\":\"malformed-body\"}".to_owned();
    };
    match document.repeated_key() {
        Some(at) => format!(
            "{{\"evidence\":\"ambiguous-evidence\",\"at\":{}}}",
            quote(at)
        ),
        None => then(&document),
    }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value as JSON text, numbers in their own spelling and repeated keys repeated
fn spell(value: Value<'_>) -> String {
    match value.kind() {
        Kind::Null => "null".to_owned(),
        Kind::Boolean => (value.as_bool() == Some(true)).to_string(),
        Kind::Number => value.number_text().unwrap_or("0").to_owned(),
        Kind::String => quote(value.as_str().unwrap_or_default()),
        Kind::Array => {
            let items: Vec<String> = value.items().into_iter().flatten().map(spell).collect();
            format!("[{}]", items.join(","))
        }
        Kind::Object => {
            let members: Vec<String> = (value.members().into_iter().flatten())
                .map(|(key, value)| format!("{}:{}", quote(key), spell(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn equal(a: Value<'_>, b: Value<'_>) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::Array, Kind::Array) => {
            let (x, y) = (
                a.items().into_iter().flatten(),
                b.items().into_iter().flatten(),
            );
            a.len() == b.len() && x.zip(y).all(|(x, y)| equal(x, y))
        }
        (Kind::Object, Kind::Object) => {
            let mut members = a.members().into_iter().flatten();
            a.len() == b.len() && members.all(|(key, x)| b.member(key).is_some_and(|y| equal(x, y)))
        }
        _ => same(a, b),
    }
}
