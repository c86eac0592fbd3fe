//! Placements that give each node a score, and take the node with the highest one.
//!
//! Source: Weng et al., Beware of Fragmentation, USENIX ATC 2023 (FGD), and the policies that it is
//! compared with there. Every score is an integer. Those that the paper computes with floats are
//! IEEE doubles in the order of operations of its experiment, truncated before they are compared,
//! so that all machines decide alike.

mod cluster;
mod fragmentation;
mod lane;
mod sigmoid;
mod target;
#[cfg(test)]
mod tests;
mod view;

use crate::facts::{Amount, CardIndex, Placement, WHOLE_CARD};
use crate::ids::{ClassId, NodeId, PodId};
use crate::state::ClusterState;
use crate::state::cards::Sort;
use crate::state::kinds::Kind;
use crate::state::node::Node;
use alloc::{boxed::Box, vec::Vec};
use core::cmp::Reverse;
pub(crate) use lane::Scores;
use view::View;

/// The largest machine of the experiment, which scores are measured in, whatever the node.
const LARGEST_CPU_MILLI: f64 = 128_000.0;
/// See [`LARGEST_CPU_MILLI`].
const LARGEST_GPU_THOUSANDTHS: f64 = 8_000.0;

/// What orders nodes, the least first: work without GPUs keeps away from nodes with GPUs; then
/// comes the highest score, then the order of filling.
pub(crate) type ScoreKey = (bool, Reverse<i32>, u64);

/// The score of a node on which the GPUs do not fit, as far as scores see them.
const UNFIT: i32 = i32::MIN;

impl ClusterState {
    /// Where a node stands for a pod of the class under a placement by score.
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

    /// The cards of a node that a pod which fits there gets, in rising order.
    pub(crate) fn choose_cards(
        &mut self,
        pod: PodId,
        node: NodeId,
        placement: Placement,
    ) -> Box<[CardIndex]> {
        let class = &self.classes[self.pods[pod].class];
        let Some(request) = class.cards else {
            return Box::default();
        };
        let (kind, node) = (&self.kinds[class.kind], &self.nodes[node]);
        let fitting = node.cards.fitting(request);
        if !request.is_fraction() {
            // All are alike: entirely free.
            let first = fitting.take(request.count().into());
            return first.map(|(index, _)| index).collect();
        }
        let card = match placement {
            Placement::Binpack
            | Placement::Consolidated
            | Placement::BestFit
            | Placement::DotProduct
            | Placement::GpuPacking
            | Placement::GpuClustering => fitting.min_by_key(|(index, free)| (*free, *index)),
            Placement::Spread => fitting.min_by_key(|(index, free)| (Reverse(*free), *index)),
            Placement::Random { seed } => {
                let uid = self.pods[pod].uid.0;
                fitting.min_by_key(|(index, _)| draw(!seed, uid, (*index).into()))
            }
            Placement::Fragmentation => {
                let view = View::of(node);
                let scores = &mut self.scores;
                let gain = |(index, free): &(CardIndex, u16)| {
                    (Reverse(scores.gain(&view, kind, *free)), *index)
                };
                fitting.min_by_key(gain)
            }
        };
        card.map(|(index, _)| index).into_iter().collect()
    }
}

/// The score of a node for pods of a kind.
fn score(scores: &mut Scores, placement: Placement, node: &Node, kind: &Kind) -> i32 {
    let view = View::of(node);
    let Some(choice) = view.choice(node, kind) else {
        return UNFIT;
    };
    match placement {
        Placement::BestFit => best_fit(&view, kind),
        Placement::DotProduct => dot_product(&view, kind),
        Placement::GpuPacking => gpu_packing(&view, kind, &choice),
        Placement::GpuClustering => gpu_clustering(&view, node, kind),
        Placement::Fragmentation => {
            let gains = choice.iter().map(|free| scores.gain(&view, kind, *free));
            gains.max().unwrap_or(UNFIT)
        }
        // These order nodes in another way.
        Placement::Binpack
        | Placement::Consolidated
        | Placement::Spread
        | Placement::Random { .. } => 0,
    }
}

/// What would be left, least first: 100 where nothing is.
fn best_fit(view: &View, kind: &Kind) -> i32 {
    let cpu_left = float(view.cpu_milli.saturating_sub(kind.pod.cpu_milli));
    let gpu_left = float(view.idle().saturating_sub(kind.gpu_thousandths()));
    let left = 0.5 * cpu_left / LARGEST_CPU_MILLI + 0.5 * gpu_left / LARGEST_GPU_THOUSANDTHS;
    truncated(100.0 * (1.0 - left))
}

/// How little the free room is aligned with the request: Tetris' measure reversed, so that the
/// fullest node wins.
fn dot_product(view: &View, kind: &Kind) -> i32 {
    let cpu = (float(view.cpu_milli) / LARGEST_CPU_MILLI)
        * (float(kind.pod.cpu_milli) / LARGEST_CPU_MILLI);
    let gpu = (float(view.idle()) / LARGEST_GPU_THOUSANDTHS)
        * (float(kind.gpu_thousandths()) / LARGEST_GPU_THOUSANDTHS);
    truncated(100.0 * (1.0 - (cpu + gpu) / 2.0))
}

/// Cards in use first, then free cards of nodes in use, then empty nodes, the small ones first.
fn gpu_packing(view: &View, kind: &Kind, choice: &[u16]) -> i32 {
    let Some(request) = kind.pod.cards else {
        return 0;
    };
    let cards = i32::try_from(view.cards).unwrap_or(i32::MAX);
    if view.is_empty() {
        return cards.max(33_i32.saturating_sub(cards));
    }
    let least = choice.iter().copied().min().unwrap_or(WHOLE_CARD);
    if least == WHOLE_CARD {
        (50 - i32::from(request.count())).max(33)
    } else {
        (100 - i32::from(least) * 100 / i32::from(WHOLE_CARD) / 10).max(50)
    }
}

/// Pods that ask for the same sort of GPUs together.
fn gpu_clustering(view: &View, node: &Node, kind: &Kind) -> i32 {
    let Some(request) = kind.pod.cards else {
        return 0;
    };
    let idle = i32::try_from(view.idle()).unwrap_or(i32::MAX);
    let base = 8_000_i32.saturating_sub(idle).saturating_mul(25) / 8_000;
    let own = Sort::of(&request);
    let sorts: Vec<Sort> = node.cards.sorts().collect();
    base + match sorts.as_slice() {
        [] => 25,
        [only] if *only == own => 75,
        several if several.contains(&own) => 50,
        _ => 0,
    }
}

/// A number that looks drawn: SplitMix64 over the seed, the pod and what is drawn among.
fn draw(seed: u64, uid: u128, among: u64) -> i32 {
    let [low, high] = [uid, uid >> 64].map(|half| half & u128::from(u64::MAX));
    let words = [low, high, among.into()].map(|word| u64::try_from(word).unwrap_or(0));
    let mixed = words
        .into_iter()
        .fold(seed, |state, word| mix(state ^ word));
    i32::try_from(mixed >> 33).unwrap_or(0)
}

/// One step of SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators,
/// OOPSLA 2014).
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An amount as a double: exact below 2^53, and the nearest one above.
#[expect(clippy::cast_precision_loss, reason = "no machine has amounts of 2^53")]
fn float(amount: Amount) -> f64 {
    amount as f64
}

/// The integer part.
#[expect(clippy::cast_possible_truncation, reason = "what the experiment does")]
fn truncated(score: f64) -> i32 {
    score as i32
}
