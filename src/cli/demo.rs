use super::Failure;
use crate::config::LogFormat;
use crate::demo::{self, ClusterOfTheUser, Options};
use anyhow::anyhow;
use std::path::PathBuf;
use std::time::Duration;

/// Schedule a stream of gangs on a local cluster of fake GPU nodes.
///
/// Starts a real control plane on this machine (etcd, the API server, the controllers), plays 64
/// nodes of 8 H100 in 8 racks, and lets three teams submit a few hundred gangs of different shapes.
/// A table shows live how they are queued, shared and placed; at the end everything is checked
/// against the API server. Needs no cluster, no containers and no root. The first run builds the
/// control plane from source, once, for which it needs Go and about 7 minutes.
///
/// Ctrl-C ends it at any time, with a summary so far, and leaves nothing running.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    gpu-batch demo\n  \
    gpu-batch demo --gangs 1000 --seconds 300\n  \
    gpu-batch demo --keep\n  \
    gpu-batch demo --kubeconfig ~/.kube/test --yes")]
pub(super) struct Args {
    /// How many gangs arrive
    #[arg(long, value_name = "N", default_value_t = 300,
        value_parser = clap::value_parser!(u32).range(0..=10_000))]
    gangs: u32,
    /// How long it should take; run times are chosen so that the cluster is busy for so long
    #[arg(long, value_name = "S", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(10..=3_600))]
    seconds: u64,
    /// Leave the control plane and a scheduler running in the background when all is done, and
    /// print the kubeconfig, some commands to try, and how to stop them
    #[arg(long, conflicts_with = "kubeconfig")]
    keep: bool,
    /// Run on this cluster instead, which must be one for tests and have kwok; everything that is
    /// created is deleted at the end
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long, requires = "kubeconfig")]
    context: Option<String>,
    /// Create in the cluster of --kubeconfig what is printed without this
    #[arg(long, requires = "kubeconfig")]
    yes: bool,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    if std::env::var_os("RUST_LOG").is_some() {
        // Without being asked for, a log would only tear the table.
        crate::telemetry::init(LogFormat::Text, "warn");
    }
    let cluster = args.kubeconfig.map(|kubeconfig| ClusterOfTheUser {
        kubeconfig,
        context: args.context,
        confirmed: args.yes,
    });
    if let Some(cluster) = cluster
        .as_ref()
        .filter(|cluster| !cluster.kubeconfig.is_file())
    {
        let file = cluster.kubeconfig.display();
        return Err(Failure::BadInput(anyhow!(
            "--kubeconfig: there is no file {file}"
        )));
    }
    let options = Options {
        gangs: args.gangs,
        length: Duration::from_secs(args.seconds),
        keep: args.keep,
        cluster,
    };
    Ok(demo::run(&options)?)
}
