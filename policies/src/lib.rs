//! Everything that gpu-batch decides.
//!
//! [`engine::Engine`] is the only door: the live scheduler, `plan` and the simulator feed it
//! [`event::Event`]s and carry out its [`command::Command`]s. The crate has no I/O, no clock, no
//! thread and no randomly seeded map; it cannot even name them, because it is `no_std`.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod audit;
pub mod command;
pub mod engine;
pub mod event;
pub mod explain;
pub mod facts;
pub mod filter;
mod gangs;
pub mod gpu;
mod ids;
pub mod lease;
pub mod names;
mod place;
mod plan;
pub mod queues;
pub mod reason;
pub mod report;
mod resources;
mod score;
pub mod settings;
mod state;
pub mod status;
mod tell;
mod topology;
mod txn;
