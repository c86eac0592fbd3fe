//! Classes and their tables are kept current from a log of changed nodes.

use super::ClusterState;
use super::class::{Class, Table};
use crate::facts::PodShape;
use crate::filter::{self, Filter};
use crate::ids::{ById, ClassId, NodeId, TallyId};
use crate::state::lanes::Searched;
use crate::state::relations::{ClassRelations, Stirred};
use alloc::{boxed::Box, collections::VecDeque, sync::Arc, vec::Vec};

/// How many classes without pods are kept, so that a class that comes and goes keeps its table.
const IDLE_CLASSES: usize = 256;

/// The nodes that changed, in order. A table that has fallen out of the log is made anew.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    start: u64,
    nodes: VecDeque<NodeId>,
    /// The last position of each node in the log.
    last: ById<NodeId, u64>,
}

impl ChangeLog {
    pub(crate) fn push(&mut self, node: NodeId, nodes: usize) {
        self.last[node] = self.end();
        self.nodes.push_back(node);
        // To read a longer log would cost more than to look at every node once.
        while self.nodes.len() > nodes.max(1024) {
            self.nodes.pop_front();
            self.start += 1;
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.nodes.len() as u64
    }

    /// The nodes that changed since the position `cursor`, each once; `None`: the log begins later.
    pub(crate) fn since(&self, cursor: u64) -> Option<impl Iterator<Item = NodeId> + '_> {
        let skip = usize::try_from(cursor.checked_sub(self.start)?).ok()?;
        let changes = (cursor..).zip(self.nodes.iter().skip(skip));
        let last = changes.filter(|(position, node)| self.last[**node] == *position);
        Some(last.map(|(_, node)| *node))
    }
}

impl ClusterState {
    /// The class of a shape of pods that some terms of others' anti-affinity select; counts one
    /// more pod of it.
    pub(crate) fn enter_class(&mut self, shape: &Arc<PodShape>, kept_out: &[TallyId]) -> ClassId {
        let key = (shape.clone(), kept_out.into());
        let id = match self.class_ids.get(&key) {
            Some(id) => *id,
            None => {
                let is_offered = |models: &[_]| self.offered.has(&shape.requests, models);
                let (names, kinds) = (&mut self.resource_names, &mut self.kinds);
                let mut class = Class::new(shape.clone(), names, kinds, is_offered);
                class.relations = self.begin_relations(shape, kept_out);
                let id = self.classes.insert(class);
                self.class_ids.insert(key, id);
                self.begin_reach(id);
                id
            }
        };
        self.classes[id].pods += 1;
        id
    }

    /// Counts one pod less of a class. A class that has none left is kept for a while if it has a
    /// table.
    pub(crate) fn leave_class(&mut self, id: ClassId) {
        let class = &mut self.classes[id];
        class.pods = class.pods.saturating_sub(1);
        if class.pods > 0 {
            return;
        }
        if class.table.is_none() {
            self.remove_class(id);
            return;
        }
        self.idle_classes.push_back(id);
        if self.idle_classes.len() > IDLE_CLASSES
            && let Some(oldest) = self.idle_classes.pop_front()
            && self
                .classes
                .get(oldest)
                .is_some_and(|class| class.pods == 0)
            && !self.idle_classes.contains(&oldest)
        {
            self.remove_class(oldest);
        }
    }

    fn remove_class(&mut self, id: ClassId) {
        if let Some(class) = self.classes.remove(id) {
            let kept_out = class
                .relations
                .as_deref()
                .map(ClassRelations::terms_of_others);
            let key = (class.shape.clone(), kept_out.unwrap_or_default().into());
            if let Some(relations) = class.relations.as_deref() {
                self.end_relations(relations);
            }
            self.class_ids.remove(&key);
            if self.kinds.leave(class.kind) {
                self.scores.forget_kind(class.kind);
            }
        }
    }

