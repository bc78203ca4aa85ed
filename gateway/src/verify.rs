//! Verify: a raw delivery, the source's profile and keys, and the time of receipt become verified
//! evidence, or a refusal whose step only the operator sees.

use http::header::HOST;
use postern_profiles::{FetchedKeys, Outcome, RequestParts};

use crate::receive::RawDelivery;
use crate::sources::Source;

/// Authenticates the exact bytes, then reads them
pub fn verify(source: &Source, raw: &RawDelivery, fetched: &FetchedKeys) -> Outcome {
    let url = url(&raw.head);
    source.verifier.verify_with(
        &RequestParts {
            method: raw.head.method.as_str(),
            url: &url,
            headers: &raw.head.headers,
            body: &raw.body,
        },
        fetched,
        raw.received_at,
    )
}

/// The URL as the sender called it, as far as it shows here: the parameter `base_url` of a source says what
/// a proxy has hidden. A false one is of no use to a sender, who must have a signature over it.
fn url(head: &http::request::Parts) -> String {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let scheme = match text(http::HeaderName::from_static("x-forwarded-proto")) {
        Some("https") => "https",
        _ => "http",
    };
    let host = text(HOST).or(head.uri.host()).unwrap_or_default();
    format!("{scheme}://{host}{path}")
}
