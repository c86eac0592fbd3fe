//! A proof without a search: all room together is too little.

use crate::facts::Amount;
use crate::ids::ResourceId;
use crate::place::Request;
use crate::resources::amount_of;
use crate::state::ClusterState;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Whether everything that is free, and everything that is given for good, is less than is
/// requested: whoever moves takes as much room as it leaves. `given`: how much of a resource is
/// given back by those that need not come back.
pub(super) fn lacks(
    state: &ClusterState,
    request: &Request,
    given: impl Fn(ResourceId) -> u128,
) -> bool {
    if !request.is_plain() {
        return false;
    }
    let classes = request.classes().into_iter();
    let requests = classes.flat_map(|class| &state.classes[class].requests);
    let resources: BTreeSet<ResourceId> = requests.map(|(resource, _)| *resource).collect();
    resources.into_iter().any(|resource| {
        let free = state.nodes.iter().map(|(_, node)| node.free(resource));
        let free: u128 = free.map(u128::from).sum();
        free + given(resource) < least(state, request, resource)
    })
}

/// The least that a request asks of a resource, whichever of its members are placed.
fn least(state: &ClusterState, request: &Request, resource: ResourceId) -> u128 {
    let root = request.root();
    let groups = root.pods.iter();
    let mut amounts: Vec<(Amount, usize)> = groups
        .map(|group| {
            let requests = &state.classes[group.class].requests;
            (amount_of(requests, resource), group.pods.len())
        })
        .collect();
    amounts.sort_unstable();
    let mut lacking = root.need;
    let sums = amounts.into_iter().map(|(amount, pods)| {
        let taken = pods.min(lacking);
        lacking -= taken;
        u128::from(amount) * taken as u128
    });
    sums.sum()
}
