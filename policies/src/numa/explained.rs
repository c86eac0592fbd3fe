//! Which pods explain what an object says is in use, and where they have it.
//!
//! An object has amounts and no pods. The oldest pods whose amounts are in it are those that it
//! counts, and each of them has what it has in one cell where that is possible. The younger ones
//! came after the exporter last looked, and get what the kubelet gives them.

use super::cells::{CellShare, Cells};
use crate::facts::{Amount, PodShape};
use alloc::{boxed::Box, vec::Vec};
use core::cmp::Reverse;

impl Cells {
    /// What a pod on the node has, if the object counts the pod: of one cell, else of several.
    /// `None`: the object does not count the pod.
    pub(crate) fn explained_by(&mut self, shape: &PodShape) -> Option<Box<[CellShare]>> {
        let needs = self.needs_in_all(shape);
        if needs.amounts.is_empty() {
            return None;
        }
        let unexplained = |cell: usize, number: usize| self.unexplained[self.at(cell, number)];
        let has = |cell: &usize| {
            let mut amounts = needs.amounts.iter();
            amounts.all(|(number, amount)| unexplained(*cell, *number) >= u128::from(*amount))
        };
        // The cell that has the least too much: others may explain the rest.
        let rest = |cell: &usize| {
            let numbers = needs.amounts.keys();
            let rest: Vec<u128> = numbers.map(|it| unexplained(*cell, *it)).collect();
            rest
        };
        if let Some(cell) = self.numbers().filter(has).min_by_key(rest) {
            let amounts = needs.amounts.iter();
            let amounts: Vec<(usize, Amount)> = amounts
                .map(|(number, amount)| (self.at(cell, *number), *amount))
                .collect();
            return Some(self.explain(&amounts));
        }
        let mut taken = Vec::new();
        for (number, amount) in &needs.amounts {
            let mut missing = *amount;
            for cell in self.numbers() {
                let has = Amount::try_from(unexplained(cell, *number)).unwrap_or(Amount::MAX);
                let part = has.min(missing);
                missing -= part;
                taken.push((self.at(cell, *number), part));
            }
            if missing > 0 {
                return None;
            }
        }
        Some(self.explain(&taken))
    }

    /// What each of the pods on the node has, oldest first; the cells count no pods yet, and count
    /// all of them then.
    pub(crate) fn explain_all(&mut self, pods: &[&PodShape]) -> Vec<Box<[CellShare]>> {
        let mut counted: Vec<usize> = Vec::new();
        let mut open = self.clone();
        for (index, shape) in pods.iter().enumerate() {
            if open.spread(shape) {
                counted.push(index);
            }
        }
        // Large pods first: small ones find a cell among what is left.
        let size = |index: &usize| {
            let needs = self.needs_in_all(pods[*index]);
            Reverse(needs.amounts.into_iter().collect::<Vec<_>>())
        };
        counted.sort_by_cached_key(size);
        let mut found: Vec<Option<Box<[CellShare]>>> = pods.iter().map(|_| None).collect();
        for index in counted {
            found[index] = self.explained_by(pods[index]);
            if let Some(shares) = &found[index] {
                self.take(shares);
            }
        }
        let shares = found.into_iter().zip(pods).map(|(known, shape)| {
            known.unwrap_or_else(|| {
                let shares = self.foreseen(shape);
                self.take(&shares);
                shares
            })
        });
        shares.collect()
    }

    /// Whether all cells together have in use what a pod has; if so, it is explained.
    fn spread(&mut self, shape: &PodShape) -> bool {
        let needs = self.needs_in_all(shape);
        let sum = |number: usize| -> u128 {
            let cells = self.numbers();
            cells.map(|it| self.unexplained[self.at(it, number)]).sum()
        };
        let mut amounts = needs.amounts.iter();
        let is_counted = amounts.all(|(number, amount)| sum(*number) >= u128::from(*amount));
        if needs.amounts.is_empty() || !is_counted {
            return false;
        }
        for (number, amount) in &needs.amounts {
            let mut missing = u128::from(*amount);
            for cell in self.numbers() {
                let at = self.at(cell, *number);
                let part = self.unexplained[at].min(missing);
                self.unexplained[at] -= part;
                missing -= part;
            }
        }
        true
    }
}
