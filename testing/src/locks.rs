//! Locks on the cards of nodes, and HAMi's device plugin, which takes them away.

use crate::World;
use crate::{conflict, refused};
use gpu_batch_policies::command::{Action, LockCards, OwnCardLock, UnlockCards};
use gpu_batch_policies::event::{Object, Outcome};
use gpu_batch_policies::facts::CardLock;
use std::collections::VecDeque;

/// What happens to a request for a lock.
#[derive(Debug, Clone, Default)]
pub struct LockRace {
    /// What another has written just before, or taken away; `None`: nobody has.
    pub written: Option<Option<CardLock>>,
    /// What the request comes to; `None`: it is done if what was seen still stands there.
    pub outcome: Option<Outcome>,
}

impl World {
    /// The lock on the cards of a node.
    #[must_use]
    pub fn lock(&self, node: &str) -> Option<&CardLock> {
        let nodes = self.objects.values().filter_map(|object| match object {
            Object::Node(facts) => Some(facts),
            _ => None,
        });
        let mut named = nodes.filter(|facts| *facts.name == *node);
        named.next()?.card_lock.as_ref()
    }

    /// Changes the lock on the cards of a node, of which the watch tells at once.
    pub fn set_lock(&mut self, node: &str, lock: Option<CardLock>) {
        for object in self.objects.values_mut() {
            if let Object::Node(facts) = object
                && *facts.name == *node
            {
                facts.card_lock.clone_from(&lock);
                self.events.push(Object::Node(facts.clone()).into());
            }
        }
    }

    pub(crate) fn take_lock(&mut self, request: &LockCards) {
        let (node, pod) = (&request.node, &request.lock.name);
        self.lock_requests.push(format!("{pod} locks {node}"));
        self.set_lock(node, Some(request.lock.read_back()));
    }

    pub(crate) fn give_lock_back(&mut self, request: &UnlockCards) {
        let (node, pod) = (&request.node, &request.lock.name);
        self.lock_requests.push(format!("{pod} unlocks {node}"));
        self.set_lock(node, None);
    }

    /// The plugin has given a pod its cards, if the lock of its node names it.
    pub fn serve(&mut self, pod: &str) {
        let stored = self.stored(pod);
        let holder = (stored.namespace.clone(), stored.name.clone());
        let Some(node) = stored.node.clone() else {
            return;
        };
        let lock = self.lock(&node);
        if lock.is_some_and(|lock| lock.holder.as_ref() == Some(&holder)) {
            self.set_lock(&node, None);
        }
    }

    /// What a request for a lock, or to give it back, comes to.
    pub(crate) fn lock_answer(&self, node: &str, expected: Option<&str>) -> Outcome {
        match self.lock(node).map(|lock| &*lock.value) == expected {
            true => Outcome::Done,
            false => Outcome::Conflict {
                message: "the lock is another one".into(),
            },
        }
    }

    /// One step, in which requests for the lock on the cards of a node end as the races say.
    /// `text`: a lock of ours as it is written. `is_bound`: whether bindings succeed.
    pub fn race(
        &mut self,
        node: &str,
        races: &mut VecDeque<LockRace>,
        text: impl Fn(&OwnCardLock) -> String,
        is_bound: bool,
    ) {
        for command in self.commands() {
            let outcome = match &command.action {
                Action::LockCards(lock) => {
                    let race = races.pop_front().unwrap_or_default();
                    if let Some(written) = race.written {
                        self.set_lock(node, written);
                    }
                    let answer = self.lock_answer(node, lock.seen.as_deref());
                    match race.outcome {
                        Some(outcome) if answer == Outcome::Done => outcome,
                        _ => answer,
                    }
                }
                Action::UnlockCards(unlock) => {
                    let values = [text(&unlock.lock).into(), unlock.lock.read_back().value];
                    let stands = self.lock(node).map(|lock| &lock.value);
                    match stands.is_some_and(|value| values.contains(value)) {
                        true => Outcome::Done,
                        false => conflict(),
                    }
                }
                Action::Bind(_) if !is_bound => refused(),
                Action::Observe(pod) => Outcome::Observed(self.seen(pod.uid)),
                _ => Outcome::Done,
            };
            self.carry_out(command, outcome);
        }
    }
}
