//! Files of objects that a command reads, over a cluster if one is named: what a plan begins with.

use super::options::ClusterArgs;
use super::scheduler::SchedulerArgs;
use super::{Failure, wait_for};
use crate::kube::convert::CardContainers;
use crate::kube::objects::Timestamp;
use crate::live::config::Configuration;
use crate::plan::{self, Captured, Evicted, Input};
use crate::views::table::printable;
use anyhow::{Context, anyhow};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::UnixMs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Files of objects, and the configuration under which they are planned.
#[derive(Debug, clap::Args)]
pub(super) struct FilesArgs {
    /// Instead of a scheduler: a file of Kubernetes objects, a folder of such files, or - for
    /// standard input; over the cluster, where --context or --kubeconfig names one
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..,
          conflicts_with_all = SchedulerArgs::ADDRESS)]
    filename: Vec<PathBuf>,
    /// With files, the configuration file (see `gpu-batch config --print-defaults`)
    #[arg(long, value_name = "FILE", requires = "filename")]
    config: Option<PathBuf>,
}

impl FilesArgs {
    /// Whether a file is named.
    pub(super) fn are_named(&self) -> bool {
        !self.filename.is_empty()
    }

    /// Reads the cluster, if one is named, and the files over it, as [`world`] does.
    pub(super) fn world(&self, cluster: &ClusterArgs) -> Result<World, Failure> {
        world(&self.filename, self.config.as_deref(), cluster)
    }
}

/// What a plan of one cycle begins with.
pub(super) struct World {
    pub(super) objects: Vec<Object>,
    /// The containers of pods with cards, by `namespace/name` of the pods.
    pub(super) card_containers: BTreeMap<String, CardContainers>,
    pub(super) options: plan::Options,
    /// The namespace of names that have none.
    pub(super) namespace: String,
}

/// Reads the cluster, if one is named, and the files over it, and says on standard error what there
/// is to know about them.
pub(super) fn world(
    files: &[PathBuf],
    config: Option<&Path>,
    cluster: &ClusterArgs,
) -> Result<World, Failure> {
    let bad = |error: anyhow::Error| Failure::BadInput(error);
    let configuration = Configuration::load(config).map_err(|error| bad(error.into()))?;
    let now_ms = now().map_err(bad)?;
    let (captured, namespace) = if cluster.is_named() {
        let (captured, namespace) = wait_for(capture(cluster))?;
        (Some(captured), namespace)
    } else {
        (None, cluster.namespace_in(None).to_owned())
    };
    let reading = plan::Reading {
        scheduler_name: &configuration.scheduler_name,
        namespace: &namespace,
        now_ms,
        health: &configuration.settings.health,
        preferences: configuration.preferences,
    };
    let Input {
        objects,
        card_containers,
        notes,
    } = plan::read(captured, files, reading).map_err(|error| bad(error.into()))?;
    for note in notes {
        eprintln!("note: {}", printable(&note));
    }
    let options = plan::Options {
        settings: configuration.settings,
        now_ms,
        cycles: 1,
        evicted: Evicted::Recreate,
    };
    Ok(World {
        objects,
        card_containers,
        options,
        namespace,
    })
}

/// The objects of the cluster, and the namespace of names that have none.
async fn capture(cluster: &ClusterArgs) -> Result<(Captured, String), Failure> {
    let config = cluster.config().await?;
    let client = ClusterArgs::client(&config)?;
    let captured = plan::capture(&client).await;
    let captured = captured.with_context(|| format!("failed to read {}", config.cluster_url))?;
    Ok((captured, cluster.namespace_in(Some(&config)).to_owned()))
}

/// The time in Unix milliseconds: the clock's, or what `GPU_BATCH_NOW` says.
fn now() -> anyhow::Result<UnixMs> {
    let Some(text) = std::env::var_os("GPU_BATCH_NOW") else {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH)?;
        return Ok(u64::try_from(elapsed.as_millis())?);
    };
    let time = text.to_str().and_then(Timestamp::parse);
    time.map(|time| time.0).ok_or_else(|| {
        let text = text.display();
        anyhow!("GPU_BATCH_NOW: `{text}` is not a time such as 2026-11-21T10:00:00Z")
    })
}
