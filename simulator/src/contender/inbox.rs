//! Events that wait for the next step: of each object only the newest state, of each kind only the
//! newest list, as in the live shell.

use gpu_batch_policies::event::{Event, Kind, ObjectKey};
use std::collections::BTreeMap;

/// Events until the next step.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    events: Vec<Option<(Kind, Event)>>,
    others: Vec<Event>,
    places: BTreeMap<ObjectKey, usize>,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.others.is_empty()
    }

    /// Adds news of an object, in the place of older news of it.
    pub(super) fn changed(&mut self, kind: Kind, key: ObjectKey, event: Event) {
        match self.places.get(&key) {
            Some(&place) => self.events[place] = Some((kind, event)),
            None => {
                self.places.insert(key, self.events.len());
                self.events.push(Some((kind, event)));
            }
        }
    }

    /// Adds a list, and drops the events of its kind that wait.
    pub(super) fn listed(&mut self, kind: Kind, event: Event) {
        let events = &mut self.events;
        for slot in events.iter_mut() {
            if slot.as_ref().is_some_and(|(of, _)| *of == kind) {
                *slot = None;
            }
        }
        self.places.retain(|_, place| events[*place].is_some());
        self.events.push(Some((kind, event)));
    }

    /// Adds an event that is not about an object: an outcome, settings, or that time has passed.
    pub(super) fn other(&mut self, event: Event) {
        self.others.push(event);
    }

    pub(super) fn take(&mut self) -> Vec<Event> {
        self.places.clear();
        let news = self.events.drain(..).flatten().map(|(_, event)| event);
        news.chain(self.others.drain(..)).collect()
    }
}
