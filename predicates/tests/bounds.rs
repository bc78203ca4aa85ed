//! Every bound of event-predicates/v1 at n and at n + 1, with the path that a refusal names (sections 2
//! to 6). CS-8-02.

#![expect(clippy::unwrap_used, reason = "a declaration that must compile")]

use postern_contract::{Digest, Document};
use postern_predicates::pattern::Pattern;
use postern_predicates::{Decision, Predicate, Reason, Resources, Trigger, Truth};

fn document(text: impl Into<String>) -> Document {
    Document::parse(text.into().into()).unwrap()
}

/// The path of the fault, if there is one
fn fault(predicate: &str) -> Option<String> {
    Predicate::compile(document(predicate).root())
        .err()
        .map(|e| e.path)
}

fn at(path: &str) -> Option<String> {
    Some(path.to_owned())
}

fn list(n: usize, item: &str) -> String {
    format!("[{}]", vec![item; n].join(","))
}

const LEAF: &str = r#"{"exists":{"pointer":"/a"}}"#;

#[test]
fn depth() {
    let nots = |n: usize| format!("{}{LEAF}{}", r#"{"not":"#.repeat(n), "}".repeat(n));
    assert_eq!(fault(&nots(7)), None);
    assert_eq!(fault(&nots(8)), at(&"/not".repeat(8)));
    let items = |n: usize| {
        let open = r#"{"item":{"pointer":"/a","some":"#;
        format!("{}{LEAF}{}", open.repeat(n), "}}".repeat(n))
    };
    assert_eq!(fault(&items(7)), None);
    assert_eq!(fault(&items(8)), at(&"/item/some".repeat(8)));
}

#[test]
fn nodes_count_in_document_order_leaves_included() {
    // 1 + 4 * (1 + 30) is 125 nodes; three leaves more are 128
    let group = format!(r#"{{"all":{}}}"#, list(30, LEAF));
    let with = |leaves: usize| {
        let children = [vec![&*group; 4], vec![LEAF; leaves]].concat().join(",");
        format!(r#"{{"any":[{children}]}}"#)
    };
    assert_eq!(fault(&with(3)), None);
    assert_eq!(fault(&with(4)), at("/any/7"));
    // A node before the bound is faulted for itself
    assert_eq!(
        fault(&with(4).replacen("exists", "exist", 1)),
        at("/any/0/all/0")
    );
}

#[test]
fn children_and_values() {
    for operator in ["all", "any"] {
        let with = |n| fault(&format!(r#"{{"{operator}":{}}}"#, list(n, LEAF)));
        let path = format!("/{operator}");
        assert_eq!(with(0), at(&path));
        assert_eq!((with(1), with(32)), (None, None));
        assert_eq!(with(33), at(&path));
    }
    let with = |n| {
        fault(&format!(
            r#"{{"in":{{"pointer":"/a","values":{}}}}}"#,
            list(n, "1")
        ))
    };
    assert_eq!(with(0), at("/in"));
    assert_eq!((with(1), with(100)), (None, None));
    assert_eq!(with(101), at("/in"));
}

#[test]
fn literals_are_bounded_in_bytes() {
    for operator in ["equals", "prefix", "suffix", "contains"] {
        let with = |text: String| {
            fault(&format!(
                r#"{{"{operator}":{{"pointer":"","value":"{text}"}}}}"#
            ))
        };
        assert_eq!(with("é".repeat(512)), None);
        assert_eq!(
            with(format!("{}x", "é".repeat(512))),
            at(&format!("/{operator}"))
        );
        // An escape counts as what it stands for
        assert_eq!(with("\\u0041".repeat(1_024)), None);
        assert_eq!(with("\\u0041".repeat(1_025)), at(&format!("/{operator}")));
    }
    let matches = |n| {
        fault(&format!(
            r#"{{"matches":{{"pointer":"","pattern":"{}"}}}}"#,
            "a".repeat(n)
        ))
    };
    assert_eq!(matches(1_024), None);
    assert_eq!(matches(1_025), at("/matches"));
}

#[test]
fn pointers() {
    let with = |text: &str| fault(&format!(r#"{{"exists":{{"pointer":"{text}"}}}}"#));
    assert_eq!(with(&"/a".repeat(32)), None);
    assert_eq!(with(&"/a".repeat(33)), at("/exists"));
    assert_eq!(with(&format!("/{}", "a".repeat(511))), None);
    assert_eq!(with(&format!("/{}", "a".repeat(512))), at("/exists"));
}

#[test]
fn numbers_are_literals_by_value() {
    let with = |n: &str| fault(&format!(r#"{{"equals":{{"pointer":"","value":{n}}}}}"#));
    for good in [
        "9007199254740991",
        "-9007199254740991.000",
        "90071992547409910e-1",
        "5e-324",
        "1.7976931348623157",
    ] {
        assert_eq!(with(good), None, "{good}");
    }
    // 2^53, past the largest and below the smallest binary64, and a fraction of one digit too many
    for bad in [
        "9007199254740992",
        "-9007199254740992",
        "1E400",
        "1e-400",
        "0.10000000000000001",
    ] {
        assert_eq!(with(bad), at("/equals"), "{bad}");
    }
}

#[test]
fn items_of_an_array() {
    let declared =
        document(r#"{"item":{"pointer":"","some":{"equals":{"pointer":"","value":1}}}}"#);
    let predicate = Predicate::compile(declared.root()).unwrap();
    let with = |n| predicate.evaluate(document(list(n, "1")).root());
    assert_eq!(with(0), Truth::False);
    assert_eq!(with(1_000), Truth::True);
    assert_eq!(with(1_001), Truth::Unknown);
}

#[test]
fn patterns_as_deep_and_as_costly_as_they_may_be() {
    let nest =
        |n: usize, open: &str, close: &str| format!("{}a{}", open.repeat(n), close.repeat(n));
    // 511 groups are 1,023 bytes; with a star each, 340 groups are 1,021
    for deep in [
        nest(511, "(", ")"),
        nest(340, "(", ")*"),
        nest(340, "(", ")?"),
    ] {
        assert!(Pattern::new(&deep).unwrap().is_match("a"), "{deep}");
    }
    assert!(Pattern::new(&nest(512, "(", ")")).is_err());
    // An ASCII class costs 1 whatever it holds; 10 times 1,000 is the bound
    let most = "(?:[acegikmoqsuwyACEGIKMOQSUWY02468]{100}){10}".repeat(10);
    assert!(Pattern::new(&most).is_ok());
    assert!(Pattern::new(&format!("{most}a")).is_err());
    // A class outside of ASCII costs 16, and 4 a merged range: 20 * 500 is the bound
    assert!(Pattern::new("(?:[é]{100}){5}").is_ok());
    assert!(Pattern::new("(?:[é]{100}){5}a").is_err());
    assert!(
        Pattern::new("(?:[éèê-î]{100}){4}").is_ok(),
        "adjoining ranges are one: è to î, and é lies within"
    );
    // `.` is two ranges, 24: 416 times is 9,984, and 16 characters more are the bound
    let dots = format!("(?:.{{52}}){{8}}{}", "a".repeat(16));
    assert!(Pattern::new(&dots).is_ok());
    assert!(Pattern::new(&format!("{dots}a")).is_err());
    // A count of zero hides nothing: it counts as one
    assert!(Pattern::new("(?:(?:a{100}){10}){0}").is_ok());
    assert!(Pattern::new("(?:(?:a{100}){11}){0}").is_err());
}

/// A trigger with one field `f`, and the body to decide
fn decide(entry: &str, body: &str) -> Result<String, (Reason, Option<String>)> {
    let declared = format!(
        r#"{{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],"match":{{"/m":1}},"normalize":{{"f":{entry}}}}}"#
    );
    let trigger = Trigger::compile(&document(declared), Digest::of(b""), Resources::new()).unwrap();
    match trigger.decide("e", &document(format!(r#"{{"m":1,"v":{body}}}"#))) {
        Decision::Match(found) => Ok(serde_json::to_string(found.fields()).unwrap()),
        Decision::Nonmatch(why) => Err((why.reason, why.at)),
    }
}

#[test]
fn projected_strings_count_code_points() {
    for entry in [r#""/v""#, r#"{"pointer":"/v","type":"string"}"#] {
        let with = |n| decide(entry, &format!("\"{}\"", "😀".repeat(n)));
        assert!(with(4_096).is_ok());
        assert_eq!(with(4_097), Err((Reason::StringTooLong, at("/v"))));
    }
}

#[test]
fn projected_lists_are_judged_by_length_first() {
    let with = |n, item| decide(r#"{"pointer":"/v/*","type":"integer"}"#, &list(n, item));
    assert!(with(0, "1").is_ok() && with(100, "1").is_ok());
    assert_eq!(with(101, "1"), Err((Reason::ListTooLong, at("/v"))));
    assert_eq!(with(101, "\"x\""), Err((Reason::ListTooLong, at("/v"))));
    assert_eq!(with(100, "\"x\""), Err((Reason::TypeMismatch, at("/v/0"))));
}

#[test]
fn projected_numbers() {
    let integer = |n| decide(r#"{"pointer":"/v","type":"integer"}"#, n);
    assert_eq!(
        integer("9007199254740991"),
        Ok(r#"{"f":9007199254740991}"#.to_owned())
    );
    assert_eq!(
        integer("9007199254740992"),
        Err((Reason::IntegerOutOfRange, at("/v")))
    );
    assert_eq!(integer("1.5"), Err((Reason::TypeMismatch, at("/v"))));
    let number = |n| decide(r#"{"pointer":"/v","type":"number"}"#, n);
    assert_eq!(number("0.1"), Ok(r#"{"f":0.1}"#.to_owned()));
    assert_eq!(
        number("0.10000000000000001"),
        Err((Reason::NumberNotExact, at("/v")))
    );
    let decimal = |n: &str| {
        decide(
            r#"{"pointer":"/v","type":"number","as":"decimal-string"}"#,
            n,
        )
    };
    assert_eq!(decimal("-1.50e3"), Ok(r#"{"f":"-1500"}"#.to_owned()));
    // `1e4095` is 4,096 characters, and so is `0.` with 4,093 zeros and a digit
    assert!(decimal("1e4095").is_ok() && decimal("1e-4094").is_ok());
    for long in [
        "1e4096",
        "-1e4095",
        "1e-4095",
        "1e99999999999999999999",
        "1e-99999999999999999999",
    ] {
        assert_eq!(
            decimal(long),
            Err((Reason::StringTooLong, at("/v"))),
            "{long}"
        );
    }
}

#[test]
fn match_has_32_entries_and_a_filter_100_values() {
    let compile = |entries: usize| {
        let entries: Vec<String> = (0..entries).map(|n| format!(r#""/{n}":1"#)).collect();
        let declared = format!(
            r#"{{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],"match":{{{}}},"normalize":{{}},"filters":{{"n":{{"pointer":"/n","type":"integer"}}}}}}"#,
            entries.join(",")
        );
        Trigger::compile(&document(declared), Digest::of(b""), Resources::new())
    };
    assert_eq!(compile(0).unwrap_err().path, "/match");
    assert_eq!(compile(33).unwrap_err().path, "/match");
    let trigger = compile(32).unwrap();
    let choose =
        |n: usize| trigger.choose_declared(document(format!(r#"{{"n":{}}}"#, list(n, "1"))).root());
    assert_eq!(choose(0).unwrap_err().path, "/filters_chosen/n");
    assert!(choose(1).is_ok() && choose(100).is_ok());
    assert_eq!(choose(101).unwrap_err().path, "/filters_chosen/n");
}

#[test]
fn a_trigger_that_could_not_be_loaded_is_not_frozen() {
    let compile = |bytes: usize| {
        let declared = format!(
            r#"{{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["{}"],"match":{{"/m":1}},"normalize":{{}}}}"#,
            "e".repeat(bytes)
        );
        Trigger::compile(&document(declared), Digest::of(b""), Resources::new())
    };
    let around = compile(1).unwrap().document().len() - 1;
    let most = (4 << 20) - around;
    let largest = compile(most).unwrap();
    assert_eq!(
        Trigger::load(largest.document().clone()).unwrap().digest(),
        largest.digest()
    );
    let Err(refused) = compile(most + 1) else {
        panic!("larger than what can be loaded");
    };
    assert_eq!(refused.path, "");
}
