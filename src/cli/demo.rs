use super::options::{ClusterArgs, RecordArgs};
use super::{Failure, wait_for};
use crate::lab::demo::{self, ClusterOfTheUser, Embedded, Options, Place};
use crate::live::log::{self, LogFormat};
use anyhow::anyhow;
use std::path::PathBuf;
use std::time::Duration;

/// Schedule a stream of gangs on a cluster of fake GPU nodes.
///
/// Starts a real control plane on this machine (etcd, the API server, the controllers), plays 64
/// nodes of 8 H100 in 8 racks, and lets three teams submit a few hundred gangs of different shapes.
/// A table shows live how they are queued, shared and placed; at the end everything is checked
/// against the API server. Needs no cluster, no containers and no root. The first run builds the
/// control plane from source, once, for which it needs Go and about 7 minutes.
///
/// With --embedded the same gangs run in a model of Kubernetes inside this program, in seconds and
/// with nothing to build; it also runs where Go is missing. With --chaos things go wrong there:
/// requests and answers get lost, watches break, kubelets refuse pods, the scheduler crashes.
///
/// Ctrl-C ends it at any time, with a summary so far, and leaves nothing running.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    gpu-batch demo --embedded\n  \
    gpu-batch demo --embedded --chaos --seed 7\n  \
    gpu-batch demo\n  \
    gpu-batch demo --gangs 1000 --seconds 300\n  \
    gpu-batch demo --keep\n  \
    gpu-batch demo --empty --nodes 4\n  \
    gpu-batch demo --record demo.journal\n  \
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
    #[arg(long, conflicts_with_all = ["kubeconfig", "embedded"])]
    keep: bool,
    /// Instead of the gangs: leave a cluster with fake GPU nodes, the queue default and a scheduler
    /// running in the background, for objects of your own, and print how to use and to stop it
    #[arg(long, conflicts_with_all = ["gangs", "seconds", "keep", "kubeconfig", "embedded", "file"])]
    empty: bool,
    /// How many nodes of 8 H100 the empty cluster has, in two racks or more
    #[arg(long, value_name = "N", requires = "empty", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    nodes: u32,
    /// A model of Kubernetes inside this program instead of a control plane
    #[arg(long, conflicts_with = "kubeconfig")]
    embedded: bool,
    /// How many seconds of the embedded demo pass in one second; 1: real time
    #[arg(long, value_name = "N", requires = "embedded", default_value_t = Embedded::QUICK.speed,
        value_parser = clap::value_parser!(u32).range(1..=1_000))]
    speed: u32,
    /// Let things go wrong in the embedded demo, for the first two thirds of its time
    #[arg(long, requires = "embedded")]
    chaos: bool,
    /// What goes wrong and when: the same seed, the same demo
    #[arg(long, value_name = "N", requires = "chaos", default_value_t = 1)]
    seed: u64,
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
    #[command(flatten)]
    record: RecordArgs,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    if std::env::var_os("RUST_LOG").is_some() {
        // A log that the user has not asked for would only tear the table.
        log::init(LogFormat::Text, "warn");
    }
    args.record.check()?;
    let (gangs, length) = (args.gangs, Duration::from_secs(args.seconds));
    let record = args.record.clone();
    let place = place(args)?;
    let journal = record.create()?;
    let options = Options {
        gangs,
        length,
        place,
    };
    Ok(demo::run(&options, journal)?)
}

fn place(args: Args) -> Result<Place, Failure> {
    if args.empty {
        return Ok(Place::Empty { nodes: args.nodes });
    }
    if args.embedded {
        let chaos = args.chaos.then_some(args.seed);
        let speed = args.speed;
        return Ok(Place::Embedded(Embedded { speed, chaos }));
    }
    let Some(kubeconfig) = args.kubeconfig else {
        return Ok(Place::Local { keep: args.keep });
    };
    if !kubeconfig.is_file() {
        let file = kubeconfig.display();
        return Err(Failure::BadInput(anyhow!(
            "--kubeconfig: there is no file {file}"
        )));
    }
    let cluster = ClusterArgs {
        kubeconfig: Some(kubeconfig.clone()),
        context: args.context.clone(),
        namespace: None,
    };
    wait_for(cluster.check())?;
    Ok(Place::Users(ClusterOfTheUser {
        kubeconfig,
        context: args.context,
        confirmed: args.yes,
    }))
}
