//! Which GPU models the pods of a class can run on, and what they count for there at most, kept as
//! nodes come and go.
//!
//! A class demands a GPU model if it can run on no other: because its selector names the model, or
//! because no node with another model suits it. A cordon, a failing kubelet or a driver upgrade is
//! not looked at: it passes, and must move no share. A node that was lost for so long that its
//! cards are not divided any more does not count.

use super::ClusterState;
use super::pod::Stage;
use crate::facts::Amount;
use crate::filter;
use crate::ids::{ClassId, Id, ModelId, NodeId, PodId};
use crate::queues::GovernedId;
use crate::resources::GPU;
use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};
use smallvec::SmallVec;

/// What a node is to a class that asks for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mark {
    /// The node does not suit the class, or is not known.
    #[default]
    Useless,
    /// The node would suit the class, but offers slots instead of GPUs.
    Slots,
    /// The node suits the class, with GPUs of this model, if it names one, and a pod counts there
    /// for so much in queues if that depends on the cards; else 0.
    Suits(Option<ModelId>, u32),
}

/// The contents of a reach: the marks, the number of suited nodes by model, and that with slots.
type Summary = (Vec<(usize, Mark)>, BTreeSet<(Option<ModelId>, u32)>, u32);

/// The nodes that suit a class, by GPU model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    marks: Vec<Mark>,
    /// How many nodes suit, by GPU model, in no order.
    models: SmallVec<[(Option<ModelId>, u32); 2]>,
    /// How many nodes suit, by what a pod counts for there, in no order.
    counted: SmallVec<[(u32, u32); 1]>,
    slots: u32,
}

impl Reach {
    /// Sets the mark of a node. Returns whether the mark has changed.
    fn set(&mut self, node: NodeId, mark: Mark) -> bool {
        if self.marks.len() <= node.index() {
            self.marks.resize(node.index() + 1, Mark::Useless);
        }
        let before = core::mem::replace(&mut self.marks[node.index()], mark);
        match before {
            Mark::Useless => {}
            Mark::Slots => self.slots -= 1,
            Mark::Suits(model, counted) => {
                count_off(&mut self.models, &model);
                count_off(&mut self.counted, &counted);
            }
        }
        match mark {
            Mark::Useless => {}
            Mark::Slots => self.slots += 1,
            Mark::Suits(model, counted) => {
                count_in(&mut self.models, model);
                count_in(&mut self.counted, counted);
            }
        }
        before != mark
    }

    /// The contents of the reach in a fixed order, whichever nodes came first.
    fn summary(&self) -> Summary {
        let marks = self.marks.iter().copied().enumerate();
        let marks = marks.filter(|(_, mark)| *mark != Mark::Useless).collect();
        (marks, self.models.iter().copied().collect(), self.slots)
    }

    /// The GPU model of all nodes that suit; `None`: there are several, or a node names none.
    fn only_model(&self) -> Option<ModelId> {
        match self.models.as_slice() {
            [(model, _)] => *model,
            _ => None,
        }
    }

    /// The most that a pod counts for on any node that suits; `None`: none does.
    fn most_counted(&self) -> Option<u32> {
        self.counted.iter().map(|(counted, _)| *counted).max()
    }

    /// Whether only nodes with slots would suit.
    fn is_slots(&self) -> bool {
        self.models.is_empty() && self.slots > 0
    }
}

/// Counts one more node of a kind.
fn count_in<Kind: PartialEq, A: smallvec::Array<Item = (Kind, u32)>>(
    nodes: &mut SmallVec<A>,
    kind: Kind,
) {
    match nodes.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, nodes)) => *nodes += 1,
        None => nodes.push((kind, 1)),
    }
}

/// The exact reverse of [`count_in`].
fn count_off<Kind: PartialEq, A: smallvec::Array<Item = (Kind, u32)>>(
    nodes: &mut SmallVec<A>,
    kind: &Kind,
) {
    if let Some(at) = nodes.iter().position(|(known, _)| known == kind) {
        nodes[at].1 -= 1;
        if nodes[at].1 == 0 {
            nodes.swap_remove(at);
        }
    }
}

/// What follows from the nodes that suit a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Confined {
    /// The governed key of the only GPU model that the class can run on, if a queue has an entry
    /// for it.
    pub(crate) model: Option<GovernedId>,
    /// The most that a pod counts for in queues on a node that suits; `None`: it does not depend on
    /// the node, or no node that suits is known.
    pub(crate) counted: Option<Amount>,
    /// Only nodes with slots would suit the class.
    pub(crate) to_slots: bool,
}

