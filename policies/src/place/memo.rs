//! What a search for a gang's place has found out, kept from one slice to the next.
//!
//! A slice makes the whole attempt once more: what was packed in vain is not packed again, what was
//! answered is remembered, and the question in hand goes on where it stopped. So the transaction of
//! each slice begins and ends empty, until a place is found. All this is true as long as nothing
//! changes that the search has read, see [`super::read_set::ReadSet`].

use super::Area;
use super::method::Method;
use crate::ids::{NodeId, PodId};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// How many steps of about 50 ns a slice may take: less than half of the 5 ms that it may last, for
/// it ends between two steps, and packing goes before it.
pub(crate) const SLICE_STEPS: u64 = 40_000;
/// The fewest steps that are worth a question, where many share what is left.
const QUESTION_STEPS_MIN: u64 = 2_000;

/// Whether these members, known by their signature, fit in an area.
pub(super) type Question = (u64, Area);

/// The knowledge about a question so far.
#[derive(Debug)]
pub(super) enum Known {
    /// They fit, here.
    Found(Vec<(PodId, NodeId)>),
    /// They do not.
    Impossible,
    /// Its steps were used up.
    GivenUp,
}

/// An exact method under way.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) method: Method,
    /// How many more steps it may take in all.
    pub(super) left: u64,
}

/// What one attempt to place a gang has found out so far.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// Steps that are left in this slice, and in all.
    pub(super) slice: u64,
    pub(super) left: u64,
    /// The slice was used up before everything was asked that matters.
    pub(super) interrupted: bool,
    /// Among how many choices of members, this one and those that follow, `left` is divided.
    pub(super) choices: usize,
    packed: BTreeSet<Question>,
    known: BTreeMap<Question, Known>,
    /// Large, and mostly not there.
    running: Option<Box<(Question, Running)>>,
}

impl Memo {
    /// Begins a slice of a search that may take so many more steps.
    pub(crate) fn begin_slice(&mut self, left: u64) {
        self.left = left;
        self.slice = left.min(SLICE_STEPS);
        self.interrupted = false;
        self.choices = 1;
    }

    /// Forgets everything: what was read has changed.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether a refusal is none yet: the next slice goes on.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// How many more steps the search may take.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// How many steps a question may take when so many areas, this one among them, are still to be
    /// asked about: an equal part, so that one hard area does not keep the others from being tried.
    pub(super) fn share(&self, areas: usize) -> u64 {
        let sharers = (areas.max(1) as u64).saturating_mul(self.choices.max(1) as u64);
        (self.left / sharers).max(QUESTION_STEPS_MIN)
    }

    pub(super) fn spend(&mut self, steps: u64) {
        self.slice = self.slice.saturating_sub(steps);
        self.left = self.left.saturating_sub(steps);
    }

    /// Whether packing has not been tried here before.
    pub(super) fn packs_first(&mut self, question: Question) -> bool {
        self.packed.insert(question)
    }

    pub(super) fn recall(&self, question: Question) -> Option<&Known> {
        self.known.get(&question)
    }

    pub(super) fn remember(&mut self, question: Question, known: Known) -> &Known {
        self.known.entry(question).or_insert(known)
    }

    /// The method that was working on a question when the last slice ended.
    pub(super) fn resume(&mut self, question: Question) -> Option<Running> {
        let (known, running) = *self.running.take()?;
        (known == question).then_some(running)
    }

    /// Keeps a method for the next slice.
    pub(super) fn suspend(&mut self, question: Question, running: Running) {
        self.running = Some(Box::new((question, running)));
        self.interrupted = true;
    }
}
