//! `prefix`, `suffix`, `contains` and `matches`: tests of a string, code point by code point. Anything but
//! a string shows nothing.

use postern_contract::{Pointer, Resolution, Value};

use crate::declaration::{Literal, literal, need, pointer, shape};
use crate::invalid::Invalid;
use crate::pattern::Pattern;
use crate::predicate::{Compiler, Node, Operate, Tracer, Truth, Verdict};

#[derive(Debug)]
enum Test {
    Prefix(Box<str>),
    Suffix(Box<str>),
    Contains(Box<str>),
    Matches(Box<Pattern>),
}

#[derive(Debug)]
struct Text {
    pointer: Pointer,
    test: Test,
}

pub(super) fn prefix(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    compile(operand, node, path, Test::Prefix)
}

pub(super) fn suffix(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    compile(operand, node, path, Test::Suffix)
}

pub(super) fn contains(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    compile(operand, node, path, Test::Contains)
}

fn compile(
    operand: Value<'_>,
    node: &str,
    path: &str,
    test: fn(Box<str>) -> Test,
) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer", "value"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    match literal(need(operand, "value", path)?, path)? {
        Literal::String(value) => Ok(Node::new(
            node,
            Text {
                pointer,
                test: test(value),
            },
        )),
        _ => Err(Invalid::at(path, "`value` is a string")),
    }
}

pub(super) fn matches(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer", "pattern"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    let pattern = need(operand, "pattern", path)?
        .as_str()
        .ok_or_else(|| Invalid::at(path, "`pattern` is a string"))?;
    let pattern =
        Pattern::new(pattern).map_err(|e| Invalid::at(path, format!("the pattern: {e}")))?;
    let test = Test::Matches(Box::new(pattern));
    Ok(Node::new(node, Text { pointer, test }))
}

impl Operate for Text {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        let text = match root.resolve(&self.pointer) {
            Resolution::Resolved(value) => value.as_str(),
            Resolution::Absent | Resolution::Unreachable => None,
        };
        Verdict {
            truth: text.map_or(Truth::Unknown, |text| {
                Truth::of(match &self.test {
                    Test::Prefix(value) => text.starts_with(&**value),
                    Test::Suffix(value) => text.ends_with(&**value),
                    Test::Contains(value) => {
                        memchr::memmem::find(text.as_bytes(), value.as_bytes()).is_some()
                    }
                    Test::Matches(pattern) => pattern.is_match(text),
                })
            }),
            at: self.pointer.as_str(),
        }
    }
}
