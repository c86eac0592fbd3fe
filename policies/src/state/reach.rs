//! Which GPU models the pods of a class can run on, kept as nodes come and go.
//!
//! A class demands a model where it can run on nothing else: because its selector names the model,
//! or because no node with another one suits it. What counts is what a node is, not the state that
//! it is in: a cordon, a failing kubelet or a driver upgrade passes, and moves nobody's share. A
//! node that has been lost for so long that its cards are not divided any more does not count.

use super::ClusterState;
use super::pod::Stage;
use crate::facts::{Amount, NodeFacts, amount};
use crate::filter;
use crate::ids::{ClassId, Id, ModelId, NodeId, PodId};
use crate::queues::GovernedId;
use crate::resources::GPU;
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use smallvec::SmallVec;

/// What a node is to a class that asks for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mark {
    /// Not suited, or not there.
    #[default]
    Useless,
    /// Suited, but for the slots that it offers instead of GPUs.
    Slots,
    /// Suited, with GPUs of this model, if it says which.
    Suits(Option<ModelId>),
}

/// What a reach says: its marks, how many nodes there are of each model, and with slots.
type Summary = (Vec<(usize, Mark)>, BTreeSet<(Option<ModelId>, u32)>, u32);

/// The nodes that suit a class, by model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    marks: Vec<Mark>,
    /// How many nodes there are of each model.
    models: SmallVec<[(Option<ModelId>, u32); 2]>,
    slots: u32,
}

impl Reach {
    /// Sets the mark of a node. Returns whether it was another one before.
    fn set(&mut self, node: NodeId, mark: Mark) -> bool {
        if self.marks.len() <= node.index() {
            self.marks.resize(node.index() + 1, Mark::Useless);
        }
        let before = core::mem::replace(&mut self.marks[node.index()], mark);
        match before {
            Mark::Useless => {}
            Mark::Slots => self.slots -= 1,
            Mark::Suits(model) => {
                if let Some(at) = self.models.iter().position(|(known, _)| *known == model) {
                    self.models[at].1 -= 1;
                    if self.models[at].1 == 0 {
                        self.models.swap_remove(at);
                    }
                }
            }
        }
        match mark {
            Mark::Useless => {}
            Mark::Slots => self.slots += 1,
            Mark::Suits(model) => match self.models.iter_mut().find(|(known, _)| *known == model) {
                Some((_, nodes)) => *nodes += 1,
                None => self.models.push((model, 1)),
            },
        }
        before != mark
    }

    /// The contents of the reach in a fixed order, whichever nodes came first.
    fn summary(&self) -> Summary {
        let marks = self.marks.iter().copied().enumerate();
        let marks = marks.filter(|(_, mark)| *mark != Mark::Useless).collect();
        (marks, self.models.iter().copied().collect(), self.slots)
    }

    /// The model of all nodes that suit.
    fn only_model(&self) -> Option<ModelId> {
        match self.models.as_slice() {
            [(model, _)] => *model,
            _ => None,
        }
    }

    /// Whether nothing but slots suits.
    fn is_slots(&self) -> bool {
        self.models.is_empty() && self.slots > 0
    }
}

/// The conclusion from the nodes that suit a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Confined {
    /// The entry of queues for the one model that it can run on.
    pub(crate) model: Option<GovernedId>,
    /// No node but those with slots would do.
    pub(crate) to_slots: bool,
}

/// How many GPUs a node has, working or not.
pub(super) fn gpus(node: &NodeFacts) -> Amount {
    amount(&node.allocatable, GPU).max(amount(&node.capacity, GPU))
}

impl ClusterState {
    /// Begins or ends to follow reaches: they say nothing while no queue has an entry for a model
    /// and no node offers slots.
    pub(crate) fn keep_reaches(&mut self) {
        let kept = self.offered.has_slots() || self.queues.names_models();
        if core::mem::replace(&mut self.reaches_kept, kept) == kept {
            return;
        }
        for class in self.classes.ids() {
            self.classes[class].reach = self.reach_anew(class).map(Box::new);
            self.reached_anew.insert(class);
        }
    }

