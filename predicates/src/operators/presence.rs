//! `exists` and `absent`: whether a pointer leads anywhere. A missing parent shows neither.

use postern_contract::{Pointer, Resolution, Value};

use crate::declaration::{need, pointer, shape};
use crate::invalid::Invalid;
use crate::predicate::{Compiler, Node, Operate, Tracer, Truth, Verdict};

#[derive(Debug)]
struct Presence {
    pointer: Pointer,
    resolved: Truth,
}

pub(super) fn exists(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    compile(operand, node, path, Truth::True)
}

pub(super) fn absent(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    compile(operand, node, path, Truth::False)
}

fn compile(operand: Value<'_>, node: &str, path: &str, resolved: Truth) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    Ok(Node::new(node, Presence { pointer, resolved }))
}

impl Operate for Presence {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        Verdict {
            truth: match root.resolve(&self.pointer) {
                Resolution::Resolved(_) => self.resolved,
                Resolution::Absent => self.resolved.not(),
                Resolution::Unreachable => Truth::Unknown,
            },
            at: self.pointer.as_str(),
        }
    }
}
