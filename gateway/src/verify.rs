//! Verify: a raw delivery, the source's profile and keys, and the time of receipt become verified
//! evidence, or a refusal whose step only the operator sees.

use postern_profiles::{Outcome, RequestParts};

use crate::receive::RawDelivery;
use crate::sources::Source;

/// Authenticates the exact bytes, then reads them
pub fn verify(source: &Source, raw: &RawDelivery) -> Outcome {
    source.verifier.verify(
        &RequestParts {
            method: raw.head.method.as_str(),
            headers: &raw.head.headers,
            body: &raw.body,
        },
        raw.received_at,
    )
}
