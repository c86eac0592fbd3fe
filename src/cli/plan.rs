use super::Failure;
use super::files::world;
use super::options::ClusterArgs;
use super::output::{Output, print};
use crate::plan::{self, Evicted};
use crate::views::plan::draw;
use crate::views::table::Screen;
use std::path::PathBuf;

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
poddisruptionbudgets,persistentvolumeclaims,persistentvolumes,\\
storageclasses,csinodes,csidrivers,csistoragecapacities,volumeattachments,\\
queues.gpu-batch.io,podgroups.gpu-batch.io,\\
topologies.gpu-batch.io | gpu-batch plan -f -

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

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let world = world(&args.filename, args.config.as_deref(), &args.cluster)?;
    let options = plan::Options {
        cycles: args.cycles,
        evicted: args.evicted,
        ..world.options
    };
    let mut plan = plan::run(world.objects, options)?;
    plan.name_containers(&world.card_containers);
    let text = match args.output {
        Output::Table => draw(&plan, Screen::of_stdout()),
        Output::Json => serde_json::to_string_pretty(&plan)? + "\n",
    };
    print(&text)
}
