//! What is in the log and not in the index yet: the replay guard looks here before it looks there, so that
//! a copy is known from the moment that its first was accepted.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use postern_contract::EventId;

use super::DeliveryId;
use super::entry::{Kept, Key, Logged};

/// Entries in the order of the log, and what they hold by its name
#[derive(Default)]
pub(super) struct Pending {
    entries: VecDeque<Arc<Logged>>,
    keys: HashMap<Key, Arc<Logged>>,
    events: HashMap<EventId, u64>,
    owed: HashMap<DeliveryId, u64>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry that a replay key stands for; it may have ended
    pub(super) fn by_key(&self, key: &Key) -> Option<&Logged> {
        self.keys.get(key).map(Arc::as_ref)
    }

    pub(super) fn has_event(&self, id: &EventId) -> bool {
        self.events.contains_key(id)
    }

    pub(super) fn owes(&self, id: &DeliveryId) -> bool {
        self.owed.contains_key(id)
    }

    pub(super) fn add(&mut self, logged: Arc<Logged>) {
        for key in &logged.entry.keys {
            self.keys.insert(*key, Arc::clone(&logged));
        }
        if let Kept::Receipt { events, .. } = &logged.entry.kept {
            for event in events {
                self.events.insert(event.id, logged.number);
                for owed in &event.owed {
                    self.owed.insert(owed.id, logged.number);
                }
            }
        }
        self.entries.push_back(logged);
    }

    /// The index has every entry up to this number
    pub(super) fn indexed(&mut self, number: u64) {
        while let Some(first) = self.entries.pop_front_if(|first| first.number <= number) {
            self.remove(&first);
        }
    }

    /// Takes back what was added after this number: it did not become durable
    pub(super) fn withdraw(&mut self, number: u64) {
        while let Some(last) = self.entries.pop_back_if(|last| last.number > number) {
            self.remove(&last);
        }
    }

    /// What came after this number, in order
    pub(super) fn after(&self, number: u64) -> impl Iterator<Item = &Arc<Logged>> {
        let from = self.entries.partition_point(|one| one.number <= number);
        self.entries.range(from..)
    }

    fn remove(&mut self, logged: &Logged) {
        for key in &logged.entry.keys {
            if (self.keys.get(key)).is_some_and(|one| one.number == logged.number) {
                self.keys.remove(key);
            }
        }
        if let Kept::Receipt { events, .. } = &logged.entry.kept {
            for event in events {
                forget(&mut self.events, &event.id, logged.number);
                for owed in &event.owed {
                    forget(&mut self.owed, &owed.id, logged.number);
                }
            }
        }
    }
}

/// A later entry may have put its own number there
fn forget<K: Eq + Hash>(map: &mut HashMap<K, u64>, key: &K, number: u64) {
    if map.get(key) == Some(&number) {
        map.remove(key);
    }
}
