//! Everything that gpu-batch decides.
//!
//! [`engine::Engine`] is the only door: the live scheduler, `plan` and the simulator feed it
//! [`event::Event`]s and carry out its [`command::Command`]s. The crate has no I/O, no clock, no
//! thread and no randomly seeded map; it cannot even name them, because it is `no_std`.
//!
//! No float takes part in a decision, except in the published scores of `state::score`. Amounts are
//! below 2^55, weights below 2^16, and past use makes a weight up to 46 bits longer, so shares are
//! compared exactly, in products of 192 bits.
//!
//! There are no errors. A bad world is a value: a reason, a problem, a refusal.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod audit;
mod bind;
pub mod command;
pub mod engine;
pub mod event;
pub mod explain;
pub mod extender;
pub mod facts;
mod filter;
mod gangs;
mod gpu;
mod ids;
pub mod lease;
pub mod names;
mod numa;
mod place;
mod plan;
mod queues;
pub mod reason;
pub mod report;
mod resources;
pub mod settings;
mod state;
mod tell;
mod topology;
mod txn;

pub use facts::status;
