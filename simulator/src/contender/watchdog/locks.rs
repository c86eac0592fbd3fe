//! Judges what becomes of the locks that a process takes on the cards of nodes: the pod is bound,
//! or the lock is given back before another pod of the process gets it.

use gpu_batch_policies::command::{Action, Command};
use gpu_batch_policies::event::{Event, Kind, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::facts::PodFacts;
use std::collections::BTreeMap;

/// The namespace and the name of a pod.
type PodName = (Box<str>, Box<str>);

/// The locks that the process has taken and not given back, by node, each with its pod.
#[derive(Debug, Default)]
pub(super) struct Locks(BTreeMap<Box<str>, PodName>);

impl Locks {
    /// Takes in an event that the engine is about to be told.
    pub(super) fn told(&mut self, event: &Event) {
        match event {
            Event::Applied(object) => self.shown(object),
            // A node that comes back has no lock.
            Event::Deleted(ObjectKey::Node(name, _)) => drop(self.0.remove(name)),
            Event::Listed(listing) if listing.kind == Kind::Node => self.0.clear(),
            Event::Listed(listing) => listing.objects.iter().for_each(|it| self.shown(it)),
            _ => {}
        }
    }

    /// The plugin serves a pod that is bound, and gives its lock back.
    fn shown(&mut self, object: &Object) {
        let Object::Pod(facts) = object else { return };
        let is_bound = |pod: &PodName| facts.node.is_some() && is(pod, facts);
        self.0.retain(|_, pod| !is_bound(pod));
    }

    /// Takes in how a request has ended.
    pub(super) fn ended(&mut self, action: &Action, outcome: &Outcome) {
        match action {
            Action::LockCards(lock) if *outcome == Outcome::Done => {
                let pod = (lock.lock.namespace.clone(), lock.lock.name.clone());
                self.0.insert(lock.node.clone(), pod);
            }
            Action::Bind(bind) if *outcome == Outcome::Done => drop(self.0.remove(&bind.node)),
            Action::Observe(_) => {
                if let Outcome::Observed(PodSeen::Bound(node)) = outcome {
                    self.0.remove(node);
                }
            }
            _ => {}
        }
    }

    /// C3: a lock that was taken is not left. Judges the commands of one step.
    pub(super) fn sends(&mut self, commands: &[Command], leads: bool, found: &mut Vec<String>) {
        if !leads {
            // The next leader goes on with the locks.
            self.0.clear();
        }
        for command in commands {
            match &command.action {
                Action::UnlockCards(unlock) => drop(self.0.remove(&unlock.node)),
                Action::LockCards(lock) => {
                    let next = (&lock.lock.namespace, &lock.lock.name);
                    let left = self
                        .0
                        .get(&lock.node)
                        .filter(|pod| (&pod.0, &pod.1) != next);
                    if let Some((namespace, name)) = left {
                        found.push(format!(
                            "C3: the lock on {} is taken for another pod, and {namespace}/{name} \
                             neither was bound nor has given it back",
                            lock.node
                        ));
                    }
                }
                _ => {}
            }
        }
    }
}

fn is((namespace, name): &PodName, facts: &PodFacts) -> bool {
    *namespace == facts.namespace && *name == facts.name
}
