//! The scheduler as a library: start it, ask it, stop it.

use super::{
    Clock, Driver, Ended, Health, Inbox, JournalFile, Latency, Recording, Reports, Standing,
};
use crate::comparer::Comparer;
use crate::config::{Configuration, ConfigurationFile, Follower, InForce};
use crate::connection::{self, ConnectionError};
use crate::execute::Executor;
use crate::objects::{self, Watched};
use crate::serve::{self, Metrics, Sources};
use crate::watch::{Shared, Watcher};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::settings::{Leadership, Settings};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tracing::info;

/// Why the scheduler cannot start or go on.
#[derive(Debug, Error)]
pub enum SchedulerError {
    /// The API server's client cannot be made.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The address for `/metrics` cannot be used, or the thread of the loop cannot be started.
    #[error("failed to listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The thread of the loop cannot be started.
    #[error("failed to start the thread of the loop")]
    Thread(#[source] std::io::Error),
    /// The engine panicked again and again; the log says where.
    #[error("the engine panicked too often")]
    Panicked,
}

/// A running scheduler, in this process. Dropping it stops it without waiting for requests under
/// way; [`Scheduler::stop`] waits.
pub struct Scheduler {
    sources: Sources,
    in_force: Arc<InForce>,
    recorded: bool,
    address: SocketAddr,
    ended: oneshot::Receiver<Ended>,
    /// The watches and the HTTP server; cancelled when this is dropped.
    tasks: JoinSet<()>,
}

impl Scheduler {
    /// Starts to watch and to schedule. An API server that cannot be reached is no error here: it
    /// is tried again for ever, and `/readyz` says so.
    ///
    /// # Errors
    /// If the configuration of the client or the address to listen on cannot be used.
    pub async fn start(
        cluster: &kube::Config,
        configuration: Configuration,
    ) -> Result<Self, SchedulerError> {
        Self::start_recorded(cluster, configuration, None).await
    }

    /// Starts as [`Scheduler::start`] does, and records everything into a file if there is one.
    ///
    /// # Errors
    /// As [`Scheduler::start`].
    pub async fn start_recorded(
        cluster: &kube::Config,
        configuration: Configuration,
        journal: Option<JournalFile>,
    ) -> Result<Self, SchedulerError> {
        let instance = instance(&configuration.settings);
        let Configuration {
            file,
            settings,
            scheduler_name,
            serve_address,
            lease,
            ..
        } = configuration;
        let sources = new_sources(cluster);
        let mut tasks = JoinSet::new();
        let (listener, address) = listen(serve_address).await?;
        let server = cluster.cluster_url.to_string();
        info!("reading the cluster {server}; health and metrics on {address}");
        let client = connection::client(cluster)?;
        let comparer = Comparer {
            sources: sources.clone(),
            client: client.clone(),
            scheduler_name: scheduler_name.clone(),
        };
        let in_force = Arc::new(InForce::new(file));
        tasks.spawn(serve::serve(listener, comparer, Arc::clone(&in_force)));
        let executor = Executor::new(cluster, lease, instance, &sources)?;
        let (relist, relisted) = watch::channel(0);
        let shared = Shared {
            client,
            inbox: Arc::clone(&sources.inbox),
            health: Arc::clone(&sources.health),
            metrics: Arc::clone(&sources.metrics),
            clock: sources.clock,
            relist: relisted,
        };
        watch_everything(&mut tasks, &shared, &scheduler_name);
        let recorded = journal.is_some();
        let recording = journal.map(|file| Recording::start(file, &settings, &sources.metrics));
        let recording = recording.transpose().map_err(SchedulerError::Thread)?;
        let driver = Driver {
            standing: Standing::new(&settings, server),
            engine: Engine::new(settings),
            inbox: Arc::clone(&sources.inbox),
            executor: Arc::new(executor),
            clock: sources.clock,
            health: Arc::clone(&sources.health),
            metrics: Arc::clone(&sources.metrics),
            relist,
            latency: Latency::default(),
            in_flight: 0,
            panics: VecDeque::new(),
            stop_by: None,
            reports: Arc::new(Reports::default()),
            recording,
            configured: None,
        };
        let (sender, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("engine".to_owned())
            // The receiver is gone if the scheduler was dropped.
            .spawn(move || drop(sender.send(driver.run())))
            .map_err(SchedulerError::Thread)?;
        Ok(Self {
            sources,
            in_force,
            recorded,
            address,
            ended,
            tasks,
        })
    }

    /// From now on takes over what changes in its configuration file. What it was built around
    /// (its name, its address, leader election) it cannot change: then the answer comes, with the
    /// configuration with which another one is to be started after this one was stopped.
    pub fn follow_configuration(&mut self, path: PathBuf) -> oneshot::Receiver<Configuration> {
        let follower = Follower::new(
            path,
            Arc::clone(&self.in_force),
            Arc::clone(&self.sources.inbox),
            Arc::clone(&self.sources.metrics),
            self.recorded,
        );
        let (sender, anew) = oneshot::channel();
        self.tasks.spawn(follower.run(sender));
        anew
    }

    /// The configuration that is in force now.
    #[must_use]
    pub fn configuration(&self) -> ConfigurationFile {
        self.in_force.get().0
    }

    /// Where it listens; the port is the real one if port 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A copy of what users see, at most a second old; `None` if the loop does not answer.
    pub async fn reports(&self) -> Option<Arc<Reports>> {
        self.sources.reports().await
    }

    /// Every invariant that is violated; `None` if the loop does not answer.
    pub async fn audit(&self) -> Option<Vec<String>> {
        self.sources.audit().await
    }

    /// How many binds the API server has confirmed since the start; costs the loop nothing.
    #[must_use]
    pub fn binds(&self) -> u64 {
        self.sources.metrics.binds()
    }

    /// Whether it has listed everything and may act.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.sources.health.missing().is_empty() && self.sources.health.is_leader()
    }

