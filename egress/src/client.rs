//! The client: vets an address, connects to that address alone, sends bytes as they are given, and reads
//! a bounded answer. No redirects, no proxies, no cookies.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use postern_contract::fault::{Fault, Party, Retry};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::{Host, Url};

use crate::guard::{Allowed, Forbidden, vet};

/// The most bytes of an answer that are read
const MAX_ANSWER: usize = 64 << 10;
/// Idle connections that are kept a host
const IDLE_PER_HOST: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A request to send
pub struct Outbound {
    /// Where to
    pub url: Url,
    /// The headers; a name of ours in any case is replaced, not doubled
    pub headers: HeaderMap,
    /// The body, byte for byte
    pub body: Bytes,
    /// How long all of it may take
    pub timeout: Duration,
}

/// What came back
#[derive(Debug)]
pub struct Answer {
    /// The status
    pub status: StatusCode,
    /// The headers
    pub headers: HeaderMap,
    /// The first 64 KiB of the body
    pub body: Bytes,
}

/// Why nothing came back
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// Not a URL that is sent to
    #[error("the url: {0}")]
    Url(&'static str),
    /// The guard forbids the address
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The name has no address
    #[error("the name `{0}` does not resolve: {1}")]
    Unresolved(String, String),
    /// The time is over
    #[error("no answer in time")]
    Timeout,
    /// Connecting, sending or reading failed
    #[error("the connection failed: {0}")]
    Connection(String),
}

impl Fault for NotSent {
    fn code(&self) -> &'static str {
        match self {
            Self::Url(_) => "egress-url",
            Self::Forbidden(_) => "egress-forbidden",
            Self::Unresolved(..) => "egress-unresolved",
            Self::Timeout => "egress-timeout",
            Self::Connection(_) => "egress-connection",
        }
    }
    fn fault(&self) -> Party {
        match self {
            Self::Url(_) | Self::Forbidden(_) => Party::Operator,
            _ => Party::Destination,
        }
    }
    fn retry(&self) -> Retry {
        match self {
            Self::Url(_) | Self::Forbidden(_) => Retry::Never,
            _ => Retry::Later,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Forbidden(Forbidden(address, _)) => Some(format!(
                "list `{address}` or its network under `egress.allow` if it is meant"
            )),
            _ => None,
        }
    }
}

/// Refuses what could be decided without the network: a URL of another scheme, with credentials, without
/// a host, or in clear text to an address that the operator has not listed
pub fn check_url(url: &Url, allowed: &Allowed) -> Result<(), NotSent> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(NotSent::Url(
            "credentials in a url would be logged: use a header",
        ));
    }
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(NotSent::Url("there is no host"));
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if allowed.lists_host(host, port) => Ok(()),
        "http" => Err(NotSent::Url(
            "want https; clear text only to what `egress.allow` lists",
        )),
        _ => Err(NotSent::Url("want https")),
    }
}

/// Looks names up and vets what it finds: the connection goes to these addresses and no others
struct Vetting(Arc<Allowed>);

