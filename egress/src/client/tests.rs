//! The client against raw servers on loopback, which see every byte. Nothing here leaves the machine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;

fn allow(entries: &[&str]) -> Allowed {
    let entries: Vec<String> = entries.iter().map(|a| (*a).to_owned()).collect();
    Allowed::parse(&entries).unwrap()
}

fn client(entries: &[&str]) -> Client {
    Client::new(allow(entries)).unwrap()
}

/// A client for which every name has these addresses, one list a lookup; the last one stays
fn with_names(entries: &[&str], answers: Vec<Vec<IpAddr>>) -> (Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let lookup = move |_: String, _: u16| {
        let nth = counter
            .fetch_add(1, Ordering::SeqCst)
            .min(answers.len() - 1);
        let answer = answers[nth].clone();
        Box::pin(async move { Ok(answer) }) as Looking
    };
    let client = Client::with_lookup(allow(entries), Arc::new(lookup)).unwrap();
    (client, asked)
}

fn to(url: &str) -> Outbound {
    Outbound {
        url: url.parse().unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"the body"),
        timeout: Duration::from_secs(20),
    }
}

async fn code(client: &Client, url: &str) -> &'static str {
    (client.post(to(url)).await).map_or_else(|e| e.code(), |_| "sent")
}

/// Reads one request: its head, and a body of the stated length
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut seen = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = (head.lines())
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return Some(text);
            }
        }
        let mut buffer = [0; 4_096];
        match stream.read(&mut buffer).await.unwrap() {
            0 => return None,
            n => seen.extend_from_slice(&buffer[..n]),
        }
    }
}

