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

/// Everything but the time of receipt, in the shape that the id is taken of
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    api_version: &'a str,
    kind: &'a str,
    connector: &'a str,
    trigger: &'a str,
    variant: Option<&'a str>,
    fields: &'a BTreeMap<String, FieldValue>,
    source: IdentitySource<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IdentitySource<'a> {
    profile: &'a str,
    profile_digest: &'a str,
    binding: &'a str,
    event: &'a str,
    delivery: &'a str,
    body_sha256: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reprojects: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a str>,
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
        let s = &self.source;
        let identity = Identity {
            api_version: &self.api_version,
            kind: &self.kind,
            connector: &self.connector,
            trigger: &self.trigger,
            variant: self.variant.as_deref(),
            fields: &self.fields,
            source: IdentitySource {
                profile: &s.profile,
                profile_digest: &s.profile_digest,
                binding: &s.binding,
                event: &s.event,
                delivery: &s.delivery,
                body_sha256: &s.body_sha256,
                reprojects: s.reprojects.as_deref(),
                plan: s.plan.as_deref(),
            },
        };
        Ok(Sha256Hex::of(&canonical::to_vec(&identity)?))
    }
}
