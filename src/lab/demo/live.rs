//! The demo on a real API server: a local control plane, or a cluster of the user's.

use super::cluster::{self, Cluster};
use super::seen::{self, Node, Pod};
use super::setting::PART_OF;
use super::show::{Show, TICK};
use super::witness::{self, Books, Witness};
use super::workload::{self, Gang};
use super::{Interrupt, Options, Place, check, preparation};
use crate::lab::local::{Binaries, Program};
use crate::live::Scheduler;
use crate::live::config::Configuration;
use crate::live::recording::JournalFile;
use anyhow::{Context, bail};
use gpu_batch_policies::settings::Settings;
use kube::api::ListParams;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the witness may take to hear of the scheduler's last actions.
const SETTLE: Duration = Duration::from_millis(500);

/// How long a scheduler that is left running may take to say where it serves.
const SERVES_WITHIN: Duration = Duration::from_secs(10);

/// Prepares the cluster, shows the gangs, and cleans up. `binaries`: the programs of the local
/// control plane; `None`: the cluster is the user's.
///
/// # Errors
/// As [`super::run`].
pub(super) async fn run(
    options: &Options,
    binaries: Option<&Binaries>,
    journal: Option<JournalFile>,
) -> anyhow::Result<()> {
    let mut interrupt = Interrupt::new()?;
    let mut cluster = tokio::select! {
        cluster = preparation::prepare(options, binaries) => cluster?,
        // The control plane ends with the future that starts it.
        () = interrupt.wait(), if binaries.is_some() => return Ok(()),
    };
    let result = run_gangs(options, &cluster, &mut interrupt, journal).await;
    if cluster.is_shared() {
        say!();
        say!("Deleting what the demo created");
        cluster.clean_up().await?;
    }
    let interrupted = result?;
    if matches!(options.place, Place::Local { keep: true }) && !interrupted {
        keep(cluster, binaries).await?;
    }
    Ok(())
}

/// The default configuration, for a scheduler whose name no other one has, and with pages at a free
/// port of the loopback interface.
fn configuration(cluster: &Cluster) -> anyhow::Result<Configuration> {
    let defaults = Configuration::load(None)?;
    Ok(Configuration {
        settings: Settings::default(),
        scheduler_name: cluster.scheduler_name().to_owned(),
        serve_address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        ..defaults
    })
}

/// Runs the gangs; returns whether the demo was interrupted.
async fn run_gangs(
    options: &Options,
    cluster: &Cluster,
    interrupt: &mut Interrupt,
    journal: Option<JournalFile>,
) -> anyhow::Result<bool> {
    let gangs = workload::gangs(options.gangs, options.length);
    let nodes = list_nodes(cluster).await?;
    let books = Arc::new(Books::new(Witness::new(gangs.clone(), &nodes)));
    let mut scheduler =
        Scheduler::start_recorded(&cluster.config, configuration(cluster)?, journal).await?;
    let mut tasks = tokio::task::JoinSet::new();
    let (client, followed) = (cluster.client.clone(), Arc::clone(&books));
    tasks.spawn(async move {
        witness::follow(client, &followed).await;
        Ok(())
    });
    let stream = Stream {
        client: cluster.client.clone(),
        scheduler_name: cluster.scheduler_name(),
        shared: cluster.is_shared(),
        books: Arc::clone(&books),
    };
    let start = Instant::now();
    tasks.spawn(stream.submit(gangs, start));

    let mut show = Show::new("gpu-batch demo", &books, start);
    let interrupted = loop {
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            ended = scheduler.ended() => {
                ended?;
                bail!("the scheduler stopped by itself");
            }
            Some(ended) = tasks.join_next() => ended.context("a task of the demo panicked")??,
            () = interrupt.wait() => break true,
        }
        show.tick(scheduler.reports().await, Instant::now());
        if show.is_over(options.length, Instant::now()) {
            break false;
        }
    };
    scheduler.stop().await?;
    tokio::time::sleep(SETTLE).await;
    let now = Instant::now();
    let nodes = list_nodes(cluster).await?;
    let pods = list_pods(cluster).await?;
    let checks = check::all(&books.open(), &nodes, &pods, now);
    show.end("the API server", &checks, now)?;
    Ok(interrupted)
}

/// Sends the gangs to the API server, each at its time.
struct Stream {
    client: kube::Client,
    scheduler_name: &'static str,
    shared: bool,
    books: Arc<Books>,
}

