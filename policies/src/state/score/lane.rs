//! Nodes ordered by score, for pods of one kind; kept current from the log of changed nodes.

use super::cluster::ClusterSums;
use super::fragmentation::Measure;
use super::score;
use super::target::Target;
use super::view::View;
use crate::facts::{Placement, TargetWorkload};
use crate::ids::{KindId, NodeId};
use crate::state::kinds::Kind;
use crate::state::lanes::{Bucket, Buckets, FreeKey};
use crate::state::node::Node;
use crate::state::{ClusterState, Lookup};

/// How many orders of nodes are kept. When one more is needed, the order that was read longest ago
/// is forgotten.
const LANES: usize = 512;

/// Everything that scores remember.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    pub(super) measure: Measure,
    /// Rises when the target workload changes.
    pub(super) version: u64,
    pub(super) cluster: ClusterSums,
    lanes: Lookup<(Placement, KindId), ScoreLane>,
    /// Whether the target workload is a setting.
    given: bool,
    /// The number of seen pods at which the target workload is worked out again.
    next_look: u64,
}

#[derive(Debug)]
struct ScoreLane {
    order: Buckets,
    /// How far the order has followed the log of changes; `None`: it has no nodes yet.
    cursor: Option<u64>,
    /// How far the order has followed [`ClusterState::reordered`].
    reordered: u64,
    version: u64,
}

impl Scores {
    /// See [`Measure::gain`].
    pub(super) fn gain(&mut self, view: &View, kind: &Kind, free: u16) -> i32 {
        self.measure.gain(view, kind, free)
    }

    /// Forgets all orders of nodes, because nodes or kinds have other numbers or ranks than before.
    pub(crate) fn forget_lanes(&mut self) {
        self.lanes.clear();
    }

    /// Forgets the orders of nodes for a kind that is gone.
    pub(crate) fn forget_kind(&mut self, kind: KindId) {
        self.lanes.retain(|(_, other), _| *other != kind);
    }

    fn make_room(&mut self) {
        if self.lanes.len() < LANES {
            return;
        }
        let lanes = self.lanes.iter();
        let oldest = lanes.min_by_key(|((placement, kind), lane)| (lane.cursor, *kind, *placement));
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.lanes.remove(&oldest);
        }
    }
}

impl ClusterState {
    /// Sets the target workload, whatever pods are seen.
    pub(crate) fn set_target_workload(&mut self, target: &TargetWorkload) {
        self.scores.given = true;
        self.aim(target);
    }

    fn aim(&mut self, target: &TargetWorkload) {
        let target = Target::new(target, &mut self.kinds);
        self.scores.measure.aim(target);
        self.scores.version += 1;
    }

    /// Makes the target workload anew from the pods that were seen, each time their number has
    /// grown by an eighth. If the target workload is a setting, nothing is done.
    pub(crate) fn retarget(&mut self) {
        let seen = self.kinds.ever_seen();
        if self.scores.given || seen < self.scores.next_look {
            return;
        }
        self.scores.next_look = seen + (seen / 8).max(1);
        let target = self.kinds.target();
        self.aim(&target);
    }

    /// Brings the order of nodes for pods of a kind up to date, and adds what that costs to `work`.
    pub(crate) fn refresh_scores(&mut self, placement: Placement, kind: KindId, work: &mut u64) {
        if placement == Placement::Fragmentation {
            self.retarget();
        }
        self.order_domains();
        let version = match placement {
            Placement::Fragmentation => self.scores.version,
            _ => 0,
        };
        let lane = self.scores.lanes.remove(&(placement, kind));
        let mut lane = lane
            .filter(|lane| lane.version == version)
            .unwrap_or_else(|| {
                self.scores.make_room();
                let (order, cursor) = (Buckets::default(), None);
                ScoreLane {
                    order,
                    cursor,
                    reordered: 0,
                    version,
                }
            });
        let (scores, kind_of) = (&mut self.scores, &self.kinds[kind]);
        let mut update = |id: NodeId, node: Option<&Node>| {
            *work += 20;
            let key =
                node.map(|node| (lane_key(scores, placement, node, kind_of), node.standing()));
            lane.order.set(id, key);
        };
        let changed = lane.cursor.and_then(|cursor| self.changes.since(cursor));
        match changed.zip(self.reordered.since(lane.reordered)) {
            Some((changed, reordered)) => changed
                .chain(reordered)
                .for_each(|id| update(id, self.nodes.get(id))),
            None => {
                let all = self.nodes.numbers();
                all.for_each(|id| update(id, self.nodes.get(id)));
            }
        }
        lane.cursor = Some(self.changes.end());
        lane.reordered = self.reordered.end();
        self.scores.lanes.insert((placement, kind), lane);
    }

    /// All nodes in the order in which pods of a kind take them, best first, as of the last
    /// refresh. Nodes of one score are in one bucket.
    pub(crate) fn by_score(
        &self,
        placement: Placement,
        kind: KindId,
    ) -> impl Iterator<Item = &Bucket> {
        let lane = self.scores.lanes.get(&(placement, kind));
        lane.into_iter().flat_map(|lane| lane.order.iter())
    }
}

fn lane_key(scores: &mut Scores, placement: Placement, node: &Node, kind: &Kind) -> FreeKey {
    let avoided = kind.pod.cards.is_none() && node.has_gpus();
    let score = i64::from(score(scores, placement, node, kind));
    [u64::from(avoided), i64::from(i32::MAX).abs_diff(score), 0]
}
