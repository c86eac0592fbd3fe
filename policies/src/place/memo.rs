//! What a search for the places of a gang has found out, kept from one slice to the next.
//!
//! Each slice makes the whole attempt once more: areas that were packed in vain are not packed
//! again, answers are remembered, and the method at work goes on where it stopped. So the
//! transaction of each slice begins and ends empty, until a place is found. All this is valid as
//! long as nothing changes that the search has read, see [`super::read_set::ReadSet`].

use super::Area;
use super::method::Method;
use crate::ids::{NodeId, PodId};
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};

/// How many steps of about 50 ns a slice may take, 2 ms in all. That is less than half of the 5 ms
/// that a slice may last, because packing comes before the search and a slice ends only between two
/// steps.
pub(crate) const SLICE_STEPS: u64 = 40_000;
/// A question gets at least this many steps, however many questions share what is left.
const QUESTION_STEPS_MIN: u64 = 2_000;

/// Whether the members of a request, known by its signature, fit in an area.
pub(super) type Question = (u64, Area);

/// The answer to a question.
#[derive(Debug)]
pub(super) enum Known {
    /// The members fit: each with its node.
    Found(Vec<(PodId, NodeId)>),
    /// It is proved that the members do not fit.
    Impossible,
    /// The steps for this question were used up.
    GivenUp,
}

/// An exact method under way.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) method: Method,
    /// How many more steps the method may take, all slices together.
    pub(super) left: u64,
}

/// What one attempt to place a gang has found out so far.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// How many steps are left in this slice.
    pub(super) slice: u64,
    /// How many steps are left in all slices together.
    pub(super) left: u64,
    /// The slice was used up before every question was answered that matters.
    pub(super) interrupted: bool,
    /// How many choices of members share `left`: the current choice and those after it.
    pub(super) choices: usize,
    packed: BTreeSet<Question>,
    known: BTreeMap<Question, Known>,
    /// The method at work, with its question. Boxed: it is large, and mostly there is none.
    running: Option<Box<(Question, Running)>>,
}

impl Memo {
    /// Begins a slice of a search that may take `left` more steps in all.
    pub(crate) fn begin_slice(&mut self, left: u64) {
        self.left = left;
        self.slice = left.min(SLICE_STEPS);
        self.interrupted = false;
        self.choices = 1;
    }

    /// Forgets everything: something has changed that the search has read.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether the search goes on in the next slice, so that a refusal is not final.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// How many more steps the search may take.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// How many steps the question about an area may take: an equal part of what is left, so that
    /// one hard area does not keep the others from being tried. `areas`: how many are still to be
    /// asked about, this one among them.
    pub(super) fn share(&self, areas: usize) -> u64 {
        let sharers = (areas.max(1) as u64).saturating_mul(self.choices.max(1) as u64);
        (self.left / sharers).max(QUESTION_STEPS_MIN)
    }

    pub(super) fn spend(&mut self, steps: u64) {
        self.slice = self.slice.saturating_sub(steps);
        self.left = self.left.saturating_sub(steps);
    }

    /// Whether packing has not been tried for this question before. From now on it counts as tried.
    pub(super) fn packs_first(&mut self, question: Question) -> bool {
        self.packed.insert(question)
    }

    pub(super) fn recall(&self, question: Question) -> Option<&Known> {
        self.known.get(&question)
    }

    pub(super) fn remember(&mut self, question: Question, known: Known) -> &Known {
        self.known.entry(question).or_insert(known)
    }

    /// The method that was working on this question when the last slice ended. Any other method is
    /// dropped.
    pub(super) fn resume(&mut self, question: Question) -> Option<Running> {
        let (known, running) = *self.running.take()?;
        (known == question).then_some(running)
    }

    /// Keeps the method at work on a question for the next slice.
    pub(super) fn suspend(&mut self, question: Question, running: Running) {
        self.running = Some(Box::new((question, running)));
        self.interrupted = true;
    }
}
