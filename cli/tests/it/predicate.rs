//! `postern predicate`

use crate::support::{in_repository, postern, with_file};

const UNKNOWN: &str = r#"{"not":{"equals":{"pointer":"/gone","value":1}}}"#;

#[test]
fn cs_8_02_the_published_cases_pass() {
    let ran = postern(&[
        "predicate",
        "check",
        &in_repository("predicates/conformance/cases.jsonl"),
    ])
    .run();
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(
        ran.last_line().ends_with(" passed, 0 failed"),
        "{}",
        ran.out
    );
}

#[test]
fn a_case_with_another_expectation_fails() {
    let case = r#"{"id":"c","kind":"predicate","predicate":{"exists":{"pointer":"/a"}},"document":"{}","expect":"true"}"#;
    let (_dir, path) = with_file("cases.jsonl", case);
    let ran = postern(&["predicate", "check", &path]).run();
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.out,
        "FAIL c (line 1): want \"true\", got \"false\"\n0 passed, 1 failed\n"
    );
}

#[test]
fn cs_8_02_missing_evidence_is_unknown_and_exits_1() {
    for (predicate, document, value, code) in [
        (UNKNOWN, r#"{"gone":2}"#, "true", 0),
        (UNKNOWN, r#"{"gone":1}"#, "false", 1),
        (UNKNOWN, "{}", "unknown", 1),
    ] {
        let args = [
            "predicate",
            "eval",
            "--predicate",
            predicate,
            "--document",
            "-",
        ];
        let ran = postern(&args).input(document).run();
        assert_eq!((ran.code, ran.err.as_str()), (code, ""), "{document}");
        assert_eq!(ran.out.lines().next(), Some(value), "{document}");
        let ran = postern(&[&args[..], &["--json"]].concat())
            .input(document)
            .run();
        let json = ran.json();
        assert_eq!(json["value"], value);
        assert_eq!(json["trace"][0]["path"], "");
        assert_eq!(json["trace"][1]["path"], "/not");
    }
}

#[test]
fn cs_8_02_ambiguous_evidence_is_unknown_with_its_place() {
    let args = [
        "predicate",
        "eval",
        "--predicate",
        r#"{"exists":{"pointer":"/a"}}"#,
        "--document",
        "-",
        "--json",
    ];
    let ran = postern(&args).input(r#"{"a":1,"b":{"c":1,"c":2}}"#).run();
    assert_eq!(ran.code, 1);
    let json = ran.json();
    assert_eq!(
        (&json["value"], &json["reason"], &json["at"]),
        (
            &"unknown".into(),
            &"ambiguous-evidence".into(),
            &"/b/c".into()
        )
    );
    let ran = postern(&args).input("{").run();
    assert_eq!(
        (ran.code, &ran.json()["reason"]),
        (1, &"malformed-body".into())
    );
}

#[test]
fn an_invalid_predicate_is_a_no_with_its_path() {
    let args = ["predicate", "eval", "--document", "-", "--predicate"];
    let ran = postern(&[&args[..], &[r#"{"all":[{"exists":{"pointer":"a"}}]}"#]].concat())
        .input("{}")
        .run();
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err
            .starts_with("error[declaration-invalid]: the predicate: `/all/0/exists`"),
        "{}",
        ran.err
    );
    let ran = postern(
        &[
            &args[..],
            &[r#"{"exists":{"pointer":"/a","pointer":"/b"}}"#],
        ]
        .concat(),
    )
    .input("{}")
    .run();
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    for wrong in ["{nonsense", "-", "no-such-file.json"] {
        let ran = postern(&[&args[..], &[wrong]].concat()).input("{}").run();
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{wrong}");
    }
}

#[test]
fn lines_answer_in_order_and_keep_numbers_exact() {
    let input = concat!(
        r#"{"id":"1","kind":"predicate","predicate":{"equals":{"pointer":"","value":9007199254740991}},"document":"9007199254740993"}"#,
        "\n\n",
        r#"{"id":"2","kind":"predicate","predicate":{"equals":{"pointer":"","value":9007199254740991}},"document":"9007199254740991.0"}"#,
        "\n",
    );
    let ran = postern(&["predicate", "eval", "--lines"])
        .input(input)
        .run();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(
        ran.out,
        "{\"id\":\"1\",\"result\":\"false\"}\n{\"id\":\"2\",\"result\":\"true\"}\n"
    );
}

#[test]
fn a_document_cannot_drive_the_terminal() {
    let predicate = "{\"\u{1b}[2J\":1}";
    let ran = postern(&[
        "predicate",
        "eval",
        "--predicate",
        predicate,
        "--document",
        "-",
    ])
    .input("{}")
    .run();
    assert!(
        !ran.err.contains('\u{1b}') && !ran.out.contains('\u{1b}'),
        "{}",
        ran.err
    );
}
