//! Imports: where they may lead, what is found when they lead nowhere, and how bindings travel along them.

use postern_compiler::{Compiled, Compiler, Sources};

const WORKFLOW: &str = ".github/workflows/w.md";
const MINE: &str = "---
connectors:
  mine:
    resources: {repositories: '${{ github.aw.import-inputs.repositories }}'}
    triggers:
      opened:
        verificationProfile: github
        nativeEvents: [issues]
        match: {/action: opened}
        normalize: {repository: /repository/full_name}
        resources: {repository: repositories}
        resourceOrigins: ['https://github.com']
import-schema:
  repositories: {type: array, items: {type: string}, default: []}
---
";

fn compile(files: &[(&str, &str)]) -> Compiled {
    let mut sources = Sources::default();
    for (path, text) in files {
        sources.insert(*path, *text);
    }
    let compiler = Compiler {
        sources: &sources,
        repository: Some("o/r"),
    };
    // The first is the workflow
    compiler.compile(files.first().map_or("", |(path, _)| path))
}

fn codes(compiled: &Compiled) -> Vec<&'static str> {
    compiled.diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn cs_2_03_cs_2_04_imports_stay_inside_the_repository() {
    let files = [
        ("docs/x.md", "---\na: 1\n---\n"),
        (".agents/x.md", "---\na: 1\n---\n"),
        (".github/x.md", "---\na: 1\n---\n"),
        (".github/workflows/x.md", "no frontmatter"),
    ];
    for (target, code) in [
        ("x.md", None),
        ("./x.md", None),
        ("../x.md", None),
        ("/.github/x.md", None),
        ("/.agents/x.md", None),
        ("../../.agents/x.md", None),
        (".github/workflows/x.md#Section", None),
        ("shared/nope.md?", None),
        ("../../docs/x.md", Some("import")),
        ("../../../etc/passwd", Some("import")),
        (".github/../docs/x.md", Some("import")),
        (".github/../../x.md", Some("import")),
        ("/etc/passwd", Some("import")),
        ("/docs/x.md", Some("import")),
        ("owner/repo/connectors/x.md@v1", Some("import")),
        ("https://example.com/x.md", Some("import")),
        ("file:///etc/passwd", Some("import")),
        ("..\\x.md", Some("import")),
        ("x.lock.yml", Some("import")),
        (".github/workflows/connectors/nope.md", Some("no-file")),
        ("shared/nope.md", Some("no-file")),
    ] {
        let text = format!("---\non: {{}}\nimports:\n  - '{target}'\n---\n");
        let compiled = compile(&[&[(WORKFLOW, text.as_str())], &files[..]].concat());
        assert_eq!(codes(&compiled), Vec::from_iter(code), "{target}");
        for found in &compiled.diagnostics {
            assert_eq!((found.place.line, found.place.column), (4, 5), "{target}");
        }
    }
    // A draft elsewhere imports what stands beside it, and connectors; nothing above
    for (target, code) in [
        ("x.md", None),
        (".github/x.md", None),
        ("../top.md", Some("import")),
    ] {
        let text = format!("---\nimports: ['{target}']\n---\n");
        let files = [
            ("docs/w.md", text.as_str()),
            files[0],
            files[2],
            ("top.md", ""),
        ];
        assert_eq!(codes(&compile(&files)), Vec::from_iter(code), "{target}");
    }
}

#[test]
fn cs_2_05_a_file_of_the_repository_is_never_replaced() {
    let path = ".github/workflows/connectors/github.md";
    let text = "---\non: {gateway-dispatch: {github: [issue-opened]}}\nimports: [{uses: connectors/github.md, with: {repositories: [o/r]}}]\n---\n";
    let compiled = compile(&[(WORKFLOW, text)]);
    assert_eq!(compiled.selected[0].connector_file, "shipped/github.md");
    // Broken, empty or of another id, it is the one that is meant
    for own in [
        "",
        "no frontmatter",
        "---\na: [\n---\n",
        "---\nconnectors: {}\n---\n",
    ] {
        let compiled = compile(&[(WORKFLOW, text), (path, own)]);
        assert_eq!(compiled.diagnostics.len(), 1, "{:?}", compiled.diagnostics);
        assert_eq!(compiled.diagnostics[0].file, path);
        assert!(compiled.selected.is_empty());
    }
    let other = MINE.replace("default: []", "default: [o/r]");
    let compiled = compile(&[(WORKFLOW, text), (path, &other)]);
    assert_eq!(codes(&compiled), ["not-imported"]);
    // What is there and cannot be taken
    let mut sources = Sources::default();
    sources.insert(WORKFLOW, text);
    sources.refuse(path, "it is a link");
    let compiler = Compiler {
        sources: &sources,
        repository: None,
    };
    let compiled = compiler.compile(WORKFLOW);
    assert_eq!(codes(&compiled), ["no-file"]);
    assert!(compiled.diagnostics[0].message.ends_with("it is a link"));
}

