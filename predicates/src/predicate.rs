//! Predicates: compiled within their bounds, evaluated in three values. Evaluation is total, allocates
//! nothing in proportion to the document, and visits an array item at most once a node.

use postern_contract::Value;
use serde::Serialize;

use crate::declaration::below;
use crate::invalid::Invalid;
use crate::operators;

/// The deepest nesting; the root is 1
const MAX_DEPTH: usize = 8;
/// The most nodes, leaves included
const MAX_NODES: usize = 128;
/// The most children of `all` and `any`, and entries of `match`
pub(crate) const MAX_CHILDREN: usize = 32;

/// One of three values; `Unknown` never becomes `True` by negation
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Truth {
    /// The evidence shows it
    True,
    /// The evidence shows the contrary
    False,
    /// The evidence shows neither
    Unknown,
}

impl Truth {
    pub(crate) fn of(shown: bool) -> Self {
        if shown { Self::True } else { Self::False }
    }
    /// Swaps true and false; unknown stays
    pub(crate) fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
    /// `true`, `false` or `unknown`
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Unknown => "unknown",
        }
    }
}

/// A value, and the pointer of the leaf that decided it
#[derive(Clone, Copy)]
pub(crate) struct Verdict<'p> {
    pub(crate) truth: Truth,
    pub(crate) at: &'p str,
}

/// What one node gave
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceLine {
    /// The node, as a JSON Pointer into the declaration
    pub path: String,
    /// Its value
    pub value: Truth,
}

/// Where the nodes' values go, if anybody asked
pub(crate) type Tracer<'t> = Option<&'t mut Vec<TraceLine>>;

/// What every operator does
pub(crate) trait Operate: Send + Sync + std::fmt::Debug {
    fn evaluate<'p>(&'p self, root: Value<'_>, trace: &mut Tracer<'_>) -> Verdict<'p>;
}

/// One node with its place in the declaration
#[derive(Debug)]
pub(crate) struct Node {
    path: Box<str>,
    operate: Box<dyn Operate>,
}

impl Node {
    pub(crate) fn new(path: &str, operate: impl Operate + 'static) -> Self {
        Self {
            path: path.into(),
            operate: Box::new(operate),
        }
    }

    /// The node's value; with a trace, every node below is evaluated and noted in document order
    pub(crate) fn evaluate<'p>(&'p self, root: Value<'_>, trace: &mut Tracer<'_>) -> Verdict<'p> {
        let slot = trace.as_mut().map(|lines| {
            lines.push(TraceLine {
                path: self.path.to_string(),
                value: Truth::Unknown,
            });
            lines.len() - 1
        });
        let verdict = self.operate.evaluate(root, trace);
        if let (Some(slot), Some(lines)) = (slot, trace.as_mut())
            && let Some(line) = lines.get_mut(slot)
        {
            line.value = verdict.truth;
        }
        verdict
    }
}

/// Counts nodes in document order and holds them to the bounds
pub(crate) struct Compiler {
    nodes: usize,
}

impl Compiler {
    pub(crate) fn new() -> Self {
        Self { nodes: 0 }
    }

    pub(crate) fn node(
        &mut self,
        value: Value<'_>,
        path: &str,
        depth: usize,
    ) -> Result<Node, Invalid> {
        self.nodes += 1;
        if depth > MAX_DEPTH {
            return Err(Invalid::at(path, format!("deeper than {MAX_DEPTH}")));
        }
        if self.nodes > MAX_NODES {
            return Err(Invalid::at(path, format!("more than {MAX_NODES} nodes")));
        }
        let mut members = value
            .members()
            .ok_or_else(|| Invalid::at(path, "a node is an object of one operator"))?;
        let (Some((operator, operand)), None) = (members.next(), members.next()) else {
            return Err(Invalid::at(path, "a node holds exactly one operator"));
        };
        let Some(known) = operators::find(operator) else {
            return Err(Invalid::at(path, operators::unknown(operator)));
        };
        (known.compile)(self, operand, path, &below(path, operator), depth)
    }
}

/// A predicate that has been checked
#[derive(Debug)]
pub struct Predicate(pub(crate) Node);

impl Predicate {
    /// Checks and compiles a predicate
    pub fn compile(value: Value<'_>) -> Result<Self, Invalid> {
        Self::compile_at(value, "")
    }

    pub(crate) fn compile_at(value: Value<'_>, path: &str) -> Result<Self, Invalid> {
        Compiler::new().node(value, path, 1).map(Self)
    }

    /// The value for a document or item
    pub fn evaluate(&self, root: Value<'_>) -> Truth {
        self.0.evaluate(root, &mut None).truth
    }

    /// The value, and what each node gave
    pub fn explain(&self, root: Value<'_>) -> (Truth, Vec<TraceLine>) {
        let mut lines = Vec::new();
        let truth = self.0.evaluate(root, &mut Some(&mut lines)).truth;
        (truth, lines)
    }

    pub(crate) fn verdict<'p>(&'p self, root: Value<'_>, trace: &mut Tracer<'_>) -> Verdict<'p> {
        self.0.evaluate(root, trace)
    }
}
