//! The second shell around [`gpu_batch_policies`], beside the live one: a model world in virtual
//! time.
//!
//! A cluster (the API server in [`api_server`], kubelets, owners and garbage collection),
//! schedulers that watch it and send requests ([`shell`]), faults between all of them ([`faults`]),
//! worlds drawn from a seed, runs that check what must hold at every step and at rest ([`run`]),
//! campaigns over many seeds ([`campaign`]), and a sweep over every crash ([`crash_sweep`]). There
//! is also a [`timeline`], a world without faults that is lean enough for traces of a million jobs;
//! the fill-up experiment [`openb`] runs on it. Nothing in this crate reads a clock or a random
//! source: the same seed gives the same run on every machine. The crate reads only files that the
//! user names ([`input`]), such as traces of jobs ([`trace`]); a user without a trace may
//! [`generate`] one.
#![forbid(unsafe_code)]

pub mod api_server;
pub mod campaign;
pub mod client;
mod cluster;
mod contender;
pub mod crash_sweep;
pub mod faults;
mod gangs;
pub mod generate;
pub mod input;
pub mod jobs;
pub mod journal;
pub mod objects;
pub mod openb;
mod panics;
pub mod prompt_storage;
pub mod random;
pub mod report;
mod rest;
mod rules;
pub mod run;
mod scenario;
pub mod shell;
pub mod timeline;
pub mod trace;
mod volumes;
pub mod what_if;
