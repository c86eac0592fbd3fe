//! Tests against a real etcd and kube-apiserver.
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

mod asked;
mod beside;
mod chart;
mod cluster;
mod conformance;
mod crashes;
mod crowd;
mod definitions;
#[cfg(target_os = "linux")] // It reads /proc to see what is left running.
mod demo;
mod deploy;
mod diary;
mod disturbances;
mod explain;
mod extender;
mod gangs;
mod hami;
mod harness;
mod health;
mod http;
mod jobs;
#[cfg(target_os = "linux")] // It runs what the demo runs.
mod journal;
mod leaders;
mod lists;
mod local;
mod nasty;
mod native;
mod numa;
mod owners;
mod plan;
mod queues;
#[cfg(target_os = "linux")] // It reads /proc to see what is left running.
mod readme;
mod restarts;
mod settings;
mod takings;
mod troubles;
mod volumes;
mod waiting;
mod webhooks;
mod work;
