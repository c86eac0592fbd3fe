//! The other shell around [`gpu_batch_policies`]: a model world in virtual time.
//!
//! So far it is what tests of the engine need: a model of the API server ([`world`]), faults drawn
//! from a seed ([`faults`]), worlds drawn from a seed ([`scenario`]), and runs that check what must
//! hold at every step and at rest ([`run`]). Nothing here reads a clock, a file or a random source:
//! the same seed gives the same run on every machine.
#![forbid(unsafe_code)]

pub mod api_server;
pub mod faults;
pub mod objects;
pub mod random;
mod rest;
pub mod run;
pub mod scenario;
pub mod shell;
pub mod world;
