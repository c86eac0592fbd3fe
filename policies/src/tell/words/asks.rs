//! What one member asks for, in words.

use crate::facts::{Amount, CardNeed, quantity};
use crate::ids::{ClassId, ResourceId};
use crate::state::ClusterState;
use alloc::{format, string::String, vec::Vec};

/// What one member asks for, of the resources that matter: its cards or its primary resource, and
/// `scarce`, which most nodes have too little of: `8 nvidia.com/gpu and 600Gi memory`.
pub(in crate::tell) fn asks(
    state: &ClusterState,
    class: ClassId,
    scarce: Option<ResourceId>,
) -> String {
    let class = &state.classes[class];
    let mut parts: Vec<String> = class.cards.iter().map(cards_in_words).collect();
    let primary = Some(class.primary).filter(|_| parts.is_empty());
    let scarce = scarce.filter(|scarce| primary != Some(*scarce));
    for resource in primary.into_iter().chain(scarce) {
        let amount = crate::resources::amount_of(&class.requests, resource);
        if amount > 0 {
            parts.push(amount_in_words(state.resource_names.name(resource), amount));
        }
    }
    if parts.is_empty() {
        return "no requests".into();
    }
    parts.join(" and ")
}

/// `8 nvidia.com/gpu`, `500m cpu`, `64Gi memory`.
pub(in crate::tell) fn amount_in_words(resource: &str, amount: Amount) -> String {
    format!("{} {resource}", quantity(resource, amount))
}

/// `2 cards`, `300 thousandths of a card`.
fn cards_in_words(cards: &CardNeed) -> String {
    match (cards.is_fraction(), cards.count()) {
        (true, _) => format!("{} thousandths of a card", cards.thousandths()),
        (false, 1) => "1 card".into(),
        (false, several) => format!("{several} cards"),
    }
}
