//! `gh-aw/event-predicates/v1`: declarations compiled within their bounds, predicates evaluated in three
//! values on exact evidence, projection, and freezing into digest-bound documents.
//!
//! Never here: I/O, a clock, a provider's name. Missing or ambiguous evidence is a nonmatch, nothing is
//! fetched and nothing is inferred.

pub mod binding;
pub mod conformance;
mod declaration;
pub mod family;
pub mod filters;
pub mod instant;
pub mod invalid;
pub mod nonmatch;
pub mod number;
pub mod operators;
pub mod pattern;
pub mod predicate;
mod projection;
pub mod trigger;
pub mod url;

pub use binding::{Binding, Resources, Wider};
pub use family::{Family, Said};
pub use filters::ChosenFilters;
pub use invalid::Invalid;
pub use nonmatch::{Nonmatch, Reason};
pub use predicate::{Predicate, TraceLine, Truth};
pub use trigger::{Decision, Match, NotATrigger, Trace, Trigger};
