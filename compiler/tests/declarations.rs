//! What a connector's declaration must hold, each part on its own, and that every fault of it is found.

use postern_compiler::{Compiled, Compiler, Sources};

const DECLARED: &str = r#"---
connectors:
  mine:
    resources: {repositories: [o/r]}
    triggers:
      opened:
        verificationProfile: github
        nativeEvents: [issues]
        match: {/action: opened}
        normalize: {repository: /repository/full_name, url: {pointer: /issue/html_url, type: url}}
        resources: {repository: repositories}
        resourceOrigins: ["https://github.com"]
---
"#;

fn compile(declared: &str, with: &str) -> Compiled {
    let mut sources = Sources::default();
    sources.insert(".github/workflows/connectors/mine.md", declared);
    sources.insert(
        ".github/workflows/w.md",
        format!(
            "---\non: {{gateway-dispatch: {{mine: [opened]}}}}\nimports: [{{uses: connectors/mine.md{with}}}]\n---\n"
        ),
    );
    let compiler = Compiler {
        sources: &sources,
        repository: Some("o/r"),
    };
    let compiled = compiler.compile(".github/workflows/w.md");
    assert_eq!(compiled.selected.is_empty(), compiled.has_errors());
    compiled
}

/// The codes that the declaration is refused with where `from` is replaced
fn connector(from: &str, to: &str) -> Vec<&'static str> {
    assert!(DECLARED.contains(from), "{from}");
    let compiled = compile(&DECLARED.replacen(from, to, 1), "");
    compiled.diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn it_compiles_as_it_stands() {
    assert!(connector("mine", "mine").is_empty());
}

#[test]
fn cs_8_01_a_verification_profile_is_required() {
    assert_eq!(
        connector("        verificationProfile: github\n", ""),
        ["trigger"]
    );
    assert_eq!(connector("Profile: github", "Profile: 1"), ["trigger"]);
}

#[test]
fn cs_8_01_native_events_are_required_and_nonempty() {
    assert_eq!(
        connector("        nativeEvents: [issues]\n", ""),
        ["trigger"]
    );
    assert_eq!(connector("[issues]", "[]"), ["trigger"]);
    assert_eq!(connector("[issues]", "['']"), ["trigger"]);
}

#[test]
fn cs_8_01_match_is_required_and_equality_alone() {
    assert_eq!(
        connector("        match: {/action: opened}\n", ""),
        ["trigger"]
    );
    assert_eq!(
        connector("match: {/action: opened}", "match: {}"),
        ["trigger"]
    );
    assert_eq!(
        connector("/action: opened", "/action: {prefix: o}"),
        ["trigger"]
    );
    assert_eq!(connector("/action: opened", "action: opened"), ["trigger"]);
}

