//! CS-8-09: URL identity and prefixes canonicalize, and authenticate nothing.

#![expect(clippy::unwrap_used, reason = "a declaration that must compile")]

use postern_contract::{Digest, Document, FieldValue, Scalar};
use postern_predicates::{Decision, Nonmatch, Reason, Trigger};

const DECLARED: &str = r#"{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],
    "match":{"/action":"opened"},
    "normalize":{"n":{"pointer":"/n","type":"integer"},"repo":{"pointer":"/repo","type":"string"},
        "url":{"pointer":"/url","type":"url","prefix":"https://forge.test/{+repo}/issues/{n}"}},
    "resources":{"repo":"repos"},"resourceOrigins":["https://forge.test"]}"#;

fn decide(repo: &str, url: &str) -> Decision {
    let declared = Document::parse(DECLARED.into()).unwrap();
    let grants = [("repos".to_owned(), vec![Scalar::String("o/r".to_owned())])];
    let trigger = Trigger::compile(&declared, Digest::of(b""), grants.into()).unwrap();
    let body = format!(r#"{{"action":"opened","n":7,"repo":"{repo}","url":"{url}"}}"#);
    trigger.decide("e", &Document::parse(body.into()).unwrap())
}

fn refused(repo: &str, url: &str) -> Option<(Reason, String)> {
    match decide(repo, url) {
        Decision::Nonmatch(Nonmatch { reason, at }) => at.map(|at| (reason, at)),
        Decision::Match(_) => None,
    }
}

#[test]
fn cs_8_09_spellings_of_one_issue_are_one_url() {
    for url in [
        "https://forge.test/o/r/issues/7",
        "HTTPS://Forge.TEST:443/o/r/issues/7",
        "https://forge.test/%6F/r/issues/%37",
        "https://forge.test/o/r/issues/7#issuecomment-1",
    ] {
        let Decision::Match(found) = decide("o/r", url) else {
            unreachable!("{url}: {:?}", refused("o/r", url));
        };
        let canonical =
            FieldValue::Scalar(Scalar::String("https://forge.test/o/r/issues/7".to_owned()));
        assert_eq!(found.fields().get("url"), Some(&canonical), "{url}");
    }
}

#[test]
fn cs_8_09_a_url_grants_nothing() {
    // A right URL beside a resource that is not granted, and a granted one beside URLs that only look right
    let at = |reason, at: &str| Some((reason, at.to_owned()));
    assert_eq!(
        refused("o/x", "https://forge.test/o/x/issues/7"),
        at(Reason::ResourceNotGranted, "repo")
    );
    for (url, reason) in [
        ("https://forge.test/o/x/issues/7", Reason::PrefixMismatch),
        ("https://forge.test/o/r/issues/70", Reason::PrefixMismatch),
        ("https://forge.test/o/r/issues/8", Reason::PrefixMismatch),
        (
            "https://forge.test.evil.test/o/r/issues/7",
            Reason::OriginNotListed,
        ),
        (
            "https://forge.test:8443/o/r/issues/7",
            Reason::OriginNotListed,
        ),
        (
            "https://forge.test@evil.test/o/r/issues/7",
            Reason::UrlInvalid,
        ),
        ("https://evil.test/o/../o/r/issues/7", Reason::UrlInvalid),
        ("http://forge.test/o/r/issues/7", Reason::UrlInvalid),
        ("https://forge.test/o/r/issues/%2e%2e/7", Reason::UrlInvalid),
    ] {
        assert_eq!(refused("o/r", url), at(reason, "url"), "{url}");
    }
}

#[test]
fn cs_8_09_a_grant_compares_the_value_as_delivered() {
    // A grant that names a URL in its canonical spelling does not take another spelling of it
    let declared = r#"{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],"match":{"/a":1},
        "normalize":{"u":{"pointer":"/u","type":"url"}},"resources":{"u":"us"},"resourceOrigins":["https://a"]}"#;
    let declared = Document::parse(declared.into()).unwrap();
    let grants = [(
        "us".to_owned(),
        vec![Scalar::String("https://a/".to_owned())],
    )];
    let trigger = Trigger::compile(&declared, Digest::of(b""), grants.into()).unwrap();
    let with = |url: &str| {
        let body = format!(r#"{{"a":1,"u":"{url}"}}"#);
        matches!(
            trigger.decide("e", &Document::parse(body.into()).unwrap()),
            Decision::Match(_)
        )
    };
    assert!(with("https://a/"));
    assert!(!with("https://a"));
}
