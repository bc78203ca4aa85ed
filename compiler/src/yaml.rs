//! YAML as the compiler takes it: a tree with the place of every node and scalars as they are spelled,
//! within budgets that count aliases and merge keys expanded. Repeated keys, tags, cycles and several
//! documents are errors with their place.

mod scalar;

use std::collections::HashMap;
use std::fmt::Write as _;

use granit_parser::{Event, Marker, Parser, ScalarStyle};
use postern_contract::Document;
use postern_contract::pointer::escape;

use crate::diagnostic::Place;

use self::scalar::{is_null, is_text, quote, scalar};

const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 20_000;
const MAX_ALIASES: usize = 256;

/// One node
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it begins
    pub place: Place,
    /// What it is
    pub value: Value,
}

/// What a node is
#[derive(Clone, Debug)]
pub enum Value {
    /// A scalar; a plain one may be a number, a boolean or null
    Scalar {
        /// Its text
        text: String,
        /// Whether it stands without quotes
        plain: bool,
    },
    /// A sequence
    Sequence(Vec<Node>),
    /// A mapping, in the order of the text
    Mapping(Vec<(Key, Node)>),
}

/// A key of a mapping
#[derive(Clone, Debug)]
pub struct Key {
    /// Where it stands
    pub place: Place,
    /// Its text
    pub text: String,
}

/// A text that the compiler does not take
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotYaml {
    /// Where
    pub place: Place,
    /// What is wrong
    pub message: String,
}

fn place(marker: &Marker) -> Place {
    Place {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// Reads one document. `first_line` is the line of the file on which the text begins, from 1.
pub fn read(text: &str, first_line: usize) -> Result<Node, NotYaml> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
        aliases: 0,
        shift: first_line.saturating_sub(1),
    };
    reader.document()
}

struct Reader<'i> {
    parser: Parser<'i, granit_parser::StrInput<'i>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    aliases: usize,
    shift: usize,
}

impl<'i> Reader<'i> {
    fn place(&self, marker: &Marker) -> Place {
        let mut at = place(marker);
        at.line += self.shift;
        at
    }

    fn next(&mut self) -> Result<(Event<'i>, Place), NotYaml> {
        loop {
            match self.parser.next_event() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok((event, span))) => return Ok((event, self.place(&span.start))),
                Some(Err(e)) => {
                    let at = self.place(e.marker());
                    return Err(NotYaml {
                        place: at,
                        message: format!("not YAML: {}", e.info()),
                    });
                }
                None => return Ok((Event::StreamEnd, Place::default())),
            }
        }
    }

    fn document(&mut self) -> Result<Node, NotYaml> {
        let mut root = None;
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_none() => {
                    let (event, at) = self.next()?;
                    root = Some(if event == Event::DocumentEnd {
                        null(at)
                    } else {
                        self.node(event, at, 1)?
                    });
                }
                Event::StreamEnd => {
                    return Ok(root.unwrap_or_else(|| {
                        null(Place {
                            line: self.shift + 1,
                            column: 1,
                        })
                    }));
                }
                _ => return fail(at, "a second document begins here: want one"),
            }
        }
    }

    fn count(&mut self, at: Place, nodes: usize) -> Result<(), NotYaml> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return fail(at, format!("more than {MAX_NODES} nodes, aliases expanded"));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'i>, at: Place, depth: usize) -> Result<Node, NotYaml> {
        self.count(at, 1)?;
        if depth > MAX_DEPTH {
            return fail(at, format!("deeper than {MAX_DEPTH}"));
        }
        let (value, anchor) = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                return fail(
                    at,
                    "tags are not taken: write the value plainly or in quotes",
                );
            }
            Event::Scalar(text, style, anchor, None) => {
                let plain = style == ScalarStyle::Plain;
                let text = text.into_owned();
                (Value::Scalar { text, plain }, anchor)
            }
            Event::SequenceStart(_, anchor, None) => (self.sequence(depth)?, anchor),
            Event::MappingStart(_, anchor, None) => (self.mapping(depth)?, anchor),
            Event::Alias(id) => {
                self.aliases += 1;
                if self.aliases > MAX_ALIASES {
                    return fail(at, format!("more than {MAX_ALIASES} aliases"));
                }
                let Some(node) = self.anchors.get(&id) else {
                    return fail(at, "an alias cannot stand inside its own anchor");
                };
                let node = node.clone();
                let (size, height) = node.measure();
                if depth + height > MAX_DEPTH {
                    return fail(at, format!("deeper than {MAX_DEPTH}, aliases expanded"));
                }
                self.count(at, size)?;
                return Ok(Node { place: at, ..node });
            }
            _ => return fail(at, "want a value"),
        };
        let node = Node { place: at, value };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, NotYaml> {
        let mut items = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Value::Sequence(items));
            }
            items.push(self.node(event, at, depth + 1)?);
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, NotYaml> {
        let mut members: Vec<(Key, Node)> = Vec::new();
        let mut seen = HashMap::new();
        let mut merge = None;
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key = self.node(event, at, depth + 1)?;
            let Value::Scalar { text, plain } = key.value else {
                return fail(at, "a key is a scalar");
            };
            if let Some(first) = seen.insert(text.clone(), at) {
                return fail(
                    at,
                    format!(
                        "the key `{text}` stands twice, first on line {}",
                        first.line
                    ),
                );
            }
            let (event, value_at) = self.next()?;
            let value = self.node(event, value_at, depth + 1)?;
            if plain && text == "<<" {
                merge = Some(value);
            } else {
                members.push((Key { place: at, text }, value));
            }
        }
        for (key, value) in merge.map_or(Ok(Vec::new()), merged)? {
            // What stands in the mapping itself wins, then what is merged first
            if seen.insert(key.text.clone(), key.place).is_none() {
                members.push((key, value));
            }
        }
        Ok(Value::Mapping(members))
    }
}

