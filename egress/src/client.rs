//! The client: vets an address, connects to that address alone, sends bytes as they are given, and reads
//! a bounded answer. No redirects, no proxies, no cookies.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, StatusCode};
use postern_contract::fault::{Fault, Party, Retry};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use tokio::time::{Instant, timeout};
use url::{Host, Url};

use crate::guard::{Allowed, Forbidden, Vetted, vet};

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
    /// The body as far as it came in time, at most its first 64 KiB
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

tokio::task_local! {
    /// What the request under way may connect to
    static VETTED: Vetted;
}

/// Answers with the addresses that were vetted for the request under way. A name is looked up once a
/// request: what the vetting saw is what is connected to, whatever the name says a moment later.
// INVARIANT(pinned): a connection to a name goes to an address of its `Vetted`; without one, nowhere.
struct Pinned;

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        // Read now, in the request's own task; the connection may go on in another
        let vetted = VETTED.try_with(Vetted::clone);
        Box::pin(async move {
            match vetted {
                Ok(vetted) if vetted.host() == name.as_str() => {
                    Ok(Box::new(vetted.addresses().to_vec().into_iter()) as Addrs)
                }
                _ => Err("the name was not vetted".into()),
            }
        })
    }
}

type Looking = Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;
/// Looks a name up
type Lookup = Arc<dyn Fn(String, u16) -> Looking + Send + Sync>;

fn by_the_system(name: String, port: u16) -> Looking {
    Box::pin(async move {
        let found = tokio::net::lookup_host((name, port)).await?;
        Ok(found.map(|address| address.ip()).collect())
    })
}

/// The pooled client
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    allowed: Arc<Allowed>,
    lookup: Lookup,
}

impl Client {
    /// A client that reaches public addresses, and what `allowed` lists
    pub fn new(allowed: Allowed) -> Result<Self, NotSent> {
        Self::with_lookup(allowed, Arc::new(by_the_system))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that makes an HTTP client"
    )]
    fn with_lookup(allowed: Allowed, lookup: Lookup) -> Result<Self, NotSent> {
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            // Whoever asks counts the attempts
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .dns_resolver(Arc::new(Pinned))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .user_agent(concat!("postern/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| NotSent::Connection(e.to_string()))?;
        Ok(Self {
            http,
            allowed: Arc::new(allowed),
            lookup,
        })
    }

    /// What it may reach
    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// Posts `outbound`
    pub async fn post(&self, outbound: Outbound) -> Result<Answer, NotSent> {
        self.send(Method::POST, outbound).await
    }

    /// Gets what is at the url of `outbound`
    pub async fn get(&self, outbound: Outbound) -> Result<Answer, NotSent> {
        self.send(Method::GET, outbound).await
    }

    async fn send(&self, method: Method, outbound: Outbound) -> Result<Answer, NotSent> {
        let (began, limit) = (Instant::now(), outbound.timeout);
        let mut answer = timeout(limit, self.exchange(method, outbound))
            .await
            .map_err(|_| NotSent::Timeout)??;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut body = BytesMut::new();
        // The status is the answer: a body that breaks off or never ends does not undo it
        let rest = limit.saturating_sub(began.elapsed());
        let _ = timeout(rest, read(&mut answer, &mut body)).await;
        Ok(Answer {
            status,
            headers,
            body: body.freeze(),
        })
    }

    async fn exchange(
        &self,
        method: Method,
        outbound: Outbound,
    ) -> Result<reqwest::Response, NotSent> {
        check_url(&outbound.url, &self.allowed)?;
        let vetted = self.vet(&outbound.url).await?;
        let request = self
            .http
            .request(method, outbound.url)
            .headers(outbound.headers)
            .body(outbound.body);
        VETTED.scope(vetted, request.send()).await.map_err(failed)
    }

    /// Vets every address of the URL's host. The client never asks its resolver about a literal address,
    /// in whatever spelling: those are vetted here alone.
    async fn vet(&self, url: &Url) -> Result<Vetted, NotSent> {
        let port = url.port_or_known_default().unwrap_or(0);
        let (addresses, host): (Vec<IpAddr>, String) = match url.host() {
            None => return Err(NotSent::Url("there is no host")),
            Some(Host::Ipv4(address)) => (vec![address.into()], address.to_string()),
            Some(Host::Ipv6(address)) => (vec![address.into()], address.to_string()),
            Some(Host::Domain(name)) => {
                let unresolved = |why: String| NotSent::Unresolved(name.to_owned(), why);
                let found = (self.lookup)(name.to_owned(), port)
                    .await
                    .map_err(|e| unresolved(e.to_string()))?;
                if found.is_empty() {
                    return Err(unresolved("it has no address".to_owned()));
                }
                (found, name.to_owned())
            }
        };
        Ok(vet(addresses, &host, port, &self.allowed)?)
    }
}

/// Reads as much of the body as is kept
async fn read(answer: &mut reqwest::Response, body: &mut BytesMut) {
    while let Ok(Some(chunk)) = answer.chunk().await {
        let room = MAX_ANSWER - body.len();
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if body.len() == MAX_ANSWER {
            return;
        }
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
mod tests;
