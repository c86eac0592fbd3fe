//! What a test asks about a world.

use crate::{GPU, World};
use gpu_batch_policies::explain::{Explanation, Subject};
use gpu_batch_policies::facts::CARD;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::{GangReport, PodReport};
use gpu_batch_policies::status::{Phase, QueueStatus};

impl World {
    /// What the engine says of a pod, if it knows one of the name.
    #[must_use]
    pub fn find(&self, pod: &str) -> Option<PodReport> {
        let mut reports = self.engine.pod_reports().into_iter();
        reports.find(|report| &*report.name == pod)
    }

    /// What the engine says of a pod.
    ///
    /// # Panics
    /// If it knows none of the name.
    #[must_use]
    pub fn pod(&self, name: &str) -> PodReport {
        let found = self.find(name);
        found.unwrap_or_else(|| panic!("the engine knows no pod {name}"))
    }

    /// The node that a pod has.
    #[must_use]
    pub fn node_of(&self, pod: &str) -> Option<String> {
        self.pod(pod).node.map(String::from)
    }

    /// The node of each pod, in the order of the names; `-`: it has none.
    #[must_use]
    pub fn places(&self, pods: &str) -> String {
        let place = |name| self.node_of(name).unwrap_or_else(|| "-".to_owned());
        let places: Vec<String> = pods.split_whitespace().map(place).collect();
        places.join(" ")
    }

    /// The nodes of all these pods that have one, sorted.
    #[must_use]
    pub fn nodes_of(&self, pods: &str) -> Vec<String> {
        let nodes = pods.split_whitespace();
        let mut nodes: Vec<String> = nodes.filter_map(|name| self.node_of(name)).collect();
        nodes.sort();
        nodes
    }

    /// Whether the pod has a node.
    #[must_use]
    pub fn is_placed(&self, pod: &str) -> bool {
        self.pod(pod).node.is_some()
    }

    /// The cards that a pod holds.
    #[must_use]
    pub fn cards_of(&self, pod: &str) -> Vec<&str> {
        let parts = self.stored(pod).cards.iter();
        parts.map(|part| &*part.card).collect()
    }

    /// Why the pod waits.
    #[must_use]
    pub fn reason_of_pod(&self, name: &str) -> Option<Reason> {
        self.pod(name).reason
    }

    /// The condition that the pod carries at the API server: its reason and its message.
    ///
    /// # Panics
    /// If it carries none.
    #[must_use]
    pub fn condition(&self, pod: &str) -> (&str, &str) {
        let condition = self.stored(pod).unscheduled.as_ref();
        let condition = condition.unwrap_or_else(|| panic!("pod {pod} has no condition"));
        (&condition.reason, &condition.message)
    }

    /// What the engine says of a gang: the name of a PodGroup, or `pod/NAME` and the like.
    ///
    /// # Panics
    /// If there is none of the name.
    #[must_use]
    pub fn gang(&self, name: &str) -> GangReport {
        let name = format!("default/{name}");
        let mut reports = self.engine.gang_reports();
        let found = reports.iter().position(|report| *report.name == *name);
        match found {
            Some(at) => reports.swap_remove(at),
            None => {
                let names: Vec<_> = reports.iter().map(|report| &report.name).collect();
                panic!("no gang {name} among {names:?}")
            }
        }
    }

    /// How long after now a gang is estimated to start, in milliseconds; `None`: nothing is told.
    ///
    /// # Panics
    /// There is no such gang, or it was to start before now.
    pub fn estimated_in_ms(&self, gang: &str) -> Option<u64> {
        let start_ms = self.gang(gang).status.estimated_start_ms?;
        Some(start_ms - self.now_ms)
    }

    /// How far the gang has come.
    #[must_use]
    pub fn phase(&self, gang: &str) -> Phase {
        self.gang(gang).status.phase
    }

    /// Why the gang waits.
    #[must_use]
    pub fn reason(&self, gang: &str) -> Option<Reason> {
        self.gang(gang).status.reason
    }

    /// What is told of the gang.
    #[must_use]
    pub fn message(&self, gang: &str) -> String {
        self.gang(gang).status.message.into()
    }

    /// What `explain` says of the gang.
    ///
    /// # Panics
    /// If there is none of the name.
    #[must_use]
    pub fn explain(&mut self, gang: &str) -> Explanation {
        let name = format!("default/{gang}");
        let explained = self.engine.explain(Subject::Gang(&name));
        explained.expect("a gang of that name")
    }

    /// What the engine says of a queue.
    ///
    /// # Panics
    /// If there is none of the name.
    #[must_use]
    pub fn queue(&mut self, name: &str) -> QueueStatus {
        let reports = self.engine.queue_reports();
        let found = reports.into_iter().find(|report| &*report.name == name);
        found.unwrap_or_else(|| panic!("no queue {name}")).status
    }

    /// What of a key, such as `nvidia.com/gpu@MODEL`, a queue asks for and holds, and how much of
    /// it would be fair: whole cards of GPUs.
    #[must_use]
    pub fn share_of(&mut self, queue: &str, key: &str) -> (u64, u64) {
        let status = self.queue(queue);
        let of = |amounts: &[(Box<str>, u64)]| {
            let amount = amounts.iter().find(|(known, _)| **known == *key);
            let unit = if key.starts_with(GPU) { CARD } else { 1 };
            amount.map_or(0, |(_, amount)| *amount / unit)
        };
        (of(&status.requested), of(&status.fair_share))
    }

    /// The GPUs that a queue asks for and holds.
    #[must_use]
    pub fn requested(&mut self, queue: &str) -> u64 {
        self.share_of(queue, GPU).0
    }

    /// The Kubernetes events that begin so, in order: those on objects of a kind, or on one.
    #[must_use]
    pub fn told_of(&self, begins: &str) -> Vec<&str> {
        let told = self.told.iter().map(String::as_str);
        told.filter(|line| line.starts_with(begins)).collect()
    }
}