#[test]
fn cs_8_01_normalize_is_required() {
    // Misspelt it is one fault, with the name that was meant
    let compiled = compile(&DECLARED.replace("normalize: {", "normalise: {"), "");
    let [found] = compiled.diagnostics.as_slice() else {
        panic!("{:?}", compiled.diagnostics);
    };
    assert_eq!(found.hint.as_deref(), Some("did you mean `normalize`?"));
    assert_eq!((found.place.line, found.place.column), (10, 9));
    let without: String = DECLARED
        .lines()
        .filter(|line| !line.contains("normalize"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(compile(&without, "").diagnostics.len(), 1);
}

#[test]
fn cs_8_01_resources_are_exact_and_types_primitive() {
    for member in ["\"o/*\"", "''", "null", "[a]", "'${{ github.repository }}'"] {
        assert_eq!(
            connector("[o/r]", &format!("[{member}]")),
            ["collection"],
            "{member}"
        );
    }
    assert_eq!(connector("[o/r]", "o/r"), ["collection"]);
    assert_eq!(
        connector("{repositories: [o/r]}", "{others: [o/r]}"),
        ["no-collection"]
    );
    assert_eq!(connector("type: url", "type: object"), ["trigger"]);
    // No number is rounded into a grant
    for (number, sound) in [
        ("9007199254740991", true),
        ("9007199254740993", false),
        ("12345678901234567890123", false),
        ("0.1000000000000000055511151231257827", false),
        ("1e400", false),
        ("1.10", true),
    ] {
        let wanted: &[&str] = if sound { &[] } else { &["collection"] };
        assert_eq!(
            connector("[o/r]", &format!("[{number}]")),
            wanted,
            "{number}"
        );
    }
}

#[test]
fn cs_8_10_a_selected_trigger_without_fixed_origins_fails() {
    let line = "        resourceOrigins: [\"https://github.com\"]\n";
    let plain = DECLARED.replace(", url: {pointer: /issue/html_url, type: url}", "");
    assert!(compile(&plain, "").diagnostics.is_empty());
    let without = compile(&plain.replace(line, ""), "");
    let codes: Vec<_> = without.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["no-origins"]);
    assert_eq!(connector("[\"https://github.com\"]", "[]"), ["trigger"]);
    assert_eq!(
        connector("[\"https://github.com\"]", "[\"https://github.com/\"]"),
        ["trigger"]
    );
    // Fixed: not an import's to give
    let given = "['${{ github.aw.import-inputs.origin }}']";
    assert!(connector("[\"https://github.com\"]", given).contains(&"trigger"));
}

#[test]
fn cs_8_07_an_unknown_profile_activates_nothing() {
    let compiled = compile(
        &DECLARED.replace("verificationProfile: github", "verificationProfile: githib"),
        "",
    );
    let [found] = compiled.diagnostics.as_slice() else {
        panic!("{:?}", compiled.diagnostics);
    };
    assert_eq!((found.code, found.place.line), ("no-profile", 7));
    assert_eq!(found.hint.as_deref(), Some("did you mean `github`?"));
}

#[test]
fn an_alias_of_a_profile_is_frozen_under_the_profiles_own_id() {
    // The receiver knows its profile by one id, and admits no subscription that names another
    let catalogue = postern_profiles::Catalogue::embedded();
    let profile = catalogue.iter().find(|p| !p.aliases().is_empty()).unwrap();
    let with = |id: &str| {
        let name = format!("verificationProfile: {id}");
        compile(&DECLARED.replace("verificationProfile: github", &name), "")
    };
    let (alias, own) = (with(&profile.aliases()[0]), with(profile.id()));
    assert_eq!(alias.selected[0].subscription.profile, profile.id());
    assert_eq!(alias.selected[0].digest, own.selected[0].digest);
}

#[test]
fn every_fault_of_a_declaration_is_found() {
    let declared = r#"---
connectors:
  mine:
    docs: [http://a.example, "https://b.example", "https://b.example", "https://u:p@c.example"]
    experimental: maybe
    resorces: {}
    resources: {repositories: [o/r]}
    triggers:
      opened:
        verificationProfile: github
        nativeEvents: []
        match: {action: opened, /b: [], /c: 1}
        when: {equals: {pointer: /a}}
        normalize:
          a: {pointer: /a, type: text}
          b: b
          c: {pointer: /c, required: perhaps}
          url: {pointer: /u, type: url, prefix: "https://github.com/{a}"}
        types: {d: string}
        resources: {a: repositories, e: repositories, c: others}
        resourceOrigins: ["https://github.com"]
        filters: {x: {pointer: /x}, y: {pointer: /y, type: url}, z: {pointer: /z, type: string}}
        filtrs: {}
      Closed: {}
import-schema:
  a: {type: text}
  b: {type: array}
  c: {type: string, default: 1, requird: true}
---
"#;
    let compiled = compile(declared, "");
    let mut found: Vec<_> = (compiled.diagnostics.iter())
        .map(|d| {
            let path = d.path.strip_prefix("/connectors/mine").unwrap_or(&d.path);
            (d.place.line, path.to_owned())
        })
        .collect();
    found.sort();
    let wanted: Vec<_> = [
        (4, "/docs/0"),
        (4, "/docs/2"),
        (4, "/docs/3"),
        (5, "/experimental"),
        (6, "/resorces"),
        (11, "/triggers/opened/nativeEvents"),
        (12, "/triggers/opened/match/action"),
        (12, "/triggers/opened/match/~1b"),
        (13, "/triggers/opened/when/equals"),
        (15, "/triggers/opened/normalize/a"),
        (16, "/triggers/opened/normalize/b"),
        (17, "/triggers/opened/normalize/c"),
        (19, "/triggers/opened/types/d"),
        (20, "/triggers/opened/resources/c"),
        (20, "/triggers/opened/resources/e"),
        (22, "/triggers/opened/filters/x"),
        (22, "/triggers/opened/filters/y"),
        (23, "/triggers/opened/filtrs"),
        (24, "/triggers/Closed"),
        (26, "/import-schema/a/type"),
        (27, "/import-schema/b"),
        (28, "/import-schema/c/default"),
        (28, "/import-schema/c/requird"),
    ]
    .map(|(line, path)| (line, path.to_owned()))
    .into();
    assert_eq!(found, wanted);
    assert!(
        compiled
            .diagnostics
            .iter()
            .all(|d| d.file.ends_with("connectors/mine.md"))
    );
}

#[test]
fn cs_2_14_unknown_keys_of_a_trigger_fail_selected_or_not() {
    let other = "      other: {verificationProfile: github, nativeEvents: [a], match: {/a: 1}, normalize: {}, extra: 1}\n---\n";
    let declared = DECLARED.replacen(
        "[\"https://github.com\"]\n---\n",
        &format!("[\"https://github.com\"]\n{other}"),
        1,
    );
    let compiled = compile(&declared, "");
    let codes: Vec<_> = compiled
        .diagnostics
        .iter()
        .map(|d| (d.code, d.place.line))
        .collect();
    assert_eq!(codes, [("trigger", 13)]);
    // Its names come from its place
    assert_eq!(
        connector(
            "        nativeEvents",
            "        connector: other\n        nativeEvents"
        ),
        ["trigger"]
    );
    // A profile that nobody selects may be a later receiver's
    let later = declared
        .replace("github, nativeEvents", "later, nativeEvents")
        .replace(", extra: 1", "");
    assert!(compile(&later, "").diagnostics.is_empty());
}

#[test]
fn cs_2_01_cs_2_02_one_connector_by_its_id_that_declares_something() {
    assert_eq!(
        connector("  mine:", "  Mine:"),
        ["connector-id", "not-imported"][..1]
    );
    for text in [
        "---\na: 1\n---\n",
        "---\nconnectors: {}\n---\n",
        "---\nconnectors: {mine: {}}\n---\n",
        "---\nconnectors: {mine: {triggers: {}}}\n---\n",
        "---\nconnectors: {mine: {docs: []}}\n---\n",
        "---\nconnectors: {mine: {triggers: {}}, other: {triggers: {}}}\n---\n",
        "---\nconnectors: {mine: 1}\n---\n",
    ] {
        let compiled = compile(text, "");
        let codes: Vec<_> = compiled.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["connector"], "{text}");
    }
    // All sections of the specification, which are not judged here
    let sections = "    endpoints: {x: 1}\n    credentials: 1\n    tools: [1]\n    mcp-servers: {y: 2}\n    safe-outputs: {z: 3}\n";
    assert!(connector("    triggers:", &format!("{sections}    triggers:")).is_empty());
    assert_eq!(
        connector("    triggers:", "    context: {}\n    triggers:"),
        ["connector-section"]
    );
}

#[test]
fn cs_2_10_an_experimental_connector_warns_and_weakens_nothing() {
    let compiled = compile(
        &DECLARED.replace("  mine:\n", "  mine:\n    experimental: true\n"),
        "",
    );
    let codes: Vec<_> = compiled.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["experimental"]);
    let plain = compile(DECLARED, "");
    assert_eq!(compiled.selected[0].digest, plain.selected[0].digest);
    // Not where nothing is selected of it: that is said of selections
    assert_eq!(plain.diagnostics, []);
}

