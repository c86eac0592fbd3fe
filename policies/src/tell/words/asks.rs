//! What one member asks for, in words.

use crate::facts::{Amount, CardMemory, CardNeed, quantity};
use crate::ids::{ClassId, ResourceId};
use crate::state::ClusterState;
use crate::state::class::Class;
use alloc::{format, string::String, vec::Vec};

/// What one member asks for, of the resources that matter: its cards or its primary resource, and
/// `scarce`, which most nodes have too little of: `8 nvidia.com/gpu and 600Gi memory`.
pub(in crate::tell) fn asks(
    state: &ClusterState,
    class: ClassId,
    scarce: Option<ResourceId>,
) -> String {
    let class = &state.classes[class];
    let cards: Vec<String> = card_needs(class).iter().map(cards_in_words).collect();
    let mut parts: Vec<String> = Vec::new();
    if !cards.is_empty() {
        parts.push(cards.join(" + "));
    }
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

/// What the containers of a pod ask for that ask for cards.
fn card_needs(class: &Class) -> Vec<CardNeed> {
    let terms = class.shape.card_terms.iter();
    let several = terms.flat_map(|terms| &terms.containers);
    let several: Vec<CardNeed> = several.map(|container| container.need).collect();
    match several.is_empty() {
        true => class.cards.into_iter().collect(),
        false => several,
    }
}

/// `8 nvidia.com/gpu`, `500m cpu`, `64Gi memory`.
pub(in crate::tell) fn amount_in_words(resource: &str, amount: Amount) -> String {
    format!("{} {resource}", quantity(resource, amount))
}

/// `2 cards`, `300 thousandths of a card`, `300 thousandths and 4000 MiB of each of 2 cards`.
fn cards_in_words(cards: &CardNeed) -> String {
    let count = cards.count();
    if !cards.is_fraction() {
        return format!("{count} card{}", if count == 1 { "" } else { "s" });
    }
    let power = match cards.thousandths() {
        0 => None,
        thousandths => Some(format!("{thousandths} thousandths")),
    };
    let memory = match cards.memory() {
        CardMemory::Any => None,
        CardMemory::Mib(memory_mib) => Some(format!("{memory_mib} MiB")),
        CardMemory::Percent(percent) => Some(format!("{percent} % of the memory")),
    };
    let parts: Vec<String> = power.into_iter().chain(memory).collect();
    let parts = match parts.is_empty() {
        true => "a slot".into(),
        false => parts.join(" and "),
    };
    match count {
        1 => format!("{parts} of a card"),
        several => format!("{parts} of each of {several} cards"),
    }
}