    /// Brings the table of a class up to date.
    pub(crate) fn refresh(&mut self, id: ClassId) {
        let stamp = self.relation_stamp(id);
        if self.classes[id]
            .table
            .as_ref()
            .is_some_and(|t| t.cursor == self.changes.end() && t.relation_stamp == stamp)
        {
            return;
        }
        self.include_nodes(id);
        let stirred = self.follow_relations(id);
        let (mut table, fresh) = match self.classes[id].table.take() {
            Some(table) => (table, false),
            None => (Box::new(self.judge_all(id)), true),
        };
        let mut searched = match fresh {
            true => Searched::default(),
            false => core::mem::take(self.lanes.searched_mut(id)),
        };
        let class = &self.classes[id];
        let view = self.view(id);
        let cursor = table.cursor;
        let mut update = |id: NodeId| {
            let node = self.nodes.get(id).filter(|_| table.is_eligible(id));
            let fits = node.map_or(0, |node| match view.as_ref().map(|view| view.room(id)) {
                None => node.multiplicity(class),
                Some(0) => 0,
                Some(most) => node.multiplicity_up_to(class, most),
            });
            table.set_count(id, fits, &self.topologies);
            if let Some(node) = node.filter(|_| fits > 0) {
                searched.note_open(node);
            }
        };
        match (self.changes.since(cursor), stirred) {
            (Some(changed), Stirred::Nodes(stirred)) if !fresh => {
                changed.chain(stirred).for_each(&mut update);
            }
            _ => self.nodes.numbers().for_each(&mut update),
        }
        table.cursor = self.changes.end();
        table.relation_stamp = stamp;
        self.classes[id].table = Some(table);
        *self.lanes.searched_mut(id) = searched;
    }

    /// The table of a class as of its last refresh; `None`: it has none.
    pub(crate) fn table_as_of(&self, id: ClassId) -> Option<&Table> {
        self.classes[id].table.as_deref()
    }

    /// How many pods of a class fit on a node, as of when its table was last refreshed.
    pub(crate) fn fits_on(&self, id: ClassId, node: NodeId) -> u32 {
        self.table_as_of(id).map_or(0, |table| table.count(node))
    }

    /// A table with what the static filters say of a class on every node. Most shapes differ in
    /// amounts alone, so the verdicts are copied from a table of another class if one is judged
    /// alike: every table has current verdicts.
    fn judge_all(&self, id: ClassId) -> Table {
        let shape = &self.classes[id].shape;
        // Most shapes differ in what is aligned; few clusters have nodes that reject pods for it.
        let aligned_alike =
            |class: &Class| !self.numa.is_strict() || class.shape.aligned == shape.aligned;
        let alike =
            |class: &&Class| filter::judged_alike(&class.shape, shape) && aligned_alike(class);
        let classes = self.classes.iter().map(|(_, class)| class);
        let judged = classes.filter(|class| class.table.is_some()).find(alike);
        if let Some(table) = judged.and_then(|class| class.table.as_deref()) {
            return Table::judged_like(table);
        }
        let mut table = Table::new();
        for (node, _) in self.nodes.iter() {
            table.judge(node, self.static_verdict(id, node));
        }
        table
    }

    /// What the static filters say of a class on a node; `None`: the node is not known.
    pub(crate) fn static_verdict(&self, id: ClassId, node: NodeId) -> Option<Result<(), Filter>> {
        let node = self.nodes.get(node)?;
        let known = node.known.as_ref()?;
        let shape = &self.classes[id].shape;
        let verdict = filter::static_verdict(shape, &known.facts, &known.gpu);
        Some(match &node.cells {
            Some(cells) => verdict.and_then(|()| cells.verdict(shape)),
            None => verdict,
        })
    }

    /// Whether amounts alone decide how many pods of a class fit on a node that suits it.
    pub(crate) fn counts_by_amounts(&self, id: ClassId) -> bool {
        let class = &self.classes[id];
        let may_be_rejected = self.numa.is_strict() && class.is_aligned();
        class.asks_for_amounts() && !may_be_rejected
    }

    /// Judges a node whose rules have changed anew in every table.
    pub(crate) fn judge_node(&mut self, node: NodeId) {
        for id in self.classes.ids() {
            if self.classes[id].table.is_none() {
                continue;
            }
            let verdict = self.static_verdict(id, node);
            if let Some(table) = &mut self.classes[id].table {
                table.judge(node, verdict);
            }
        }
    }

    /// How many nodes each static filter refuses to a class, most first.
    pub(crate) fn refusals(&self, id: ClassId) -> Vec<(Filter, u32)> {
        let Some(table) = self.table_as_of(id) else {
            return Vec::new();
        };
        let mut refusals: Vec<_> = table.refusals().map(|(f, n)| (f.clone(), n)).collect();
        refusals.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        refusals
    }
}
