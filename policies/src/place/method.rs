//! The exact methods: counting for two shapes, a search in all other cases.
//!
//! Both work on a [`Problem`], a copy of the numbers, so they can stop at the end of a slice and go
//! on in the next.

use super::problem::{Problem, SliceResult};
use super::search::Search;
use super::two_shapes::TwoShapes;

/// An exact method and how far it has come.
#[derive(Debug)]
pub(super) enum Method {
    Counting(TwoShapes),
    Search(Search),
}

impl Method {
    pub(super) fn new(problem: Problem) -> Self {
        if TwoShapes::suits(&problem) {
            Self::Counting(TwoShapes::new(problem))
        } else {
            Self::Search(Search::new(problem))
        }
    }

    pub(super) fn run(&mut self, steps: &mut u64) -> SliceResult {
        match self {
            Self::Counting(counting) => counting.run(steps),
            Self::Search(search) => search.run(steps),
        }
    }
}
