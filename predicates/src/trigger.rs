//! A trigger: its declaration checked and compiled, frozen with the profile's digest and its grants into
//! one RFC 8785 document, and evaluated in the contract's order of work. Evaluating never reads the
//! declaration again.

mod compile;
mod freeze;

use std::collections::BTreeMap;

use bytes::Bytes;
use postern_contract::{Digest, Document, FieldValue, FilterChoice, Scalar, Value};
use serde::Serialize;

use crate::binding::Binding;
use crate::declaration::{members, utf16};
use crate::filters::{Choice, ChosenFilters, Filters};
use crate::invalid::Invalid;
use crate::nonmatch::{Nonmatch, Reason};
use crate::predicate::{Predicate, TraceLine, Tracer, Truth};
use crate::projection::{self, Fields};

pub use freeze::NotATrigger;

/// A frozen trigger
#[derive(Debug)]
pub struct Trigger {
    rules: Rules,
    profile_digest: Digest,
    binding: Binding,
    binding_digest: Digest,
    /// Of everything but the grants
    rules_digest: Digest,
    document: Bytes,
    digest: Digest,
}

/// What a declaration says
#[derive(Debug)]
struct Rules {
    connector: String,
    trigger: String,
    profile: String,
    native_events: Vec<String>,
    matches: Predicate,
    when: Option<Predicate>,
    variants: Option<Vec<Variant>>,
    fields: Fields,
    /// Field and collection, in UTF-16 order of fields
    resources: Vec<(String, String)>,
    origins: Vec<String>,
    filters: Filters,
}

#[derive(Debug)]
struct Variant {
    name: String,
    matches: Option<Predicate>,
    when: Option<Predicate>,
    fields: Fields,
}

/// What a trigger says of one delivery
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It matches
    Match(Match),
    /// It does not
    Nonmatch(Nonmatch),
}

/// A match with its projection: only [`Trigger::decide`] makes one
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    variant: Option<String>,
    fields: BTreeMap<String, FieldValue>,
}

impl Match {
    /// The variant that matched, where the trigger declares variants
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }
    /// The projection
    pub fn fields(&self) -> &BTreeMap<String, FieldValue> {
        &self.fields
    }
}

/// What each node of a trigger's predicates gave
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Trace(pub Vec<TraceLine>);

impl Trigger {
    /// What this trigger says of a delivery; stops at the first reason
    pub fn decide(&self, native_event: &str, body: &Document) -> Decision {
        match self.rules.decide(&self.binding, native_event, body) {
            Ok(found) => Decision::Match(found),
            Err(why) => Decision::Nonmatch(why),
        }
    }

    /// The decision, and what every node of every predicate gave, whether or not it decided
    pub fn explain(&self, native_event: &str, body: &Document) -> (Decision, Trace) {
        let mut lines = Vec::new();
        let mut note = |predicate: Option<&Predicate>| {
            if let Some(predicate) = predicate {
                predicate.verdict(body.root(), &mut Some(&mut lines));
            }
        };
        note(Some(&self.rules.matches));
        note(self.rules.when.as_ref());
        for variant in self.rules.variants.iter().flatten() {
            note(variant.matches.as_ref());
            note(variant.when.as_ref());
        }
        (self.decide(native_event, body), Trace(lines))
    }

    /// Checks a subscription's chosen filters against those that the trigger offers
    pub fn choose(
        &self,
        chosen: &BTreeMap<String, FilterChoice>,
    ) -> Result<ChosenFilters, Invalid> {
        let chosen = (chosen.iter())
            .map(|(name, choice)| (name.clone(), Choice::Frozen(choice)))
            .collect();
        ChosenFilters::new(&self.rules.filters, chosen)
    }

    /// The same for choices as a declaration spells them
    pub fn choose_declared(&self, chosen: Value<'_>) -> Result<ChosenFilters, Invalid> {
        let chosen = members(chosen, "/filters_chosen")?
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Choice::Declared(value)))
            .collect();
        ChosenFilters::new(&self.rules.filters, chosen)
    }

    /// The connector that declares it
    pub fn connector(&self) -> &str {
        &self.rules.connector
    }
    /// Its name
    pub fn trigger(&self) -> &str {
        &self.rules.trigger
    }
    /// The id of the verification profile
    pub fn profile(&self) -> &str {
        &self.rules.profile
    }
    /// The digest of the verification profile
    pub fn profile_digest(&self) -> Digest {
        self.profile_digest
    }
    /// The native events that it looks at
    pub fn native_events(&self) -> &[String] {
        &self.rules.native_events
    }
    /// The names of the filters that it offers
    pub fn filters(&self) -> impl Iterator<Item = &str> {
        self.rules.filters.keys().map(String::as_str)
    }
    /// Its grants and origins
    pub fn binding(&self) -> &Binding {
        &self.binding
    }
    /// Their digest
    pub fn binding_digest(&self) -> Digest {
        self.binding_digest
    }
    /// The frozen document, in RFC 8785 form
    pub fn document(&self) -> &Bytes {
        &self.document
    }
    /// Its digest
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// What a declaration makes of a delivery before grants and URLs are judged
pub(crate) struct Evidence<'t> {
    variant: Option<&'t Variant>,
    fields: &'t Fields,
    values: BTreeMap<String, FieldValue>,
}

