//! Placements that give each node a score, and take the node with the highest one.
//!
//! Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023 (FGD), and the policies that the
//! paper compares FGD with. Every score is an integer. Scores that the paper computes with floats
//! are computed here with IEEE doubles, in the order of operations of its experiment, and truncated
//! before they are compared, so that all machines decide alike.

mod cluster;
mod experiments;
mod fragmentation;
mod lane;
mod sigmoid;
mod target;
#[cfg(test)]
mod tests;
mod view;

use crate::facts::{Amount, CardOrder, Placement};
use crate::ids::{ClassId, NodeId, PodId};
use crate::state::ClusterState;
use crate::state::cards::{Fitting, Held};
use crate::state::kinds::Kind;
use crate::state::node::Node;
use core::cmp::Reverse;
use experiments::draw;
pub(crate) use lane::Scores;
use smallvec::SmallVec;
use view::View;

/// The CPU of the largest machine in the experiment: the unit in which scores measure CPU on all
/// nodes.
const LARGEST_CPU_MILLI: f64 = 128_000.0;
/// The GPUs of the largest machine in the experiment, in thousandths of a card: the unit in which
/// scores measure GPUs on all nodes.
const LARGEST_GPU_THOUSANDTHS: f64 = 8_000.0;

/// The key that orders nodes, the least first: for work without GPUs, nodes with GPUs come last;
/// then the highest score comes first, then the order of filling.
pub(crate) type ScoreKey = (bool, Reverse<i32>, u64);

/// The score of a node on which the GPUs do not fit, as far as scores see them.
const UNFIT: i32 = i32::MIN;

impl ClusterState {
    /// The key of a node for a pod of a class under a placement by score.
    pub(crate) fn score_key(
        &mut self,
        placement: Placement,
        class: ClassId,
        id: NodeId,
        pod: PodId,
    ) -> ScoreKey {
        let class = &self.classes[class];
        let node = &self.nodes[id];
        let avoided = !class.accelerated && node.has_gpus();
        let score = match placement {
            Placement::Random { seed } => {
                draw(seed, self.pods[pod].uid.0, self.order.number(node.rank))
            }
            _ => score(&mut self.scores, placement, node, &self.kinds[class.kind]),
        };
        (avoided, Reverse(score), node.rank)
    }

    /// What a pod which fits on a node gets of its cards, in the order of their ids.
    pub(crate) fn choose_cards(&mut self, pod: PodId, node: NodeId, placement: Placement) -> Held {
        let class = &self.classes[self.pods[pod].class];
        let Some(need) = class.cards else {
            return Held::default();
        };
        let (kind, node) = (&self.kinds[class.kind], &self.nodes[node]);
        let uid = self.pods[pod].uid.0;
        let terms = class.shape.card_terms.as_deref();
        let mut said = terms.iter().flat_map(|terms| &terms.order);
        let said = said.find_map(|order| match order {
            CardOrder::Binpack => Some(Placement::Binpack),
            CardOrder::Spread => Some(Placement::Spread),
            CardOrder::Numa | CardOrder::Links => None,
        });
        let placement = said.unwrap_or(placement);
        let scores = &mut self.scores;
        let view = (placement == Placement::Fragmentation).then(|| View::of(node));
        let mut price = |fitting: &mut [Fitting]| {
            price_cards(fitting, placement, uid, |free| {
                let view = view.as_ref();
                view.map_or(0, |view| scores.gain(view, kind, free))
            });
        };
        if let Some(terms) = terms.filter(|terms| !terms.containers.is_empty()) {
            return node.cards.hold_several(terms, price);
        }
        let mut fitting: SmallVec<[Fitting; 8]> = node.cards.fitting(need, terms).collect();
        // Of whole cards all are alike: entirely free.
        if need.is_fraction() {
            price(&mut fitting);
            fitting.sort_by_key(|card| card.cost);
        }
        node.cards.hold_one(&need, terms, &fitting)
    }
}

/// Says what cards cost under a placement, which takes the cheapest first. `gain`: the score of
/// [`Placement::Fragmentation`] by the free part of a card, in thousandths.
fn price_cards(
    fitting: &mut [Fitting],
    placement: Placement,
    uid: u128,
    mut gain: impl FnMut(u16) -> i32,
) {
    // Cards in MIG mode are packed by what an instance costs of them.
    let are_cut = fitting.iter().all(|card| card.loss.is_some());
    for card in fitting {
        card.cost = match placement {
            Placement::Binpack
            | Placement::Consolidated
            | Placement::BestFit
            | Placement::DotProduct
            | Placement::GpuPacking
            | Placement::GpuClustering => {
                let loss = card.loss.filter(|_| are_cut).unwrap_or(0);
                u64::from(loss) << 16 | u64::from(card.free)
            }
            Placement::Spread => u64::from(u16::MAX - card.free),
            Placement::Random { seed } => rising(draw(!seed, uid, card.position as u64)),
            Placement::Fragmentation => u64::from(u32::MAX) - rising(gain(card.free)),
        };
    }
}

/// A score as a number that is not negative, in the order of the scores.
fn rising(score: i32) -> u64 {
    u64::from(score.abs_diff(i32::MIN))
}

/// The score of a node for pods of a kind.
fn score(scores: &mut Scores, placement: Placement, node: &Node, kind: &Kind) -> i32 {
    let view = View::of(node);
    let Some(choice) = view.choice(node, kind) else {
        return UNFIT;
    };
    match placement {
        Placement::BestFit => best_fit(&view, kind),
        Placement::DotProduct => experiments::dot_product(&view, kind),
        Placement::GpuPacking => experiments::gpu_packing(&view, kind, &choice),
        Placement::GpuClustering => experiments::gpu_clustering(&view, node, kind),
        Placement::Fragmentation => {
            let gains = choice.iter().map(|free| scores.gain(&view, kind, *free));
            gains.max().unwrap_or(UNFIT)
        }
        // These placements order nodes in another way.
        Placement::Binpack
        | Placement::Consolidated
        | Placement::Spread
        | Placement::Random { .. } => 0,
    }
}

/// The score of [`Placement::BestFit`]: 100 where nothing would be left, and less the more would
/// be.
fn best_fit(view: &View, kind: &Kind) -> i32 {
    let cpu_left = float(view.cpu_milli.saturating_sub(kind.pod.cpu_milli));
    let gpu_left = float(view.idle().saturating_sub(kind.gpu_thousandths()));
    let left = 0.5 * cpu_left / LARGEST_CPU_MILLI + 0.5 * gpu_left / LARGEST_GPU_THOUSANDTHS;
    truncated(100.0 * (1.0 - left))
}

/// An amount as a double: exact below 2^53, and the nearest one above.
#[expect(clippy::cast_precision_loss, reason = "no machine has amounts of 2^53")]
fn float(amount: Amount) -> f64 {
    amount as f64
}

/// The integer part of a score.
#[expect(clippy::cast_possible_truncation, reason = "what the experiment does")]
fn truncated(score: f64) -> i32 {
    score as i32
}
