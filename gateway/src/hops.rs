//! Hops: the header that says how many gateways a delivery has passed, so that a destination which leads
//! back to a source, over whatever number of gateways, ends after one turn. An event keeps no count of its
//! own: what a gateway has dispatched is taken by none. Not signed, and no security rests on it: who strips
//! it makes a loop of his own.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header
pub const HOPS: HeaderName = HeaderName::from_static("postern-hops");
/// A delivery that has passed so many is not taken
const LIMIT: u32 = 1;

/// What leaves a gateway says
pub const LEAVING: HeaderValue = HeaderValue::from_static("1");

/// Whether a delivery may be taken. A count that cannot be read is one too many.
pub fn within_limit(headers: &HeaderMap) -> bool {
    let mut said = headers.get_all(HOPS).iter();
    let passed = |value: &HeaderValue| value.to_str().ok()?.parse::<u32>().ok();
    match (said.next(), said.next()) {
        (None, _) => true,
        (Some(one), None) => passed(one).is_some_and(|hops| hops < LIMIT),
        (Some(_), Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gateway_is_passed_and_what_cannot_be_read_is_too_many() {
        let check = |values: &[&'static str], expect: bool| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HOPS, HeaderValue::from_static(value));
            }
            assert_eq!(within_limit(&headers), expect, "{values:?}");
        };
        check(&[], true);
        check(&["0"], true);
        for many in ["1", "2", "4294967296", "-1", "", "x"] {
            check(&[many], false);
        }
        check(&["0", "0"], false);
    }
}
