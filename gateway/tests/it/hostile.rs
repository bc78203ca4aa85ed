//! Walks fixtures/hostile: no input makes a panic, a 5xx of ours, or an acceptance that is not justified;
//! and a refusal looks the same from outside whatever the cause.

use std::path::Path;

use axum::body::Body;
use base64::Engine as _;
use http::Request;
use serde_json::Value;

use crate::world::{Setup, World, signature};

fn decode(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

fn body(case: &Value) -> Vec<u8> {
    if let Some(text) = case["body"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(text) = case["body_base64"].as_str() {
        return decode(text);
    }
    let repeat = &case["repeat"];
    let times = repeat["times"].as_u64().unwrap() as usize;
    let open = repeat["text"].as_str().unwrap().repeat(times);
    let close = repeat["close"].as_str().unwrap_or_default().repeat(times);
    format!("{open}{close}").into_bytes()
}

fn request(case: &Value) -> Request<Body> {
    let body = body(case);
    let mut headers = http::HeaderMap::new();
    let set = |headers: &mut http::HeaderMap, name: &str, values: Vec<Vec<u8>>| {
        let name: http::HeaderName = name.parse().unwrap();
        headers.remove(&name);
        for value in values {
            headers.append(&name, http::HeaderValue::from_bytes(&value).unwrap());
        }
    };
    set(
        &mut headers,
        "content-type",
        vec![b"application/json".to_vec()],
    );
    set(&mut headers, "x-github-event", vec![b"issues".to_vec()]);
    set(&mut headers, "x-github-delivery", vec![b"d-1".to_vec()]);
    let over = case["sign_over"].as_str().map(|t| t.as_bytes().to_vec());
    if case["sign"] == true || over.is_some() {
        let signature = signature(over.as_deref().unwrap_or(&body));
        set(
            &mut headers,
            "x-hub-signature-256",
            vec![signature.into_bytes()],
        );
    }
    for (name, values) in case["headers"].as_object().into_iter().flatten() {
        let values = values.as_array().unwrap().iter();
        let values = values
            .map(|v| v.as_str().unwrap().as_bytes().to_vec())
            .collect();
        set(&mut headers, name, values);
    }
    for (name, value) in case["header_base64"].as_object().into_iter().flatten() {
        set(&mut headers, name, vec![decode(value.as_str().unwrap())]);
    }
    for name in case["drop"].as_array().into_iter().flatten() {
        set(&mut headers, name.as_str().unwrap(), Vec::new());
    }
    let mut request = Request::builder()
        .method(case["method"].as_str().unwrap_or("POST"))
        .uri(case["path"].as_str().unwrap_or("/hooks/github"))
        .body(Body::from(body))
        .unwrap();
    *request.headers_mut() = headers;
    request
}

#[tokio::test]
async fn cs_8_06_hostile_deliveries_get_the_right_answer_and_one_refusal() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/hostile");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "json"));
    files.sort();
    assert!(files.len() >= 40, "only {} fixtures", files.len());
    let mut refusals = std::collections::BTreeSet::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let case: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let mut setup = Setup::new();
        // Nobody is owed anything, so that an authentic delivery is a 204
        setup.write_admission = false;
        let world = World::open(setup);
        let answer = world.send(request(&case)).await;
        assert_eq!(
            u64::from(answer.status),
            case["expect"].as_u64().unwrap(),
            "{name}: {}",
            answer.body
        );
        if answer.status == 401 {
            refusals.insert(answer.body.clone());
        }
        if answer.status == 404 {
            continue;
        }
        let line = world.last_line();
        assert_eq!(
            line.code.as_deref(),
            case["code"].as_str(),
            "{name}: {line:?}"
        );
        let text = serde_json::to_string(&line).unwrap();
        assert!(!text.contains(crate::world::SECRET), "{name}");
        let right = signature(&body(&case)).replace("sha256=", "");
        assert!(!text.contains(&right), "{name}: a computed signature");
    }
    assert_eq!(refusals.len(), 1, "{refusals:?}");
}

#[tokio::test]
async fn cs_8_02_a_repeated_key_is_ambiguous_and_the_log_says_where() {
    let world = World::open(Setup::new());
    let body = r#"{"action":"opened","repository":{"full_name":"o/r","full_name":"o/r"}}"#;
    assert_eq!(world.deliver("d-1", body).await.status, 204);
    let line = world.last_line();
    let candidate = &line.candidates[0];
    assert_eq!(candidate.reason.as_deref(), Some("ambiguous-evidence"));
    assert_eq!(candidate.at.as_deref(), Some("/repository/full_name"));
}
