//! Hostile HTTP over real sockets: what hyper answers by itself has our shape and is counted, what a head
//! and a stalled reader may cost is bounded, and the odd forms that HTTP allows are taken.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::receiving::{listening, raw, read_all};
use crate::world::{Setup, opened};

/// Ends a wait that without the mend would last for ever
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that comes back for `request` until the server closes
async fn exchange(at: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    // The server may close before it has read everything
    let _ = stream.write_all(request).await;
    tokio::time::timeout(PATIENCE, read_all(&mut stream))
        .await
        .unwrap()
}

/// An answer's status and its error's code, in the one shape that errors have
fn problem(answer: &str) -> (String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    assert!(head.contains("content-type: application/json"), "{answer}");
    let json: Value = serde_json::from_str(body).unwrap();
    assert!(json["error"]["message"].is_string(), "{answer}");
    let status = head.get(9..12).unwrap_or_default().to_owned();
    (status, json["error"]["code"].as_str().unwrap().to_owned())
}

async fn cuts(at: SocketAddr, reason: &str) -> u64 {
    let get = b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let metrics = exchange(at, get).await;
    let name = format!("postern_connections_cut_total{{reason=\"{reason}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |n| n.trim().parse().unwrap())
}

#[tokio::test]
async fn a_sender_that_never_reads_its_answers_is_cut_off() {
    let quick = |s: &mut Setup| s.server = json!({"write_timeout": "100ms"});
    listening(quick, |at| async move {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let many = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000);
        let pushing = async { while stream.write_all(&many).await.is_ok() {} };
        tokio::time::timeout(PATIENCE, pushing).await.unwrap();
        assert_eq!(cuts(at, "write-stalled").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_head_is_held_to_its_limit_to_the_byte() {
    let small = |s: &mut Setup| s.server = json!({"max_header_bytes": 1_000});
    listening(small, |at| async move {
        let of = |bytes: usize| {
            let head = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: \r\n\r\n";
            let filled = "y".repeat(bytes - head.len());
            head.replace("x: \r\n\r\n", &format!("x: {filled}\r\n\r\n"))
        };
        let whole = exchange(at, of(1_000).as_bytes()).await;
        assert!(whole.starts_with("HTTP/1.1 200"), "{whole}");
        for bytes in [1_001, 8_000, 100_000, 1_000_000] {
            let answer = exchange(at, of(bytes).as_bytes()).await;
            // So much is left unread at the end that the reset may overtake the answer
            if bytes <= 8_000 || !answer.is_empty() {
                let expected = ("431".to_owned(), "head-too-large".to_owned());
                assert_eq!(problem(&answer), expected, "{bytes}");
            }
        }
        let many = "a: b\r\n".repeat(150);
        let many = format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n");
        assert_eq!(problem(&exchange(at, many.as_bytes()).await).0, "431");
        assert_eq!(cuts(at, "head-too-large").await, 5);
    })
    .await;
    let large = |s: &mut Setup| s.server = json!({"max_header_bytes": 200_000});
    listening(large, |at| async move {
        let path = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "y".repeat(70_000));
        let answer = exchange(at, path.as_bytes()).await;
        assert_eq!(
            problem(&answer),
            ("414".to_owned(), "path-too-long".to_owned())
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_no_http_is_a_400_of_our_shape_and_counted() {
    listening(
        |_| {},
        |at| async move {
            let post = "POST /hooks/github HTTP/1.1\r\nhost: x\r\n";
            let cases = [
                // RFC 9112, 3.2: exactly one host
                "GET /healthz HTTP/1.1\r\n\r\n".to_owned(),
                "GET /healthz HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n".to_owned(),
                "GET /healthz HTTP/1.0\r\nhost: x\r\nhost: y\r\n\r\n".to_owned(),
                // 6.3: lengths that differ, or are none
                format!("{post}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
                format!("{post}content-length: 2, 2\r\n\r\n{{}}"),
                format!("{post}content-length: +2\r\n\r\n{{}}"),
                format!("{post}content-length: -2\r\n\r\n{{}}"),
                format!("{post}content-length: 18446744073709551617\r\n\r\n{{}}"),
                // 6.1: chunked is the last coding, and HTTP/1.0 has none
                format!("{post}transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
                format!("{post}transfer-encoding: identity\r\n\r\n0\r\n\r\n"),
                format!("{post}transfer-encoding: chunked\r\n\r\n0\r\n\r\n").replace("1.1", "1.0"),
                // 5.1, 5.2: no blank before the colon, no folded lines
                format!("{post}content-length : 2\r\n\r\n{{}}"),
                format!("{post}x: a\r\n b\r\n\r\n"),
                format!("{post}x: a\0b\r\n\r\n"),
                "G@T / HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
                "GET / HTTP/3.1\r\nhost: x\r\n\r\n".to_owned(),
            ];
            for case in &cases {
                let answer = exchange(at, case.as_bytes()).await;
                let expected = ("400".to_owned(), "malformed-request".to_owned());
                assert_eq!(problem(&answer), expected, "{case}");
                assert!(answer.contains("connection: close"), "{case}: {answer}");
            }
            assert_eq!(cuts(at, "malformed-head").await, cases.len() as u64);
        },
    )
    .await;
}

#[tokio::test]
async fn the_odd_forms_that_http_allows_are_taken() {
    let body = opened(1);
    let length = format!("content-length: {}", body.len());
    let plain = format!("{}{body}", raw(&body, &length));
    let chunked = |text: &str| format!("{}{text}", raw(&body, "transfer-encoding: chunked"));
    let size = format!("{:x}", body.len());
    let cases = [
        plain.replace("/hooks/github HTTP", "http://elsewhere/hooks/github HTTP"),
        plain.replace("HTTP/1.1", "HTTP/1.0"),
        plain.replace("/hooks/github HTTP", "/hooks/git%68ub?a=b HTTP"),
        // Twice the same length is one length
        plain.replace(&length, &format!("{length}\r\n{length}")),
        chunked(&format!(
            "{size};a=\"b\"\r\n{body}\r\n0\r\nx-github-event: push\r\n\r\n"
        )),
    ];
    for case in cases {
        let sent = case.clone();
        listening(
            |_| {},
            |at| async move {
                let answer = exchange(at, sent.as_bytes()).await;
                assert!(answer.contains(" 202 Accepted\r\n"), "{sent}: {answer}");
            },
        )
        .await;
    }
}

#[tokio::test]
async fn a_sender_that_asks_first_is_told_to_go_on() {
    let body = opened(1);
    listening(
        |_| {},
        |at| async move {
            let length = format!("expect: 100-continue\r\ncontent-length: {}", body.len());
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream
                .write_all(raw(&body, &length).as_bytes())
                .await
                .unwrap();
            let mut go_on = [0; 25];
            let reading = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut go_on);
            tokio::time::timeout(PATIENCE, reading)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
            stream.write_all(body.as_bytes()).await.unwrap();
            let answer = read_all(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
            // One that is refused for its length alone is not asked for its body
            let large = raw("", "expect: 100-continue\r\ncontent-length: 1000001");
            let answer = exchange(at, large.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
        },
    )
    .await;
}

#[tokio::test]
async fn two_lengths_of_a_body_never_smuggle_a_request() {
    // RFC 9112, 6.3: with both, Transfer-Encoding counts, and the connection ends with the answer
    listening(
        |_| {},
        |at| async move {
            let hidden = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
            let body = format!("0\r\n\r\n{hidden}");
            let length = format!("content-length: {}", body.len());
            for order in [
                format!("{length}\r\ntransfer-encoding: chunked"),
                format!("transfer-encoding: chunked\r\n{length}"),
            ] {
                // Nothing asks for the end of the connection
                let head = raw("", &order).replace("connection: close\r\n", "");
                let answer = exchange(at, format!("{head}{body}").as_bytes()).await;
                assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
                assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn every_refusal_has_the_one_shape() {
    listening(
        |_| {},
        |at| async move {
            for (line, status, code) in [
                ("POST /hooks/%ff", "404", "not-found"),
                ("POST /hooks/%00", "404", "not-found"),
                ("POST /hooks/", "404", "not-found"),
                ("POST /hooks/a/b", "404", "not-found"),
                ("POST //hooks/github", "404", "not-found"),
                ("POST /hooks/github/../github", "404", "not-found"),
                ("OPTIONS *", "404", "not-found"),
                ("POST no-path", "404", "not-found"),
                ("CONNECT x:80", "404", "not-found"),
                ("POST /healthz", "405", "method"),
                ("DELETE /metrics", "405", "method"),
                ("DELETE /hooks/github", "405", "method"),
                ("POST /hooks/github", "401", "not-authentic"),
            ] {
                let request = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
                let answer = exchange(at, request.as_bytes()).await;
                let expected = (status.to_owned(), code.to_owned());
                assert_eq!(problem(&answer), expected, "{line}");
            }
        },
    )
    .await;
}