/// The members that a merge key brings, in order of precedence
fn merged(node: Node) -> Result<Vec<(Key, Node)>, NotYaml> {
    const WANT: &str = "`<<` takes a mapping, or a list of mappings";
    match node.value {
        Value::Mapping(members) => Ok(members),
        Value::Sequence(items) => {
            let mut all = Vec::new();
            for item in items {
                match item.value {
                    Value::Mapping(mut members) => all.append(&mut members),
                    _ => return fail(item.place, WANT),
                }
            }
            Ok(all)
        }
        Value::Scalar { .. } => fail(node.place, WANT),
    }
}

fn null(place: Place) -> Node {
    Node {
        place,
        value: Value::Scalar {
            text: String::new(),
            plain: true,
        },
    }
}

fn fail<T>(place: Place, message: impl Into<String>) -> Result<T, NotYaml> {
    Err(NotYaml {
        place,
        message: message.into(),
    })
}

impl Node {
    /// Nodes and height of the tree below
    fn measure(&self) -> (usize, usize) {
        let children: Vec<&Node> = match &self.value {
            Value::Scalar { .. } => Vec::new(),
            Value::Sequence(items) => items.iter().collect(),
            Value::Mapping(members) => members.iter().map(|(_, value)| value).collect(),
        };
        children
            .iter()
            .map(|c| c.measure())
            .fold((1, 1), |(n, h), (size, height)| {
                (n + size, h.max(height + 1))
            })
    }

    /// The members of a mapping
    pub fn mapping(&self) -> Option<&[(Key, Node)]> {
        match &self.value {
            Value::Mapping(members) => Some(members),
            _ => None,
        }
    }

