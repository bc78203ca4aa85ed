//! `type`: the JSON type of a value; a number is an integer where its exact value has no fraction.

use postern_contract::{Kind, Pointer, Resolution, Value};

use crate::declaration::{need, one_of, pointer, shape};
use crate::invalid::Invalid;
use crate::number::Number;
use crate::predicate::{Compiler, Node, Operate, Tracer, Truth, Verdict};

#[derive(Clone, Copy, Debug)]
enum Is {
    Kind(Kind),
    Integer,
}

const TYPES: &[(&str, Is)] = &[
    ("string", Is::Kind(Kind::String)),
    ("number", Is::Kind(Kind::Number)),
    ("integer", Is::Integer),
    ("boolean", Is::Kind(Kind::Boolean)),
    ("null", Is::Kind(Kind::Null)),
    ("object", Is::Kind(Kind::Object)),
    ("array", Is::Kind(Kind::Array)),
];

#[derive(Debug)]
struct Type {
    pointer: Pointer,
    is: Is,
}

pub(super) fn compile(
    _: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    _: usize,
) -> Result<Node, Invalid> {
    shape(operand, path, &["pointer", "is"], &[])?;
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    let is = one_of(need(operand, "is", path)?, TYPES, path)?;
    Ok(Node::new(node, Type { pointer, is }))
}

impl Operate for Type {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        let truth = match root.resolve(&self.pointer) {
            Resolution::Resolved(value) => Truth::of(match self.is {
                Is::Kind(kind) => value.kind() == kind,
                Is::Integer => value
                    .number_text()
                    .is_some_and(|text| Number::read(text).is_integer()),
            }),
            Resolution::Absent | Resolution::Unreachable => Truth::Unknown,
        };
        Verdict {
            truth,
            at: self.pointer.as_str(),
        }
    }
}