impl Evidence<'_> {
    /// The projection so far
    pub(crate) fn values(&self) -> &BTreeMap<String, FieldValue> {
        &self.values
    }
}

/// The steps of [`Trigger::decide`] apart, for those who share some of them
impl Trigger {
    pub(crate) fn read(
        &self,
        native_event: &str,
        body: &Document,
    ) -> Result<Evidence<'_>, Nonmatch> {
        self.rules.read(native_event, body)
    }
    pub(crate) fn granted(&self, values: &BTreeMap<String, FieldValue>) -> Result<(), Nonmatch> {
        self.rules.grant(&self.binding, values)
    }
    pub(crate) fn identified(&self, evidence: Evidence<'_>) -> Result<Match, Nonmatch> {
        self.rules.identify(evidence)
    }
    /// Field and collection of every resource
    pub(crate) fn resources(&self) -> &[(String, String)] {
        &self.rules.resources
    }
    /// The digest of everything but the grants
    pub(crate) fn rules_digest(&self) -> Digest {
        self.rules_digest
    }
}

impl Rules {
    /// Section 6, in its order
    fn decide(
        &self,
        binding: &Binding,
        native_event: &str,
        body: &Document,
    ) -> Result<Match, Nonmatch> {
        let evidence = self.read(native_event, body)?;
        self.grant(binding, &evidence.values)?;
        self.identify(evidence)
    }

    /// Steps 1 to 5: the event, ambiguity, `match` and `when`, the variant, the projection
    fn read(&self, native_event: &str, body: &Document) -> Result<Evidence<'_>, Nonmatch> {
        if !self.native_events.iter().any(|event| event == native_event) {
            return Err(Nonmatch {
                reason: Reason::EventNotListed,
                at: None,
            });
        }
        if let Some(at) = body.repeated_key() {
            return Err(Nonmatch::at(Reason::AmbiguousEvidence, at));
        }
        let root = body.root();
        demand(&self.matches, root, Reason::MatchNotTrue, &mut None)?;
        if let Some(when) = &self.when {
            demand(when, root, Reason::WhenNotTrue, &mut None)?;
        }
        let variant = match &self.variants {
            Some(variants) => Some(the_variant(variants, root)?),
            None => None,
        };
        let fields = variant.map_or(&self.fields, |variant| &variant.fields);
        Ok(Evidence {
            variant,
            fields,
            values: projection::project(fields, root)?,
        })
    }

    /// Step 7: URLs are what and where they say
    fn identify(&self, evidence: Evidence<'_>) -> Result<Match, Nonmatch> {
        let mut fields = evidence.values;
        projection::identify(evidence.fields, &self.origins, &mut fields)?;
        Ok(Match {
            variant: evidence.variant.map(|variant| variant.name.clone()),
            fields,
        })
    }

    /// Every resource is a member of its collection, exactly
    fn grant(
        &self,
        binding: &Binding,
        values: &BTreeMap<String, FieldValue>,
    ) -> Result<(), Nonmatch> {
        for (field, collection) in &self.resources {
            let granted = binding.members(collection);
            let held: &[Scalar] = match values.get(field) {
                Some(FieldValue::Scalar(scalar)) => std::slice::from_ref(scalar),
                Some(FieldValue::List(list)) => list,
                None => &[],
            };
            if held.is_empty() || !held.iter().all(|item| granted.contains(item)) {
                return Err(Nonmatch::at(Reason::ResourceNotGranted, field));
            }
        }
        Ok(())
    }
}

fn demand(
    predicate: &Predicate,
    root: Value<'_>,
    reason: Reason,
    trace: &mut Tracer<'_>,
) -> Result<(), Nonmatch> {
    let verdict = predicate.verdict(root, trace);
    match verdict.truth {
        Truth::True => Ok(()),
        Truth::False | Truth::Unknown => Err(Nonmatch::at(reason, verdict.at)),
    }
}

/// The one variant that matches
fn the_variant<'v>(variants: &'v [Variant], root: Value<'_>) -> Result<&'v Variant, Nonmatch> {
    let holds = |predicate: &Option<Predicate>| {
        (predicate.as_ref()).is_none_or(|p| p.evaluate(root) == Truth::True)
    };
    let mut matching = (variants.iter()).filter(|v| holds(&v.matches) && holds(&v.when));
    let first = matching.next().ok_or(Nonmatch {
        reason: Reason::NoVariant,
        at: None,
    })?;
    match matching.next() {
        Some(second) => Err(Nonmatch::at(Reason::AmbiguousVariant, &second.name)),
        None => Ok(first),
    }
}

/// Field and collection, in the order in which they are judged
fn in_order(mut resources: Vec<(String, String)>) -> Vec<(String, String)> {
    resources.sort_by(|(a, _), (b, _)| utf16(a, b));
    resources
}
