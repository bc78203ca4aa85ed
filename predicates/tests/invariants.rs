//! What holds of every predicate and document without a second evaluator (event-predicates/v1, section 9).
//! Alphabets are small, so that pointers meet values and keys meet keys.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what is generated compiles, or the test is wrong"
)]

use postern_contract::{Digest, Document, Scalar};
use postern_predicates::{Decision, Nonmatch, Predicate, Reason, Trigger, Truth};
use proptest::prelude::*;
use proptest::sample::select;

/// A document whose spelling is still open
#[derive(Clone, Debug)]
enum Json {
    Word(&'static str),
    /// Spellings of one number
    Number(&'static [&'static str]),
    Text(&'static str),
    List(Vec<Json>),
    /// Keys once each
    Object(Vec<(&'static str, Json)>),
}

const NUMBERS: &[&[&str]] = &[
    &["0", "-0", "0.0", "0e5", "-0.0E-99999999999999999999"],
    &["1", "1.0", "1e0", "10E-1", "0.1e+1"],
    &["-1.5", "-15e-1", "-1.500"],
    &[
        "9007199254740993",
        "9007199254740993.0",
        "9.007199254740993e15",
    ],
    &["1e400", "10e399", "0.001E403"],
    &["1e99999999999999999999", "10e99999999999999999998"],
];
const TEXTS: &[&str] = &["", "a", "ab", "é😀/~", "2024-02-29T12:00:00Z", "\"\\\n"];
const KEYS: &[&str] = &["a", "b", "c", "é"];
const POINTERS: &[&str] = &[
    "", "/a", "/b", "/c", "/é", "/a/b", "/a/0", "/b/a", "/b/1", "/c/a", "/c/-",
];

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        select(&["null", "true", "false"][..]).prop_map(Json::Word),
        select(NUMBERS).prop_map(Json::Number),
        select(TEXTS).prop_map(Json::Text),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            prop::collection::btree_map(select(KEYS), inner, 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Mostly objects, as bodies are
fn body() -> impl Strategy<Value = Json> {
    prop_oneof![
        8 => prop::collection::btree_map(select(KEYS), json(), 1..4)
            .prop_map(|members| Json::Object(members.into_iter().collect())),
        1 => json(),
    ]
}

/// Choices of a spelling, drawn from a seed
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn blank(&mut self) -> &'static str {
        ["", "", " ", "\t", "\r\n "][self.below(5)]
    }

    fn text(&mut self, text: &str) -> String {
        let mut out = String::from("\"");
        for c in text.chars() {
            if matches!(c, '"' | '\\' | '\n') || self.below(3) == 0 {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                out.push(c);
            }
        }
        out + "\""
    }

    fn spell(&mut self, value: &Json) -> String {
        let inner = match value {
            Json::Word(word) => (*word).to_owned(),
            Json::Number(spellings) => spellings[self.below(spellings.len())].to_owned(),
            Json::Text(text) => self.text(text),
            Json::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.spell(item)).collect();
                format!("[{}{}]", items.join(","), self.blank())
            }
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for n in (1..members.len()).rev() {
                    members.swap(n, self.below(n + 1));
                }
                let members: Vec<String> = (members.iter())
                    .map(|(key, value)| {
                        format!(
                            "{}{}{}:{}",
                            self.blank(),
                            self.text(key),
                            self.blank(),
                            self.spell(value)
                        )
                    })
                    .collect();
                format!("{{{}{}}}", members.join(","), self.blank())
            }
        };
        format!("{}{inner}{}", self.blank(), self.blank())
    }
}

fn spelled(value: &Json, seed: u64) -> Document {
    document(&Choices(seed).spell(value))
}

fn document(text: &str) -> Document {
    Document::parse(text.to_owned().into()).unwrap_or_else(|e| unreachable!("{text}: {e}"))
}

fn pointer() -> impl Strategy<Value = String> {
    select(POINTERS).prop_map(|text| format!("\"{text}\""))
}

/// A literal within the bounds
fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        select(&["null", "true", "false", "0", "1", "-1.5", "1.0"][..]).prop_map(str::to_owned),
        select(TEXTS).prop_map(|text| serde_json::Value::from(text).to_string()),
    ]
}

