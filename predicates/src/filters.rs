//! Filters: what a consumer may choose of a trigger's events. A chosen filter only narrows: it is asked
//! after everything else, and can only turn a match into a nonmatch.

use std::collections::BTreeMap;

use postern_contract::pointer::Pointer;
use postern_contract::{Document, FilterChoice, Value};

use crate::declaration::{
    Literal, MAX_VALUES, below, members, need, one_of, one_or_more, pointer, shape, utf16,
};
use crate::invalid::Invalid;
use crate::nonmatch::{Nonmatch, Reason};
use crate::operators::{All, Item, OneOf, Quantifier};
use crate::predicate::{Node, Predicate, Truth};
use crate::projection::Star;
use crate::trigger::Match;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterType {
    String,
    Integer,
    Number,
    Boolean,
}

const TYPES: &[(&str, FilterType)] = &[
    ("string", FilterType::String),
    ("integer", FilterType::Integer),
    ("number", FilterType::Number),
    ("boolean", FilterType::Boolean),
];

/// A filter that a trigger offers
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pointer: Pointer,
    kind: FilterType,
}

pub(crate) type Filters = BTreeMap<String, Filter>;

/// A trigger's `filters`
pub(crate) fn filters(value: Value<'_>, path: &str) -> Result<Filters, Invalid> {
    let mut filters = Filters::new();
    for (name, value) in members(value, path)? {
        let path = below(path, name);
        shape(value, &path, &["pointer", "type"], &[])?;
        let pointer = pointer(need(value, "pointer", &path)?, &path)?;
        if pointer.wildcards() > 1 {
            return Err(Invalid::at(&path, "a pointer holds at most one `*`"));
        }
        let kind = one_of(need(value, "type", &path)?, TYPES, &path)?;
        filters.insert(name.to_owned(), Filter { pointer, kind });
    }
    Ok(filters)
}

/// The filters that one consumer chose
#[derive(Debug)]
pub struct ChosenFilters(Option<Predicate>);

impl ChosenFilters {
    /// Lowers choices to one predicate, in the order of their names
    pub(crate) fn new(
        offered: &Filters,
        mut chosen: Vec<(String, Choice<'_>)>,
    ) -> Result<Self, Invalid> {
        chosen.sort_by(|(a, _), (b, _)| utf16(a, b));
        let mut nodes = Vec::with_capacity(chosen.len());
        for (name, choice) in chosen {
            let path = below("/filters_chosen", &name);
            let Some(filter) = offered.get(&name) else {
                let names: Vec<&str> = offered.keys().map(String::as_str).collect();
                return Err(Invalid::at(
                    &path,
                    format!(
                        "no filter `{name}`: the trigger offers {}",
                        names.join(", ")
                    ),
                ));
            };
            nodes.push(lower(filter, choice.literals(&path)?, &path)?);
        }
        if nodes.is_empty() {
            return Ok(Self(None));
        }
        Ok(Self(Some(Predicate(Node::new(
            "/filters_chosen",
            All(nodes),
        )))))
    }

    /// Whether the consumer wants this match
    pub fn admit(&self, body: &Document, _: &Match) -> Result<(), Nonmatch> {
        let Some(predicate) = &self.0 else {
            return Ok(());
        };
        let verdict = predicate.verdict(body.root(), &mut None);
        match verdict.truth {
            Truth::True => Ok(()),
            Truth::False | Truth::Unknown => Err(Nonmatch::at(Reason::FilterNotTrue, verdict.at)),
        }
    }
}

/// A choice as a frozen subscription or a declaration spells it
pub(crate) enum Choice<'a> {
    Frozen(&'a FilterChoice),
    Declared(Value<'a>),
}

impl Choice<'_> {
    fn literals(&self, path: &str) -> Result<Vec<Literal>, Invalid> {
        match self {
            Self::Declared(value) => one_or_more(*value, path),
            Self::Frozen(FilterChoice::One(scalar)) => Ok(vec![Literal::of(scalar).checked(path)?]),
            Self::Frozen(FilterChoice::AnyOf(scalars)) => {
                if !(1..=MAX_VALUES).contains(&scalars.len()) {
                    return Err(Invalid::at(path, format!("want 1 to {MAX_VALUES} scalars")));
                }
                (scalars.iter())
                    .map(|scalar| Literal::of(scalar).checked(path))
                    .collect()
            }
        }
    }
}

fn lower(filter: &Filter, values: Vec<Literal>, path: &str) -> Result<Node, Invalid> {
    let fits = |value: &Literal| match filter.kind {
        FilterType::String => matches!(value, Literal::String(_)),
        FilterType::Boolean => matches!(value, Literal::Boolean(_)),
        FilterType::Number => matches!(value, Literal::Number { .. }),
        FilterType::Integer => value.is_integer(),
    };
    if !values.iter().all(fits) {
        let kind = TYPES.iter().find(|(_, kind)| *kind == filter.kind);
        let kind = kind.map_or("", |(name, _)| name);
        return Err(Invalid::at(path, format!("this filter is of type {kind}")));
    }
    let Some(star) = Star::of(&filter.pointer) else {
        let pointer = filter.pointer.clone();
        return Ok(Node::new(path, OneOf { pointer, values }));
    };
    let pointer = star.rest;
    Ok(Node::new(
        path,
        Item {
            pointer: star.container,
            quantifier: Quantifier::Some,
            child: Node::new(path, OneOf { pointer, values }),
        },
    ))
}
