//! Traces: what ran on a cluster, or might run, in files.
//!
//! `docs/traces.md` describes the files and says where public traces are. Reading checks what can
//! be checked in one file. Whether a job fits the cluster, and whether its queue exists, is found
//! out by the simulation, which lists the jobs that can never run.

pub mod jobs;
pub mod queues;