    /// The items of a sequence
    pub fn sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The member of a key
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.mapping()?
            .iter()
            .find(|(k, _)| k.text == key)
            .map(|(_, value)| value)
    }

    /// A scalar that is a string
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, plain } if !plain || is_text(text) => Some(text),
            _ => None,
        }
    }

    /// Every scalar below with its JSON Pointer, keys included
    pub(crate) fn scalars(&self, path: &str, visit: &mut impl FnMut(&str, &str)) {
        match &self.value {
            Value::Scalar { text, .. } => visit(path, text),
            Value::Sequence(items) => {
                for (n, item) in items.iter().enumerate() {
                    item.scalars(&format!("{path}/{n}"), visit);
                }
            }
            Value::Mapping(members) => {
                for (key, value) in members {
                    let path = format!("{path}/{}", escape(&key.text));
                    visit(&path, &key.text);
                    value.scalars(&path, visit);
                }
            }
        }
    }

    /// Whether this is null, or nothing at all
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if is_null(text))
    }

    /// JSON text with the exact spelling of numbers
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match &self.value {
            Value::Scalar { text, plain } => out.push_str(&scalar(text, *plain)),
            Value::Sequence(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    item.write_json(out);
                }
                out.push(']');
            }
            Value::Mapping(members) => {
                out.push('{');
                for (n, (key, value)) in members.iter().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    let _ = write!(out, "{}:", quote(&key.text));
                    value.write_json(out);
                }
                out.push('}');
            }
        }
    }

    /// The document that declarations are compiled from
    pub fn document(&self) -> Result<Document, NotYaml> {
        Document::parse(self.to_json().into_bytes().into()).map_err(|e| NotYaml {
            place: self.place,
            message: e.to_string(),
        })
    }

    /// The place of what a JSON Pointer leads to; of the nearest holder where there is nothing
    pub fn locate(&self, pointer: &str) -> Place {
        let mut node = self;
        let mut at = self.place;
        for token in pointer.split('/').skip(1) {
            let (place, next) = match &node.value {
                Value::Mapping(members) => {
                    let name = token.replace("~1", "/").replace("~0", "~");
                    match members.iter().find(|(key, _)| key.text == name) {
                        Some((key, value)) => (key.place, value),
                        None => return at,
                    }
                }
                Value::Sequence(items) => {
                    match token.parse().ok().and_then(|n: usize| items.get(n)) {
                        Some(item) => (item.place, item),
                        None => return at,
                    }
                }
                Value::Scalar { .. } => return at,
            };
            at = place;
            node = next;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<String, String> {
        read(text, 1).map(|n| n.to_json()).map_err(|e| e.message)
    }

    #[test]
    fn scalars_keep_their_spelling() {
        assert_eq!(
            json("[1.10, 9007199254740993, 1E400, 007, 0x10, yes, on, ~, '1', true, -0, 1_000]")
                .unwrap(),
            r#"[1.10,9007199254740993,1E400,"007","0x10","yes","on",null,"1",true,-0,"1_000"]"#
        );
        assert_eq!(
            json("on: {a: &x [1], b: *x}").unwrap(),
            r#"{"on":{"a":[1],"b":[1]}}"#
        );
    }

    #[test]
    fn what_means_two_things_is_refused_with_its_place() {
        for (bad, line, column) in [
            ("a: 1\na: 2", 2, 1),
            ("a: !!str 1", 1, 10),
            ("a: ! 1", 1, 6),
            ("a: 1\n'a': 2", 2, 1),
            ("a: {<<: 1}", 1, 9),
            ("a: {<<: [{b: 1}, c]}", 1, 18),
            ("<<: {a: 1}\n<<: {b: 1}", 2, 1),
            ("a: &x {<<: *x}", 1, 12),
            ("? [a]\n: 1", 1, 3),
            ("a: *x", 1, 4),
            ("a: 1\n---\nb: 2", 2, 1),
            ("a: &x [*x]", 1, 8),
            ("[a, b", 1, 1),
        ] {
            let got = read(bad, 1).unwrap_err();
            assert_eq!(
                (got.place.line, got.place.column),
                (line, column),
                "{bad}: {}",
                got.message
            );
        }
    }

    #[test]
    fn cs_2_17_anchors_aliases_and_merge_keys_work() {
        // The mapping's own members win, wherever `<<` stands; then what is merged first
        for (text, wanted) in [
            (
                "b: &b {x: 1, y: 2}\na: {<<: *b, y: 3}",
                r#"{"b":{"x":1,"y":2},"a":{"y":3,"x":1}}"#,
            ),
            (
                "b: &b {y: 2}\na: {y: 3, <<: *b}",
                r#"{"b":{"y":2},"a":{"y":3}}"#,
            ),
            (
                "a: {<<: [{x: 1}, {x: 2, y: '2'}], z: 3}",
                r#"{"a":{"z":3,"x":1,"y":"2"}}"#,
            ),
            // Merged members are merged on
            (
                "c: &c {x: 1}\nb: &b {<<: *c}\na: {<<: *b}",
                r#"{"c":{"x":1},"b":{"x":1},"a":{"x":1}}"#,
            ),
            // Quoting and the order of lists stay; a quoted `<<` is a key as any other
            (
                "b: &b ['1', 1, 1.10]\na: *b",
                r#"{"b":["1",1,1.10],"a":["1",1,1.10]}"#,
            ),
            ("'<<': {a: 1}", r#"{"<<":{"a":1}}"#),
        ] {
            assert_eq!(json(text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn a_pointer_leads_to_its_place() {
        let root = read("a: 1\nb/c:\n  - x\n  - {d~: [1,\n    2]}\n", 2).unwrap();
        let at = |pointer: &str| {
            let place = root.locate(pointer);
            (place.line, place.column)
        };
        assert_eq!(at("/a"), (2, 1));
        assert_eq!(at("/b~1c/1/d~0/1"), (6, 5));
        // What is not there is looked for at its holder
        assert_eq!(at("/b~1c/1/e"), (5, 5));
    }

    #[test]
    fn bombs_are_refused_by_count() {
        // Merging counts what it brings in
        let many: String = (0..100).map(|n| format!("k{n}: v, ")).collect();
        let merges = vec!["*a"; 255].join(", ");
        let merged = format!("a: &a {{{many}}}\nb: {{<<: [{merges}]}}");
        assert!(json(&merged).unwrap_err().contains("more than 20000 nodes"));
        // 257 aliases of next to nothing
        let aliases = format!("a: &a 1\nb: [{}]", vec!["*a"; 257].join(","));
        assert!(
            json(&aliases)
                .unwrap_err()
                .contains("more than 256 aliases")
        );
        // Deep by aliases alone: 40 levels inside 40 levels
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(40), "]".repeat(40));
        let deep = format!("a: &a {}\nb: {}", deep("1"), deep("*a"));
        assert!(json(&deep).unwrap_err().contains("deeper than 64"));
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for n in 1..9 {
            let line = format!(
                "a{n}: &a{n} [{}]\n",
                vec![format!("*a{}", n - 1); 9].join(",")
            );
            bomb.push_str(&line);
        }
        assert!(json(&bomb).unwrap_err().contains("more than"));
        assert!(json(&"[".repeat(5_000)).is_err());
        assert!(json(&"- ".repeat(5_000)).is_err());
    }
}
