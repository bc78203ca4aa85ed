//! Commit: replay keys, events and all that they owe, in one transaction. It is also the guard: a known
//! replay key commits nothing and answers with the events of the first copy.

use std::sync::Arc;

use postern_profiles::VerifiedEvidence;

use crate::dispatch::Wake;
use crate::receive::RawDelivery;
use crate::sources::Source;
use crate::store::{self, Commit, Committed, DeliveryId, NewEvent, Store, StoreFault};
use crate::subscribe::Owed;

/// Returns once everything is on durable storage, or was before, and has told the dispatcher
pub async fn commit(
    store: &Arc<dyn Store>,
    wake: &Wake,
    source: &Source,
    evidence: &VerifiedEvidence,
    raw: &RawDelivery,
    owed: &[Owed<'_>],
) -> Result<Committed, StoreFault> {
    let events = (owed.iter())
        .filter(|owed| !owed.permits().is_empty())
        .map(new_event)
        .collect();
    let commit = Commit {
        source: source.name.clone(),
        replay_keys: evidence.replay_keys().to_vec(),
        window_until: raw.received_at.plus_ms(source.window.millis()),
        received_at: raw.received_at,
        delivery: evidence.delivery_name(),
        body: raw.body.clone(),
        body_sha256: evidence.body_sha256(),
        events,
    };
    let committed = store.commit(commit).await;
    if matches!(committed, Ok(Committed::Fresh { .. })) {
        wake.wake();
    }
    committed
}

fn new_event(owed: &Owed<'_>) -> NewEvent {
    let event = owed.projected();
    NewEvent {
        id: event.id(),
        document: event.document().clone(),
        trigger_digest: event.candidate().trigger.digest(),
        owed: (owed.permits().iter())
            .map(|(subscription, destination)| store::Owed {
                id: DeliveryId::of(event.id(), *subscription, destination),
                subscription: *subscription,
                destination: destination.clone(),
            })
            .collect(),
    }
}