    /// The reach of a class that has come.
    pub(crate) fn begin_reach(&mut self, class: ClassId) {
        self.classes[class].reach = self.reach_anew(class).map(Box::new);
        self.classes[class].confined = self.confined_of(class);
    }

    /// The reach of a class as the nodes are now; `None`: it is not followed.
    pub(crate) fn reach_anew(&self, id: ClassId) -> Option<Reach> {
        let class = &self.classes[id];
        if !self.reaches_kept || class.gpus == 0 {
            return None;
        }
        let mut reach = Reach::default();
        for (node, _) in self.nodes.iter() {
            reach.set(node, self.mark(id, node));
        }
        Some(reach)
    }

    /// A node is another one than before to classes that ask for GPUs.
    pub(crate) fn judge_reach(&mut self, node: NodeId) {
        if !self.reaches_kept {
            return;
        }
        for id in self.classes.ids() {
            let mark = self.mark(id, node);
            let reach = self.classes[id].reach.as_mut();
            if reach.is_some_and(|reach| reach.set(node, mark)) {
                self.reached_anew.insert(id);
            }
        }
    }

    fn mark(&self, class: ClassId, id: NodeId) -> Mark {
        let class = &self.classes[class];
        let Some(known) = self.nodes.get(id).and_then(|node| node.known.as_ref()) else {
            return Mark::Useless;
        };
        let suits = gpus(&known.facts) >= class.gpus
            && !self.capacity.is_out(id)
            && filter::suits(&class.shape, &known.facts, &known.gpu);
        match suits {
            false => Mark::Useless,
            true if known.gpu.slots > 0 => Mark::Slots,
            true => Mark::Suits(known.model_id),
        }
    }

    /// What follows from the reach of a class as it is now.
    pub(crate) fn confined_of(&self, id: ClassId) -> Confined {
        let class = &self.classes[id];
        let reach = class.reach.as_deref();
        let by_nodes = || Some(self.kinds.model_name(reach?.only_model()?));
        let model = class.only_model().or_else(by_nodes);
        Confined {
            model: model.and_then(|model| self.queues.governed_id(GPU, Some(model))),
            to_slots: reach.is_some_and(Reach::is_slots),
        }
    }

    /// Classes of which another reach is kept than there is, or something else was made of it.
    pub(crate) fn wrong_reaches(&self) -> impl Iterator<Item = u32> {
        let settled = |id: &ClassId| !self.reached_anew.contains(id);
        let classes = self.classes.ids().into_iter().filter(settled);
        let wrong = classes.filter(|id| {
            let class = &self.classes[*id];
            let kept = class.reach.as_deref().map(Reach::summary);
            kept != self.reach_anew(*id).as_ref().map(Reach::summary)
                || class.confined != self.confined_of(*id)
        });
        wrong.map(|id| u32::try_from(id.index()).unwrap_or(u32::MAX))
    }

    /// Takes in which models classes can run on now: what their pods ask for changes its entry, and
    /// the gangs of those that wait are touched.
    pub(crate) fn follow_reaches(&mut self) {
        let anew = core::mem::take(&mut self.reached_anew);
        let other = |id: &ClassId| {
            let class = self.classes.get(*id);
            class.is_some_and(|class| class.confined != self.confined_of(*id))
        };
        let changed: BTreeSet<ClassId> = anew.into_iter().filter(other).collect();
        if changed.is_empty() {
            return;
        }
        let pods = self.pods.iter();
        let pods = pods.filter(|(_, pod)| pod.own.is_some() && changed.contains(&pod.class));
        let pods: Vec<PodId> = pods.map(|(id, _)| id).collect();
        let accounts: Vec<_> = pods.iter().map(|pod| self.close_account(*pod)).collect();
        for class in changed {
            self.classes[class].confined = self.confined_of(class);
        }
        for (pod, account) in pods.into_iter().zip(accounts) {
            let stage = self.pods[pod].stage;
            if stage == Stage::Waiting {
                self.touched.extend(self.pods[pod].gang());
            }
            if let Some((queue, preemptible)) = account {
                self.open_account(pod, queue, preemptible, stage.node());
            }
        }
    }
}
