//! A local cluster with fake GPU nodes and a stream of gangs, scheduled live.
//!
//! Everything but the machines is real: etcd, the API server, the controllers that make pods from
//! Jobs, and the scheduler of this program. What the table shows and the end checks comes from an
//! observer of its own that follows the API server.
//!
//! ```text
//!   stream --Jobs, PodGroups--> API server <--watch, bind--> scheduler (driver) --reports--+
//!                                   |                                                      v
//!                                   +--pods--> witness ------books------> table, summary, checks
//! ```

mod check;
mod cluster;
mod preparation;
mod screen;
mod setting;
mod summary;
mod table;
mod witness;
mod workload;

use crate::config::Configuration;
use crate::driver::{Reports, Scheduler};
use crate::local::{Binaries, Program};
use anyhow::{Context, bail};
use cluster::Cluster;
use gpu_batch_policies::settings::Settings;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;
use screen::Screen;
use setting::PART_OF;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use summary::Utilisation;
use table::View;
use tokio::signal::unix::{Signal, SignalKind, signal};
use witness::{Books, Witness};
use workload::Gang;

/// How often the table is drawn.
const TICK: Duration = Duration::from_secs(1);
/// After the given time gangs may take a half of it longer to end, and this.
const GRACE: Duration = Duration::from_secs(15);
/// How long the witness may take to hear of what the scheduler did last.
const SETTLE: Duration = Duration::from_millis(500);

/// What to show.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many gangs arrive.
    pub gangs: u32,
    /// How long it should take from the first gang to the end of the last.
    pub length: Duration,
    /// The local control plane and a scheduler run on when the demo has ended.
    pub keep: bool,
    /// A cluster of the user's instead of the local control plane.
    pub cluster: Option<ClusterOfTheUser>,
}

/// A cluster for tests that the user has.
#[derive(Debug, Clone)]
pub struct ClusterOfTheUser {
    /// How to reach it.
    pub kubeconfig: PathBuf,
    /// The context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
    /// The user has agreed to what will be created.
    pub confirmed: bool,
}

/// Runs the demo and prints what it shows, until all gangs have ended, time is up, or the process
/// is interrupted (SIGINT, SIGTERM). Nothing is left running, unless it was asked to be kept.
///
/// # Errors
/// If there is no cluster, if the scheduler ends, or if the final checks find a violation.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let binaries = match options.cluster {
        Some(_) => None,
        None => Some(preparation::find_binaries(options.keep)?),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the asynchronous runtime")?;
    runtime.block_on(show(options, binaries.as_ref()))
}

async fn show(options: &Options, binaries: Option<&Binaries>) -> anyhow::Result<()> {
    let mut interrupt = Interrupt::new()?;
    let mut cluster = tokio::select! {
        cluster = preparation::prepare(options, binaries) => cluster?,
        // The control plane goes with the future that starts it.
        () = interrupt.wait(), if options.cluster.is_none() => return Ok(()),
    };
    let result = run_gangs(options, &cluster, &mut interrupt).await;
    if cluster.is_shared() {
        println!();
        println!("Deleting what the demo created");
        cluster.clean_up().await?;
    }
    let interrupted = result?;
    if options.keep && !interrupted {
        keep(cluster, binaries)?;
    }
    Ok(())
}

/// The defaults, for the only scheduler of its name, which nobody else asks how it is.
fn configuration(cluster: &Cluster) -> anyhow::Result<Configuration> {
    let defaults = Configuration::load(None)?;
    Ok(Configuration {
        settings: Settings::default(),
        scheduler_name: cluster.scheduler_name().to_owned(),
        serve_address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        ..defaults
    })
}

/// Says whether it was interrupted.
async fn run_gangs(
    options: &Options,
    cluster: &Cluster,
    interrupt: &mut Interrupt,
) -> anyhow::Result<bool> {
    let gangs = workload::gangs(options.gangs, options.length);
    let nodes = list_nodes(cluster).await?;
    let books = Arc::new(Books::new(Witness::new(gangs.clone(), &nodes)));
    let mut scheduler = Scheduler::start(&cluster.config, configuration(cluster)?).await?;
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

    let mut show = Show {
        books: &books,
        screen: Screen::new(),
        start,
        reports: Arc::default(),
        utilisation: Utilisation::default(),
        before: (start, 0),
    };
    let give_up = options.length + options.length / 2 + GRACE;
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
        show.tick(&scheduler).await;
        if show.is_over() || start.elapsed() > give_up {
            break false;
        }
    };
    scheduler.stop().await?;
    tokio::time::sleep(SETTLE).await;
    let elapsed = start.elapsed();
    let nodes = list_nodes(cluster).await?;
    let pods = list_pods(cluster).await?;
    let witness = books.open();
    let checks = check::all(&witness, &nodes, &pods, Instant::now());
    drop(show.screen);
    summary::print(&witness, &show.reports, &show.utilisation, &checks, elapsed);
    let violations: usize = checks.iter().map(|check| check.violations.len()).sum();
    match violations {
        0 => Ok(interrupted),
        1 => bail!("1 violation was found"),
        more => bail!("{more} violations were found"),
    }
}

