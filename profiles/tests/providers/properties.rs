//! What holds for every profile of the catalogue.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use postern_contract::Timestamp;
use postern_profiles::{Catalogue, Integrity, Outcome, Profile, RequestParts, Tolerance};
use proptest::prelude::*;

use super::{Case, authentic, key, said, verify};

fn all() -> impl Iterator<Item = (&'static Profile, Case)> {
    let profiles = Catalogue::embedded().iter();
    profiles.map(|profile| (profile, Case::read(profile.id(), "evidence")))
}

/// The header that the case is signed in
fn signature(profile: &Profile, case: &Case) -> (String, String) {
    let name = profile.signature_headers().next().unwrap();
    (name.to_owned(), case.header(name))
}

#[test]
fn one_flipped_bit_of_a_covered_body_is_refused() {
    for (profile, case) in all() {
        let body = case.body();
        let covered = profile.integrity() == Integrity::Full;
        let mut bent_at = (0..body.len()).flat_map(|at| (0..8).map(move |bit| (at, bit)));
        let refused = |(at, bit): (usize, u8)| {
            let mut bent = body.to_vec();
            bent[at] ^= 1 << bit;
            !authentic(&verify(profile, &case, &bent.into()))
        };
        // A form's `%c3` and `%C3` are the same JSON: where that is what is signed, they may differ
        let case_of_hex = |(at, bit): (usize, u8)| {
            bit == 5
                && body[at].is_ascii_alphabetic()
                && body[..at].iter().rev().take(2).any(|b| *b == b'%')
        };
        let lax = bent_at.find(|at| !refused(*at) && !case_of_hex(*at));
        assert_eq!(lax.is_some(), !covered, "{}: {lax:?}", profile.id());
    }
}

#[test]
fn a_signature_cut_anywhere_is_refused() {
    for (profile, mut case) in all() {
        let (name, whole) = signature(profile, &case);
        for end in 0..whole.len() {
            case.set(&name, &[&whole[..end]]);
            let body = case.body();
            assert!(
                !authentic(&verify(profile, &case, &body)),
                "{}: {end} bytes",
                profile.id()
            );
        }
    }
}

#[test]
fn every_changed_character_of_a_signature_is_refused() {
    for (profile, mut case) in all() {
        let (name, whole) = signature(profile, &case);
        let hex = whole.bytes().rev().take(40).all(|b| b.is_ascii_hexdigit());
        for at in 0..whole.len() {
            for other in "0AaZz+/-_=, .é".chars() {
                let same = whole[at..].starts_with(other);
                let case_alone = hex && whole[at..=at].eq_ignore_ascii_case(&other.to_string());
                if same || case_alone {
                    continue;
                }
                let bent = format!("{}{other}{}", &whole[..at], &whole[at + 1..]);
                case.set(&name, &[&bent]);
                let body = case.body();
                let outcome = verify(profile, &case, &body);
                assert!(!authentic(&outcome), "{}: `{bent}`", profile.id());
            }
        }
    }
}

#[test]
fn a_signature_header_missing_empty_blank_or_doubled_is_refused() {
    for (profile, mut case) in all() {
        let (name, whole) = signature(profile, &case);
        let body = case.body();
        for (values, step) in [
            (&[][..], "signature-missing"),
            (&[whole.as_str(), whole.as_str()], "signature-repeated"),
            (&[whole.as_str(), ""], "signature-repeated"),
        ] {
            case.set(&name, values);
            assert_eq!(
                said(&verify(profile, &case, &body)),
                step,
                "{}",
                profile.id()
            );
        }
        for blank in ["", " ", ",", ";", "=", "t=", "v1,", "v1="] {
            case.set(&name, &[blank]);
            assert!(
                !authentic(&verify(profile, &case, &body)),
                "{} `{blank}`",
                profile.id()
            );
        }
    }
}

#[test]
fn another_method_is_refused_whatever_is_signed() {
    for (profile, mut case) in all() {
        for method in ["GET", "PUT", "post", ""] {
            method.clone_into(&mut case.request.method);
            assert_eq!(said(&verify(profile, &case, &case.body())), "method");
        }
    }
}

