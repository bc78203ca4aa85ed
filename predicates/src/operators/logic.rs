//! `all`, `any` and `not`.

use postern_contract::Value;

use crate::invalid::Invalid;
use crate::predicate::{Compiler, MAX_CHILDREN, Node, Operate, Tracer, Truth, Verdict};

#[derive(Debug)]
pub(crate) struct All(pub(crate) Vec<Node>);

#[derive(Debug)]
struct Any(Vec<Node>);

#[derive(Debug)]
struct Not(Node);

pub(super) fn all(
    compiler: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    depth: usize,
) -> Result<Node, Invalid> {
    children(compiler, operand, path, depth).map(|children| Node::new(node, All(children)))
}

pub(super) fn any(
    compiler: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    depth: usize,
) -> Result<Node, Invalid> {
    children(compiler, operand, path, depth).map(|children| Node::new(node, Any(children)))
}

pub(super) fn not(
    compiler: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    depth: usize,
) -> Result<Node, Invalid> {
    let child = compiler.node(operand, path, depth + 1)?;
    Ok(Node::new(node, Not(child)))
}

fn children(
    compiler: &mut Compiler,
    operand: Value<'_>,
    path: &str,
    depth: usize,
) -> Result<Vec<Node>, Invalid> {
    let items = operand
        .items()
        .filter(|_| (1..=MAX_CHILDREN).contains(&operand.len()))
        .ok_or_else(|| Invalid::at(path, format!("want 1 to {MAX_CHILDREN} children")))?;
    items
        .enumerate()
        .map(|(n, child)| compiler.node(child, &format!("{path}/{n}"), depth + 1))
        .collect()
}

/// The first child with the `deciding` value decides, else the first unknown, else the first. Without a
/// trace nothing is evaluated past the one that decides.
fn decide<'p>(
    children: &'p [Node],
    deciding: Truth,
    root: Value<'_>,
    trace: &mut Tracer<'_>,
) -> Verdict<'p> {
    let mut decided = None;
    let mut unknown = None;
    let mut first = None;
    for child in children {
        let verdict = child.evaluate(root, trace);
        if verdict.truth == deciding {
            decided = decided.or(Some(verdict));
            if trace.is_none() {
                break;
            }
        } else if verdict.truth == Truth::Unknown {
            unknown = unknown.or(Some(verdict));
        } else {
            first = first.or(Some(verdict));
        }
    }
    decided.or(unknown).or(first).unwrap_or(Verdict {
        // No children: `match` and the bounds let this happen nowhere
        truth: Truth::Unknown,
        at: "",
    })
}

impl Operate for All {
    fn evaluate<'p>(&'p self, root: Value<'_>, trace: &mut Tracer<'_>) -> Verdict<'p> {
        decide(&self.0, Truth::False, root, trace)
    }
}

impl Operate for Any {
    fn evaluate<'p>(&'p self, root: Value<'_>, trace: &mut Tracer<'_>) -> Verdict<'p> {
        decide(&self.0, Truth::True, root, trace)
    }
}

impl Operate for Not {
    fn evaluate<'p>(&'p self, root: Value<'_>, trace: &mut Tracer<'_>) -> Verdict<'p> {
        let verdict = self.0.evaluate(root, trace);
        Verdict {
            truth: verdict.truth.not(),
            at: verdict.at,
        }
    }
}
