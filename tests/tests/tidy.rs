//! The repository's rules as tests. Each rule is a function of text, and a test shows that it can fail.

#![expect(
    clippy::unwrap_used,
    reason = "a file that cannot be read must fail the test"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// The files of the project with one of these endings, by path from its root
fn files(endings: &[&str]) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if ![
                    "target",
                    ".git",
                    "node_modules",
                    ".venv",
                    "corpus",
                    "artifacts",
                ]
                .contains(&name.as_str())
                {
                    open.push(path);
                }
            } else if endings.iter().any(|end| name.ends_with(end)) {
                let shown = path
                    .strip_prefix(&root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.push((shown, std::fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A Rust file opens with what it does, and stays short
fn shape(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if !text.starts_with("//!") {
        faults.push(format!("{path}: the first line is no `//!`"));
    }
    let lines = text.lines().count();
    if lines > 800 {
        faults.push(format!("{path}: {lines} lines: cut it along its meaning"));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let vague = [
        "mod.rs",
        "utils.rs",
        "common.rs",
        "helpers.rs",
        "misc.rs",
        "types.rs",
        "manager.rs",
    ];
    if vague.contains(&name) {
        faults.push(format!("{path}: a name that says nothing"));
    }
    faults
}

#[test]
fn rust_files_have_their_shape() {
    none(
        files(&[".rs"])
            .iter()
            .flat_map(|(path, text)| shape(path, text))
            .collect(),
    );
    assert_eq!(shape("a/utils.rs", &"x\n".repeat(801)).len(), 3);
}

/// What a crate may depend on, of ours
const IMPORTS: &[(&str, &[&str])] = &[
    ("contract", &[]),
    ("predicates", &["contract"]),
    ("profiles", &["contract"]),
    ("egress", &["contract"]),
    ("compiler", &["contract", "predicates", "profiles"]),
    ("gateway", &["contract", "predicates", "profiles", "egress"]),
    (
        "cli",
        &[
            "contract",
            "predicates",
            "profiles",
            "egress",
            "compiler",
            "gateway",
        ],
    ),
    ("tests", &[]),
];

fn imports(name: &str, manifest: &str, allowed: &[&str]) -> Vec<String> {
    let manifest: toml::Table = manifest.parse().unwrap();
    let dependencies = manifest.get("dependencies").and_then(|d| d.as_table());
    let ours = dependencies.into_iter().flat_map(|d| d.keys());
    ours.filter_map(|key| key.strip_prefix("postern-"))
        .filter(|dependency| !allowed.contains(dependency))
        .map(|dependency| format!("{name} imports {dependency}"))
        .collect()
}

#[test]
fn crates_import_in_one_direction() {
    let mut faults = Vec::new();
    for (name, allowed) in IMPORTS {
        let manifest = std::fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        faults.extend(imports(name, &manifest, allowed));
        if !manifest.contains("[lints]\nworkspace = true") {
            faults.push(format!("{name} does not take the workspace's lints"));
        }
    }
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for member in IMPORTS {
        assert!(
            workspace.contains(&format!("\"{}\"", member.0)),
            "{}",
            member.0
        );
    }
    none(faults);
    let bad = "[dependencies]\npostern-compiler = \"1\"\nserde = \"1\"\n";
    assert_eq!(
        imports("gateway", bad, &["contract"]),
        ["gateway imports compiler"]
    );
}

/// Lines of code, without comments and without the tests at a file's end
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    let (code, _) = text.split_at_checked(end).unwrap_or((text, ""));
    code.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Names that stand in Rust for another reason than to treat one provider apart
const NOT_A_PROVIDER: &[&str] = &[
    // The version that every document carries, and the syntax of workflows
    "github.com/gh-aw",
    "github.aw.",
    ".github/",
    // Keys of a workflow's `on`
    "github-app",
    "github-token",
    // Shapes of tokens that no binding may hold, whoever issues them
    "github_pat_",
    "npm_",
    // The standard's format of events, and the library of cryptography
    "cloudevents",
    "aws_lc_rs",
];

fn providers(path: &str, text: &str, names: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in code(text) {
        let mut line = line.to_lowercase();
        for other in NOT_A_PROVIDER {
            line = line.replace(other, "");
        }
        let words: Vec<&str> = line.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        for name in names.iter().filter(|name| words.contains(&name.as_str())) {
            faults.push(format!(
                "{path}:{}: the provider `{name}` in Rust",
                number + 1
            ));
        }
    }
    faults
}

#[test]
fn no_provider_stands_in_rust() {
    let catalog = root().join("profiles/catalog");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(catalog).unwrap() {
        let file = entry.unwrap().file_name().to_string_lossy().into_owned();
        names.insert(file.split(['_', '.']).next().unwrap().to_owned());
    }
    // Words that mean something else first
    for word in [
        "ms", "standard", "google", "line", "linear", "segment", "notion", "svix", "box", "x",
        "meta", "basic", "body",
    ] {
        names.remove(word);
    }
    assert!(names.contains("github") && names.len() > 15);
    let ours = [
        "contract/src",
        "predicates/src",
        "profiles/src",
        "compiler/src",
        "egress/src",
        "gateway/src",
    ];
    let sources = files(&[".rs"]);
    let sources = sources
        .iter()
        .filter(|(path, _)| ours.iter().any(|dir| path.starts_with(dir)));
    let sources = sources.filter(|(path, _)| !path.ends_with("/tests.rs"));
    none(
        sources
            .flat_map(|(path, text)| providers(path, text, &names))
            .collect(),
    );
    let bad = "if profile == \"github\" {}\n// github\nlet v = \"github.com/gh-aw\";\n";
    assert_eq!(providers("x.rs", bad, &names).len(), 1);
}

/// Codes between backticks in the first column of the tables
fn listed(errors: &str) -> BTreeSet<String> {
    let rows = errors.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split(" | ").next())
        .flat_map(|cell| {
            cell.split(", ")
                .map(|code| code.trim_matches('`').to_owned())
        })
        .collect()
}

/// What the bodies of `fn code` give
fn given(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for body in text.split("fn code(").skip(1) {
        let end = body.find("\n    }").unwrap_or(body.len());
        let (body, _) = body.split_at_checked(end).unwrap_or((body, ""));
        let quoted = body.split('"').skip(1).step_by(2);
        found.extend(quoted.filter(|q| !q.is_empty()).map(str::to_owned));
    }
    found
}

#[test]
fn every_error_code_is_documented_and_every_documented_code_exists() {
    let errors = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let listed = listed(&errors);
    let mut faults = Vec::new();
    let mut everything = String::new();
    for (path, text) in files(&[".rs"]) {
        if path.contains("/tests/") || path.ends_with("/tests.rs") {
            continue;
        }
        for code in given(&text).difference(&listed) {
            faults.push(format!("{path}: `{code}` is not in docs/errors.md"));
        }
        everything.push_str(&text);
    }
    let quoted = |code: &str| everything.contains(&format!("\"{code}\""));
    faults.extend(
        listed
            .iter()
            .filter(|c| !quoted(c))
            .map(|c| format!("docs/errors.md: no code gives `{c}`")),
    );
    none(faults);
    assert_eq!(
        given("fn code(&self) -> &str {\n  \"a-b\"\n    }\n\"c\""),
        ["a-b".to_owned()].into()
    );
}

/// Links of Markdown to files of the project
fn links(path: &str, text: &str) -> Vec<String> {
    let base = root().join(path);
    let base = base.parent().unwrap();
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    targets
        .filter(|t| !t.contains("://") && !t.starts_with('#') && !t.contains(' '))
        .filter(|t| !base.join(t.split('#').next().unwrap_or_default()).exists())
        .map(|target| format!("{path}: the link `{target}` leads nowhere"))
        .collect()
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    let pages = files(&[".md"]);
    let pages = pages
        .iter()
        .filter(|(path, _)| !path.starts_with("fixtures/") && !path.starts_with("connectors/"));
    none(pages.flat_map(|(path, text)| links(path, text)).collect());
    assert_eq!(
        links("README.md", "[x](docs/nope.md) [y](https://a/b)").len(),
        1
    );
}

/// What does not belong into a project that others clone
fn strays(path: &str, text: &str) -> Vec<String> {
    // Put together here, so that this file does not find itself
    let forbidden = [
        ["/wo", "rk/"].concat(),
        ["../sha", "red"].concat(),
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["to", "do!("].concat(),
        ["unimple", "mented!("].concat(),
    ];
    let lines = text.lines().enumerate();
    lines
        .filter_map(|(n, line)| {
            let found = forbidden.iter().find(|word| line.contains(word.as_str()))?;
            Some(format!("{path}:{}: `{found}`", n + 1))
        })
        .collect()
}

#[test]
fn nothing_unfinished_and_no_path_of_a_machine_is_left() {
    let sources = files(&[".rs", ".md", ".toml", ".mjs", "check", ".txt"]);
    let sources = sources
        .iter()
        .filter(|(path, _)| !path.starts_with("fixtures/"));
    none(
        sources
            .flat_map(|(path, text)| strays(path, text))
            .collect(),
    );
    assert_eq!(strays("x", &["// TO", "DO"].concat()).len(), 1);
}

#[test]
fn known_gaps_have_reasons_and_the_changelog_has_a_place_for_changes() {
    let gaps = std::fs::read_to_string(root().join("known-gaps.txt")).unwrap();
    let bare = |line: &&str| {
        !line.starts_with('#') && !line.trim().is_empty() && !line.trim().contains(' ')
    };
    none(gaps.lines().filter(bare).map(str::to_owned).collect());
    assert!(bare(&"github-01") && !bare(&"github-01 because"));
    let changes = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(changes.contains("## Unreleased"));
}
