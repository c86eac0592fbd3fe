use super::cluster::ClusterArgs;
use super::{Failure, wait_for};
use crate::config::Configuration;
use crate::objects::Timestamp;
use crate::plan::{self, Captured, Evicted, Input};
use crate::table::{Screen, printable};
use anyhow::{Context, anyhow};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::UnixMs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Say what the scheduler would do with objects from files, or with those of a cluster and files
/// over them.
///
/// Nothing is changed in the cluster; rights to list are enough. It is as if the files were applied
/// one after the other: of objects with one name the last counts. Jobs, Deployments, ReplicaSets
/// and StatefulSets get the pods that they lack.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch plan -f examples/gang.yaml
  gpu-batch plan --context production -f new-job.yaml
  gpu-batch plan -f cluster.yaml -f new-job.yaml --cycles 2 -o json
  kubectl get -A -o json nodes,pods,jobs,namespaces,priorityclasses,\\
queues.gpu-batch.io,podgroups.gpu-batch.io,topologies.gpu-batch.io | gpu-batch plan -f -

The environment variable GPU_BATCH_NOW (RFC 3339) fixes the clock.")]
pub(super) struct Args {
    /// A file of Kubernetes objects (YAML or JSON), a folder of such files, or - for standard input
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..,
          required_unless_present_any = ClusterArgs::NAMING)]
    filename: Vec<PathBuf>,
    /// The configuration file (see `gpu-batch config --print-defaults`)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How many cycles to plan: in the next one, bound pods run and the room of evicted and leaving
    /// ones is free
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cycles: u32,
    /// What happens to an evicted pod between cycles
    #[arg(long, value_enum, default_value_t = Evicted::Recreate)]
    evicted: Evicted,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let world = world(&args.filename, args.config.as_deref(), &args.cluster)?;
    let options = plan::Options {
        cycles: args.cycles,
        evicted: args.evicted,
        ..world.options
    };
    let plan = plan::run(world.objects, options)?;
    let text = match args.output {
        Output::Table => plan::draw(&plan, Screen::of_stdout()),
        Output::Json => serde_json::to_string_pretty(&plan)? + "\n",
    };
    print(&text)
}

/// What a plan of one cycle begins with.
pub(super) struct World {
    pub(super) objects: Vec<Object>,
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
    };
    let Input { objects, notes } =
        plan::read(captured, files, reading).map_err(|error| bad(error.into()))?;
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

/// Prints a result. Whoever reads it may stop reading, as `head` does.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result.context("failed to print")?),
    }
}

/// The clock, or what `GPU_BATCH_NOW` says instead.
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
