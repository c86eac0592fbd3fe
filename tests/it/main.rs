//! Tests against a real etcd and kube-apiserver.
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

mod cluster;
mod crowd;
mod definitions;
mod deploy;
mod disturbances;
mod gangs;
#[cfg(target_os = "linux")] // It reads /proc to see what is left running.
mod demo;
mod harness;
mod http;
mod jobs;
mod leaders;
mod local;
mod native;
mod queues;
mod waiting;
mod work;
