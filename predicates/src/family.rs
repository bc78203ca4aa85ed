//! A family: triggers of one declaration that are bound to different members. What they share is decided
//! once a delivery, and only those that the delivery's own resource leads to are asked for their grants.

use std::collections::HashMap;
use std::sync::Arc;

use postern_contract::{Document, FieldValue, Scalar};

use crate::nonmatch::{Nonmatch, Reason};
use crate::trigger::{Match, Trigger};

/// Triggers whose frozen documents differ in their grants alone
#[derive(Debug)]
pub struct Family {
    members: Vec<Arc<Trigger>>,
    /// The members that a string of the first resource leads to
    by_resource: HashMap<String, Vec<usize>>,
    /// The members that have to be asked whatever the resource is
    others: Vec<usize>,
}

/// What a family says of one delivery. Members are given by their place.
#[derive(Debug, Default, PartialEq)]
pub struct Said {
    /// Those that match
    pub matches: Vec<(usize, Match)>,
    /// One member for all that say the same, how many they are, and what they say
    pub nonmatches: Vec<(usize, usize, Nonmatch)>,
}

impl Family {
    /// Families in the order of their first members
    pub fn group(triggers: impl IntoIterator<Item = Arc<Trigger>>) -> Vec<Self> {
        let mut families: Vec<Vec<Arc<Trigger>>> = Vec::new();
        let mut place = HashMap::new();
        for trigger in triggers {
            let next = families.len();
            let at = *place.entry(trigger.rules_digest()).or_insert(next);
            match families.get_mut(at) {
                Some(family) => family.push(trigger),
                None => families.push(vec![trigger]),
            }
        }
        families.into_iter().map(Self::new).collect()
    }

    fn new(members: Vec<Arc<Trigger>>) -> Self {
        let mut by_resource: HashMap<String, Vec<usize>> = HashMap::new();
        let mut others = Vec::new();
        for (n, member) in members.iter().enumerate() {
            let collection = member.resources().first().map(|(_, collection)| collection);
            let granted = collection
                .map(|c| member.binding().members(c))
                .unwrap_or_default();
            let texts: Option<Vec<&String>> = granted
                .iter()
                .map(|scalar| match scalar {
                    Scalar::String(text) => Some(text),
                    _ => None,
                })
                .collect();
            match texts.filter(|_| collection.is_some()) {
                Some(texts) => texts.into_iter().for_each(|text| {
                    let led = by_resource.entry(text.clone()).or_default();
                    // A collection may name a member twice; it is asked once
                    if led.last() != Some(&n) {
                        led.push(n);
                    }
                }),
                None => others.push(n),
            }
        }
        Self {
            members,
            by_resource,
            others,
        }
    }

    /// The triggers
    pub fn members(&self) -> &[Arc<Trigger>] {
        &self.members
    }

    /// What each member would say alone, found together
    pub fn decide(&self, native_event: &str, body: &Document) -> Said {
        let Some(lead) = self.members.first() else {
            return Said::default();
        };
        let all = |why| Said {
            matches: Vec::new(),
            nonmatches: vec![(0, self.members.len(), why)],
        };
        let evidence = match lead.read(native_event, body) {
            Ok(evidence) => evidence,
            Err(why) => return all(why),
        };
        let first = lead.resources().first();
        let named = match first.and_then(|(field, _)| evidence.values().get(field)) {
            Some(FieldValue::Scalar(Scalar::String(text))) => self.by_resource.get(text),
            // A list, or no string: everybody has to be asked
            Some(_) => return self.each(native_event, body),
            None => None,
        };
        // Both lists are in order and share no member
        let named = named.map(Vec::as_slice).unwrap_or_default();
        let asked = named.iter().chain(&self.others).copied();
        let mut granted = Vec::new();
        let mut refused: Vec<(usize, Nonmatch)> = Vec::new();
        for n in asked {
            let Some(member) = self.members.get(n) else {
                continue;
            };
            match member.granted(evidence.values()) {
                Ok(()) => granted.push(n),
                Err(why) => refused.push((n, why)),
            }
        }
        let mut said = Said::default();
        if !granted.is_empty() {
            match lead.identified(evidence) {
                Ok(found) => said.matches = granted.iter().map(|n| (*n, found.clone())).collect(),
                Err(why) => {
                    let first = granted.first().copied().unwrap_or(0);
                    said.nonmatches.push((first, granted.len(), why));
                }
            }
        }
        said.nonmatches
            .extend(refused.into_iter().map(|(n, why)| (n, 1, why)));
        // One who was asked may say otherwise, so another speaks for those who were not
        let mut unasked = (0..self.members.len())
            .filter(|n| named.binary_search(n).is_err() && self.others.binary_search(n).is_err());
        if let (Some(other), Some((field, _))) = (unasked.next(), first) {
            let why = Nonmatch::at(Reason::ResourceNotGranted, field);
            said.nonmatches.push((other, 1 + unasked.count(), why));
        }
        said
    }

