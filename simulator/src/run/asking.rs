//! kube-scheduler, as far as its extender notices it: it asks for nodes of a pod, chooses one, and
//! asks to bind the pod there, a while later and perhaps of a replica that does not lead. At some
//! pods it does not look before their gate is lifted.
//!
//! It goes on while the leader says that some pod may have a node. So when the world is at rest, no
//! extended pod waits that fits.

use super::{Happening, Run, has_extended};
use crate::contender::Contender;
use crate::shell::Shell;
use gpu_batch_policies::event::Event;
use gpu_batch_policies::extender::NodeAnswer;
use gpu_batch_policies::facts::{PodFacts, Uid};

/// How long kube-scheduler takes, at least and at most, until it asks again.
const ASKS_MS: [u64; 2] = [20, 700];
/// How long it takes where it is away for a while: what it was offered lapses.
const AWAY_MS: [u64; 2] = [20_000, 45_000];

impl Run<'_> {
    /// Lets kube-scheduler ask a while later if a pod may have a node, unless it is about to.
    pub(super) fn plan_to_ask(&mut self) {
        let is_planned = |happening: &Happening| matches!(happening, Happening::Ask);
        if !has_extended(self.seed) || self.happenings.values().any(is_planned) {
            return;
        }
        let waiting = self.waiting_for_kube_scheduler();
        if waiting.iter().any(|pod| !self.fitting(pod.uid).is_empty()) {
            let is_away = !self.healed && self.random.percent(4);
            let [least_ms, most_ms] = if is_away { AWAY_MS } else { ASKS_MS };
            let at_ms = self.now_ms + self.random.between(least_ms, most_ms);
            self.plan(at_ms, Happening::Ask);
        }
    }

    /// kube-scheduler asks to bind the pods that wait.
    pub(super) fn ask(&mut self) {
        for pod in self.waiting_for_kube_scheduler() {
            let mut nodes = self.fitting(pod.uid);
            if self.random.percent(10) {
                // It has chosen by what was true a moment ago.
                nodes = self.cluster.nodes().map(|node| node.name.clone()).collect();
            }
            if nodes.is_empty() || self.random.percent(20) {
                continue;
            }
            let node = self.random.pick(&nodes).clone();
            let slot = match self.random.percent(10) {
                true => self.random.below(self.shells.len() as u64),
                false => self.leading_slot().unwrap_or_default() as u64,
            };
            let slot = usize::try_from(slot).unwrap_or_default();
            if let Some(process) = self.shells[slot].process_mut() {
                process.hear(Event::BindAsked { pod: pod.uid, node });
            }
        }
    }

    fn waiting_for_kube_scheduler(&self) -> Vec<PodFacts> {
        let waits = |pod: &&PodFacts| {
            let asked_for = pod.extended && pod.gates.is_empty() && !pod.phase.ended();
            asked_for && pod.node.is_none() && pod.deletion_ms.is_none()
        };
        self.cluster.api.pods().filter(waits).cloned().collect()
    }

    /// Whether pods are offered to kube-scheduler, which lapses if their nodes are gone.
    pub(super) fn are_offered(&self, leader: &Contender) -> bool {
        let reports = || leader.engine.pod_reports();
        has_extended(self.seed) && reports().iter().any(|pod| pod.binding)
    }

    fn leading_slot(&self) -> Option<usize> {
        let leads = |shell: &Shell| shell.process().is_some_and(|it| it.engine.is_leader());
        self.shells.iter().position(leads)
    }

    /// The nodes that the leader allows a pod.
    fn fitting(&mut self, pod: Uid) -> Vec<Box<str>> {
        let nodes: Vec<Box<str>> = self.cluster.nodes().map(|node| node.name.clone()).collect();
        let leader = self
            .leading_slot()
            .and_then(|slot| self.shells[slot].process_mut());
        let answers = |leader: &mut Contender| leader.engine.filter_nodes(pod, &nodes).ok();
        let answers = leader.and_then(answers).unwrap_or_default();
        let fits = nodes.into_iter().zip(answers);
        fits.filter(|(_, answer)| *answer == NodeAnswer::Fits)
            .map(|(node, _)| node)
            .collect()
    }
}
