//! Keys and confirmations by way of the network, secrets that are learned, and secrets that change: all
//! against servers of the test's own on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use http::{Request, StatusCode};
use postern_gateway::store::Options;
use postern_gateway::{Gateway, Loaded};
use serde_json::{Value, json};

use crate::world::{Answer, NOW, SECRET, SetClock, Setup, World, environment, load, send, write};

/// A key server that counts
#[derive(Clone)]
struct Keys {
    asked: Arc<AtomicUsize>,
    answer: Arc<std::sync::Mutex<(u16, String)>>,
}

impl Keys {
    async fn start(status: u16, body: String) -> (Self, String) {
        let keys = Self {
            asked: Arc::default(),
            answer: Arc::new(std::sync::Mutex::new((status, body))),
        };
        async fn answer(State(keys): State<Keys>) -> (StatusCode, String) {
            keys.asked.fetch_add(1, Ordering::SeqCst);
            let (status, body) = keys.answer.lock().unwrap().clone();
            (StatusCode::from_u16(status).unwrap(), body)
        }
        let router = Router::new().fallback(answer).with_state(keys.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        (keys, format!("http://{at}/certs"))
    }
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
    fn set(&self, status: u16, body: &str) {
        *self.answer.lock().unwrap() = (status, body.to_owned());
    }
}

/// The vector of a provider whose tokens are verified by a set of keys
fn push() -> Value {
    let lines = include_str!("../../../fixtures/vectors/verification-vectors.jsonl");
    let mut lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines
        .find(|line: &Value| line["id"] == "gcp_pubsub_oidc-01")
        .unwrap()
}

fn pushed(line: &Value) -> Request<Body> {
    use base64::Engine as _;
    let body = line["request"]["body_base64"].as_str().unwrap();
    let body = base64::engine::general_purpose::STANDARD
        .decode(body)
        .unwrap();
    Request::post("/hooks/github")
        .header(
            "authorization",
            line["request"]["headers"]["Authorization"]
                .as_str()
                .unwrap(),
        )
        .body(Body::from(body))
        .unwrap()
}

/// A gateway whose source fetches its keys at `url`
fn fetching(url: &str, line: &Value) -> World {
    let mut setup = Setup::new();
    setup.write_trigger = false;
    setup.write_admission = false;
    let mut params = line["params"].as_object().unwrap().clone();
    params.retain(|name, _| name == "audience" || name == "email");
    params.insert("key_url".to_owned(), json!(url));
    setup.source = json!({ "profile": "gcp_pubsub_oidc", "params": params });
    let at = url.trim_start_matches("http://").split('/').next().unwrap();
    setup.egress = vec![at.to_owned()];
    let world = World::open_without_plans(setup);
    *world.clock.0.lock().unwrap() = line["now"].as_i64().unwrap();
    world
}

#[tokio::test]
async fn keys_are_fetched_once_for_all_who_wait_and_kept() {
    let line = push();
    let (keys, url) = Keys::start(200, line["public_key"]["value"].to_string()).await;
    let world = fetching(&url, &line);
    let all = (0..50).map(|_| send(world.router.clone(), pushed(&line)));
    let answers: Vec<Answer> = futures(all).await;
    // Authentic, and nobody is owed anything
    assert!(answers.iter().all(|a| a.status == 204), "{answers:?}");
    assert_eq!(keys.asked(), 1);
    // The server is gone, and its keys still count
    keys.set(500, "");
    *world.clock.0.lock().unwrap() += 1;
    assert_eq!(world.send(pushed(&line)).await.status, 204);
    assert_eq!(keys.asked(), 1);
}

#[tokio::test]
async fn a_key_that_cannot_be_fetched_makes_no_delivery_false() {
    let line = push();
    let (keys, url) = Keys::start(500, String::new()).await;
    let world = fetching(&url, &line);
    let all = (0..50).map(|_| send(world.router.clone(), pushed(&line)));
    for answer in futures(all).await {
        assert_eq!(answer.status, 503);
        assert!(answer.headers.contains_key("retry-after"));
        assert!(answer.body.contains("key-unavailable"), "{}", answer.body);
    }
    // One failure stands for all who waited
    assert_eq!(keys.asked(), 1);
    let line = world.last_line();
    assert_eq!(line.outcome.as_str(), "unavailable");
    assert_eq!(line.code.as_deref(), Some("key-status"));
}

#[tokio::test]
async fn nobody_can_have_keys_fetched_without_end() {
    let line = push();
    // A set of another key: each token names one that is not in it
    let other = line["public_key"]["value"]
        .to_string()
        .replace("\"k1\"", "\"k0\"");
    let (keys, url) = Keys::start(200, other).await;
    let world = fetching(&url, &line);
    for _ in 0..100 {
        assert_eq!(world.send(pushed(&line)).await.status, 401);
    }
    assert_eq!(keys.asked(), 1);
    // As time passes it is looked for again, within the minute's budget
    let mut refused = 0;
    for _ in 0..100 {
        *world.clock.0.lock().unwrap() += 31;
        refused += usize::from(world.send(pushed(&line)).await.status == 503);
    }
    assert_eq!(keys.asked(), 30);
    assert!(refused > 0, "{refused}");
}

/// All at once
async fn futures<F: Future<Output = Answer> + Send + 'static>(
    all: impl Iterator<Item = F>,
) -> Vec<Answer> {
    let tasks: Vec<_> = all.map(tokio::spawn).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

fn hook(header: &str, value: &str, body: &str) -> Request<Body> {
    Request::post("/hooks/github")
        .header(header, value)
        .body(Body::from(body.to_owned()))
        .unwrap()
}

fn mac(secret: &str, body: &str) -> String {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

#[tokio::test]
async fn a_secret_is_learned_once_in_setup_and_stored_before_the_answer() {
    let mut setup = Setup::new();
    setup.write_trigger = false;
    setup.source = json!({
        "profile": "asana", "setup": true, "keys": [{ "file": "learned" }],
    });
    let world = World::open_without_plans(setup);
    let file = world.dir().join("learned");
    let reply = world.send(hook("X-Hook-Secret", "s3cret", "")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["x-hook-secret"], "s3cret");
    assert_eq!(std::fs::read(&file).unwrap(), b"s3cret");
    // A second one does not replace it, whether the gateway has read it or not
    let again = world.send(hook("X-Hook-Secret", "other", "")).await;
    assert_eq!(again.status, 401);
    world.gateway.secrets_changed().await;
    world
        .gateway
        .reload_secrets(environment)
        .await
        .unwrap()
        .unwrap();
    let again = world.send(hook("X-Hook-Secret", "other", "")).await;
    assert_eq!(again.status, 401);
    assert_eq!(std::fs::read(&file).unwrap(), b"s3cret");
    // And it is what deliveries are verified by
    let body = r#"{"events":[{"action":"changed","resource":{"resource_type":"task"}}]}"#;
    let answer = world
        .send(hook("X-Hook-Signature", &mac("s3cret", body), body))
        .await;
    assert_eq!(answer.status, 204, "{}", answer.body);
    let answer = world
        .send(hook("X-Hook-Signature", &mac("other", body), body))
        .await;
    assert_eq!(answer.status, 401);
}

#[tokio::test]
async fn a_secret_that_cannot_be_stored_is_not_acknowledged() {
    let mut setup = Setup::new();
    setup.write_trigger = false;
    setup.source = json!({
        "profile": "asana", "setup": true, "keys": [{ "file": "no/such/directory/learned" }],
    });
    let world = World::open_without_plans(setup);
    let reply = world.send(hook("X-Hook-Secret", "s3cret", "")).await;
    assert_eq!(reply.status, 503);
    assert!(!reply.headers.contains_key("x-hook-secret"));
    assert!(!format!("{reply:?}").contains("s3cret"));
    let line = world.last_line();
    assert_eq!(line.code.as_deref(), Some("secret-not-stored"));
}

#[test]
fn without_setup_a_source_has_its_secret_from_the_start() {
    let code = |source: Value| {
        let dir = tempfile::tempdir().unwrap();
        let mut setup = Setup::new();
        setup.source = source;
        let (config, _) = write(dir.path(), &setup);
        match Loaded::new(&config, &environment) {
            Ok(_) => "loads",
            Err(faults) => faults.0.first().unwrap().code(),
        }
    };
    let file = json!([{ "file": "learned" }]);
    assert_eq!(
        code(json!({ "profile": "asana", "keys": file })),
        "key-unreadable"
    );
    assert_eq!(code(json!({ "profile": "asana" })), "bind-no-key");
    assert_eq!(
        code(json!({ "profile": "asana", "setup": true })),
        "setup-no-file"
    );
    let env = json!([{ "env": "SECRET" }]);
    assert_eq!(
        code(json!({ "profile": "asana", "setup": true, "keys": env })),
        "setup-no-file"
    );
    assert_eq!(
        code(json!({ "profile": "stripe", "setup": true, "keys": file })),
        "no-setup"
    );
    assert_eq!(
        code(json!({ "profile": "asana", "setup": true, "keys": file })),
        "loads"
    );
    assert_eq!(code(json!({ "profile": "plaid" })), "bind-no-credential");
    let public = json!({ "public": "x" });
    let plaid = json!({ "profile": "plaid", "credential": public });
    assert_eq!(code(plaid), "key-no-secret");
}

#[tokio::test]
async fn a_secret_file_that_changes_is_read_again_and_a_bad_one_keeps_the_old() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new();
    setup.write_trigger = false;
    setup.source = json!({ "profile": "github", "keys": [{ "file": "a" }, { "file": "b" }] });
    let (mut config, _) = write(dir.path(), &setup);
    config.plans.path = dir.path().join("none");
    config.plans.admissions = dir.path().join("none");
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    put("a", "first\n");
    put("b", SECRET);
    let clock = SetClock(Arc::new(std::sync::Mutex::new(NOW)));
    let gateway = Gateway::open(
        config.clone(),
        load(&config),
        Arc::new(clock),
        Options::default(),
    )
    .unwrap();
    let status = async |secret: &str| {
        let signature = format!("sha256={}", mac(secret, "{}"));
        let request = Request::post("/hooks/github")
            .header("x-hub-signature-256", signature)
            .header("x-github-event", "ping")
            .header("x-github-delivery", "d")
            .body(Body::from("{}"))
            .unwrap();
        send(gateway.router(), request).await.status
    };
    assert_eq!((status("first").await, status(SECRET).await), (204, 204));
    put("a", "second\n");
    gateway.secrets_changed().await;
    gateway.reload_secrets(environment).await.unwrap().unwrap();
    assert_eq!(status("first").await, 401);
    assert_eq!((status("second").await, status(SECRET).await), (204, 204));
    // Half of a rotation: the file is gone for a moment
    std::fs::remove_file(dir.path().join("a")).unwrap();
    gateway.secrets_changed().await;
    assert!(gateway.reload_secrets(environment).await.unwrap().is_err());
    assert_eq!((status("second").await, status(SECRET).await), (204, 204));
    put("a", "third");
    gateway.secrets_changed().await;
    gateway.reload_secrets(environment).await.unwrap().unwrap();
    assert_eq!((status("second").await, status("third").await), (401, 204));
}
