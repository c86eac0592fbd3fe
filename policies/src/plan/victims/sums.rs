//! A proof without a search: all room together is too little.

use crate::facts::Amount;
use crate::ids::ResourceId;
use crate::place::Request;
use crate::queues::{Demand, GovernedId, amount_in};
use crate::resources::amount_of;
use crate::state::ClusterState;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Whether everything that is free, and everything that is given for good, is less than is
/// requested: a gang that moves takes as much room as it leaves. `given`: how much of a resource is
/// given back by units that need not come back.
pub(super) fn lacks(
    state: &ClusterState,
    request: &Request,
    given: impl Fn(ResourceId) -> u128,
) -> bool {
    let classes = request.classes().into_iter();
    let requests = classes.flat_map(|class| state.classes[class].apart());
    let resources: BTreeSet<ResourceId> = requests.map(|(resource, _)| *resource).collect();
    resources.into_iter().any(|resource| {
        let free = state.nodes.iter().map(|(_, node)| node.free(resource));
        let free: u128 = free.map(u128::from).sum();
        free + given(resource)
            < request.least(0, &|class| {
                amount_of(state.classes[class].apart(), resource)
            })
    })
}

/// The least that a request adds to what its queue holds, whichever of its members are placed;
/// `None`: they are governed by different keys.
pub(super) fn least_held(state: &ClusterState, request: &Request) -> Option<Demand> {
    let of_class = |class| state.demand(class, None);
    let mut classes = request.classes().into_iter();
    let mut least = of_class(classes.next()?);
    let keys =
        |demand: &Demand| -> Vec<GovernedId> { demand.iter().map(|(key, _)| *key).collect() };
    if !classes.all(|class| keys(&of_class(class)) == keys(&least)) {
        return None;
    }
    for (key, amount) in &mut least {
        let of_key = |class| amount_in(&of_class(class), *key);
        *amount = Amount::try_from(request.least(0, &of_key)).unwrap_or(Amount::MAX);
    }
    Some(least)
}
