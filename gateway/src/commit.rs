//! Commit: replay keys, events and all that they owe, in one transaction. It is also the guard: a known
//! replay key commits nothing and answers with the events of the first copy.

use bytes::Bytes;
use postern_contract::Timestamp;
use postern_profiles::VerifiedEvidence;

use crate::project::delivery;
use crate::sources::Source;
use crate::store::{Commit, Committed, DeliveryId, NewEvent, OwedDelivery, Store, StoreFault};
use crate::subscribe::Owed;

/// Returns once everything is on durable storage, or was before
pub async fn commit(
    store: &dyn Store,
    source: &Source,
    evidence: &VerifiedEvidence,
    body: Bytes,
    received_at: Timestamp,
    owed: &[Owed<'_>],
) -> Result<Committed, StoreFault> {
    let events = owed
        .iter()
        .filter(|owed| !owed.permits().is_empty())
        .map(new_event)
        .collect();
    store
        .commit(Commit {
            source: source.name.clone(),
            replay_keys: evidence.replay_keys().to_vec(),
            window_until: received_at.plus_ms(source.window.millis()),
            received_at,
            delivery: delivery(evidence),
            body,
            body_sha256: evidence.body_sha256(),
            events,
        })
        .await
}

fn new_event(owed: &Owed<'_>) -> NewEvent {
    let event = owed.projected();
    let owed = (owed.permits().iter())
        .map(|(subscription, destination)| OwedDelivery {
            id: DeliveryId::of(event.id(), *subscription, destination),
            subscription_digest: *subscription,
            destination: destination.clone(),
        })
        .collect();
    NewEvent {
        id: event.id(),
        document: event.document().clone(),
        trigger_digest: event.candidate().trigger.digest(),
        owed,
    }
}
