//! Arbitrary and mutated Markdown: nothing panics, every finding has a place in its file, and a workflow
//! that is refused selects nothing by accident.

use postern_compiler::{Compiled, Compiler, Connector, Sources, shipped};
use proptest::prelude::*;

const WORKFLOW: &str = ".github/workflows/w.md";

fn compile(workflow: &str, connector: Option<&str>) -> Compiled {
    let mut sources = Sources::default();
    sources.insert(WORKFLOW, workflow);
    if let Some(text) = connector {
        sources.insert(".github/workflows/connectors/slack.md", text);
    }
    let compiler = Compiler {
        sources: &sources,
        repository: Some("o/r"),
    };
    let compiled = compiler.compile(WORKFLOW);
    for found in &compiled.diagnostics {
        let source = sources.get(&found.file);
        assert!(
            found.place.line >= 1 && found.place.column >= 1,
            "{found:?}"
        );
        if let Some(source) = source {
            let lines = source.split('\n').count();
            assert!(found.place.line <= lines, "{found:?}");
        }
        assert!(
            !found
                .draw(source)
                .chars()
                .any(|c| c.is_control() && c != '\n' && c != '\t')
        );
    }
    compiled
}

fn slack() -> &'static str {
    let found = shipped().find(|(id, _)| *id == "slack");
    found.map_or("", |(_, text)| text)
}

const SELECTING: &str = "---\non: {gateway-dispatch: {slack: [app-mention, {message-posted: {filters: {user: U1}}}]}}\nimports:\n  - uses: connectors/slack.md\n    with: {teams: [T1], channels: [C1]}\n---\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn arbitrary_text_never_panics(
        text in "\\PC{0,200}",
        yaml in "[a-z:{}\\[\\]\\-&*!|>'\"\n ,#?@%0-9.<$]{0,200}",
    ) {
        compile(&text, None);
        compile(&format!("---\n{yaml}\n---\n"), Some(&format!("---\n{yaml}\n---\n")));
        compile(&format!("---\non:\n  gateway-dispatch: {yaml}\nimports: [{yaml}]\n---\n"), None);
        let _ = Connector::read("x.md", &format!("---\nconnectors:\n  x:\n    triggers: {yaml}\n---\n"));
    }

    #[test]
    fn a_mutated_connector_never_panics(at in 0..6_000_usize, cut in 0..40_usize, put in "[a-z:{}\\[\\]&*!'\"\n ,/~0-9$-]{0,8}") {
        let mut text: Vec<char> = slack().chars().collect();
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, put.chars());
        let text: String = text.into_iter().collect();
        let compiled = compile(SELECTING, Some(&text));
        // What is wrong with the declaration is never passed over
        if Connector::read("x.md", &text).is_err() {
            assert!(compiled.has_errors());
            assert!(compiled.selected.is_empty());
        }
    }

    #[test]
    fn a_mutated_workflow_never_panics(at in 0..200_usize, cut in 0..20_usize, put in "[a-z:{}\\[\\]&*!'\"\n ,/0-9$-]{0,8}") {
        let mut text: Vec<char> = SELECTING.chars().collect();
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, put.chars());
        compile(&text.into_iter().collect::<String>(), None);
    }
}

#[test]
fn the_unchanged_pair_compiles() {
    let compiled = compile(SELECTING, Some(slack()));
    assert_eq!(compiled.diagnostics, []);
    assert_eq!(compiled.selected.len(), 2);
}

#[test]
fn bombs_stop_by_count() {
    let line = |n: usize| {
        format!(
            "a{n}: &a{n} [{}]\n",
            vec![format!("*a{}", n - 1); 9].join(",")
        )
    };
    let bomb: String = (1..9).map(line).collect();
    // Merged members replace one another: what grows is the count of aliases, 4 a line
    let merges: String = (1..70)
        .map(|n| {
            format!(
                "m{n}: &m{n} {{<<: [*m{0}, *m{0}, *m{0}, *m{0}], k{n}: 1}}\n",
                n - 1
            )
        })
        .collect();
    for (text, why) in [
        (
            format!("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n{bomb}"),
            "more than",
        ),
        (
            format!("m0: &m0 {{a: 1, b: 2, c: 3, d: 4}}\n{merges}"),
            "more than 256 aliases",
        ),
        // Flow collections meet the parser's own bound first
        ("[".repeat(500_000), "not YAML: "),
        ("{a: ".repeat(200_000), "not YAML: "),
        ("- ".repeat(400_000), "deeper than"),
        ("? ".repeat(400_000), "deeper than"),
        (
            format!("[{}]", "1,".repeat(30_000)),
            "more than 20000 nodes",
        ),
    ] {
        let compiled = compile(&format!("---\n{text}\n---\n"), None);
        let [found] = compiled.diagnostics.as_slice() else {
            panic!("{:?}", compiled.diagnostics);
        };
        let head: String = text.chars().take(20).collect();
        assert!(found.message.contains(why), "{head}: {}", found.message);
    }
}
