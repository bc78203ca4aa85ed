//! The native events of a request: the name of each, the delivery's id, and the items of a batch. What is read
//! here is as authentic as the request is: the verifier asks once a signature has held.

use std::collections::BTreeSet;

use bytes::Bytes;
use postern_contract::{Document, Kind, Pointer, Resolution, Value};

use crate::evidence::{Item, Malformed, delivery_name};
use crate::facts::{Facts, Params, View};
use crate::profile::{Delivery, Event, Profile};
use crate::request::RequestParts;
use crate::signature::one;
use crate::source::{Found, Source};

/// The most items of a batch
const MAX_ITEMS: usize = 10_000;

/// The array at a place
pub(crate) fn array<'d>(document: &'d Document, at: &Pointer) -> Option<Value<'d>> {
    match document.resolve(at) {
        Resolution::Resolved(value) if value.kind() == Kind::Array => Some(value),
        _ => None,
    }
}

/// A native event read without authenticating it: for trials and fixtures, never for a gateway
pub struct Unverified {
    /// The native event's name, where the profile finds one
    pub event: Option<String>,
    /// The delivery's id by the provider; of a batch, what canonical events call the item
    pub delivery: Option<String>,
    /// The JSON text of the evidence
    pub evidence: Bytes,
}

impl Profile {
    /// Reads a request as if it were authentic: its one event, or those of the batch
    pub fn read_unverified(&self, request: &RequestParts<'_>) -> Vec<Unverified> {
        let params = Params::new();
        let facts = Facts::new(self, *request, &params);
        let id = (self.declared.auth.iter())
            .find_map(|auth| one(request.headers, auth.id_header.as_deref()?));
        let view = View {
            signed_id: id,
            ..facts.view()
        };
        let parses = facts.document().is_ok();
        let delivery = self.delivery(&view).name().filter(|_| parses);
        if let Ok(Some(items)) = self.batch(&view, delivery.as_deref()) {
            let read = |item: Item| Unverified {
                event: Some(item.event),
                delivery: Some(item.delivery),
                evidence: item.document.text().clone(),
            };
            return items.into_iter().map(read).collect();
        }
        vec![Unverified {
            event: self.event(&view).filter(|_| parses),
            delivery,
            evidence: facts.evidence().clone(),
        }]
    }

    /// The items of a batch; nothing where the body is one event. A body that repeats a key is never taken
    /// apart: as a whole it is ambiguous to every trigger.
    pub(crate) fn batch(
        &self,
        view: &View<'_>,
        delivery: Option<&str>,
    ) -> Result<Option<Vec<Item>>, Malformed> {
        let whole = view.facts.document().ok();
        let whole = whole.filter(|document| document.repeated_key().is_none());
        let Some((batch, whole)) = self.declared.batch.as_ref().zip(whole) else {
            return Ok(None);
        };
        let mut arrays = batch.at.iter().filter_map(|at| array(whole, at));
        let Some(array) = arrays.next() else {
            return Ok(None);
        };
        if array.len() > MAX_ITEMS {
            return Err(Malformed::Batch(MAX_ITEMS));
        }
        let delivery = delivery_name(delivery, view.facts.body_sha256());
        let mut items = Vec::new();
        let mut ids = BTreeSet::new();
        for (index, item) in array.items().into_iter().flatten().enumerate() {
            let view = View {
                item: Some(item),
                ..*view
            };
            // An item that names no event is nothing to any trigger
            let Some(event) = self.event(&view) else {
                continue;
            };
            let id = batch.id.as_ref().and_then(|id| id.read(&view).name());
            // Two items of one name would be one event, and the second of them lost
            let id = id.filter(|id| ids.insert(id.clone()));
            let id = id.unwrap_or_else(|| format!("[{index}]"));
            items.push(Item {
                event,
                delivery: format!("{delivery}#{id}"),
                document: item.to_document()?,
            });
        }
        if items.is_empty() && !array.is_empty() {
            return Err(Malformed::NoEvent);
        }
        Ok(Some(items))
    }

    pub(crate) fn event(&self, view: &View<'_>) -> Option<String> {
        let join = |sources: &[Source]| {
            let names: Option<Vec<String>> = sources.iter().map(|s| s.read(view).name()).collect();
            names.map(|names| names.join("."))
        };
        match &self.declared.event {
            // What is no name is not made good by the next place
            Event::First(sources) => first(sources, view).name(),
            Event::Join(sources) => join(sources),
            Event::Any(lists) => lists.iter().find_map(|sources| join(sources)),
        }
    }

    pub(crate) fn delivery(&self, view: &View<'_>) -> Found {
        match &self.declared.delivery {
            None => Found::Nothing,
            Some(Delivery::One(source)) => source.read(view),
            Some(Delivery::First { first: sources }) => first(sources, view),
            Some(Delivery::Join { join }) => {
                let mut names = Vec::new();
                for source in join {
                    match source.read(view) {
                        Found::Name(name) => names.push(name),
                        other => return other,
                    }
                }
                Found::Name(names.join(":"))
            }
        }
    }
}

/// The first place where something stands
fn first(sources: &[Source], view: &View<'_>) -> Found {
    let mut found = sources.iter().map(|source| source.read(view));
    found
        .find(|found| *found != Found::Nothing)
        .unwrap_or(Found::Nothing)
}