#[test]
fn other_selections_of_a_connector_are_said_to_be_left_out() {
    let declared = DECLARED.replace(
        "    triggers:",
        "    tools: {get: {}}\n    safe-outputs: {note: {}}\n    triggers:",
    );
    let mut sources = Sources::default();
    sources.insert(".github/workflows/connectors/mine.md", declared);
    let compile = |more: &str| {
        let mut sources = sources.clone();
        let text = format!(
            "---\non: {{gateway-dispatch: {{mine: [opened]}}}}\nimports: [connectors/mine.md]\n{more}---\n"
        );
        sources.insert(".github/workflows/w.md", text);
        let compiler = Compiler {
            sources: &sources,
            repository: Some("o/r"),
        };
        let compiled = compiler.compile(".github/workflows/w.md");
        assert_eq!(compiled.selected.len(), 1);
        let found = compiled.diagnostics.iter();
        found.map(|d| (d.code, d.place.line)).collect::<Vec<_>>()
    };
    assert_eq!(compile(""), []);
    assert_eq!(
        compile("tools: {other: {}}\nsafe-outputs: {add-comment: {}}\n"),
        []
    );
    assert_eq!(
        compile("tools: {mine: [get]}\nsafe-outputs: {mine-note: {}}\n"),
        [("not-compiled", 4), ("not-compiled", 5)]
    );
}

