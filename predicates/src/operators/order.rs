//! `compare` orders numbers exactly; `before` and `after` order instants to the nanosecond.

use std::cmp::Ordering;

use postern_contract::{Pointer, Resolution, Value};

use crate::declaration::{Literal, literal, need, one_of, pointer, shape};
use crate::instant::Instant;
use crate::invalid::Invalid;
use crate::number::Number;
use crate::predicate::{Compiler, Node, Operate, Tracer, Truth, Verdict};

type Holds = fn(Ordering) -> bool;

const COMPARISONS: &[(&str, Holds)] = &[
    ("lt", Ordering::is_lt),
    ("lte", Ordering::is_le),
    ("gt", Ordering::is_gt),
    ("gte", Ordering::is_ge),
];

#[derive(Debug)]
struct Compare {
    pointer: Pointer,
    holds: Holds,
    /// In the declared spelling
    value: Box<str>,
}

#[derive(Debug)]
struct InTime {
    pointer: Pointer,
    wanted: Ordering,
    value: Instant,
}

pub(super) fn compare(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer", "op", "value"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    let holds = one_of(need(operand, "op", path)?, COMPARISONS, path)?;
    match literal(need(operand, "value", path)?, path)? {
        Literal::Number(value) => Ok(Node::new(
            node,
            Compare {
                pointer,
                holds,
                value,
            },
        )),
        _ => Err(Invalid::at(path, "`value` is a number")),
    }
}

pub(super) fn before(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    in_time(operand, node, path, Ordering::Less)
}

pub(super) fn after(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    in_time(operand, node, path, Ordering::Greater)
}

fn in_time(operand: Value<'_>, node: &str, path: &str, wanted: Ordering) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer", "value"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    let value = match literal(need(operand, "value", path)?, path)? {
        Literal::String(text) => Instant::read(&text),
        _ => None,
    };
    let value = value.ok_or_else(|| Invalid::at(path, "`value` is an RFC 3339 instant"))?;
    Ok(Node::new(
        node,
        InTime {
            pointer,
            wanted,
            value,
        },
    ))
}

fn resolved<'v>(root: Value<'v>, pointer: &Pointer) -> Option<Value<'v>> {
    match root.resolve(pointer) {
        Resolution::Resolved(value) => Some(value),
        Resolution::Absent | Resolution::Unreachable => None,
    }
}

impl Operate for Compare {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        let number = resolved(root, &self.pointer).and_then(Value::number_text);
        Verdict {
            truth: number.map_or(Truth::Unknown, |text| {
                Truth::of((self.holds)(
                    Number::read(text).cmp(&Number::read(&self.value)),
                ))
            }),
            at: self.pointer.as_str(),
        }
    }
}

impl Operate for InTime {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        let instant = resolved(root, &self.pointer)
            .and_then(Value::as_str)
            .and_then(Instant::read);
        Verdict {
            truth: instant.map_or(Truth::Unknown, |instant| {
                Truth::of(instant.cmp(&self.value) == self.wanted)
            }),
            at: self.pointer.as_str(),
        }
    }
}
