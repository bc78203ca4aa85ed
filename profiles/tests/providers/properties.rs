//! What holds for every profile of the catalogue.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use postern_contract::Timestamp;
use postern_profiles::sign::NotSigned;
use postern_profiles::{Catalogue, Integrity, Outcome, Profile, RequestParts, SignaturePlace};
use proptest::prelude::*;

use super::{Case, authentic, key, said, verify};

fn all() -> impl Iterator<Item = (&'static Profile, Case)> {
    let profiles = Catalogue::embedded().iter();
    profiles.map(|profile| (profile, Case::read(profile.id(), "evidence")))
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
        // A CRC-32 finds every single flipped bit, and no body that was made to have it
        if profile.id() == "paypal" {
            assert!(bent_at.all(refused));
            continue;
        }
        let lax = bent_at.find(|at| !refused(*at) && !case_of_hex(*at));
        assert_eq!(lax.is_some(), !covered, "{}: {lax:?}", profile.id());
    }
}

/// Of a body that is covered in part: every text that the profile says is covered
#[test]
fn a_changed_text_that_is_covered_is_refused() {
    let mut tried = 0;
    for (profile, case) in all().filter(|(p, _)| p.integrity() == Integrity::Partial) {
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(&case.body()) else {
            continue;
        };
        // Where every item is signed, the places begin at the item
        let each = profile.signature_places().find_map(|place| match place {
            SignaturePlace::Body { each, .. } => each.map(|each| format!("{each}/0")),
            _ => None,
        });
        let covered = profile.covered().into_iter().filter_map(|words| {
            let at = words.split('`').nth(1)?;
            at.starts_with('/').then(|| at.to_owned())
        });
        for at in covered {
            let place = format!("{}{at}", each.clone().unwrap_or_default());
            let mut bent = body.clone();
            let Some(value) = bent.pointer_mut(&place) else {
                continue;
            };
            *value = match value.as_str() {
                Some(text) => format!("{text}x").into(),
                None => "x".into(),
            };
            tried += 1;
            let outcome = verify(profile, &case, &bent.to_string().into());
            assert!(!authentic(&outcome), "{}: {place}", profile.id());
        }
    }
    assert!(tried > 10, "only {tried}");
}

#[test]
fn a_signature_cut_anywhere_is_refused() {
    for (profile, mut case) in all() {
        let (place, whole) = case.signature(profile);
        for end in 0..whole.len() {
            case.set_signature(place, &[&whole[..end]]);
            assert!(
                !authentic(&verify(profile, &case, &case.body())),
                "{}: {end} bytes",
                profile.id()
            );
        }
    }
}

#[test]
fn every_changed_character_of_a_signature_is_refused() {
    for (profile, mut case) in all() {
        let (place, whole) = case.signature(profile);
        let hex = whole.bytes().rev().take(40).all(|b| b.is_ascii_hexdigit());
        for at in 0..whole.len() {
            for other in "0AaZz+/-_=, .é".chars() {
                let same = whole[at..].starts_with(other);
                let case_alone = (hex || whole[..=at].len() < 6 && whole.starts_with("Basic "))
                    && whole[at..=at].eq_ignore_ascii_case(&other.to_string());
                if same || case_alone {
                    continue;
                }
                let bent = format!("{}{other}{}", &whole[..at], &whole[at + 1..]);
                case.set_signature(place, &[&bent]);
                let outcome = verify(profile, &case, &case.body());
                assert!(!authentic(&outcome), "{}: `{bent}`", profile.id());
            }
        }
    }
}

