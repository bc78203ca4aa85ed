//! `postern send`, against a listener that answers once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::support::{postern, with_file};

struct Received {
    request_line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Received {
    fn header(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(key, _)| key == name);
        named.map(|(_, value)| value.as_str()).collect()
    }
}

/// The URL of a listener that answers one request with `status`
fn answering(status: &'static str) -> (String, JoinHandle<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks/github", listener.local_addr().unwrap());
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let request_line = line();
        let headers: Vec<(String, String)> = std::iter::repeat_with(line)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                line.split_once(": ")
                    .map(|(k, v)| (k.to_lowercase(), v.to_owned()))
            })
            .collect();
        let length = headers.iter().find(|(key, _)| key == "content-length");
        let mut body = vec![0; length.map_or(0, |(_, n)| n.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").unwrap();
        Received {
            request_line,
            headers,
            body,
        }
    });
    (url, received)
}

/// The body and secret of GitHub's documented test values
const FIXTURE: &str = r#"{"method":"POST","url":"https://hooks.example.com/in","headers":{"Host":"hooks.example.com","Content-Length":"999","X-GitHub-Event":"ping","X-GitHub-Delivery":"72d3162e","X-Hub-Signature-256":"sha256=00","X-Twice":["a","b"]},"body":"Hello, World!"}"#;
const SECRET: &str = "It's a Secret to Everybody";

#[test]
fn it_signs_as_the_provider_documents_and_posts_the_exact_body() {
    let (_dir, fixture) = with_file("delivery.json", FIXTURE);
    let (url, received) = answering("202 Accepted");
    let ran = postern(&[
        "send",
        &fixture,
        "--to",
        &url,
        "--secret-env",
        "HOOK",
        "--json",
    ])
    .env("HOOK", SECRET)
    .run();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert_eq!(
        ran.json(),
        serde_json::json!({ "status": 202, "body": "{}" })
    );
    let received = received.join().unwrap();
    assert_eq!(received.request_line, "POST /hooks/github HTTP/1.1");
    assert_eq!(received.body, b"Hello, World!");
    assert_eq!(
        received.header("x-hub-signature-256"),
        ["sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"],
    );
    assert_eq!(received.header("x-twice"), ["a", "b"]);
    assert_eq!(received.header("content-length"), ["13"]);
    assert_ne!(received.header("host"), ["hooks.example.com"]);
}

#[test]
fn as_is_keeps_the_recorded_signature_and_a_refusal_exits_1() {
    let (_dir, fixture) = with_file("delivery.json", FIXTURE);
    let (url, received) = answering("401 Unauthorized");
    let ran = postern(&["send", &fixture, "--to", &url, "--as-is"]).run();
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    assert_eq!(ran.out, "401 Unauthorized\n{}\n");
    assert_eq!(
        received.join().unwrap().header("x-hub-signature-256"),
        ["sha256=00"]
    );
}

#[test]
fn nobody_listening_is_a_network_failure() {
    let (_dir, fixture) = with_file("delivery.json", FIXTURE);
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}/");
    let ran = postern(&["send", &fixture, "--to", &url, "--as-is", "--json"]).run();
    assert_eq!(
        (ran.code, &ran.json()["error"]["code"]),
        (3, &"egress-connection".into())
    );
}

#[test]
fn the_secret_comes_from_the_environment_alone() {
    let (_dir, fixture) = with_file("delivery.json", FIXTURE);
    let args = [
        "send",
        &fixture,
        "--to",
        "http://127.0.0.1:1/",
        "--secret-env",
        "HOOK",
    ];
    let ran = postern(&args).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err
            .starts_with("error[secret-not-set]: the variable `HOOK` is not set"),
        "{}",
        ran.err
    );
    let ran = postern(&args).env("HOOK", "").run();
    assert!(ran.err.starts_with("error[secret-empty]"), "{}", ran.err);
    let ran = postern(&args).env("HOOK", "hunter2 ").run();
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("blanks") && !ran.err.contains("hunter2"),
        "{}",
        ran.err
    );
    let ran = postern(&["send", &fixture, "--to", "http://127.0.0.1:1/"]).run();
    assert_eq!(ran.code, 2, "neither a secret nor --as-is");
}

#[test]
fn a_provider_is_never_guessed_among_several() {
    let both = FIXTURE.replace("X-Twice", "X-Gitlab-Token");
    let (_dir, fixture) = with_file("delivery.json", &both);
    let args = [
        "send",
        &fixture,
        "--to",
        "http://127.0.0.1:1/",
        "--secret-env",
        "HOOK",
    ];
    let ran = postern(&args).env("HOOK", SECRET).run();
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err.starts_with("error[ambiguous-provider]"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("hint: name one with `--profile`"),
        "{}",
        ran.err
    );
    let none = r#"{"method":"POST","url":"https://h.example/","headers":{"Content-Type":"application/json"}}"#;
    let (_dir, fixture) = with_file("delivery.json", none);
    let args = [
        "send",
        &fixture,
        "--to",
        "http://127.0.0.1:1/",
        "--secret-env",
        "HOOK",
    ];
    let ran = postern(&args).env("HOOK", SECRET).run();
    assert!(
        ran.err.starts_with("error[unknown-provider]"),
        "{}",
        ran.err
    );
}

#[test]
fn what_is_no_delivery_is_not_sent() {
    for (text, code) in [
        (r#"{"action":"opened"}"#, "not-a-request"),
        (
            r#"{"method":"GET","url":"https://h.example/"}"#,
            "not-a-delivery",
        ),
        (
            r#"{"method":"POST","url":"u","body":"","body_base64":""}"#,
            "not-a-request",
        ),
        (
            r#"{"method":"POST","url":"u","headers":{"a b":"c"}}"#,
            "not-a-header",
        ),
    ] {
        let (_dir, fixture) = with_file("delivery.json", text);
        let ran = postern(&[
            "send",
            &fixture,
            "--to",
            "http://127.0.0.1:1/",
            "--as-is",
            "--json",
        ])
        .run();
        assert_eq!(
            (ran.code, &ran.json()["error"]["code"]),
            (2, &code.into()),
            "{text}"
        );
    }
    let (_dir, fixture) = with_file("delivery.json", FIXTURE);
    let ran = postern(&["send", &fixture, "--to", "ftp://h.example/", "--as-is"]).run();
    assert_eq!(ran.code, 2, "{}", ran.err);
}
