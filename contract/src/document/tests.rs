//! The parser against the contract, a second parser, and bytes of all kinds.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Document, MalformedBody> {
    Document::parse(Bytes::copy_from_slice(text.as_bytes()))
}

fn nested(n: usize) -> String {
    "[".repeat(n) + &"]".repeat(n)
}

#[test]
fn numbers_of_any_length_keep_their_text() {
    for digits in [4_300, 4_301, 100_000] {
        for number in [
            "7".repeat(digits),
            format!("-{}", "7".repeat(digits)),
            format!("{}.5e-7", "7".repeat(digits)),
            format!("-{}0.25", "7".repeat(digits)),
            format!("0.{}", "7".repeat(digits)),
            format!("1e{}", "7".repeat(digits)),
        ] {
            let text = format!("{{\"s\":\"{number}\",\"n\":[1,{number},2]}}");
            let doc = Document::parse(text.into()).unwrap();
            let items = doc.root().member("n").unwrap();
            let got: Vec<_> = items
                .items()
                .unwrap()
                .map(|v| v.number_text().unwrap())
                .collect();
            assert_eq!(got, ["1", &number, "2"]);
            assert_eq!(
                doc.root().member("s").unwrap().as_str(),
                Some(number.as_str())
            );
        }
        for bad in [
            format!("0{}", "7".repeat(digits)),
            format!("+{}", "7".repeat(digits)),
            format!("1 {}", "7".repeat(digits)),
            format!("--{}", "7".repeat(digits)),
            format!("{}.", "7".repeat(digits)),
            format!("x{}", "7".repeat(digits)),
        ] {
            assert!(
                Document::parse(bad.clone().into()).is_err(),
                "{}",
                &bad.chars().take(9).collect::<String>()
            );
        }
    }
}

#[test]
fn depth_is_bounded_at_128() {
    assert!(parse(&nested(128)).is_ok());
    assert_eq!(
        parse(&nested(129)).err(),
        Some(MalformedBody::Depth { at: 128 })
    );
    assert!(parse(&"[".repeat(100_000)).is_err());
    assert!(parse(&"{\"a\":".repeat(100_000)).is_err());
}