/// A server that answers every request with `answer`, and tells each request and connection
async fn server(answer: &'static [u8]) -> (SocketAddr, mpsc::UnboundedReceiver<(usize, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for nth in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let tell = tell.clone();
            tokio::spawn(async move {
                while let Some(request) = request(&mut stream).await {
                    let _ = tell.send((nth, request));
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    (address, told)
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn literal_addresses_are_vetted_in_every_spelling() {
    let client = client(&[]);
    for url in [
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://0/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::1]/",
        "https://localhost/",
        "https://LOCALHOST/",
        "https://169.254.169.254/latest/meta-data",
        "https://[fd00:ec2::254]/latest/meta-data",
    ] {
        assert_eq!(code(&client, url).await, "egress-forbidden", "{url}");
    }
    assert_eq!(code(&client, "http://1.1.1.1/").await, "egress-url");
    assert_eq!(code(&client, "https://u:p@1.1.1.1/").await, "egress-url");
    assert_eq!(code(&client, "ftp://1.1.1.1/").await, "egress-url");
}

#[tokio::test]
async fn the_connection_goes_to_the_vetted_address_after_one_lookup() {
    let (address, mut seen) = server(OK).await;
    let url = format!("http://sink.example:{}/hook", address.port());
    let listed = format!("sink.example:{}", address.port());
    // No resolver of the system knows this name: only the vetted address leads there
    let (client, asked) = with_names(&[&listed], vec![vec![address.ip()]]);
    assert_eq!(client.post(to(&url)).await.unwrap().body, "ok");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let (_, request) = seen.recv().await.unwrap();
    assert!(
        request.contains(&format!("host: {listed}\r\n")),
        "{request}"
    );
    assert!(request.ends_with("\r\n\r\nthe body"), "{request}");
}

#[tokio::test]
async fn a_name_that_changes_its_mind_leads_nowhere_else() {
    let (address, mut seen) = server(OK).await;
    let port = address.port();
    let listed: IpAddr = "127.0.0.2".parse().unwrap();
    // Vetted with the first answer, where nobody listens; the second would lead to the server
    let (client, asked) = with_names(&["127.0.0.2"], vec![vec![listed], vec![address.ip()]]);
    let url = format!("https://rebinding.example:{port}/");
    assert_eq!(code(&client, &url).await, "egress-connection");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(seen.try_recv().is_err());
    // The next request vets anew, and refuses
    assert_eq!(code(&client, &url).await, "egress-forbidden");
}

#[tokio::test]
async fn a_listed_port_opens_no_other_port() {
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    let (client, _) = with_names(&["127.0.0.1:9", "sink.example:9"], vec![vec![loopback]]);
    for url in [
        "https://sink.example/",
        "https://evil.example/",
        "https://127.0.0.1/",
    ] {
        assert_eq!(code(&client, url).await, "egress-forbidden", "{url}");
    }
    assert_eq!(code(&client, "http://sink.example:10/").await, "egress-url");
}

#[tokio::test]
async fn one_private_address_among_public_ones_forbids_the_name() {
    let answers = ["1.1.1.1", "10.0.0.1"].map(|a| a.parse().unwrap()).to_vec();
    let (client, _) = with_names(&[], vec![answers]);
    assert_eq!(
        code(&client, "https://mixed.example/").await,
        "egress-forbidden"
    );
    let (client, _) = with_names(&[], vec![Vec::new()]);
    assert_eq!(
        code(&client, "https://none.example/").await,
        "egress-unresolved"
    );
}

#[tokio::test]
async fn connections_are_kept_and_used_again() {
    let (address, mut seen) = server(OK).await;
    let client = client(&["127.0.0.0/8"]);
    for _ in 0..3 {
        client
            .post(to(&format!("http://{address}/")))
            .await
            .unwrap();
        let (connection, _) = seen.recv().await.unwrap();
        assert_eq!(connection, 0);
    }
}

#[tokio::test]
async fn report_d44_a_redirect_is_an_answer_and_is_not_followed() {
    for answer in [
        &b"HTTP/1.1 302 Found\r\nlocation: /again\r\ncontent-length: 0\r\n\r\n"[..],
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    ] {
        let (address, mut seen) = server(answer).await;
        let client = client(&["127.0.0.0/8"]);
        let answer = client.post(to(&format!("http://{address}/"))).await.unwrap();
        assert!(answer.status.is_redirection());
        assert!(seen.try_recv().is_ok());
        // A followed redirect would have been the next request, before `post` returned
        assert!(seen.try_recv().is_err());
    }
}

#[tokio::test]
async fn report_d48_a_header_replaces_the_built_in_one_in_any_case() {
    let (address, mut seen) = server(OK).await;
    let client = client(&["127.0.0.0/8"]);
    let mut outbound = to(&format!("http://{address}/"));
    let name = http::HeaderName::try_from("User-Agent").unwrap();
    outbound.headers.insert(name, "mine/1".parse().unwrap());
    client.post(outbound).await.unwrap();
    client
        .post(to(&format!("http://{address}/")))
        .await
        .unwrap();
    let agents = |request: &str| -> Vec<String> {
        (request.lines())
            .filter(|line| line.to_lowercase().starts_with("user-agent:"))
            .map(|line| line.split_once(':').unwrap().1.trim().to_owned())
            .collect()
    };
    assert_eq!(agents(&seen.recv().await.unwrap().1), ["mine/1"]);
    let built_in = concat!("postern/", env!("CARGO_PKG_VERSION"));
    assert_eq!(agents(&seen.recv().await.unwrap().1), [built_in]);
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_bound() {
    // Says that it is endless, and is cut at the bound
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        while stream.write_all(&[b'x'; 10_000]).await.is_ok() {}
    });
    let answer = client(&["127.0.0.0/8"])
        .post(to(&format!("http://{address}/")))
        .await
        .unwrap();
    assert_eq!(answer.body.len(), 65_536);
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_undo_the_status() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\nhalf";
        stream.write_all(answer).await.unwrap();
    });
    let answer = client(&["127.0.0.0/8"])
        .post(to(&format!("http://{address}/")))
        .await
        .unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (202, &b"half"[..])
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let outbound = Outbound {
        timeout: Duration::from_millis(50),
        ..to(&format!("http://{address}/"))
    };
    let why = client(&["127.0.0.0/8"]).post(outbound).await.unwrap_err();
    assert_eq!((why.code(), why.retry()), ("egress-timeout", Retry::Later));
}

#[tokio::test]
async fn what_is_told_of_a_failure_holds_no_url() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let why = client(&["127.0.0.0/8"])
        .post(to(&format!("http://{address}/hook?token=hunter2")))
        .await
        .unwrap_err();
    assert_eq!(why.code(), "egress-connection");
    assert!(!why.to_string().contains("hunter2"), "{why}");
}

/// A server whose certificate holds for its name and time, and is signed by nobody whom this system trusts;
/// what became of each handshake
async fn unvouched() -> (SocketAddr, mpsc::UnboundedReceiver<Result<(), String>>) {
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;

    let pem = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
    let chain = vec![
        pem(include_str!("../../../fixtures/certificates/sns.pem")),
        pem(include_str!("../../../fixtures/certificates/issuer.pem")),
    ];
    let key = include_str!("../../../fixtures/certificates/sns.key");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let shaken = acceptor.accept(stream).await;
            let _ = tell.send(shaken.map(drop).map_err(|e| e.to_string()));
        }
    });
    (at, told)
}

#[tokio::test]
async fn report_d46_a_certificate_that_nobody_vouches_for_ends_the_connection() {
    let (at, mut shaken) = unvouched().await;
    // By its right name, and by another
    for name in ["sns.amazonaws.com", "other.example"] {
        let (client, _) = with_names(&["127.0.0.0/8"], vec![vec![at.ip()]]);
        let outbound = to(&format!("https://{name}:{}/", at.port()));
        let why = client.post(outbound).await.unwrap_err();
        assert_eq!(why.code(), "egress-connection");
        assert!(why.to_string().contains("certificate"), "{why}");
        // And it was the client that ended it, over the certificate
        let told = shaken.recv().await.unwrap().unwrap_err();
        assert!(
            told.contains("UnknownCA") || told.contains("certificate"),
            "{told}"
        );
    }
}