#[test]
fn cycles_and_long_chains_are_found() {
    let imports = |target: &str| format!("---\nimports: [{target}]\n---\n");
    let compiled = compile(&[(WORKFLOW, &imports("w.md"))]);
    assert_eq!(codes(&compiled), ["import"]);
    let (a, b) = (imports("b.md"), imports("w.md"));
    let compiled = compile(&[
        (WORKFLOW, &imports("a.md")),
        (".github/workflows/a.md", &a),
        (".github/workflows/b.md", &b),
    ]);
    // Found where it closes
    assert_eq!(codes(&compiled), ["import"]);
    assert_eq!(compiled.diagnostics[0].file, ".github/workflows/b.md");
    assert!(compiled.diagnostics[0].message.starts_with("a cycle: "));
    let chain = |length: usize| {
        let files: Vec<(String, String)> = (0..=length)
            .map(|n| {
                let next = if n < length {
                    imports(&format!("{}.md", n + 1))
                } else {
                    String::new()
                };
                (format!(".github/workflows/{n}.md"), next)
            })
            .collect();
        let files: Vec<_> = files
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        codes(&compile(&files))
    };
    assert!(chain(8).is_empty());
    assert_eq!(chain(9), ["import"]);
    // Wide and deep: every file imports all later ones, each is read once
    let all: Vec<(String, String)> = (0..8)
        .map(|n| {
            let later: Vec<String> = (n + 1..8).map(|m| format!("{m}.md")).collect();
            (
                format!(".github/workflows/{n}.md"),
                imports(&later.join(", ")),
            )
        })
        .collect();
    let all: Vec<_> = all.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    assert!(codes(&compile(&all)).is_empty());
}

#[test]
fn cs_2_06_one_connector_has_one_declaration_and_one_binding() {
    let on = "on: {gateway-dispatch: {mine: [opened]}}\n";
    let by = |a: &str, b: &str| {
        let a = format!(
            "---\nimports: [{{uses: connectors/mine.md, with: {{repositories: [{a}]}}}}]\n---\n"
        );
        let b = format!(
            "---\nimports: [{{uses: connectors/mine.md, with: {{repositories: [{b}]}}}}]\n---\n"
        );
        compile(&[
            (WORKFLOW, &format!("---\n{on}imports: [a.md, b.md]\n---\n")),
            (".github/workflows/a.md", &a),
            (".github/workflows/b.md", &b),
            (".github/workflows/connectors/mine.md", MINE),
        ])
    };
    // Two ways to the same are one
    let same = by("o/r", "o/r");
    assert_eq!(codes(&same), Vec::<&str>::new());
    assert_eq!(same.selected.len(), 1);
    let different = by("o/r", "o/s");
    assert_eq!(codes(&different), ["import-twice"]);
    assert_eq!(different.diagnostics[0].file, ".github/workflows/b.md");
    // Another file with the same id
    let text = format!("---\n{on}imports: [connectors/mine.md, connectors/twin.md]\n---\n");
    let compiled = compile(&[
        (WORKFLOW, &text),
        (
            ".github/workflows/connectors/mine.md",
            &MINE.replace("default: []", "default: [o/r]"),
        ),
        (".github/workflows/connectors/twin.md", MINE),
    ]);
    assert_eq!(codes(&compiled), ["import-twice"]);
    // `a-b` with `c` and `a` with `b-c`
    let named = |id: &str, trigger: &str| {
        (MINE.replace("  mine:", &format!("  {id}:")))
            .replace("      opened:", &format!("      {trigger}:"))
            .replace("default: []", "default: [o/r]")
    };
    let compiled = compile(&[
        (
            WORKFLOW,
            "---\non: {a-b-c: {}}\nimports: [connectors/a.md, connectors/a-b.md]\n---\n",
        ),
        (".github/workflows/connectors/a.md", &named("a", "b-c")),
        (".github/workflows/connectors/a-b.md", &named("a-b", "c")),
    ]);
    assert_eq!(codes(&compiled), ["selection"]);
}