#[test]
fn numbers_keep_their_spelling() {
    let doc = parse(r#"{"n":[1.10,1E400,-0,12345678901234567890123]}"#).unwrap();
    let numbers: Vec<_> = doc
        .root()
        .member("n")
        .unwrap()
        .items()
        .unwrap()
        .map(|n| n.number_text().unwrap())
        .collect();
    assert_eq!(numbers, ["1.10", "1E400", "-0", "12345678901234567890123"]);
}

#[test]
fn the_first_repeated_key_is_named_in_small_and_large_objects() {
    let many = (0..40)
        .map(|n| format!("\"k{n}\":{n}"))
        .collect::<Vec<_>>()
        .join(",");
    for (text, at) in [
        (r#"{"a":1,"\u0061":2}"#.to_owned(), "/a"),
        (r#"{"a":{"x":1,"x":2},"a":3}"#.to_owned(), "/a/x"),
        (r#"[0,{"k":[{"x/y":1,"x/y":2}]}]"#.to_owned(), "/1/k/0/x~1y"),
        (format!("{{{many},\"k7\":0,\"k3\":0}}"), "/k7"),
    ] {
        assert_eq!(parse(&text).unwrap().repeated_key(), Some(at), "{text}");
    }
    let doc = parse(&format!("{{{many}}}")).unwrap();
    assert_eq!(doc.repeated_key(), None);
    for n in 0..40 {
        assert_eq!(
            doc.root().member(&format!("k{n}")).unwrap().number_text(),
            Some(&*n.to_string())
        );
    }
    assert!(doc.root().member("k40").is_none());
}

#[test]
fn magic_keys_stay_objects() {
    for text in [
        r#"{"$serde_json::private::RawValue":"{\"admin\":true}"}"#,
        r#"{"$serde_json::private::Number":"7"}"#,
    ] {
        assert_eq!(parse(text).unwrap().root().kind(), Kind::Object);
    }
}

#[test]
fn what_is_not_json_is_malformed() {
    for text in [
        "",
        " \n",
        "\u{feff}{}",
        "{",
        "[1,]",
        "01",
        "NaN",
        "\"\\ud83d\"",
        "{} x",
        "'a'",
        "Infinity",
        "-",
    ] {
        assert!(parse(text).is_err(), "{text:?}");
    }
    for bytes in [&b"\"\xff\""[..], b"\xff\xfe{\0}\0", b"\"\xed\xa0\x80\""] {
        assert!(
            Document::parse(Bytes::copy_from_slice(bytes)).is_err(),
            "{bytes:?}"
        );
    }
}

/// The document in struson's eyes, an independent parser, or nothing where it refuses
fn by_struson(text: &[u8]) -> Option<String> {
    use struson::reader::{JsonReader, JsonStreamReader, ReaderSettings, ValueType};
    fn walk<R: JsonReader>(reader: &mut R, out: &mut String) -> Option<()> {
        match reader.peek().ok()? {
            ValueType::Array => {
                reader.begin_array().ok()?;
                out.push('[');
                while reader.has_next().ok()? {
                    walk(reader, out)?;
                    out.push(',');
                }
                reader.end_array().ok()?;
                out.push(']');
            }
            ValueType::Object => {
                reader.begin_object().ok()?;
                out.push('{');
                while reader.has_next().ok()? {
                    out.push_str(&format!("{:?}:", reader.next_name().ok()?));
                    walk(reader, out)?;
                    out.push(',');
                }
                reader.end_object().ok()?;
                out.push('}');
            }
            ValueType::String => out.push_str(&format!("{:?}", reader.next_string().ok()?)),
            ValueType::Number => out.push_str(&reader.next_number_as_string().ok()?),
            ValueType::Boolean => out.push_str(&reader.next_bool().ok()?.to_string()),
            ValueType::Null => {
                reader.next_null().ok()?;
                out.push_str("null");
            }
        }
        Some(())
    }
    let settings = ReaderSettings {
        restrict_number_values: false,
        max_nesting_depth: Some(128),
        ..Default::default()
    };
    let mut reader = JsonStreamReader::new_custom(text, settings);
    let mut out = String::new();
    walk(&mut reader, &mut out)?;
    reader.consume_trailing_whitespace().ok()?;
    Some(out)
}

fn by_us(value: Value<'_>, out: &mut String) {
    match value.kind() {
        Kind::Null => out.push_str("null"),
        Kind::Boolean => out.push_str(&value.as_bool().unwrap().to_string()),
        Kind::Number => out.push_str(value.number_text().unwrap()),
        Kind::String => out.push_str(&format!("{:?}", value.as_str().unwrap())),
        Kind::Array => {
            out.push('[');
            for item in value.items().unwrap() {
                by_us(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Kind::Object => {
            out.push('{');
            for (key, value) in value.members().unwrap() {
                out.push_str(&format!("{key:?}:"));
                by_us(value, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_second_parser(text in r#"([\[\]{},: ]|"[a\\/un0-9é]{0,4}"|-?[0-9]{1,3}(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null){0,14}"#) {
        let ours = parse(&text).ok().map(|doc| { let mut out = String::new(); by_us(doc.root(), &mut out); out });
        prop_assert_eq!(ours, by_struson(text.as_bytes()));
    }

    #[test]
    fn never_panics_on_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = Document::parse(Bytes::from(bytes));
    }
}

#[test]
fn a_part_becomes_a_document_that_says_the_same() {
    let text = r#"{"a":[{"n":1.50,"s":"\u00e9\"\n","k":1,"k":2},null,true,[]],"b":{}}"#;
    let document = Document::parse(text.into()).unwrap();
    let item = document.root().member("a").unwrap().item(0).unwrap();
    let own = item.to_document().unwrap();
    // Escapes come out in their shortest spelling, numbers and repeated keys as they were
    let spelled = r#"{"n":1.50,"s":"é\"\n","k":1,"k":2}"#;
    assert_eq!(own.text().as_ref(), spelled.as_bytes());
    assert_eq!(own.repeated_key(), Some("/k"));
    let whole = document.root().to_document().unwrap();
    let spelled = format!(r#"{{"a":[{spelled},null,true,[]],"b":{{}}}}"#);
    assert_eq!(whole.text().as_ref(), spelled.as_bytes());
}
