//! Project: a match becomes a canonical event with its id and its RFC 8785 bytes. The body goes no
//! further than this.

use bytes::Bytes;
use postern_contract::canonical::NotCanonical;
use postern_contract::{CanonicalEvent, EventId, EventSource, Sha256Hex, Timestamp};
use postern_profiles::{Item, Profile};

use crate::candidates::Candidate;
use crate::decide::Matched;

/// A canonical event: made by [`project`] alone
pub struct Projected<'a> {
    matched: Matched<'a>,
    id: EventId,
    document: Bytes,
}

impl<'a> Projected<'a> {
    /// The match that it was made from
    pub fn matched(&self) -> &Matched<'a> {
        &self.matched
    }
    /// The trigger and its subscriptions
    pub fn candidate(&self) -> &'a Candidate {
        self.matched.candidate()
    }
    /// The event's id
    pub fn id(&self) -> EventId {
        self.id
    }
    /// The event in its RFC 8785 form
    pub fn document(&self) -> &Bytes {
        &self.document
    }
}

/// Makes the event that one match gives
pub fn project<'a>(
    matched: Matched<'a>,
    profile: &Profile,
    item: &Item,
    body_sha256: Sha256Hex,
    received_at: Timestamp,
) -> Result<Projected<'a>, NotCanonical> {
    let trigger = &matched.candidate().trigger;
    let source = EventSource::new(
        profile.id(),
        profile.digest(),
        trigger.binding_digest(),
        item.event(),
        item.delivery(),
        body_sha256,
        received_at,
    );
    let found = matched.found();
    let event = CanonicalEvent::new(
        trigger.connector(),
        trigger.trigger(),
        found.variant(),
        found.fields().clone(),
        source,
    );
    let (id, document) = (event.id()?, event.document()?.into());
    Ok(Projected {
        matched,
        id,
        document,
    })
}