#[test]
fn bindings_travel_through_a_shared_file() {
    let shared = |with: &str| {
        format!(
            "---\nimport-schema:\n  repo: {{type: string}}\nimports:\n  - uses: connectors/mine.md\n    with: {{repositories: [{with}]}}\n---\n"
        )
    };
    let on = "on: {gateway-dispatch: {mine: [opened]}}\n";
    let with = |given: &str, shared: &str| {
        compile(&[
            (
                WORKFLOW,
                &format!("---\n{on}imports: [{{uses: shared.md, with: {{{given}}}}}]\n---\n"),
            ),
            (".github/workflows/shared.md", shared),
            (".github/workflows/connectors/mine.md", MINE),
        ])
    };
    let put = shared("'${{ github.aw.import-inputs.repo }}', x/y");
    let compiled = with("repo: o/r", &put);
    assert_eq!(compiled.diagnostics, []);
    let resources = compiled.selected[0].trigger.binding().resources();
    assert_eq!(
        serde_json::to_string(resources).unwrap(),
        r#"{"repositories":["o/r","x/y"]}"#
    );
    // What is wrong is drawn where it stands
    let place = |compiled: &Compiled| {
        let found = &compiled.diagnostics[0];
        (found.code, found.file.clone(), found.place.line)
    };
    let shared_file = ".github/workflows/shared.md".to_owned();
    assert_eq!(
        place(&with("", &put)),
        ("import-binding", shared_file.clone(), 6)
    );
    assert_eq!(
        place(&with("repo: o/r", &shared("'*'"))),
        ("collection", shared_file, 6)
    );
    assert_eq!(
        place(&with("repo: [o/r]", &put)),
        ("import-binding", WORKFLOW.to_owned(), 3)
    );
    // A shared file's broken frontmatter is no Markdown alone
    let compiled = with("", "---\na: [\n---\n");
    assert_eq!(compiled.diagnostics[0].code, "frontmatter");
}

#[test]
fn a_connector_whose_import_failed_is_not_said_to_be_missing_too() {
    let text = "---\non: {gateway-dispatch: {nope: [x], mine: [opened]}}\nimports: [connectors/nope.md, connectors/mine.md]\n---\n";
    let compiled = compile(&[
        (WORKFLOW, text),
        (
            ".github/workflows/connectors/mine.md",
            &MINE.replace("match:", "mtch:"),
        ),
    ]);
    assert_eq!(codes(&compiled), ["trigger", "no-file"]);
    // One that may be missing was not imported, and a selection of it is an error
    let text = text.replace("nope.md", "nope.md?");
    let compiled = compile(&[
        (WORKFLOW, &text),
        (".github/workflows/connectors/mine.md", MINE),
    ]);
    assert_eq!(codes(&compiled), ["not-imported", "nothing-granted"]);
}

#[test]
fn the_reserved_forms_of_imports_are_read_and_mixtures_refused() {
    let on = "on: {gateway-dispatch: {mine: [opened]}}\n";
    for (imports, code) in [
        (
            "{aw: [{uses: connectors/mine.md, with: {repositories: [o/r]}}]}",
            None,
        ),
        (
            "[{path: connectors/mine.md, inputs: {repositories: [o/r]}}]",
            None,
        ),
        ("[{path: connectors/mine.md, uses: x.md}]", Some("import")),
        (
            "[{uses: connectors/mine.md, with: {}, inputs: {}}]",
            Some("import"),
        ),
        ("[1]", Some("import")),
        ("x", Some("import")),
        ("{}", Some("import")),
    ] {
        let text = format!("---\n{on}imports: {imports}\n---\n");
        let compiled = compile(&[
            (WORKFLOW, &text),
            (".github/workflows/connectors/mine.md", MINE),
        ]);
        let got: Vec<_> = codes(&compiled)
            .into_iter()
            .filter(|c| *c != "not-imported")
            .collect();
        assert_eq!(got, Vec::from_iter(code), "{imports}");
    }
}
