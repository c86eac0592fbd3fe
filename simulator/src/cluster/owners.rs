//! Owners of pods: a pod that is deleted or fails is made anew.

use super::{Cluster, Task};
use crate::api_server::Name;
use crate::faults::{FaultKind, Faults};
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{PodFacts, PodPhase, Uid, UnixMs};
use std::collections::BTreeMap;

/// How an owner makes one of its pods.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// The pod as the owner creates it.
    pub(crate) pod: PodFacts,
    /// How long the pod runs until it succeeds, in milliseconds; then it is not made anew. `None`:
    /// it runs for ever.
    pub(crate) runtime_ms: Option<u64>,
    /// Whether the next pod has the name of the last, as in a StatefulSet, or a new name, as in a
    /// Job.
    pub(crate) same_name: bool,
    /// How the first of its pods leaves; `None`, and all later ones: within a second.
    pub(crate) farewell: Option<Farewell>,
}

/// How a pod leaves that is deleted or evicted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Farewell {
    /// `terminationGracePeriodSeconds`, in seconds.
    pub(crate) grace_s: u64,
    /// How long its containers go on, in milliseconds. Longer than the grace period: the kubelet
    /// does not get rid of them.
    pub(crate) stays_ms: u64,
}

/// All owners, one for each pod that is to exist.
#[derive(Debug, Default)]
pub(super) struct Owners {
    owners: Vec<Owner>,
    of: BTreeMap<Uid, usize>,
}

#[derive(Debug)]
struct Owner {
    recipe: Recipe,
    current: Option<Uid>,
    made: u32,
}

impl Owners {
    pub(super) fn add(&mut self, recipe: Recipe) -> usize {
        self.owners.push(Owner {
            recipe,
            current: None,
            made: 0,
        });
        self.owners.len() - 1
    }

    pub(super) fn made(&self) -> u32 {
        self.owners.iter().map(|owner| owner.made).sum()
    }

    /// How a pod leaves that its owner has made first.
    pub(super) fn farewell(&self, uid: Uid) -> Option<Farewell> {
        let owner = &self.owners[*self.of.get(&uid)?];
        owner.recipe.farewell.filter(|_| owner.made == 1)
    }

    pub(super) fn runtime_ms(&self, uid: Uid) -> Option<u64> {
        self.owners[*self.of.get(&uid)?].recipe.runtime_ms
    }
}

impl Cluster {
    /// A pod is gone or has failed: its owner will make another.
    pub(super) fn pod_lost(
        &mut self,
        facts: &PodFacts,
        faults: &mut Faults,
        random: &mut Random,
        now_ms: UnixMs,
    ) {
        let Some(&index) = self.owners.of.get(&facts.uid) else {
            return;
        };
        let owner = &mut self.owners.owners[index];
        if owner.current != Some(facts.uid) || facts.phase == PodPhase::Succeeded {
            return;
        }
        // The pod may still exist: a failed pod stays until it is cleaned up.
        owner.current = None;
        let mut at_ms = now_ms + random.between(10, 2_000);
        if faults.strikes(FaultKind::OwnerSlow, random) {
            at_ms += random.between(1_000, 10_000);
        }
        self.tasks.push((at_ms, Task::Recreate(index)));
    }

    /// An owner makes its pod, unless it has one.
    pub(super) fn recreate(&mut self, index: usize, now_ms: UnixMs) {
        let owner = &mut self.owners.owners[index];
        if owner.current.is_some() {
            return;
        }
        let mut pod = owner.recipe.pod.clone();
        if owner.made > 0 && !owner.recipe.same_name {
            pod.name = format!("{}-{}", pod.name, owner.made).into();
        }
        let same_name = owner.recipe.same_name;
        let name = Name::pod(&pod.namespace, &pod.name);
        if same_name && self.api.get(&name).is_some() {
            // The failed pod has the name, so it is deleted first.
            self.delete(name.clone(), Some(0), now_ms);
        }
        if self.api.get(&name).is_some() {
            return;
        }
        if let Some(stored) = self.put(Object::Pod(pod), now_ms)
            && let Object::Pod(facts) = &stored.object
        {
            let owner = &mut self.owners.owners[index];
            owner.current = Some(facts.uid);
            owner.made += 1;
            self.owners.of.insert(facts.uid, index);
            if let Some(farewell) = self.owners.farewell(facts.uid) {
                self.api.set_grace(&name, farewell.grace_s);
            }
        }
    }
}