#[test]
fn what_is_signed_here_verifies_here_and_under_no_other_key() {
    for (profile, mut case) in all() {
        let body = case.body();
        let now = case.now();
        case.sign(profile, &body, now);
        // A time within the body stays what it was, a second ago
        assert_eq!(
            said(&verify(profile, &case, &body)),
            "verified",
            "{}",
            profile.id()
        );
        let other = match (&case.expect.secret, &case.expect.public_key) {
            (Some(secret), _) if secret.starts_with("whsec_") => {
                case.expect.secret = Some("whsec_b3RoZXIga2V5IG9mIDI0IGJ5dGVz".to_owned());
                "signature-mismatch"
            }
            (Some(_), _) => {
                // Base64 as well as text
                case.expect.secret = Some("b3RoZXIga2V5".to_owned());
                "signature-mismatch"
            }
            (None, _) => {
                // RFC 8032, section 7.1, test 2
                let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
                case.expect.public_key = Some(public.to_owned());
                "signature-mismatch"
            }
        };
        assert_eq!(
            said(&verify(profile, &case, &body)),
            other,
            "{}",
            profile.id()
        );
    }
}

#[test]
fn both_bounds_of_every_signed_time_are_exact() {
    for (profile, case) in all() {
        let Some((past, future)) = profile.tolerance() else {
            continue;
        };
        let body = case.body();
        let verifier = profile
            .bind(vec![key(&case.expect)], Tolerance::default())
            .unwrap();
        let at = case.expect.signed_at_ms.unwrap();
        let ms = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap();
        let say = |now: i64| {
            let parts = RequestParts {
                method: "POST",
                headers: &case.request,
                body: &body,
            };
            said(&verifier.verify(&parts, Timestamp::from_unix_ms(now).unwrap()))
        };
        let id = profile.id();
        assert_eq!(say(at + ms(past)), "verified", "{id}");
        assert_eq!(say(at + ms(past) + 1), "timestamp-old", "{id}");
        assert_eq!(say(at - ms(future)), "verified", "{id}");
        assert_eq!(say(at - ms(future) - 1), "timestamp-ahead", "{id}");
    }
}

/// Any request: bytes that are no text among the headers, each absent, there or doubled
fn headers(profile: &Profile, case: &Case, drawn: &[(u8, Vec<u8>)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let names = case.request.headers.keys().map(String::as_str);
    let names = names.chain(profile.signature_headers());
    for (name, (times, value)) in names.zip(drawn.iter().cycle()) {
        let name = HeaderName::try_from(name).unwrap();
        let kept = HeaderValue::try_from(
            case.request
                .headers
                .get(name.as_str())
                .map_or("", |values| values.iter().next().unwrap_or_default()),
        );
        let drawn = HeaderValue::from_bytes(value);
        match (times % 4, kept, drawn) {
            (0, Ok(kept), _) => _ = headers.insert(name, kept),
            (1, _, Ok(drawn)) => _ = headers.insert(name, drawn),
            (2, Ok(kept), Ok(drawn)) => {
                headers.append(name.clone(), kept);
                headers.append(name, drawn);
            }
            _ => {}
        }
    }
    headers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_panics_and_nothing_unsigned_is_authentic(
        drawn in proptest::collection::vec((any::<u8>(), proptest::collection::vec(0x20_u8..=0xff, 0..300)), 1..8),
        body in proptest::collection::vec(any::<u8>(), 0..200),
        now in any::<i64>(),
    ) {
        let now = Timestamp::from_unix_ms(now).unwrap_or(Timestamp::EPOCH);
        for (profile, case) in all() {
            let verifier = profile.bind(vec![key(&case.expect)], Tolerance::default()).unwrap();
            let headers = headers(profile, &case, &drawn);
            let body = Bytes::from(body.clone());
            let parts = RequestParts { method: "POST", headers: &headers, body: &body };
            let outcome = verifier.verify(&parts, now);
            if profile.integrity() == Integrity::Full {
                prop_assert!(matches!(outcome, Outcome::Refused(_)), "{}", profile.id());
            }
            let _ = profile.read_unverified(&parts);
        }
    }

    #[test]
    fn any_text_of_a_signature_header_is_refused(text in "\\PC{0,120}") {
        for (profile, mut case) in all() {
            let (name, _) = signature(profile, &case);
            case.set(&name, &[&text]);
            let body = case.body();
            prop_assert!(!authentic(&verify(profile, &case, &body)), "{}", profile.id());
        }
    }

    #[test]
    fn any_body_that_is_signed_verifies(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let body = Bytes::from(body);
        for (profile, mut case) in all() {
            // Where the time stands in the body there is none in these
            if profile.id() == "linear" {
                continue;
            }
            let now = case.now();
            case.sign(profile, &body, now);
            prop_assert!(authentic(&verify(profile, &case, &body)), "{}", profile.id());
        }
    }
}
