//! `equals`, `in`, `same` and `transition`: exact equality of scalars, with literals or with each other.

use postern_contract::{Pointer, Resolution, Value};

use crate::declaration::{self, Literal, literal, literals, need, pointer, shape};
use crate::invalid::Invalid;
use crate::predicate::{Compiler, Node, Operate, Tracer, Truth, Verdict};

/// `equals` and `in`, and what `match` and chosen filters are lowered to
#[derive(Debug)]
pub(crate) struct OneOf {
    pub(crate) pointer: Pointer,
    pub(crate) values: Vec<Literal>,
}

#[derive(Debug)]
struct Same {
    left: Pointer,
    right: Pointer,
}

#[derive(Debug)]
struct Transition {
    from: Pointer,
    to: Pointer,
    was: Option<Literal>,
    becomes: Option<Literal>,
}

pub(super) fn equals(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer", "value"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    let values = vec![literal(need(operand, "value", path)?, path)?];
    Ok(Node::new(node, OneOf { pointer, values }))
}

pub(super) fn one_of(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer", "values"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    let values = literals(need(operand, "values", path)?, path)?;
    Ok(Node::new(node, OneOf { pointer, values }))
}

pub(super) fn same(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    shape(operand, path, &["left", "right"], &[])?;
    let left = pointer(need(operand, "left", path)?, path)?;
    let right = pointer(need(operand, "right", path)?, path)?;
    Ok(Node::new(node, Same { left, right }))
}

pub(super) fn transition(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    shape(operand, path, &["from", "to"], &["was", "becomes"])?;
    let end = |key| operand.member(key).map(|v| literal(v, path)).transpose();
    let transition = Transition {
        from: pointer(need(operand, "from", path)?, path)?,
        to: pointer(need(operand, "to", path)?, path)?,
        was: end("was")?,
        becomes: end("becomes")?,
    };
    Ok(Node::new(node, transition))
}

impl Operate for OneOf {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        Verdict {
            truth: match root.resolve(&self.pointer) {
                Resolution::Resolved(value) => {
                    Truth::of(declaration::equals_any(&self.values, value))
                }
                Resolution::Absent | Resolution::Unreachable => Truth::Unknown,
            },
            at: self.pointer.as_str(),
        }
    }
}

/// Both ends, where both are scalars; else the end that a verdict of unknown points at
fn scalars<'v, 'p>(
    root: Value<'v>,
    first: &'p Pointer,
    second: &'p Pointer,
) -> Result<(Value<'v>, Value<'v>), Verdict<'p>> {
    let scalar = |pointer: &Pointer| match root.resolve(pointer) {
        Resolution::Resolved(value) if value.is_scalar() => Some(value),
        _ => None,
    };
    let (a, b) = (scalar(first), scalar(second));
    let at = if a.is_some() { second } else { first };
    a.zip(b).ok_or(Verdict {
        truth: Truth::Unknown,
        at: at.as_str(),
    })
}

impl Operate for Same {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        match scalars(root, &self.left, &self.right) {
            Ok((left, right)) => Verdict {
                truth: Truth::of(declaration::same(left, right)),
                at: self.left.as_str(),
            },
            Err(unknown) => unknown,
        }
    }
}

impl Operate for Transition {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        match scalars(root, &self.from, &self.to) {
            Ok((from, to)) => Verdict {
                truth: Truth::of(
                    !declaration::same(from, to)
                        && self.was.as_ref().is_none_or(|was| was.equals(from))
                        && self
                            .becomes
                            .as_ref()
                            .is_none_or(|becomes| becomes.equals(to)),
                ),
                at: self.from.as_str(),
            },
            Err(unknown) => unknown,
        }
    }
}
