//! How much of a node's free GPUs is of no use for the target workload.

use super::target::{Target, Typical};
use super::view::{Frees, View};
use super::{float, sigmoid};
use crate::ids::ModelId;
use crate::state::Lookup;
use crate::state::kinds::Kind;

/// How many rooms are remembered before all are forgotten.
const REMEMBERED: usize = 1 << 16;

/// The fragmented part of a node's free GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fragmented {
    /// The expectation over the target workload, in thousandths of a card: what decisions compare.
    pub(crate) expected: f64,
    /// The expectation times the sum of all weights, exactly: it can be summed over nodes in any
    /// order.
    pub(crate) weighted: u128,
}

/// Works out the fragmentation of rooms, and remembers it: nodes with equal room share it.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    pub(crate) target: Target,
    /// By GPU model, [`Target::cpu_level`] and free cards.
    known: Lookup<(Option<ModelId>, u32, Frees), Fragmented>,
}

/// What a kind of pod can make of a room. The shares are summed in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    LacksBoth,
    LacksGpus,
    Satisfied,
    LacksCpu,
    NeedsNoGpus,
    NeedsNoGpusLacksCpu,
    WrongModel,
}

/// How many [`Use`]s there are.
const USES: usize = 7;

impl Measure {
    pub(crate) fn aim(&mut self, target: Target) {
        self.target = target;
        self.known.clear();
    }

    /// The fragmented part of a room.
    pub(crate) fn of(&mut self, view: &View) -> Fragmented {
        let key = (
            view.model,
            self.target.cpu_level(view.cpu_milli),
            view.frees.clone(),
        );
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let fragmented = work_out(&self.target, view);
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(key, fragmented);
        fragmented
    }

    /// The score of one more pod of the kind on a card with `free` free thousandths: above 50 if
    /// less is fragmented afterwards, below 50 if more is.
    pub(crate) fn gain(&mut self, view: &View, kind: &Kind, free: u16) -> i32 {
        let before = self.of(view).expected;
        let after = self.of(&view.after(kind, free)).expected;
        sigmoid::percent((before - after) / 1000.0)
    }
}

/// Works out the fragmentation of a room, with the sums of the published experiment in its order:
/// ties depend on it.
fn work_out(target: &Target, view: &View) -> Fragmented {
    let idle = view.idle();
    let mut shares = [0.0; USES];
    let mut weighted = 0;
    for typical in &target.typical {
        let outcome = outcome(typical, view);
        let mut lost = idle;
        if outcome == Use::Satisfied {
            lost = too_small(typical, &view.frees);
            shares[Use::LacksGpus as usize] += typical.probability * float(lost);
            shares[Use::Satisfied as usize] += typical.probability * float(idle - lost);
        } else {
            shares[outcome as usize] += typical.probability * float(idle);
        }
        weighted += u128::from(typical.weight) * u128::from(lost);
    }
    let lost = shares.iter().enumerate();
    let lost = lost.filter(|(share, _)| *share != Use::Satisfied as usize);
    Fragmented {
        expected: lost.fold(0.0, |sum, (_, share)| sum + share),
        weighted,
    }
}

fn outcome(typical: &Typical, view: &View) -> Use {
    let enough_cpu = view.cpu_milli >= typical.cpu_milli;
    let Some((count, thousandths)) = typical.cards else {
        return if enough_cpu {
            Use::NeedsNoGpus
        } else {
            Use::NeedsNoGpusLacksCpu
        };
    };
    let runs_on = |model| typical.models.contains(&model);
    if !typical.models.is_empty() && !view.model.is_some_and(runs_on) {
        return Use::WrongModel;
    }
    let fitting = view.frees.iter().filter(|(free, _)| *free >= thousandths);
    let enough_cards = fitting.map(|(_, cards)| u64::from(*cards)).sum::<u64>() >= u64::from(count);
    match (enough_cards, enough_cpu) {
        (true, true) => Use::Satisfied,
        (true, false) => Use::LacksCpu,
        (false, true) => Use::LacksGpus,
        (false, false) => Use::LacksBoth,
    }
}

/// The sum of the free parts of cards that are too small for a kind, in thousandths of a card.
fn too_small(typical: &Typical, frees: &Frees) -> u64 {
    let thousandths = typical.cards.map_or(0, |(_, thousandths)| thousandths);
    let small = frees.iter().take_while(|(free, _)| *free < thousandths);
    small
        .map(|(free, cards)| u64::from(*free) * u64::from(*cards))
        .sum()
}