/// What is on the screen, and what was there a second ago.
struct Show<'a> {
    books: &'a Books,
    screen: Screen,
    start: Instant,
    reports: Arc<Reports>,
    utilisation: Utilisation,
    /// When it was drawn last, and the bindings until then.
    before: (Instant, u64),
}

impl Show<'_> {
    async fn tick(&mut self, scheduler: &Scheduler) {
        if let Some(reports) = scheduler.reports().await {
            self.reports = reports;
        }
        let now = Instant::now();
        let witness = self.books.open();
        let (then, binds) = self.before;
        let lasted = now.duration_since(then);
        let lasted_ms = u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX);
        self.before = (now, witness.binds);
        self.utilisation.add(&witness, lasted);
        self.screen.show(&View {
            witness: &witness,
            reports: &self.reports,
            now,
            elapsed: now.duration_since(self.start),
            binds_per_s: (witness.binds - binds) * 1_000 / lasted_ms.max(1),
        });
    }

    /// Whether all gangs have ended, but for those that never can start.
    fn is_over(&self) -> bool {
        let witness = self.books.open();
        let mut courses = witness.courses.values();
        courses.all(|course| {
            course.ended.is_some() || course.gang.hopeless && course.submitted.is_some()
        })
    }
}

/// Hands the gangs to the API server, each at its time.
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

/// SIGINT and SIGTERM. A second one is not waited for: what is under way takes seconds.
struct Interrupt {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupt {
    fn new() -> anyhow::Result<Self> {
        let wait_for = |kind| signal(kind).context("failed to wait for signals");
        Ok(Self {
            interrupt: wait_for(SignalKind::interrupt())?,
            terminate: wait_for(SignalKind::terminate())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn list_nodes(cluster: &Cluster) -> anyhow::Result<Vec<Node>> {
    let nodes = Api::<Node>::all(cluster.client.clone());
    let nodes = nodes.list(&of_the_demo()).await;
    Ok(nodes.context("failed to list the nodes")?.items)
}

async fn list_pods(cluster: &Cluster) -> anyhow::Result<Vec<Pod>> {
    let pods = Api::<Pod>::all(cluster.client.clone());
    let pods = pods.list(&of_the_demo()).await;
    Ok(pods.context("failed to list the pods")?.items)
}

fn of_the_demo() -> ListParams {
    ListParams::default().labels(&format!("{}={}", PART_OF.0, PART_OF.1))
}

/// Leaves the control plane and a scheduler of its own behind, and says how to use and to end them.
fn keep(cluster: Cluster, binaries: Option<&Binaries>) -> anyhow::Result<()> {
    let (Some(mut control_plane), Some(binaries)) = (cluster.control_plane, binaries) else {
        return Ok(());
    };
    let program = std::env::current_exe().context("failed to find this program")?;
    control_plane.start_scheduler(program)?;
    let kubeconfig = control_plane.kubeconfig().to_owned();
    let log = control_plane.folder().join("gpu-batch.log");
    let kubectl = binaries.path(Program::Kubectl);
    let stop = control_plane.keep();
    println!();
    println!(
        "{}",
        console::style("Left running, with a scheduler").bold()
    );
    println!("  kubeconfig  {}", kubeconfig.display());
    println!("  log         {}", log.display());
    println!("  stop        touch {}", stop.display());
    println!();
    println!("  export KUBECONFIG={}", kubeconfig.display());
    for command in [
        "get queues",
        "get podgroups -A",
        "get pods -A -o wide --field-selector status.phase=Pending",
        "get podgroup -n demo-vision incomplete -o yaml",
    ] {
        println!("  {} {command}", kubectl.display());
    }
    Ok(())
}
