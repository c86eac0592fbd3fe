//! The lock on the cards of a node, which HAMi's device plugin takes away.

use super::{Answer, ApiServer, Conflict, Name, found};
use gpu_batch_policies::command::{LockCards, UnlockCards};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{CardLock, NodeFacts};

impl ApiServer {
    /// Writes a lock if what stands there is what was seen.
    pub(super) fn lock_cards(&mut self, request: LockCards) -> Answer {
        let lock = request.lock.read_back();
        self.change_lock(&request.node, request.seen.as_deref(), Some(lock))
    }

    /// Takes a lock away if it is this one.
    pub(super) fn unlock_cards(&mut self, request: &UnlockCards) -> Answer {
        let value = request.lock.read_back().value;
        self.change_lock(&request.node, Some(&value), None)
    }

    fn change_lock(&mut self, node: &str, seen: Option<&str>, lock: Option<CardLock>) -> Answer {
        let name = Name {
            kind: Kind::Node,
            namespace: "".into(),
            name: node.into(),
        };
        let Some(old) = self.get(&name).cloned() else {
            return Answer::NotFound;
        };
        let Object::Node(facts) = &old.object else {
            return Answer::NotFound;
        };
        let stands = facts.card_lock.as_ref().map(|lock| &*lock.value);
        if stands != seen {
            return Answer::Conflict(Conflict::Locked);
        }
        let node = Object::Node(NodeFacts {
            card_lock: lock,
            ..facts.clone()
        });
        let status = old.status.clone();
        found(self.change(name, &old, node, status))
    }
}
