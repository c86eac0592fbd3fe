//! Placements for comparison only: papers compare other placements with these, and so do the
//! experiments of the simulator. [`Placement`](crate::facts::Placement) says what each is.
//!
//! Four parts of the experiments are elsewhere, each because it is one arm of a choice made there:
//! `Consolidated` sorts whole nodes, not scores, so it is in `place/fill`; `Random` has no lane of
//! nodes in order, so `place/lane` leaves it out; the queueing `Strict` lets no gang pass another,
//! which `plan/agenda` keeps; and the shortest job first (`sjf`) is the leaf order `ShortestFirst`,
//! a part of the key by which `plan/line` sorts.

use super::view::View;
use super::{LARGEST_CPU_MILLI, LARGEST_GPU_THOUSANDTHS, float, truncated};
use crate::facts::WHOLE_CARD;
use crate::state::cards::Sort;
use crate::state::kinds::Kind;
use crate::state::node::Node;
use alloc::vec::Vec;

/// How little the free room is aligned with the request: the measure of Tetris reversed, so that
/// the fullest node wins.
pub(super) fn dot_product(view: &View, kind: &Kind) -> i32 {
    let cpu = (float(view.cpu_milli) / LARGEST_CPU_MILLI)
        * (float(kind.pod.cpu_milli) / LARGEST_CPU_MILLI);
    let gpu = (float(view.idle()) / LARGEST_GPU_THOUSANDTHS)
        * (float(kind.gpu_thousandths()) / LARGEST_GPU_THOUSANDTHS);
    truncated(100.0 * (1.0 - (cpu + gpu) / 2.0))
}

/// Cards in use come first, then free cards of nodes in use, then empty nodes, small ones first.
pub(super) fn gpu_packing(view: &View, kind: &Kind, choice: &[u16]) -> i32 {
    let Some(need) = kind.pod.cards else {
        return 0;
    };
    let cards = i32::try_from(view.cards).unwrap_or(i32::MAX);
    if view.is_empty() {
        return cards.max(33_i32.saturating_sub(cards));
    }
    let least = choice.iter().copied().min().unwrap_or(WHOLE_CARD);
    if least == WHOLE_CARD {
        (50 - i32::from(need.count())).max(33)
    } else {
        (100 - i32::from(least) * 100 / i32::from(WHOLE_CARD) / 10).max(50)
    }
}

/// Brings together pods that ask for one sort of GPUs: best where all pods on the node are of the
/// sort of this pod.
pub(super) fn gpu_clustering(view: &View, node: &Node, kind: &Kind) -> i32 {
    let Some(need) = kind.pod.cards else {
        return 0;
    };
    let idle = i32::try_from(view.idle()).unwrap_or(i32::MAX);
    let base = 8_000_i32.saturating_sub(idle).saturating_mul(25) / 8_000;
    let own = Sort::of(&need);
    let sorts: Vec<Sort> = node.cards.sorts().collect();
    base + match sorts.as_slice() {
        [] => 25,
        [only] if *only == own => 75,
        several if several.contains(&own) => 50,
        _ => 0,
    }
}

/// A number that looks random: SplitMix64 over the seed, the pod's UID and the number of the node
/// or card that may be drawn.
pub(super) fn draw(seed: u64, uid: u128, among: u64) -> i32 {
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
