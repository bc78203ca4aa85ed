//! Every command's help, held against a snapshot (`UPDATE_EXPECT=1` rewrites it), and with an example.

use crate::support::{postern, repository};

/// The commands that `help` lists
fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = listed.take_while(|line| !line.is_empty());
    let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
    let names = names.filter_map(|row| row.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// A command and all below it, with their help
fn walk(path: &[String], all: &mut Vec<(String, String)>) {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let ran = postern(&args).run();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{path:?}");
    let below = commands(&ran.out);
    all.push((
        ["postern"]
            .into_iter()
            .chain(path.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" "),
        ran.out,
    ));
    for name in below {
        walk(&[path, &[name]].concat(), all);
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the one switch of snapshot tests"
)]
fn every_command_has_an_example_and_the_help_is_the_expected_one() {
    let mut all = Vec::new();
    walk(&[], &mut all);
    for hidden in ["man", "reference"] {
        walk(&[hidden.to_owned()], &mut all);
    }
    let mut text = String::new();
    for (path, help) in &all {
        let examples = help.split_once("Examples:\n").map(|(_, examples)| examples);
        let own = examples.is_some_and(|e| e.lines().any(|line| line.contains(&shown(path))));
        assert!(own, "`{path}` has no example of itself:\n{help}");
        text.push_str(&format!("# {path}\n{help}\n"));
    }
    let path = repository("cli/tests/snapshots/help.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "the help changed: look at it, then run with UPDATE_EXPECT=1"
    );
}

/// How an example spells a command: a connector's id stands before the verb
fn shown(path: &str) -> String {
    match path.strip_prefix("postern connector ") {
        Some(verb) if verb != "list" => format!(" {verb}"),
        _ => path.to_owned(),
    }
}