fn leaf() -> impl Strategy<Value = String> {
    let tested = select(&["prefix", "suffix", "contains"][..]);
    let in_time = select(&["before", "after"][..]);
    prop_oneof![
        (select(&["exists", "absent"][..]), pointer())
            .prop_map(|(op, p)| format!(r#"{{"{op}":{{"pointer":{p}}}}}"#)),
        (
            pointer(),
            select(&["string", "number", "integer", "null", "object", "array"][..])
        )
            .prop_map(|(p, is)| format!(r#"{{"type":{{"pointer":{p},"is":"{is}"}}}}"#)),
        (pointer(), literal())
            .prop_map(|(p, v)| format!(r#"{{"equals":{{"pointer":{p},"value":{v}}}}}"#)),
        (pointer(), literal(), literal())
            .prop_map(|(p, v, w)| format!(r#"{{"in":{{"pointer":{p},"values":[{v},{w}]}}}}"#)),
        (tested, pointer(), select(&["", "a", "é"][..]))
            .prop_map(|(op, p, v)| format!(r#"{{"{op}":{{"pointer":{p},"value":"{v}"}}}}"#)),
        (pointer(), select(&["^a", "b$", ".", "^$"][..]))
            .prop_map(|(p, v)| format!(r#"{{"matches":{{"pointer":{p},"pattern":"{v}"}}}}"#)),
        (
            pointer(),
            select(&["lt", "lte", "gt", "gte"][..]),
            select(&["0", "1", "-1.5"][..])
        )
            .prop_map(|(p, op, v)| format!(
                r#"{{"compare":{{"pointer":{p},"op":"{op}","value":{v}}}}}"#
            )),
        (in_time, pointer()).prop_map(|(op, p)| format!(
            r#"{{"{op}":{{"pointer":{p},"value":"2024-02-29T12:00:01Z"}}}}"#
        )),
        (pointer(), pointer())
            .prop_map(|(l, r)| format!(r#"{{"same":{{"left":{l},"right":{r}}}}}"#)),
        (pointer(), pointer(), literal())
            .prop_map(|(f, t, v)| format!(r#"{{"transition":{{"from":{f},"to":{t},"was":{v}}}}}"#)),
    ]
}

/// At most five deep, so that a test may wrap it
fn predicate() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            (
                select(&["all", "any"][..]),
                prop::collection::vec(inner.clone(), 1..4)
            )
                .prop_map(|(op, children)| format!(r#"{{"{op}":[{}]}}"#, children.join(","))),
            inner
                .clone()
                .prop_map(|child| format!(r#"{{"not":{child}}}"#)),
            (
                select(&["some", "every", "none", "one"][..]),
                pointer(),
                inner
            )
                .prop_map(|(q, p, child)| format!(r#"{{"item":{{"pointer":{p},"{q}":{child}}}}}"#)),
        ]
    })
}

fn truth(predicate: &str, body: &Document) -> Truth {
    let declared = document(predicate);
    Predicate::compile(declared.root())
        .unwrap()
        .evaluate(body.root())
}

fn swapped(truth: Truth) -> Truth {
    match truth {
        Truth::True => Truth::False,
        Truth::False => Truth::True,
        Truth::Unknown => Truth::Unknown,
    }
}

const DECLARED: &str = r#"{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],
    "match":{"/a":[1,"a"]},"normalize":{"a":"/a"},
    "filters":{"b":{"pointer":"/b","type":"string"},"c":{"pointer":"/c/*","type":"integer"},"d":{"pointer":"/é","type":"number"}}}"#;

fn trigger(declared: &str) -> Trigger {
    Trigger::compile(&document(declared), Digest::of(b""), [].into()).unwrap()
}

/// What a trigger with these choices says
fn chosen(trigger: &Trigger, choices: &str, body: &Document) -> Decision {
    let choices = document(choices);
    let chosen = trigger.choose_declared(choices.root()).unwrap();
    match trigger.decide("e", body) {
        Decision::Match(found) => match chosen.admit(body, &found) {
            Ok(()) => Decision::Match(found),
            Err(why) => Decision::Nonmatch(why),
        },
        nonmatch => nonmatch,
    }
}

fn is_match(decision: &Decision) -> bool {
    matches!(decision, Decision::Match(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn cs_8_02_unknown_never_becomes_true_by_negation(p in predicate(), body in body()) {
        let body = spelled(&body, 1);
        let plain = truth(&p, &body);
        let negated = format!(r#"{{"not":{p}}}"#);
        prop_assert_eq!(truth(&negated, &body), swapped(plain));
        prop_assert_eq!(truth(&format!(r#"{{"not":{negated}}}"#), &body), plain);
    }

    #[test]
    fn absent_is_not_exists(p in pointer(), body in body()) {
        let body = spelled(&body, 1);
        prop_assert_eq!(
            truth(&format!(r#"{{"absent":{{"pointer":{p}}}}}"#), &body),
            truth(&format!(r#"{{"not":{{"exists":{{"pointer":{p}}}}}}}"#), &body)
        );
    }

    #[test]
    fn none_is_not_some_and_on_items_every_is_none_of_not(p in predicate(), at in pointer(), body in body()) {
        let body = spelled(&body, 1);
        let item = |quantifier: &str, child: &str| {
            truth(&format!(r#"{{"item":{{"pointer":{at},"{quantifier}":{child}}}}}"#), &body)
        };
        prop_assert_eq!(item("none", &p), swapped(item("some", &p)));
        // De Morgan, but on an empty array, where `every` shows nothing
        let is_empty = truth(&format!(r#"{{"item":{{"pointer":{at},"none":{{"any":[{{"exists":{{"pointer":""}}}}]}}}}}}"#), &body) == Truth::True;
        if is_empty {
            prop_assert_eq!(item("every", &p), Truth::Unknown);
        } else {
            prop_assert_eq!(item("every", &p), item("none", &format!(r#"{{"not":{p}}}"#)));
        }
    }

    #[test]
    fn order_inside_all_and_any_changes_nothing(
        children in prop::collection::vec(predicate(), 1..5).prop_flat_map(|c| (Just(c.clone()), Just(c).prop_shuffle())),
        op in select(&["all", "any"][..]),
        body in body(),
    ) {
        let body = spelled(&body, 1);
        let of = |children: &[String]| truth(&format!(r#"{{"{op}":[{}]}}"#, children.join(",")), &body);
        prop_assert_eq!(of(&children.0), of(&children.1));
    }

    /// The table of section 3, from the children alone
    #[test]
    fn all_and_any_are_what_their_children_make_them(children in prop::collection::vec(predicate(), 1..5), body in body()) {
        let body = spelled(&body, 1);
        let values: Vec<Truth> = children.iter().map(|child| truth(child, &body)).collect();
        let of = |op: &str| truth(&format!(r#"{{"{op}":[{}]}}"#, children.join(",")), &body);
        let made = |deciding, other| {
            if values.contains(&deciding) { deciding }
            else if values.contains(&Truth::Unknown) { Truth::Unknown }
            else { other }
        };
        prop_assert_eq!(of("all"), made(Truth::False, Truth::True));
        prop_assert_eq!(of("any"), made(Truth::True, Truth::False));
    }

    #[test]
    fn spelling_changes_nothing(p in predicate(), body in body(), seeds in any::<(u64, u64)>()) {
        let (one, other) = (spelled(&body, seeds.0), spelled(&body, seeds.1));
        prop_assert_eq!(one.repeated_key(), None);
        prop_assert_eq!(truth(&p, &one), truth(&p, &other));
        let trigger = trigger(DECLARED);
        prop_assert_eq!(trigger.decide("e", &one), trigger.decide("e", &other));
    }

    #[test]
    fn a_trace_ends_in_the_value_and_changes_nothing(p in predicate(), body in body()) {
        let body = spelled(&body, 1);
        let declared = document(&p);
        let compiled = Predicate::compile(declared.root()).unwrap();
        let (value, lines) = compiled.explain(body.root());
        prop_assert_eq!(value, compiled.evaluate(body.root()));
        prop_assert_eq!((lines[0].path.as_str(), lines[0].value), ("", value));
        let trigger = trigger(DECLARED);
        prop_assert_eq!(trigger.explain("e", &body).0, trigger.decide("e", &body));
    }

    #[test]
    fn cs_8_02_a_repeated_key_anywhere_is_ambiguous(
        body in body(), inside in json(), depth in 0..4_usize, key in select(KEYS), seed in any::<u64>(),
    ) {
        let mut choices = Choices(seed);
        // The second key in another spelling, with an equal or another value
        let (one, two) = (choices.spell(&inside), choices.spell(&body));
        let again: String = key.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let mut text = format!(r#"{{"{key}":{one},"{again}":{two}}}"#);
        let mut path = format!("/{key}");
        for _ in 0..depth {
            if choices.below(2) == 0 {
                text = format!(r#"{{"deep":1,"in":{text}}}"#);
                path = format!("/in{path}");
            } else {
                text = format!("[0,{text}]");
                path = format!("/1{path}");
            }
        }
        text = format!(r#"{{"a":1,"x":{text}}}"#);
        let ambiguous = document(&text);
        prop_assert_eq!(
            trigger(DECLARED).decide("e", &ambiguous),
            Decision::Nonmatch(Nonmatch { reason: Reason::AmbiguousEvidence, at: Some(format!("/x{path}")) })
        );
    }

    #[test]
    fn cs_8_03_chosen_filters_only_narrow(
        a in select(&["1", "\"a\"", "2"][..]),
        b in select(&["\"x\"", "\"y\"", "1", "null", ""][..]),
        c in prop::collection::vec(select(&["1", "2.0", "\"1\"", "null"][..]), 0..4),
        d in select(&["0.5", "1", "\"1\""][..]),
        b_wanted in select(&["\"x\"", "[\"x\",\"y\"]", "\"z\""][..]),
        c_wanted in select(&["1", "[2,3]"][..]),
        d_wanted in select(&["0.5", "[1,2]", "50e-2"][..]),
    ) {
        let trigger = trigger(DECLARED);
        // The empty text leaves the member out: a filter of missing evidence is a nonmatch
        let b_member = if b.is_empty() { String::new() } else { format!("\"b\":{b},") };
        let body = document(&format!(r#"{{"a":{a},{b_member}"c":[{}],"é":{d}}}"#, c.join(",")));
        let with = |choices: &[String]| chosen(&trigger, &format!("{{{}}}", choices.join(",")), &body);
        let choices = [format!("\"b\":{b_wanted}"), format!("\"c\":{c_wanted}"), format!("\"d\":{d_wanted}")];
        let wide = trigger.decide("e", &body);
        prop_assert_eq!(is_match(&wide), a != "2");
        prop_assert_eq!(with(&[]), wide.clone());
        let alone: Vec<Decision> = choices.iter().map(|c| with(std::slice::from_ref(c))).collect();
        for one in &alone {
            // A choice keeps the match as it was, or ends it; it makes none
            prop_assert!(*one == wide || (is_match(&wide) && !is_match(one)));
        }
        let together = with(&choices);
        prop_assert_eq!(is_match(&together), alone.iter().all(is_match));
        // What each choice asks for, in words of its own
        let holds = [
            matches!((b_wanted, b), ("\"x\"", "\"x\"") | ("[\"x\",\"y\"]", "\"x\"" | "\"y\"")),
            c.iter().any(|item| matches!((c_wanted, *item), ("1", "1") | ("[2,3]", "2.0"))),
            matches!((d_wanted, d), ("0.5" | "50e-2", "0.5") | ("[1,2]", "1")),
        ];
        for (one, holds) in alone.iter().zip(holds) {
            prop_assert_eq!(is_match(one), is_match(&wide) && holds);
        }
    }

    /// A frozen trigger says what its declaration said, and one byte more is refused
    #[test]
    fn freezing_keeps_the_meaning(p in predicate(), body in body(), blank_at in any::<prop::sample::Index>()) {
        let declared = DECLARED.replacen("\"normalize\"", &format!("\"when\":{p},\"normalize\""), 1);
        let grants = [("g".to_owned(), vec![Scalar::Integer(1), Scalar::String("é".to_owned())])];
        let trigger = Trigger::compile(&document(&declared), Digest::of(b"p"), grants.into()).unwrap();
        let loaded = Trigger::load(trigger.document().clone()).unwrap();
        prop_assert_eq!(loaded.digest(), trigger.digest());
        prop_assert_eq!(loaded.digest(), Digest::of(trigger.document()));
        prop_assert_eq!(loaded.binding_digest(), trigger.binding_digest());
        let body = spelled(&body, 1);
        prop_assert_eq!(loaded.decide("e", &body), trigger.decide("e", &body));
        let mut bytes = trigger.document().to_vec();
        bytes.insert(blank_at.index(bytes.len() + 1), b' ');
        if let Ok(other) = Trigger::load(bytes.into()) {
            // A blank inside a string is another trigger
            prop_assert_ne!(other.digest(), trigger.digest());
        }
    }
}
