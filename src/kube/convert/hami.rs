//! HAMi's annotations, and what pods ask of the cards that it divides.
//!
//! HAMi's device plugin lists a node's cards in an annotation of the node, and serves a pod by
//! annotations of the pod; a lock, which is an annotation of the node, says which pod is served.
//! Formats differ by its version: all since 2.5 are read.

mod allocation;
mod annotation;
mod choice;
mod instances;
mod links;
mod lock;
mod register;
mod request;
mod text;

pub use allocation::CardContainers;
pub(crate) use allocation::{NODE as NODE_OF_CARDS, annotations as annotations_of_cards};
pub(super) use allocation::{by_container, parts};
pub(super) use choice::{
    MODE, NUMA_BIND, ORDER, is_bound_to_numa, note_unknown_numa_bind, note_unknown_order, text_of,
    unsupported_mode,
};
pub(super) use links::links;
pub(super) use lock::lock;
pub(crate) use lock::{LOCK as CARD_LOCK, written as written_card_lock};
pub(super) use register::cards;
pub(super) use request::{PARTS, asked, wants_parts};

/// The name by which pods ask for HAMi's own scheduler, unless it was installed under another.
pub(super) const OWN_SCHEDULER: &str = "hami-scheduler";

#[cfg(test)]
mod tests;
