//! A trial of one trigger on one delivery, offline: the canonical event or the nonmatch with its reason,
//! and what every node of the predicates gave. It authenticates nothing and activates nothing.

use bytes::Bytes;
use postern_contract::{CanonicalEvent, Document, EventSource, Sha256Hex, Timestamp};
use postern_predicates::{Decision, Nonmatch, Trace, Trigger};
use serde::Serialize;

/// What the trial showed
#[derive(Debug, Serialize)]
pub struct Trial {
    /// Whether the trigger matched
    #[serde(rename = "match")]
    pub matched: bool,
    /// The event that a gateway would make
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<CanonicalEvent>,
    /// Why it did not match
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub nonmatch: Option<Nonmatch>,
    /// What every node gave
    pub trace: Trace,
}

/// The delivery of a trial
pub struct Delivery<'a> {
    /// The native event's name
    pub event: &'a str,
    /// The delivery's id by the provider, where it has one
    pub id: Option<&'a str>,
    /// The body as received
    pub body: &'a Bytes,
    /// The evidence inside it
    pub evidence: Bytes,
    /// When it arrived
    pub received_at: Timestamp,
}

/// Tries `trigger` on a delivery
pub fn run(trigger: &Trigger, delivery: &Delivery<'_>) -> Trial {
    let document = match Document::parse(delivery.evidence.clone()) {
        Ok(document) => document,
        Err(_) => {
            return Trial {
                matched: false,
                event: None,
                nonmatch: Some(Nonmatch::MALFORMED),
                trace: Trace::default(),
            };
        }
    };
    let (decision, trace) = trigger.explain(delivery.event, &document);
    match decision {
        Decision::Nonmatch(why) => Trial {
            matched: false,
            event: None,
            nonmatch: Some(why),
            trace,
        },
        Decision::Match(found) => {
            let body = Sha256Hex::of(delivery.body);
            let made = format!("sha256:{body}");
            let source = EventSource::new(
                trigger.profile(),
                trigger.profile_digest(),
                trigger.binding_digest(),
                delivery.event,
                delivery.id.unwrap_or(&made),
                body,
                delivery.received_at,
            );
            Trial {
                matched: true,
                event: Some(CanonicalEvent::new(
                    trigger.connector(),
                    trigger.trigger(),
                    found.variant(),
                    found.fields().clone(),
                    source,
                )),
                nonmatch: None,
                trace,
            }
        }
    }
}
