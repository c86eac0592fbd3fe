//! HAMi's annotations, and what pods ask of the cards that it divides.
//!
//! HAMi's device plugin lists a node's cards in an annotation of the node, and serves a pod by
//! annotations of the pod; a lock, which is an annotation of the node, says which pod is served.
//! Formats differ by its version: all since 2.5 are read.

#![cfg_attr(
    not(test),
    expect(dead_code, reason = "the facts that this fills are not there yet")
)]

mod allocation;
mod lock;
mod register;
mod request;

#[cfg(test)]
mod tests;
