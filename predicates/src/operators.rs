//! The registry of operators: one line each feeds the parser, its error messages and the reference.

mod equality;
mod item;
mod kind;
mod logic;
mod order;
mod presence;
mod text;

use postern_contract::Value;

use crate::invalid::Invalid;
use crate::predicate::{Compiler, Node};

pub(crate) use equality::OneOf;
pub(crate) use item::{Item, Quantifier};
pub(crate) use logic::All;

/// Compiles an operand: the node's own path, the operand's path, and the node's depth
type Compile = fn(&mut Compiler, Value<'_>, &str, &str, usize) -> Result<Node, Invalid>;

/// One operator
pub struct Operator {
    /// Its key
    pub name: &'static str,
    /// What it shows, for the reference
    pub about: &'static str,
    pub(crate) compile: Compile,
}

/// Every operator of the contract
pub const OPERATORS: &[Operator] = &[
    Operator {
        name: "all",
        about: "every child is true",
        compile: logic::all,
    },
    Operator {
        name: "any",
        about: "at least one child is true",
        compile: logic::any,
    },
    Operator {
        name: "not",
        about: "swaps true and false",
        compile: logic::not,
    },
    Operator {
        name: "exists",
        about: "the pointer resolves",
        compile: presence::exists,
    },
    Operator {
        name: "absent",
        about: "the last step does not exist",
        compile: presence::absent,
    },
    Operator {
        name: "type",
        about: "the value's JSON type",
        compile: kind::compile,
    },
    Operator {
        name: "equals",
        about: "exact equality with a scalar",
        compile: equality::equals,
    },
    Operator {
        name: "in",
        about: "exact equality with one of several scalars",
        compile: equality::one_of,
    },
    Operator {
        name: "prefix",
        about: "the string begins so",
        compile: text::prefix,
    },
    Operator {
        name: "suffix",
        about: "the string ends so",
        compile: text::suffix,
    },
    Operator {
        name: "contains",
        about: "the string holds this",
        compile: text::contains,
    },
    Operator {
        name: "matches",
        about: "a portable pattern matches in the string",
        compile: text::matches,
    },
    Operator {
        name: "compare",
        about: "exact order of numbers",
        compile: order::compare,
    },
    Operator {
        name: "before",
        about: "an earlier instant",
        compile: order::before,
    },
    Operator {
        name: "after",
        about: "a later instant",
        compile: order::after,
    },
    Operator {
        name: "same",
        about: "two pointers hold equal scalars",
        compile: equality::same,
    },
    Operator {
        name: "transition",
        about: "a change, shown by evidence of both ends",
        compile: equality::transition,
    },
    Operator {
        name: "item",
        about: "a predicate on the items of an array",
        compile: item::compile,
    },
];

pub(crate) fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|operator| operator.name == name)
}

pub(crate) fn unknown(name: &str) -> String {
    let names: Vec<&str> = OPERATORS.iter().map(|o| o.name).collect();
    let name: String = name.chars().take(40).collect();
    let meant = match meant(&name) {
        Some(meant) => format!("did you mean `{meant}`? The operators are"),
        None => "want one of".to_owned(),
    };
    format!("unknown operator `{name}`: {meant} {}", names.join(", "))
}

/// The operator that was most likely meant
fn meant(given: &str) -> Option<&'static str> {
    let near = |o: &Operator| (strsim::damerau_levenshtein(given, o.name), o.name);
    let (distance, name) = OPERATORS.iter().map(near).min()?;
    (distance <= 1 + name.len() / 4 && distance < given.chars().count()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_operator_is_named_and_a_foreign_one_is_not_guessed_at() {
        for (given, wanted) in [
            ("equal", Some("equals")),
            ("eqauls", Some("equals")),
            ("contain", Some("contains")),
            ("transitions", Some("transition")),
            ("ALL", None),
            ("x", None),
            ("", None),
            ("regularExpression", None),
        ] {
            assert_eq!(meant(given), wanted, "{given}");
        }
        assert!(unknown("itme").contains("did you mean `item`?"));
        assert!(unknown(&"long".repeat(1000)).len() < 400);
    }
}