    /// Every member alone
    fn each(&self, native_event: &str, body: &Document) -> Said {
        let mut said = Said::default();
        for (n, member) in self.members.iter().enumerate() {
            match member.decide(native_event, body) {
                crate::Decision::Match(found) => said.matches.push((n, found)),
                crate::Decision::Nonmatch(why) => said.nonmatches.push((n, 1, why)),
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decision;
    use postern_contract::Digest;
    use proptest::prelude::*;

    const DECLARED: &str = r#"{"connector":"c","trigger":"t","verificationProfile":"p","nativeEvents":["e"],
        "match":{"/a":1},"normalize":{"r":"/r","s":"/s","u":{"pointer":"/u","type":"url","required":false}},
        "resources":{"r":"rs","s":"ss"},"resourceOrigins":["https://a"]}"#;

    fn trigger(members: &[Scalar], second: &[Scalar]) -> Arc<Trigger> {
        let declared = Document::parse(DECLARED.into()).unwrap();
        let grants = [
            ("rs".to_owned(), members.to_vec()),
            ("ss".to_owned(), second.to_vec()),
        ]
        .into();
        Arc::new(Trigger::compile(&declared, Digest::of(b""), grants).unwrap())
    }

    fn text(text: &str) -> Scalar {
        Scalar::String(text.to_owned())
    }

    #[test]
    fn a_grant_that_names_a_resource_twice_matches_once() {
        let twice = trigger(&[text("a"), text("b"), text("a"), text("a")], &[text("s")]);
        let family = Family::new(vec![twice]);
        let body = Document::parse(r#"{"a":1,"r":"a","s":"s"}"#.into()).unwrap();
        let said = family.decide("e", &body);
        assert_eq!(said.matches.len(), 1);
        assert_eq!(said.nonmatches, []);
    }

    #[test]
    fn who_speaks_for_the_unasked_was_not_asked() {
        // The first is asked whatever the resource is, and fails at its second grant
        let first = trigger(&[text("a"), Scalar::Integer(1)], &[text("other")]);
        let second = trigger(&[text("b")], &[text("s")]);
        let family = Family::new(vec![first, second]);
        let body = Document::parse(r#"{"a":1,"r":"a","s":"s"}"#.into()).unwrap();
        let why = |field| Nonmatch::at(Reason::ResourceNotGranted, field);
        let said = family.decide("e", &body);
        assert_eq!(said.nonmatches, [(0, 1, why("s")), (1, 1, why("r"))]);
    }

    fn scalar() -> impl Strategy<Value = Scalar> {
        prop_oneof![
            "[ab]".prop_map(Scalar::String),
            (0..3_i64).prop_map(Scalar::Integer),
            any::<bool>().prop_map(Scalar::Boolean),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        /// A family is only a faster way to ask each member alone
        #[test]
        fn says_what_each_member_says_alone(
            grants in proptest::collection::vec(
                (proptest::collection::vec(scalar(), 0..4), proptest::collection::vec(scalar(), 0..3)),
                1..6,
            ),
            event in "[ef]",
            a in 1..3,
            r in prop_oneof![Just("\"a\""), Just("\"b\""), Just("\"c\""), Just("1"), Just("true"), Just("null")],
            s in prop_oneof![Just("\"a\""), Just("\"b\""), Just("2")],
            u in prop_oneof![Just("\"https://a/x\""), Just("\"https://b/x\""), Just("7")],
        ) {
            let triggers: Vec<_> = grants.iter().map(|(r, s)| trigger(r, s)).collect();
            let body = format!("{{\"a\":{a},\"r\":{r},\"s\":{s},\"u\":{u}}}");
            let body = Document::parse(body.into()).unwrap();
            let families = Family::group(triggers.clone());
            prop_assert_eq!(families.len(), 1);
            let said = families[0].decide(&event, &body);
            let mut alone = Vec::new();
            let mut reasons: HashMap<Reason, usize> = HashMap::new();
            for (n, trigger) in triggers.iter().enumerate() {
                match trigger.decide(&event, &body) {
                    Decision::Match(found) => alone.push((n, found)),
                    Decision::Nonmatch(why) => *reasons.entry(why.reason).or_default() += 1,
                }
            }
            let mut matches = said.matches;
            matches.sort_by_key(|(n, _)| *n);
            prop_assert_eq!(matches, alone);
            let mut told: HashMap<Reason, usize> = HashMap::new();
            for (n, count, why) in said.nonmatches {
                *told.entry(why.reason).or_default() += count;
                prop_assert_eq!(triggers[n].decide(&event, &body), Decision::Nonmatch(why));
            }
            prop_assert_eq!(told, reasons);
        }
    }
}