const SCHEMA: &str = "import-schema:
  repos: {type: array, items: {type: string}, default: []}
  one: {type: string}
  mode: {type: choice, options: [a, b], default: a}
  count: {type: number}
  on: {type: boolean, default: false}
  org: {type: object, properties: {name: {type: string, required: true}, list: {type: array, items: {type: string}, default: [d/d]}}}
---
";

#[test]
fn cs_2_07_bindings_are_typed_without_coercion() {
    let declared = |members: &str| {
        let text = DECLARED.replace("[o/r]", members);
        format!("{}{SCHEMA}", text.trim_end_matches("---\n"))
    };
    let whole = declared("'${{ github.aw.import-inputs.repos }}'");
    for (with, code) in [
        ("repos: [a/b]", None),
        ("repos: a/b", Some("import-binding")),
        ("repos: [1]", Some("import-binding")),
        ("repos: ['1'], mode: b, count: 1.5, on: true", None),
        ("repos: [a/b], mode: c", Some("import-binding")),
        ("repos: [a/b], count: '1'", Some("import-binding")),
        ("repos: [a/b], on: yes", Some("import-binding")),
        ("repos: [a/b], org: {list: []}", Some("import-binding")),
        (
            "repos: [a/b], org: {name: x, nam: y}",
            Some("import-binding"),
        ),
        ("repos: ['a/*']", Some("collection")),
        (
            "repos: ['${{ github.repository }}']",
            Some("import-binding"),
        ),
        (
            "repos: '${{ github.aw.import-inputs.up }}'",
            Some("import-binding"),
        ),
        // CS-2-09: nothing grants nothing
        ("repos: []", Some("nothing-granted")),
        ("one: x", Some("nothing-granted")),
    ] {
        let compiled = compile(&whole, &format!(", with: {{{with}}}"));
        let codes: Vec<_> = compiled.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, Vec::from_iter(code), "{with}");
    }
    let members = |declared: &str, with: &str| {
        let compiled = compile(declared, &format!(", with: {{{with}}}"));
        assert_eq!(compiled.diagnostics, [], "{with}");
        serde_json::to_string(compiled.selected[0].trigger.binding().resources()).unwrap()
    };
    assert_eq!(
        members(&whole, "repos: [a/b, c/d]"),
        r#"{"repositories":["a/b","c/d"]}"#
    );
    // A whole scalar inside a list, a property, its default, and the older spelling
    let inner = declared("['${{ github.aw.import-inputs.one }}', x/y]");
    assert_eq!(
        members(&inner, "one: a/b"),
        r#"{"repositories":["a/b","x/y"]}"#
    );
    let listed = declared("'${{ github.aw.inputs.org.list }}'");
    assert_eq!(
        members(&listed, "org: {name: x, list: [a/b]}"),
        r#"{"repositories":["a/b"]}"#
    );
    assert_eq!(
        members(&listed, "org: {name: x}"),
        r#"{"repositories":["d/d"]}"#
    );
    // A value is never syntax
    let hostile = "one: 'a/b, evil/repo]'";
    assert_eq!(
        members(&inner, hostile),
        r#"{"repositories":["a/b, evil/repo]","x/y"]}"#
    );
    // A required input without a default
    let required = whole.replace("one: {type: string}", "one: {type: string, required: true}");
    let compiled = compile(&required, ", with: {repos: [a/b]}");
    assert_eq!(compiled.diagnostics[0].code, "import-binding");
}