impl ClusterState {
    /// Begins or ends to keep reaches. They are not needed while no queue has an entry for a GPU
    /// model and no node offers slots.
    pub(crate) fn keep_reaches(&mut self) {
        let kept = self.offered.has_slots() || self.queues.names_models();
        if core::mem::replace(&mut self.reaches_kept, kept) == kept {
            return;
        }
        let classes = self.classes.ids();
        self.reached_anew.extend(classes.iter().copied());
        for class in &classes {
            self.classes[*class].reach = self.empty_reach(*class).map(Box::new);
        }
        // Node by node, so that each node comes from memory once, and not once for each class.
        for node in self.nodes.ids() {
            for class in &classes {
                self.mark_in_reach(*class, node);
            }
        }
    }

    /// The reach of a class before any node is marked; `None`: none is kept for it.
    fn empty_reach(&self, class: ClassId) -> Option<Reach> {
        let is_kept = self.reaches_kept && self.classes[class].gpus > 0;
        is_kept.then(Reach::default)
    }

    /// Makes the reach of a new class.
    pub(crate) fn begin_reach(&mut self, class: ClassId) {
        self.classes[class].reach = self.reach_anew(class).map(Box::new);
        self.classes[class].confined = self.confined_of(class);
    }

    /// The reach of a class, from the nodes as they are now; `None`: none is kept for it.
    pub(crate) fn reach_anew(&self, id: ClassId) -> Option<Reach> {
        let mut reach = self.empty_reach(id)?;
        for (node, _) in self.nodes.iter() {
            reach.set(node, self.mark(id, node));
        }
        Some(reach)
    }

    /// Marks a changed node anew in the reaches of all classes.
    pub(crate) fn judge_reach(&mut self, node: NodeId) {
        if !self.reaches_kept {
            return;
        }
        for id in self.classes.ids() {
            if self.mark_in_reach(id, node) {
                self.reached_anew.insert(id);
            }
        }
    }

    /// Marks a node in the reach of a class, if one is kept. Returns whether the mark has changed.
    fn mark_in_reach(&mut self, class: ClassId, node: NodeId) -> bool {
        if self.classes[class].reach.is_none() {
            return false;
        }
        let mark = self.mark(class, node);
        let reach = self.classes[class].reach.as_mut();
        reach.is_some_and(|reach| reach.set(node, mark))
    }

    fn mark(&self, id_of_class: ClassId, id: NodeId) -> Mark {
        let class = &self.classes[id_of_class];
        let Some(known) = self.nodes.get(id).and_then(|node| node.known.as_ref()) else {
            return Mark::Useless;
        };
        let suits = known.gpus >= class.gpus
            && !self.capacity.is_out(id)
            && filter::suits(&class.shape, &known.facts, &known.gpu);
        match suits {
            false => Mark::Useless,
            true if class.cards.is_some() => match known.facts.cards.is_empty() {
                true => Mark::Useless,
                false if class.is_measured() => match class.counted_on(&self.nodes[id].cards) {
                    Some(counted) => {
                        Mark::Suits(known.model_id, u32::try_from(counted).unwrap_or(u32::MAX))
                    }
                    // No card of the node will do.
                    None => Mark::Useless,
                },
                false => Mark::Suits(known.model_id, 0),
            },
            true if known.gpu.slots > 0 => Mark::Slots,
            true => Mark::Suits(known.model_id, 0),
        }
    }

    /// What follows from the reach of a class as it is now.
    pub(crate) fn confined_of(&self, id: ClassId) -> Confined {
        let class = &self.classes[id];
        let reach = class.reach.as_deref();
        let by_nodes = || Some(self.kinds.model_name(reach?.only_model()?));
        let model = class.only_model().or_else(by_nodes);
        let counted = reach.filter(|_| class.is_measured());
        let counted = counted.and_then(Reach::most_counted).map(Amount::from);
        Confined {
            model: model.and_then(|model| self.queues.governed_id(GPU, Some(model))),
            counted,
            to_slots: reach.is_some_and(Reach::is_slots),
        }
    }

    /// The numbers of classes whose kept reach is wrong, or what was concluded from it; for the
    /// audit.
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

    /// Takes in changed reaches: what pods of a class ask for is booked under the GPU model that
    /// the class can run on now, and the gangs of waiting pods are touched.
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
