use super::files::world;
use super::options::ClusterArgs;
use super::output::{Output, print};
use super::{Failure, wait_for};
use crate::kube::api::Queue;
use crate::kube::connection;
use crate::plan;
use crate::views::queues::{self, QueueView};
use crate::views::table::Screen;
use anyhow::anyhow;
use kube::api::{Api, ListParams};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Show the queue tree with shares and use.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch queues
  gpu-batch queues --context production -o json
  gpu-batch queues -f examples/queues.yaml
  gpu-batch queues --context production -f new-queues.yaml

From a cluster it shows what the scheduler has last written to the status of the Queues; from files,
alone or over a cluster, what the scheduler would make of them.")]
pub(super) struct Args {
    /// A file of Kubernetes objects, a folder of such files, or - for standard input; over the
    /// cluster, where --context or --kubeconfig names one, else instead of it
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    filename: Vec<PathBuf>,
    /// With files, the configuration file (see `gpu-batch config --print-defaults`)
    #[arg(long, value_name = "FILE", requires = "filename")]
    config: Option<PathBuf>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let queues = if args.filename.is_empty() {
        wait_for(of_cluster(&args.cluster))?
    } else {
        let world = world(&args.filename, args.config.as_deref(), &args.cluster)?;
        plan::run(world.objects, world.options)?.queues
    };
    print(&match args.output {
        Output::Table if queues.is_empty() => "There are no queues.\n".to_owned(),
        Output::Table => queues::draw(&queues, Screen::of_stdout()),
        Output::Json => {
            let queues = BTreeMap::from([("queues", &queues)]);
            serde_json::to_string_pretty(&queues)? + "\n"
        }
    })
}

async fn of_cluster(cluster: &ClusterArgs) -> Result<BTreeMap<String, QueueView>, Failure> {
    let config = cluster.config().await?;
    let client = ClusterArgs::client(&config)?;
    let queues = Api::<Queue>::all(client).list(&ListParams::default()).await;
    let queues = queues.map_err(|error| match error {
        kube::Error::Api(status) if status.code == 404 => anyhow!(
            "the cluster has no Queues; `gpu-batch crds | kubectl apply -f -` installs their kind"
        ),
        kube::Error::Api(status) => anyhow!("the Queues cannot be listed: {}", status.message),
        error => anyhow!(
            "the API server does not answer at {}: {}; name another cluster with --kubeconfig or \
             --context",
            config.cluster_url,
            connection::obstacle(&error)
        ),
    })?;
    let named = queues.items.into_iter().map(|queue| {
        let name = queue.metadata.name.clone().unwrap_or_default();
        (name, QueueView::of_object(queue))
    });
    Ok(named.collect())
}