    /// Waits until the scheduler ends by itself, which it only does in distress.
    ///
    /// # Errors
    /// Says why it ended.
    pub async fn ended(&mut self) -> Result<(), SchedulerError> {
        match (&mut self.ended).await {
            Ok(Ended::Stopped) => Ok(()),
            Ok(Ended::Panicked) | Err(_) => Err(SchedulerError::Panicked),
        }
    }

    /// Stops planning, waits for requests under way for at most five seconds, gives the lease back
    /// last. Afterwards its address is free.
    ///
    /// # Errors
    /// If the scheduler had ended in distress before.
    pub async fn stop(mut self) -> Result<(), SchedulerError> {
        self.sources.inbox.stop();
        let ended = self.ended().await;
        self.tasks.shutdown().await;
        ended
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.sources.inbox.stop();
    }
}

fn new_sources(cluster: &kube::Config) -> Sources {
    let clock = Clock::start();
    let health = Health::new(clock.now_ms()).with_server(cluster.cluster_url.to_string());
    Sources {
        inbox: Arc::new(Inbox::default()),
        health: Arc::new(health),
        metrics: Arc::new(Metrics::new()),
        clock,
    }
}

/// The name that speaks in Kubernetes events: the replica's, where there are several.
fn instance(settings: &Settings) -> String {
    match &settings.leadership {
        Leadership::Elected(lease) => lease.identity.to_string(),
        Leadership::Assumed => "gpu-batch".to_owned(),
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), SchedulerError> {
    let failed = |source| SchedulerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// In the order in which lists of the world are best read: what others refer to comes first.
fn watch_everything(tasks: &mut JoinSet<()>, shared: &Shared, scheduler_name: &str) {
    watch_kind::<objects::Namespace>(tasks, shared, scheduler_name);
    watch_kind::<objects::PriorityClass>(tasks, shared, scheduler_name);
    watch_kind::<objects::Topology>(tasks, shared, scheduler_name);
    watch_kind::<objects::Queue>(tasks, shared, scheduler_name);
    watch_kind::<objects::Node>(tasks, shared, scheduler_name);
    watch_kind::<objects::Job>(tasks, shared, scheduler_name);
    watch_kind::<objects::PodGroup>(tasks, shared, scheduler_name);
    watch_kind::<objects::NativePodGroup>(tasks, shared, scheduler_name);
    watch_kind::<objects::Pod>(tasks, shared, scheduler_name);
}

fn watch_kind<T: Watched>(tasks: &mut JoinSet<()>, shared: &Shared, scheduler_name: &str) {
    tasks.spawn(Watcher::<T>::new(shared.clone(), scheduler_name).run());
}
