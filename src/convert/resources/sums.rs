//! Amounts by resource while they are added up.

use crate::convert::problems::Problems;
use crate::convert::quantity::{self, Thousandths};
use crate::objects::{Pairs, Quantity};
use gpu_batch_policies::facts::{AMOUNT_MAX, Amounts};
use std::collections::BTreeMap;
use std::fmt;

/// Amounts under way: a resource that is named with 0 is there, which decides some defaults.
pub(super) type Sums<'a> = BTreeMap<&'a str, Thousandths>;

pub(super) fn read<'a>(
    quantities: &'a Pairs<Quantity>,
    field: impl fmt::Display,
    problems: &mut Problems,
) -> Sums<'a> {
    let mut sums = Sums::new();
    for (name, Quantity(text)) in quantities.iter() {
        match quantity::thousandths(text) {
            Ok(amount) => {
                sums.insert(name, amount);
            }
            Err(error) => {
                problems.push_impossible(
                    format_args!("{field}[{name}]"),
                    format_args!("`{text}` {error}"),
                );
            }
        }
    }
    sums
}

pub(super) fn add<'a>(sums: &mut Sums<'a>, other: &Sums<'a>) {
    for (name, amount) in other {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

pub(super) fn raise<'a>(sums: &mut Sums<'a>, other: &Sums<'a>) {
    for (name, amount) in other {
        let sum = sums.entry(name).or_default();
        *sum = (*sum).max(*amount);
    }
}

/// Base units; what is above [`AMOUNT_MAX`] is a problem and counts as that much.
pub(super) fn base_units(sums: Sums<'_>, field: &str, problems: &mut Problems) -> Amounts {
    let mut amounts = Amounts::with_capacity(sums.len());
    for (name, sum) in sums {
        let amount = quantity::base_units(name, sum).unwrap_or_else(|_| {
            let sum = sum.div_ceil(1_000);
            let parts = if name == "cpu" { 1_000 } else { 1 };
            let most = AMOUNT_MAX / parts;
            problems.push(
                field,
                format_args!("asks for {sum} {name}; {most} is the most that can be counted"),
            );
            AMOUNT_MAX
        });
        amounts.push((name.into(), amount));
    }
    amounts
}
