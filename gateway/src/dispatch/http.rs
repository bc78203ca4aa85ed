//! The kind `http`: posts a CloudEvent, signed by Standard Webhooks over the bytes that are sent.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use postern_contract::Timestamp;
use postern_contract::fault::{Fault as _, Retry};
use postern_egress::{Client, Outbound};

use super::cloudevent::{CloudEvent, STRUCTURED};
use super::destination::Http;
use super::{Attempt, retry, standard_webhooks};
use crate::config::ModeConfig;
use crate::hops::{HOPS, LEAVING};
use crate::store::Claimed;

/// The most characters of an answer that the log keeps
const KEPT: usize = 1_024;

/// One attempt
pub(super) async fn attempt(
    client: &Client,
    to: &Http,
    event: &CloudEvent<'_>,
    claimed: &Claimed,
    timeout: Duration,
    now: Timestamp,
) -> Attempt {
    let mut headers = to.headers.clone();
    let body = match to.mode {
        ModeConfig::Structured => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(STRUCTURED));
            event.structured()
        }
        ModeConfig::Binary => {
            event
                .headers()
                .for_each(|(name, value)| set(&mut headers, &name, &value));
            event.data().clone()
        }
    };
    let signed = match standard_webhooks::headers(&to.signing, &claimed.id.to_string(), now, &body)
    {
        Ok(signed) => signed,
        Err(why) => {
            return Attempt::Failed {
                detail: format!("signing-expired: {why}"),
                retry_after: None,
            };
        }
    };
    signed
        .iter()
        .for_each(|(name, value)| set(&mut headers, name, value));
    headers.insert(HOPS, LEAVING);
    let outbound = Outbound {
        url: to.url.clone(),
        headers,
        body,
        timeout,
    };
    let answer = match client.post(outbound).await {
        Ok(answer) => answer,
        Err(why) if why.retry() == Retry::Never => {
            return Attempt::Gone {
                reason: "egress-refused",
                detail: format!("{}: {why}", why.code()),
            };
        }
        Err(why) => {
            return Attempt::Failed {
                detail: format!("{}: {why}", why.code()),
                retry_after: None,
            };
        }
    };
    let status = answer.status;
    let text = String::from_utf8_lossy(&answer.body);
    let text: String = text
        .chars()
        .filter(|c| !c.is_control())
        .take(KEPT)
        .collect();
    let detail = if text.is_empty() {
        format!("status {}", status.as_u16())
    } else {
        format!("status {}: {text}", status.as_u16())
    };
    if status.is_success() {
        Attempt::Delivered {
            detail: format!("status {}", status.as_u16()),
        }
    } else if status == StatusCode::GONE {
        Attempt::Gone {
            reason: "destination-gone",
            detail,
        }
    } else if status.is_redirection() {
        Attempt::Failed {
            detail: format!("redirect-not-followed: {detail}"),
            retry_after: None,
        }
    } else {
        Attempt::Failed {
            detail,
            retry_after: retry::retry_after(&answer.headers, now),
        }
    }
}

/// Our names and encoded values are always headers
fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}
