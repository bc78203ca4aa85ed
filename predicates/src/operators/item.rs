//! `item`: a predicate on each item of an array, with the item as its root. An empty array shows nothing
//! about `every`, for no item gave evidence.

use postern_contract::{Pointer, Resolution, Value};

use crate::declaration::{below, need, pointer, shape};
use crate::invalid::Invalid;
use crate::predicate::{Compiler, Node, Operate, Tracer, Truth, Verdict};

/// The longest array that is looked at
const MAX_ITEMS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    Some,
    Every,
    None,
    One,
}

const QUANTIFIERS: &[(&str, Quantifier)] = &[
    ("some", Quantifier::Some),
    ("every", Quantifier::Every),
    ("none", Quantifier::None),
    ("one", Quantifier::One),
];

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) pointer: Pointer,
    pub(crate) quantifier: Quantifier,
    pub(crate) child: Node,
}

pub(super) fn compile(
    compiler: &mut Compiler,
    operand: Value<'_>,
    node: &str,
    path: &str,
    depth: usize,
) -> Result<Node, Invalid> {
    shape(
        operand,
        path,
        &["pointer"],
        &["some", "every", "none", "one"],
    )?;
    let mut given = (QUANTIFIERS.iter())
        .filter_map(|(name, quantifier)| Some((*name, *quantifier, operand.member(name)?)));
    let (Some((name, quantifier, child)), None) = (given.next(), given.next()) else {
        return Err(Invalid::at(
            path,
            "want exactly one of some, every, none, one",
        ));
    };
    let pointer = pointer(need(operand, "pointer", path)?, path)?;
    let child = compiler.node(child, &below(path, name), depth + 1)?;
    Ok(Node::new(
        node,
        Item {
            pointer,
            quantifier,
            child,
        },
    ))
}

impl Operate for Item {
    fn evaluate<'p>(&'p self, root: Value<'_>, _: &mut Tracer<'_>) -> Verdict<'p> {
        let items = match root.resolve(&self.pointer) {
            Resolution::Resolved(array) if array.len() <= MAX_ITEMS => array.items(),
            _ => None,
        };
        Verdict {
            truth: items.map_or(Truth::Unknown, |items| {
                // A node inside has a value an item: it is not traced
                let values = items.map(|item| self.child.evaluate(item, &mut None).truth);
                quantify(self.quantifier, values)
            }),
            at: self.pointer.as_str(),
        }
    }
}

fn quantify(quantifier: Quantifier, values: impl Iterator<Item = Truth>) -> Truth {
    let (mut trues, mut falses, mut unknowns) = (0_usize, 0_usize, 0_usize);
    for value in values {
        match value {
            Truth::True => trues += 1,
            Truth::False => falses += 1,
            Truth::Unknown => unknowns += 1,
        }
        let settled = match quantifier {
            Quantifier::Some | Quantifier::None => trues > 0,
            Quantifier::Every => falses > 0,
            Quantifier::One => trues > 1,
        };
        if settled {
            break;
        }
    }
    let some = match (trues, unknowns) {
        (1.., _) => Truth::True,
        (0, 1..) => Truth::Unknown,
        (0, 0) => Truth::False,
    };
    match quantifier {
        Quantifier::Some => some,
        Quantifier::None => some.not(),
        Quantifier::Every => match (falses, unknowns, trues) {
            (1.., _, _) => Truth::False,
            (0, 1.., _) | (0, 0, 0) => Truth::Unknown,
            (0, 0, 1..) => Truth::True,
        },
        Quantifier::One => match (trues, unknowns) {
            (2.., _) => Truth::False,
            (_, 1..) => Truth::Unknown,
            (1, 0) => Truth::True,
            (0, 0) => Truth::False,
        },
    }
}
