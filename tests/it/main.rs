//! Tests against a real etcd and kube-apiserver.
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

mod harness;
mod local;
