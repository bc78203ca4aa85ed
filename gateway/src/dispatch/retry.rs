//! When a failed delivery is tried again: exponential backoff with full jitter over a floor, the
//! destination's own Retry-After within bounds, and an end.

use std::time::Duration;

use http::HeaderMap;
use postern_contract::Timestamp;
use rand::Rng;

use crate::store::SettledAs;

/// How failures are tried again
#[derive(Clone, Debug)]
pub struct Policy {
    /// Retries after the first attempt
    pub limit: u32,
    /// The first wait
    pub initial: Duration,
    /// The longest wait
    pub max: Duration,
    /// The longest wait that a destination may ask for
    pub max_retry_after: Duration,
}

impl Policy {
    /// What becomes of a delivery whose attempt `number` (the first is 1) has failed
    pub fn after(&self, number: u32, now: Timestamp, asked: Option<Duration>) -> SettledAs {
        if number > self.limit {
            return SettledAs::Dead {
                reason: "attempts-exhausted",
            };
        }
        let own = self.backoff(number, rand::rng().random_range(0.0..=1.0));
        let asked = asked.unwrap_or_default().min(self.max_retry_after);
        let wait = own.max(asked);
        SettledAs::Retry {
            at: now.plus_ms(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        }
    }

    /// Half of the doubled wait is certain, the other half is `jitter` (0 to 1) of itself
    fn backoff(&self, number: u32, jitter: f64) -> Duration {
        let doublings = number.saturating_sub(1).min(31);
        let whole = self.initial.saturating_mul(1 << doublings).min(self.max);
        let half = whole / 2;
        half + half.mul_f64(jitter.clamp(0.0, 1.0))
    }
}

/// `Retry-After`: seconds or an HTTP date; anything else is nothing
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers
        .get(http::header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit ask for the longest wait
        return Some(Duration::from_secs(
            text.parse().unwrap_or(u64::from(u32::MAX)),
        ));
    }
    // Not as a `Timestamp`: the last days of 9999 are past its calendar, and ask for the longest wait
    let at = httpdate::parse_http_date(text).ok()?;
    let since_epoch = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = Duration::from_millis(u64::try_from(now.unix_ms()).unwrap_or(0));
    Some(since_epoch.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy {
            limit: 3,
            initial: Duration::from_secs(2),
            max: Duration::from_secs(3600),
            max_retry_after: Duration::from_secs(86_400),
        }
    }

    fn asked(value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", value.parse().unwrap());
        // 1994-11-06T08:49:37Z, the date of RFC 9110's example
        retry_after(&headers, Timestamp::from_unix(784_111_777).unwrap())
    }

    #[test]
    fn report_d41_the_last_retry_is_the_last() {
        let now = Timestamp::EPOCH;
        assert!(matches!(
            policy().after(3, now, None),
            SettledAs::Retry { .. }
        ));
        assert!(matches!(
            policy().after(4, now, None),
            SettledAs::Dead { .. }
        ));
    }

    #[test]
    fn report_d43_what_the_destination_asks_for_counts_within_bounds() {
        assert_eq!(asked("120"), Some(Duration::from_secs(120)));
        assert_eq!(asked("garbage"), None);
        assert_eq!(asked("-5"), None);
        assert_eq!(
            asked("Sun, 06 Nov 1994 08:50:37 GMT"),
            Some(Duration::from_secs(60))
        );
        assert_eq!(asked("Sun, 06 Nov 1994 08:40:37 GMT"), Some(Duration::ZERO));
        let at = |value: &str| match policy().after(1, Timestamp::EPOCH, asked(value)) {
            SettledAs::Retry { at } => at.unix(),
            other => panic!("{other:?}"),
        };
        assert!(at("120") >= 120);
        assert_eq!(at("99999999"), 86_400);
        assert_eq!(at("99999999999999999999999"), 86_400);
    }

    #[test]
    fn waits_double_up_to_their_bound_without_overflow() {
        let policy = policy();
        // 2, 4, 8 seconds: half of each is certain
        for (number, seconds) in [(1, 2), (2, 4), (3, 8), (12, 3600), (u32::MAX, 3600)] {
            let whole = Duration::from_secs(seconds);
            assert_eq!(policy.backoff(number, 0.0), whole / 2, "{number}");
            assert_eq!(policy.backoff(number, 1.0), whole, "{number}");
        }
    }
}