#[test]
fn a_signature_header_missing_empty_blank_or_doubled_is_refused() {
    for (profile, mut case) in all() {
        let (place, whole) = case.signature(profile);
        for (values, step) in [
            (&[][..], "signature-missing"),
            (&[whole.as_str(), whole.as_str()], "signature-repeated"),
            (&[whole.as_str(), ""], "signature-repeated"),
        ] {
            // What stands twice in a body is ambiguous there, and has a test of its own
            if values.len() > 1 && matches!(place, SignaturePlace::Body { .. }) {
                continue;
            }
            case.set_signature(place, values);
            let got = said(&verify(profile, &case, &case.body()));
            assert_eq!(got, step, "{}", profile.id());
        }
        for blank in ["", " ", ",", ";", "=", "t=", "v1,", "v1="] {
            case.set_signature(place, &[blank]);
            assert!(
                !authentic(&verify(profile, &case, &case.body())),
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
            let got = said(&verify(profile, &case, &case.body()));
            let may_ask = profile.handshake_methods().contains(method);
            assert!(
                got == "method" || may_ask && got == "handshake",
                "{}: {got}",
                profile.id()
            );
        }
    }
}

#[test]
fn what_is_signed_here_verifies_here_and_under_no_other_key() {
    let mut signed = 0;
    for (profile, mut case) in all() {
        let now = case.now();
        // Of the public keys, the signer has the private half of Ed25519's alone
        let Ok(body) = case.try_sign(profile, &case.body(), now) else {
            assert!(case.expect.public_key.is_some(), "{}", profile.id());
            continue;
        };
        signed += 1;
        // A time within the body stays what it was, a second ago
        assert_eq!(
            said(&verify(profile, &case, &body)),
            "verified",
            "{}",
            profile.id()
        );
        match &case.expect.secret {
            Some(secret) => {
                let other = match secret.as_str() {
                    text if text.starts_with("whsec_") => "whsec_b3RoZXIga2V5IG9mIDI0IGJ5dGVz",
                    text if text.starts_with("Basic ") => "Basic b3RoZXI6a2V5",
                    text if text.bytes().all(|b| b.is_ascii_hexdigit()) => "00ff00ff00ff00ff",
                    // Base64 as well as text
                    _ => "b3RoZXIga2V5",
                };
                case.expect.secret = Some(other.to_owned());
            }
            None => {
                // RFC 8032, section 7.1, test 2
                let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
                case.expect.public_key = Some(public.to_owned());
            }
        }
        let got = said(&verify(profile, &case, &body));
        assert_eq!(got, "signature-mismatch", "{}", profile.id());
    }
    assert!(signed >= 50, "only {signed}");
}

#[test]
fn both_bounds_of_every_signed_time_are_exact() {
    for (profile, case) in all() {
        let Some((past, future)) = profile.tolerance() else {
            continue;
        };
        let body = case.body();
        let verifier = profile
            .bind(vec![key(&case.expect)], case.options())
            .unwrap();
        let at = case.expect.signed_at_ms.unwrap();
        let ms = |d: std::time::Duration| i64::try_from(d.as_millis()).unwrap();
        let say = |now: i64| {
            let parts = RequestParts {
                method: "POST",
                url: &case.request.url,
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
    let signed = profile.signature_places().filter_map(|place| match place {
        SignaturePlace::Header(name) => Some(name),
        SignaturePlace::Query(_) | SignaturePlace::Body { .. } => None,
    });
    let names = names.chain(signed);
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
            let verifier = profile.bind(vec![key(&case.expect)], case.options()).unwrap();
            let headers = headers(profile, &case, &drawn);
            let body = Bytes::from(body.clone());
            let parts = RequestParts { method: "POST", url: &case.request.url, headers: &headers, body: &body };
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
            let (place, _) = case.signature(profile);
            case.set_signature(place, &[&text]);
            prop_assert!(!authentic(&verify(profile, &case, &case.body())), "{}", profile.id());
        }
    }

    #[test]
    fn any_body_that_is_signed_verifies(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let body = Bytes::from(body);
        for (profile, mut case) in all() {
            if profile.integrity() != Integrity::Full {
                continue;
            }
            let now = case.now();
            let Ok(body) = case.try_sign(profile, &body, now) else {
                continue;
            };
            // Where the time stands in the body, or the profile asks for more, there is none in these
            let got = said(&verify(profile, &case, &body));
            if matches!(got, "timestamp-missing" | "condition") {
                continue;
            }
            prop_assert!(got != "signature-mismatch", "{}", profile.id());
            prop_assert!(authentic(&verify(profile, &case, &body)), "{}", profile.id());
        }
    }
}

/// Whoever makes a key for a profile can sign with it, so that every trigger can be tried end to end
#[test]
fn every_profile_verifies_what_is_signed_with_a_key_that_was_made_for_it() {
    let mut unsigned = Vec::new();
    for (profile, mut case) in all() {
        let made = profile.trial_key().unwrap();
        let private = String::from_utf8(made.private.expose().to_vec()).unwrap();
        let body = case.body();
        case.expect.secret = Some(private.clone());
        let body = match case.try_sign(profile, &body, case.now()) {
            Ok(body) => body,
            // No library that can be trusted with a private key signs so
            Err(NotSigned::Sha1) => {
                unsigned.push(profile.id());
                continue;
            }
            Err(why) => panic!("{}: {why}", profile.id()),
        };
        if let Some(public) = made.public {
            case.expect.secret = None;
            case.expect.public_key = Some(public.trim().to_owned());
        }
        let outcome = verify(profile, &case, &body);
        assert!(authentic(&outcome), "{}: {}", profile.id(), said(&outcome));
    }
    assert_eq!(unsigned, ["paddle_classic"]);
}