impl Resolve for Vetting {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.0);
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            // The port is unknown here; the request has been vetted with it before
            let found: Vec<SocketAddr> = found.collect();
            let free = |a: &SocketAddr| {
                vet(vec![a.ip()], &host, 0, &allowed).is_ok()
                    || allowed.lists_any_port(&host)
                    || allowed.lists_any_port(&a.ip().to_string())
            };
            if !found.iter().all(free) {
                return Err("an address of the name is forbidden".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The pooled client
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    allowed: Arc<Allowed>,
}

impl Client {
    /// A client that reaches public addresses, and what `allowed` lists
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that makes an HTTP client"
    )]
    pub fn new(allowed: Allowed) -> Result<Self, NotSent> {
        let allowed = Arc::new(allowed);
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .dns_resolver(Arc::new(Vetting(Arc::clone(&allowed))))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .user_agent(concat!("postern/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| NotSent::Connection(e.to_string()))?;
        Ok(Self { http, allowed })
    }

    /// What it may reach
    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// Posts `outbound`
    pub async fn post(&self, outbound: Outbound) -> Result<Answer, NotSent> {
        let timeout = outbound.timeout;
        tokio::time::timeout(timeout, self.exchange(outbound))
            .await
            .map_err(|_| NotSent::Timeout)?
    }

    async fn exchange(&self, outbound: Outbound) -> Result<Answer, NotSent> {
        check_url(&outbound.url, &self.allowed)?;
        self.vet(&outbound.url).await?;
        let mut answer = self
            .http
            .post(outbound.url)
            .headers(outbound.headers)
            .body(outbound.body)
            .send()
            .await
            .map_err(failed)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            let room = MAX_ANSWER - body.len();
            body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if body.len() == MAX_ANSWER {
                break;
            }
        }
        Ok(Answer {
            status,
            headers,
            body: body.freeze(),
        })
    }

    /// Vets every address of the URL's host. The client never asks its resolver about a literal address,
    /// in whatever spelling: those are vetted here alone.
    async fn vet(&self, url: &Url) -> Result<(), NotSent> {
        let port = url.port_or_known_default().unwrap_or(0);
        let (addresses, host): (Vec<IpAddr>, String) = match url.host() {
            None => return Err(NotSent::Url("there is no host")),
            Some(Host::Ipv4(address)) => (vec![address.into()], address.to_string()),
            Some(Host::Ipv6(address)) => (vec![address.into()], address.to_string()),
            Some(Host::Domain(name)) => {
                let unresolved =
                    |e: std::io::Error| NotSent::Unresolved(name.to_owned(), e.to_string());
                let found = tokio::net::lookup_host((name, port))
                    .await
                    .map_err(unresolved)?;
                (found.map(|a| a.ip()).collect(), name.to_owned())
            }
        };
        vet(addresses, &host, port, &self.allowed)?;
        Ok(())
    }
}

/// The cause without the URL, which may hold a token
fn failed(e: reqwest::Error) -> NotSent {
    if e.is_timeout() {
        return NotSent::Timeout;
    }
    let e = e.without_url();
    let mut text = e.to_string();
    let mut cause = std::error::Error::source(&e);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    NotSent::Connection(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(allow: &[&str]) -> Client {
        let allow: Vec<String> = allow.iter().map(|a| (*a).to_owned()).collect();
        Client::new(Allowed::parse(&allow).unwrap()).unwrap()
    }

    async fn code(client: &Client, url: &str) -> &'static str {
        let outbound = Outbound {
            url: url.parse().unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(5),
        };
        client
            .post(outbound)
            .await
            .map_or_else(|e| e.code(), |_| "sent")
    }

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
            "https://169.254.169.254/latest/meta-data",
        ] {
            assert_eq!(code(&client, url).await, "egress-forbidden", "{url}");
        }
        assert_eq!(code(&client, "http://1.1.1.1/").await, "egress-url");
        assert_eq!(code(&client, "https://u:p@1.1.1.1/").await, "egress-url");
        assert_eq!(code(&client, "ftp://1.1.1.1/").await, "egress-url");
    }

    #[tokio::test]
    async fn report_d44_a_redirect_is_an_answer_and_is_not_followed() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 1024];
            let _ = stream.read(&mut buffer).await.unwrap();
            let answer = format!(
                "HTTP/1.1 302 Found\r\nlocation: http://{address}/again\r\ncontent-length: 0\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            // A second request would come here
            tokio::time::timeout(Duration::from_millis(200), listener.accept())
                .await
                .is_err()
        });
        let client = client(&[&address.to_string()]);
        let outbound = Outbound {
            url: format!("http://{address}/").parse().unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"x"),
            timeout: Duration::from_secs(5),
        };
        assert_eq!(
            client.post(outbound).await.unwrap().status,
            StatusCode::FOUND
        );
        assert!(server.await.unwrap(), "nothing follows");
    }
}