impl Stream {
    async fn submit(self, gangs: Vec<Gang>, start: Instant) -> anyhow::Result<()> {
        for gang in gangs {
            tokio::time::sleep_until((start + gang.arrival).into()).await;
            for (path, object) in gang.objects(self.scheduler_name, self.shared) {
                let created = cluster::create(&self.client, &path, &object).await;
                created.with_context(|| format!("failed to submit {}", gang.name))?;
            }
            self.books.open().submitted(&gang.name, Instant::now());
        }
        Ok(())
    }
}

async fn list_nodes(cluster: &Cluster) -> anyhow::Result<Vec<Node>> {
    let nodes = seen::nodes(cluster.client.clone());
    let nodes = nodes.list(&of_the_demo()).await;
    Ok(nodes.context("failed to list the nodes")?.items)
}

async fn list_pods(cluster: &Cluster) -> anyhow::Result<Vec<Pod>> {
    let pods = seen::pods(cluster.client.clone());
    let pods = pods.list(&of_the_demo()).await;
    Ok(pods.context("failed to list the pods")?.items)
}

fn of_the_demo() -> ListParams {
    ListParams::default().labels(&format!("{}={}", PART_OF.0, PART_OF.1))
}

/// Starts a control plane with nodes and nothing to schedule, and leaves it behind.
///
/// # Errors
/// As [`super::run`].
pub(super) async fn leave_empty(nodes: u32, binaries: &Binaries) -> anyhow::Result<()> {
    let mut interrupt = Interrupt::new()?;
    let cluster = tokio::select! {
        cluster = preparation::prepare_empty(nodes, binaries) => cluster?,
        // The control plane ends with the future that starts it.
        () = interrupt.wait() => return Ok(()),
    };
    let to_try = ["kubectl get nodes", "gpu-batch queues"];
    if let Some(address) = leave(cluster, binaries, &to_try).await? {
        say!("  gpu-batch gangs --server http://{address}");
    }
    Ok(())
}

/// Leaves the control plane of the demo running, with its queues and the gangs that still wait.
async fn keep(cluster: Cluster, binaries: Option<&Binaries>) -> anyhow::Result<()> {
    let Some(binaries) = binaries else {
        return Ok(());
    };
    let to_try = [
        "kubectl get queues",
        "kubectl get podgroups -A",
        "kubectl get pods -A -o wide --field-selector status.phase=Pending",
        "kubectl get podgroup -n demo-vision incomplete -o yaml",
        "gpu-batch queues",
    ];
    if let Some(address) = leave(cluster, binaries, &to_try).await? {
        say!("  gpu-batch explain podgroup demo-vision/incomplete --server http://{address}");
    }
    Ok(())
}

/// Lets a local control plane run on with a scheduler of its own, and says how to use and to stop
/// them. Returns where the scheduler serves.
async fn leave(
    cluster: Cluster,
    binaries: &Binaries,
    to_try: &[&str],
) -> anyhow::Result<Option<SocketAddr>> {
    let mut control_plane = cluster
        .control_plane
        .context("not a cluster of the demo's")?;
    let program = std::env::current_exe().context("failed to find this program")?;
    control_plane.start_scheduler(program.clone())?;
    let start = Instant::now();
    let address = loop {
        match control_plane.scheduler_address() {
            None if start.elapsed() < SERVES_WITHIN => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            address => break address,
        }
    };
    let kubeconfig = control_plane.kubeconfig().to_owned();
    let log = control_plane.folder().join("gpu-batch.log");
    let kubectl = binaries.path(Program::Kubectl);
    let folders = [kubectl.as_path(), &program].map(|program| {
        let folder = program.parent().unwrap_or(program);
        folder.display().to_string()
    });
    let stop = control_plane.keep();
    say!();
    say!(
        "{}",
        console::style("Left running, with a scheduler").bold()
    );
    say!("  kubeconfig  {}", kubeconfig.display());
    say!("  log         {}", log.display());
    say!("  stop        touch {}", stop.display());
    say!();
    say!("To use it, run this in your shell, and then for example what is below:");
    say!(
        "  export KUBECONFIG={} PATH=\"{}:$PATH\"",
        kubeconfig.display(),
        folders.join(":")
    );
    for command in to_try {
        say!("  {command}");
    }
    Ok(address)
}
