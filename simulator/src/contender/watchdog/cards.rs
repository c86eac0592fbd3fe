//! H1, H2 and C3: judges binds and evictions by what nodes say of their GPUs, as far as the process
//! was told of it.

use gpu_batch_policies::command::{Bind, EvictionCause};
use gpu_batch_policies::facts::{NodeFacts, PodShape, amount};
use gpu_batch_policies::settings::{Health, Sign};
use std::collections::{BTreeMap, BTreeSet};

/// What the process was told of the GPUs of nodes.
#[derive(Debug)]
pub(super) struct Cards {
    health: Health,
    /// The signs that each node shows now, of those that the settings name.
    shown: BTreeMap<Box<str>, BTreeSet<Sign>>,
    /// Whether a node has ever shown a sign for which a rule evicts.
    evicting: bool,
}

impl Cards {
    pub(super) fn new(health: Health) -> Self {
        Self {
            health,
            shown: BTreeMap::new(),
            evicting: false,
        }
    }

    pub(super) fn node(&mut self, facts: &NodeFacts) {
        let mut shown = BTreeSet::new();
        for rule in &self.health.rules {
            let is_shown = match &rule.sign {
                Sign::Condition { kind, status } => {
                    let mut conditions = facts.conditions.iter();
                    conditions.any(|one| one.kind == *kind && one.status == *status)
                }
                Sign::Taint { key } => facts.taints.iter().any(|taint| taint.key == *key),
            };
            if is_shown {
                self.evicting |= rule.evict_after_ms.is_some();
                shown.insert(rule.sign.clone());
            }
        }
        self.shown.insert(facts.name.clone(), shown);
    }

    /// H1: no pod that asks for GPUs goes to a node that is known to show that its GPUs have
    /// failed.
    pub(super) fn binds(&self, bind: &Bind, shape: &PodShape, found: &mut Vec<String>) {
        let sign = self.shown.get(&bind.node).and_then(BTreeSet::first);
        if let Some(sign) = sign.filter(|_| amount(&shape.requests, "nvidia.com/gpu") > 0) {
            let (pod, node) = (&bind.pod.name, &bind.node);
            found.push(format!("H1: pod {pod} goes to {node}, which has {sign}"));
        }
    }

    /// C3: a pod gets as many parts of cards as its containers use at a time. In these worlds init
    /// containers ask for no more than those after them.
    pub(super) fn gives(bind: &Bind, shape: &PodShape, found: &mut Vec<String>) {
        let asked = amount(&shape.requests, "nvidia.com/gpu");
        let given: u64 = bind.cards.iter().map(|part| u64::from(part.slots)).sum();
        if shape.cards.is_some() && given != asked {
            let pod = &bind.pod.name;
            found.push(format!(
                "C3: pod {pod} asks for {asked} parts of cards and gets {given}"
            ));
        }
    }

    /// H2: nobody is evicted for failed cards unless a node has shown a sign for which a rule
    /// evicts.
    pub(super) fn evicts(&self, pod: &str, cause: EvictionCause, found: &mut Vec<String>) {
        if cause == EvictionCause::CardFailed && !self.evicting {
            found.push(format!(
                "H2: pod {pod} is evicted for failed cards by no rule"
            ));
        }
    }
}
