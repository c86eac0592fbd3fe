//! The live shell of gpu-batch: watches in, requests out, and the command line.
//!
//! Nothing is decided here: no comparison of nodes, gangs or queues. Every decision is made in
//! [`gpu_batch_policies`].
//!
//! A room knows the rooms above it in this list, and none below:
//!
//! | room | what it has |
//! |---|---|
//! | `handles` | what all parts of a running scheduler share: clock, inbox, health, metrics |
//! | [`kube`] | Kubernetes: its objects read and converted, watched, and commands as requests |
//! | [`views`] | what people see of gangs, queues and plans: tables and JSON |
//! | [`extender`] | what kube-scheduler asks, over HTTP, for the pods that it places |
//! | [`live`] | the running scheduler: configuration, the loop, the pages that it serves |
//! | [`plan`] | the dry run: objects of files and of a cluster, and a world that obeys the engine |
//! | [`lab`] | demo, benchmarks and the local control plane that they run on |
//! | [`cli`] | the command line |

pub mod cli;
pub mod extender;
mod handles;
pub mod kube;
pub mod lab;
pub mod live;
pub mod plan;
pub mod views;
