//! Faults that strike at a time of their own, and how they end.

use super::{Happening, Run, reserves};
use crate::api_server::{Answer, Name, Request};
use crate::contender::Informer;
use crate::faults::FaultKind;
use crate::objects::pod;
use crate::shell::Shell;
use gpu_batch_policies::command::{Bind, PodReference};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    Amounts, DisruptionBudgetFacts, LabelSelector, NodeFacts, PodFacts, PodPhase, Taint,
    TaintEffect, Uid,
};
use gpu_batch_policies::settings::Leadership;

const TEN_YEARS_MS: u64 = 315_360_000_000;
const GPU: &str = "nvidia.com/gpu";

/// The effects of faults that have struck, as far as later faults and checks need them.
#[derive(Debug, Default)]
pub(super) struct Striking {
    /// Whether a fault has struck after which a kubelet may find its node too small without a
    /// mistake of the scheduler.
    pub(super) explains_overcommit: bool,
    foreign: u64,
}

impl Run<'_> {
    /// Lets a fault strike. Returns whether there was something to strike.
    pub(super) fn strike(&mut self, kind: FaultKind) -> bool {
        let now_ms = self.now_ms;
        let number = self.random.next_u64();
        match kind {
            FaultKind::FlowControlStorm => {
                let until_ms = now_ms + self.random.between(500, 4_000);
                for shell in &mut self.shells {
                    shell.storm_until_ms = until_ms;
                }
                true
            }
            FaultKind::ApiServerSlow => {
                let until_ms = now_ms + self.random.between(1_000, 6_000);
                for shell in &mut self.shells {
                    shell.slow_until_ms = until_ms;
                }
                true
            }
            FaultKind::HistoryCompacted => {
                self.cut_watch();
                let revision = self.cluster.api.revision();
                self.cluster.api.compact(revision);
                true
            }
            FaultKind::WatchCut => self.cut_watch(),
            FaultKind::KindHeldBack => self.hold_kind(),
            FaultKind::NodeVanishes
            | FaultKind::NodeReplaced
            | FaultKind::NodeCordoned
            | FaultKind::NodeTainted
            | FaultKind::GpusFallOut => self.strike_node(kind, number),
            FaultKind::PodDeleted | FaultKind::PodFails | FaultKind::BudgetRefuses => {
                self.strike_pod(kind, number).is_some()
            }
            FaultKind::RivalBinds | FaultKind::ForeignPodBound => self.rival(kind, number),
            FaultKind::LeaseDeleted => {
                self.cluster.api.delete_lease();
                true
            }
            FaultKind::SecondContender => {
                let free = self.shells[1].process().is_none();
                if free {
                    self.plan(now_ms, Happening::Start(1));
                }
                free
            }
            FaultKind::BatchesLate
            | FaultKind::ContenderPaused
            | FaultKind::ContenderCrashes
            | FaultKind::ShutDown => self.strike_contender(kind, number),
            // All other kinds strike at opportunities.
            _ => false,
        }
    }

    /// Lets a fault strike that needs a pod; `None`: there is no such pod.
    fn strike_pod(&mut self, kind: FaultKind, number: u64) -> Option<()> {
        let now_ms = self.now_ms;
        let facts = self.pick_pod(number, |facts| match kind {
            FaultKind::PodDeleted => facts.deletion_ms.is_none(),
            FaultKind::PodFails => is_running(facts),
            _ => facts.pod_group.is_some() && is_running(facts),
        })?;
        match kind {
            FaultKind::PodDeleted => {
                let name = Name::pod(&facts.namespace, &facts.name);
                let grace_s = self.random.percent(30).then_some(0);
                self.cluster.delete(name, grace_s, now_ms);
            }
            FaultKind::PodFails => self.cluster.end(facts.uid, PodPhase::Failed, now_ms),
            _ => {
                let pod_group = facts.pod_group?;
                let selector = LabelSelector {
                    match_labels: vec![("gpu-batch.io/pod-group".into(), pod_group.clone())],
                    ..LabelSelector::default()
                };
                let budget = DisruptionBudgetFacts {
                    uid: Uid(0),
                    namespace: facts.namespace,
                    name: pod_group,
                    selector: Some(selector),
                    allowed: 0,
                    problems: Vec::new(),
                };
                self.cluster.guard(budget, u32::MAX, now_ms);
            }
        }
        Some(())
    }

    fn cut_watch(&mut self) -> bool {
        let again_ms = self.now_ms + self.random.between(200, 4_000);
        let which = self.random.next_u64();
        let struck = self.informers().filter(|informer| !informer.is_idle());
        for (index, informer) in struck.enumerate() {
            if which >> (index % 64) & 1 == 1 {
                informer.cut(again_ms);
            }
        }
        true
    }

    fn hold_kind(&mut self) -> bool {
        let until_ms = self.now_ms + self.random.between(1_000, 20_000);
        let api = &self.cluster.api;
        let is_idle =
            |kind: &Kind| matches!(kind, Kind::Storage(_) | Kind::Numa) && !api.has_had(*kind);
        let kinds: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| !is_idle(kind))
            .collect();
        let kind = *self.random.pick(&kinds);
        let informers = self.informers();
        for informer in informers.filter(|informer| informer.kind() == kind) {
            informer.hold(until_ms);
        }
        true
    }

    fn informers(&mut self) -> impl Iterator<Item = &mut Informer> {
        let running = self.shells.iter_mut().filter_map(Shell::process_mut);
        running.flat_map(|process| &mut process.informers)
    }

    fn strike_node(&mut self, kind: FaultKind, number: u64) -> bool {
        let now_ms = self.now_ms;
        let nodes: Vec<NodeFacts> = self.cluster.nodes().cloned().collect();
        let Some(index) = number.checked_rem(nodes.len() as u64) else {
            return false;
        };
        let mut facts = nodes[usize::try_from(index).unwrap_or(0)].clone();
        let healthy = facts.clone();
        self.striking.explains_overcommit = true;
        let undo_ms = now_ms + self.random.between(1_000, 15_000);
        match kind {
            FaultKind::NodeVanishes | FaultKind::NodeReplaced => {
                if kind == FaultKind::NodeVanishes && nodes.len() == 1 {
                    return false;
                }
                let name = Name::of(&Object::Node(healthy));
                self.cluster.delete(name, None, now_ms);
                if kind == FaultKind::NodeReplaced {
                    if self.random.percent(50) {
                        halve_gpus(&mut facts, true);
                    }
                    self.plan(undo_ms, Happening::Join(Box::new(facts)));
                }
                return true;
            }
            FaultKind::NodeCordoned => facts.unschedulable = true,
            FaultKind::NodeTainted => facts.taints.push(Taint {
                key: "example.com/maintenance".into(),
                value: "".into(),
                effect: TaintEffect::NoSchedule,
            }),
            _ => {
                halve_gpus(&mut facts, false);
                self.cluster.put_status(Object::Node(facts), now_ms);
                self.plan(undo_ms, Happening::Undo(Box::new(healthy)));
                return true;
            }
        }
        self.cluster.put(Object::Node(facts), now_ms);
        self.plan(undo_ms, Happening::Undo(Box::new(healthy)));
        true
    }

    /// Undoes a fault of a node, if the node is still there.
    pub(super) fn undo(&mut self, mut facts: NodeFacts) {
        let Some(now) = self.cluster.node(&facts.name) else {
            return;
        };
        facts.uid = now.uid;
        // What nodes say of their GPUs has times of its own.
        facts.conditions = now.conditions.clone();
        // The lock on its cards is taken and given back meanwhile.
        facts.card_lock.clone_from(&now.card_lock);
        self.cluster.put(Object::Node(facts.clone()), self.now_ms);
        self.cluster.put_status(Object::Node(facts), self.now_ms);
    }

    /// Adds a new machine, unless there is a node with its name.
    pub(super) fn join(&mut self, mut facts: NodeFacts) {
        facts.conditions.clear();
        facts.card_lock = None;
        if self.cluster.node(&facts.name).is_none() {
            self.cluster.put(Object::Node(facts), self.now_ms);
        }
    }

    fn rival(&mut self, kind: FaultKind, number: u64) -> bool {
        let now_ms = self.now_ms;
        let nodes: Vec<Box<str>> = self.cluster.nodes().map(|node| node.name.clone()).collect();
        if nodes.is_empty() {
            return false;
        }
        let node = self.random.pick(&nodes).clone();
        self.striking.explains_overcommit = true;
        if kind == FaultKind::ForeignPodBound {
            self.striking.foreign += 1;
            let name = format!("foreign-{}", self.striking.foreign);
            let (cpus, gpus) = (self.random.between(1, 2), self.random.below(3));
            let mut facts = pod(&name, Uid(0), 0, cpus, gpus);
            facts.ours = false;
            facts.node = Some(node);
            return self.cluster.put(Object::Pod(facts), now_ms).is_some();
        }
        let waits = |facts: &PodFacts| facts.ours && facts.node.is_none();
        let Some(facts) = self.pick_pod(number, waits) else {
            return false;
        };
        let bind = Bind {
            pod: PodReference {
                namespace: facts.namespace,
                name: facts.name,
                uid: facts.uid,
            },
            node,
            cards: Vec::new(),
            assignment: None,
            queue: "".into(),
            pod_group: None,
            minima: Vec::new(),
        };
        let answer = self.cluster.api.handle(Request::Bind(bind), now_ms);
        answer == Answer::Done
    }

    fn strike_contender(&mut self, kind: FaultKind, number: u64) -> bool {
        let slots: Vec<usize> = (0..2)
            .filter(|slot| self.shells[*slot].process().is_some())
            .collect();
        let Some(index) = number.checked_rem(slots.len() as u64) else {
            return false;
        };
        let slot = slots[usize::try_from(index).unwrap_or(0)];
        let now_ms = self.now_ms;
        let back_ms = now_ms + self.random.between(100, 10_000);
        let pause_ms = match kind {
            FaultKind::BatchesLate => self.random.between(100, 3_000),
            _ => self.random.between(1_000, 30_000),
        };
        let stalls = kind == FaultKind::ContenderPaused
            && self
                .faults
                .strikes(FaultKind::ClockStalls, &mut self.random);
        let Some(process) = self.shells[slot].process_mut() else {
            return false;
        };
        match kind {
            FaultKind::BatchesLate | FaultKind::ContenderPaused => {
                if process.is_paused(now_ms) {
                    return false;
                }
                process.pause(now_ms, now_ms + pause_ms, stalls);
                self.plan(now_ms + pause_ms, Happening::GoOn);
            }
            FaultKind::ShutDown => {
                process.shut_down();
                self.plan(back_ms, Happening::Start(slot));
            }
            _ => {
                self.shells[slot].kill();
                self.plan(back_ms, Happening::Start(slot));
            }
        }
        true
    }

    /// Starts a scheduler in a slot. One that still runs there is killed first.
    pub(super) fn start(&mut self, slot: usize) {
        self.starts += 1;
        let (faults, random) = (&mut self.faults, &mut self.random);
        if faults.strikes(FaultKind::NewIdentity, random) {
            self.identities[slot] = format!("replica-{slot}-{}", self.starts);
        }
        let mut clock_ahead_ms = 0;
        if faults.strikes(FaultKind::ClockJumps, random) {
            let jump_ms = i64::try_from(random.below(2 * TEN_YEARS_MS)).unwrap_or(0);
            clock_ahead_ms = jump_ms - i64::try_from(TEN_YEARS_MS).unwrap_or(0);
        }
        let mut settings = self.settings.clone();
        if let Leadership::Elected(lease) = &mut settings.leadership {
            lease.identity = self.identities[slot].as_str().into();
        }
        self.shells[slot].start(settings, clock_ahead_ms, self.now_ms);
    }

    /// Ends all faults at once, except those of nodes: a node recovers at the time that is planned
    /// for it.
    pub(super) fn heal(&mut self) {
        self.faults.stop();
        self.healed = true;
        if !reserves(self.seed) {
            self.cluster.settle();
        }
        for shell in &mut self.shells {
            (shell.storm_until_ms, shell.slow_until_ms) = (0, 0);
        }
        self.cluster.unguard(self.now_ms);
        for informer in self.informers() {
            informer.hold(0);
        }
    }
}

fn is_running(facts: &PodFacts) -> bool {
    facts.phase == PodPhase::Running
}

/// Halves the allocatable GPUs of a node, and if `capacity` is set also the capacity.
fn halve_gpus(facts: &mut NodeFacts, capacity: bool) {
    let halve = |amounts: &mut Amounts| {
        for (name, amount) in amounts.iter_mut() {
            if &**name == GPU {
                *amount /= 2;
            }
        }
        amounts.retain(|(_, amount)| *amount > 0);
    };
    halve(&mut facts.allocatable);
    if capacity {
        halve(&mut facts.capacity);
    }
}
