//! The canonical event (event-predicates/v1, section 7): the few projected fields, where they come from,
//! and the id that one delivery under one binding always gets. It holds no part of the body.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical::{self, NotCanonical};
use crate::{API_VERSION, Digest, Scalar, Sha256Hex, Timestamp};

/// The id of an event: the SHA-256 of its canonical form without the time of receipt
pub type EventId = Sha256Hex;

/// A projected value: a scalar, or a list of at most 100 of them
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FieldValue {
    /// One scalar
    Scalar(Scalar),
    /// The items that one `*` collected
    List(Vec<Scalar>),
}

/// What postern hands on in place of a delivery
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CanonicalEvent {
    /// [`API_VERSION`]
    pub api_version: String,
    /// `CanonicalEvent`
    pub kind: String,
    /// The connector that declares the trigger
    pub connector: String,
    /// The trigger that matched
    pub trigger: String,
    /// The variant that matched, where the trigger declares variants
    pub variant: Option<String>,
    /// The projection
    pub fields: BTreeMap<String, FieldValue>,
    /// The evidence that it was made from
    pub source: EventSource,
}

/// Where an event comes from
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventSource {
    /// The verification profile
    pub profile: String,
    /// Its digest
    pub profile_digest: String,
    /// The digest of the grants and origins that the trigger was frozen with
    pub binding: String,
    /// The native event's name
    pub event: String,
    /// The delivery's id by the provider, else `sha256:<bodySha256>`; `#<item>` follows in a batch
    pub delivery: String,
    /// SHA-256 of the whole body as received
    pub body_sha256: String,
    /// When the delivery arrived; does not count for the id
    pub received_at: String,
    /// The event that this one projects again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reprojects: Option<String>,
    /// The digest of the trigger that a re-projection used
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// The event with its members in the order of RFC 8785; without the time of receipt, the id is taken of it
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ordered<'a> {
    api_version: &'a str,
    connector: &'a str,
    fields: &'a BTreeMap<String, FieldValue>,
    kind: &'a str,
    source: OrderedSource<'a>,
    trigger: &'a str,
    variant: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OrderedSource<'a> {
    binding: &'a str,
    body_sha256: &'a str,
    delivery: &'a str,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
    profile: &'a str,
    profile_digest: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reprojects: Option<&'a str>,
}

impl FieldValue {
    /// Whether every spelling of it is the canonical one: all but numbers, of which whole ones that
    /// binary64 counts
    fn is_plain(&self) -> bool {
        const WHOLE: std::ops::RangeInclusive<i64> = -(1 << 53) + 1..=(1 << 53) - 1;
        let plain = |scalar: &Scalar| match scalar {
            Scalar::Boolean(_) | Scalar::String(_) => true,
            Scalar::Integer(n) => WHOLE.contains(n),
            Scalar::Number(_) => false,
        };
        match self {
            Self::Scalar(scalar) => plain(scalar),
            Self::List(items) => items.iter().all(plain),
        }
    }
}

impl EventSource {
    /// The source of a first projection
    pub fn new(
        profile: &str,
        profile_digest: Digest,
        binding: Digest,
        event: &str,
        delivery: &str,
        body: Sha256Hex,
        received_at: Timestamp,
    ) -> Self {
        Self {
            profile: profile.to_owned(),
            profile_digest: profile_digest.to_string(),
            binding: binding.to_string(),
            event: event.to_owned(),
            delivery: delivery.to_owned(),
            body_sha256: body.to_string(),
            received_at: received_at.to_string(),
            reprojects: None,
            plan: None,
        }
    }
}

impl CanonicalEvent {
    /// An event of this version
    pub fn new(
        connector: &str,
        trigger: &str,
        variant: Option<&str>,
        fields: BTreeMap<String, FieldValue>,
        source: EventSource,
    ) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: "CanonicalEvent".to_owned(),
            connector: connector.to_owned(),
            trigger: trigger.to_owned(),
            variant: variant.map(str::to_owned),
            fields,
            source,
        }
    }

    /// The event's id
    pub fn id(&self) -> Result<EventId, NotCanonical> {
        Ok(Sha256Hex::of(&self.spell(None)?))
    }

    /// The event in its RFC 8785 form
    pub fn document(&self) -> Result<Vec<u8>, NotCanonical> {
        self.spell(Some(&self.source.received_at))
    }

    /// Twice for every event on the data path: where only the order of members is to be seen to, which the
    /// types do, a plain serializer spells the same in a fifth of the time
    fn spell(&self, received_at: Option<&str>) -> Result<Vec<u8>, NotCanonical> {
        let s = &self.source;
        let ordered = Ordered {
            api_version: &self.api_version,
            connector: &self.connector,
            fields: &self.fields,
            kind: &self.kind,
            source: OrderedSource {
                binding: &s.binding,
                body_sha256: &s.body_sha256,
                delivery: &s.delivery,
                event: &s.event,
                plan: s.plan.as_deref(),
                profile: &s.profile,
                profile_digest: &s.profile_digest,
                received_at,
                reprojects: s.reprojects.as_deref(),
            },
            trigger: &self.trigger,
            variant: self.variant.as_deref(),
        };
        // Names sort by UTF-16 there and by UTF-8 here, which is the same for ASCII
        let plain = |(name, value): (&String, &FieldValue)| name.is_ascii() && value.is_plain();
        if self.fields.iter().all(plain) {
            Ok(serde_json::to_vec(&ordered)?)
        } else {
            canonical::to_vec(&ordered)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scalar() -> impl Strategy<Value = Scalar> {
        prop_oneof![
            any::<bool>().prop_map(Scalar::Boolean),
            any::<i64>().prop_map(Scalar::Integer),
            (-100_i64..100).prop_map(Scalar::Integer),
            (-1e300..1e300_f64).prop_map(Scalar::Number),
            any::<String>().prop_map(Scalar::String),
        ]
    }

    fn field() -> impl Strategy<Value = FieldValue> {
        prop_oneof![
            scalar().prop_map(FieldValue::Scalar),
            prop::collection::vec(scalar(), 0..4).prop_map(FieldValue::List),
        ]
    }

    proptest! {
        /// The library spells the value whose members stand in any order: the reference
        #[test]
        fn every_event_is_spelled_as_rfc_8785_says(
            fields in prop::collection::btree_map("[a-z]{1,3}|\\PC{1,2}", field(), 0..5),
            texts in prop::array::uniform8(any::<String>()),
            variant in prop::option::of(any::<String>()),
            again in prop::option::of(any::<String>()),
        ) {
            let [connector, trigger, profile, event, delivery, binding, plan, received_at] = texts;
            let mut one = CanonicalEvent::new(
                &connector,
                &trigger,
                variant.as_deref(),
                fields,
                EventSource {
                    profile,
                    profile_digest: String::new(),
                    binding,
                    event,
                    delivery,
                    body_sha256: "0".to_owned(),
                    received_at,
                    reprojects: again.clone(),
                    plan: again.map(|_| plan),
                },
            );
            let mut value = serde_json::to_value(&one).unwrap();
            let wanted = canonical::to_vec(&value).unwrap();
            prop_assert_eq!(one.document().unwrap(), wanted);
            value["source"].as_object_mut().unwrap().remove("receivedAt");
            let wanted = Sha256Hex::of(&canonical::to_vec(&value).unwrap());
            prop_assert_eq!(one.id().unwrap(), wanted);
            // The time of receipt does not count
            one.source.received_at.push('x');
            prop_assert_eq!(one.id().unwrap(), wanted);
        }
    }
}