#[test]
fn cs_2_08_what_looks_like_a_credential_is_refused_and_not_echoed() {
    let declared = DECLARED.replace("[o/r]", "'${{ github.aw.import-inputs.repos }}'");
    let declared = format!("{}{SCHEMA}", declared.trim_end_matches("---\n"));
    // Joined here, so that this file holds none
    for secret in [
        ["ghp", "_0123456789abcdefghijABCDEFGHIJ012345"].concat(),
        ["github_pat", "_11AAAAAAA0aaaaaaaaaaaa"].concat(),
        ["xoxb", "-123456789012-abcdefghijkl"].concat(),
        ["sk_live", "_abcdefghijklmnop1234"].concat(),
        ["eyJ", "hbGciOiJIUzI1NiJ9.e30.abc"].concat(),
        ["-----BEGIN", " PRIVATE KEY-----"].concat(),
    ] {
        for (declared, with) in [
            (
                declared.clone(),
                format!(", with: {{repos: [\"{secret}\"]}}"),
            ),
            (
                DECLARED.replace("[o/r]", &format!("[\"{secret}\"]")),
                String::new(),
            ),
            (
                declared.replace(
                    "one: {type: string}",
                    &format!("one: {{type: string, default: \"{secret}\"}}"),
                ),
                ", with: {repos: [a/b]}".to_owned(),
            ),
        ] {
            let compiled = compile(&declared, &with);
            assert!(compiled.has_errors(), "{with}");
            for found in &compiled.diagnostics {
                let workflow =
                    format!("---\nx\nimports: [{{uses: connectors/mine.md{with}}}]\n---\n");
                for source in [declared.as_str(), &workflow] {
                    assert!(!found.draw(Some(source)).contains(&secret));
                }
                assert!(!serde_json::to_string(found).unwrap().contains(&secret));
            }
        }
    }
    // A name is none
    for name in ["sk-tools/repo", "ghp_x/y", "EXAMPLE_READ_TOKEN"] {
        let compiled = compile(&declared, &format!(", with: {{repos: [\"{name}\"]}}"));
        assert_eq!(compiled.diagnostics, [], "{name}");
    }
}

#[test]
fn cs_2_17_merge_keys_make_the_same_trigger() {
    let shared = DECLARED.replacen(
        "connectors:\n",
        "shared: &shared\n  verificationProfile: github\n  nativeEvents: [pull_request]\nconnectors:\n",
        1,
    );
    let merged = shared.replace(
        "        verificationProfile: github\n",
        "        <<: *shared\n",
    );
    assert_ne!(merged, shared);
    let (merged, plain) = (compile(&merged, ""), compile(DECLARED, ""));
    assert_eq!(merged.diagnostics, []);
    assert_eq!(merged.selected[0].digest, plain.selected[0].digest);
}
