//! What a bound says of the gangs that are broken.

use super::{Cost, Loss};

fn broken(outside: usize, weightless: usize) -> Cost {
    let mut cost = Cost::zero(1);
    let gangs = [(outside, true), (weightless, false)].into_iter();
    for has_weight in gangs.flat_map(|(count, has_weight)| core::iter::repeat_n(has_weight, count))
    {
        cost.add(&Cost::new(1, Some((0, has_weight)), Loss::default()));
    }
    cost
}

/// A bound that was rounded up in its first sum says nothing of the sums after it.
#[test]
fn a_set_breaks_no_fewer_gangs_than_it_breaks_outside_queues_of_weight_0() {
    let (none, four) = (broken(0, 0), broken(4, 0));
    let mut bound = Cost::zero(1);
    bound.add_rise(&none, &four);
    let bound = bound.least_whole(&none, &broken(1, 0), 1, 2);
    assert_eq!((bound.broken(), bound.broken_at_least()), (0, 5));
    assert_eq!(broken(2, 1).broken_at_least(), 3);
    assert_eq!(broken(0, 3).broken_at_least(), 1);
}
