//! The live shell of gpu-batch: watches in, requests out, and the command line.
//!
//! Nothing is decided here: no comparison of nodes, gangs or queues. Whatever is decided is decided
//! in [`gpu_batch_policies`].

pub mod api;
pub mod bench;
pub mod cli;
pub mod comparer;
pub mod config;
pub mod connection;
pub mod convert;
pub mod demo;
pub mod driver;
pub mod execute;
pub mod explain;
pub mod gangs;
pub mod leader;
pub mod local;
pub mod objects;
pub mod plan;
pub mod progress;
pub mod queue_tree;
pub mod replay;
pub mod serve;
pub mod table;
pub mod telemetry;
pub mod watch;
