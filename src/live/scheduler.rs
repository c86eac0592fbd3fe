//! The scheduler as a library: start it, ask it, stop it.

use super::comparer::Comparer;
use super::config::{Configuration, ConfigurationFile, Follower, InForce};
use super::driver::{Driver, Ended};
use super::recording::{JournalFile, Recording};
use super::serve;
use crate::extender::{Extender, ExtenderSettings, UnusableFile};
use crate::handles::Handles;
use crate::handles::inbox::Reports;
use crate::kube::connection::{self, ConnectionError};
use crate::kube::convert::{Converter, Watched};
use crate::kube::execute::Executor;
use crate::kube::objects;
use crate::kube::watch::{Shared, Watcher};
use gpu_batch_policies::settings::{Leadership, Settings};
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
    /// The client of the API server cannot be made.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A file by which the extender and kube-scheduler know each other cannot be used.
    #[error("cannot serve kube-scheduler as an extender: {0}")]
    Extender(#[from] UnusableFile),
    /// The address for `/metrics` and the other pages, or the extender's, cannot be used.
    #[error("failed to listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The thread of the loop, or of the recording, cannot be started.
    #[error("failed to start the thread of the loop")]
    Thread(#[source] std::io::Error),
    /// The engine panicked again and again; the log says where.
    #[error("the engine panicked too often")]
    Panicked,
}

/// A running scheduler, in this process. Dropping it stops it without waiting for requests under
/// way; [`Scheduler::stop`] waits for them.
pub struct Scheduler {
    handles: Handles,
    in_force: Arc<InForce>,
    recorded: bool,
    address: SocketAddr,
    extender_address: Option<SocketAddr>,
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

    /// Starts as [`Scheduler::start`] does, and records everything into `journal` if there is one.
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
            preferences,
            extender,
            lease,
            ..
        } = configuration;
        let handles = Handles::new(cluster.cluster_url.to_string());
        let mut tasks = JoinSet::new();
        let (listener, address) = listen(serve_address).await?;
        let server = cluster.cluster_url.to_string();
        info!("reading the cluster {server}; health and metrics on {address}");
        let client = connection::client(cluster)?;
        let extended = extender.as_ref().map(|it| it.scheduler_name.clone());
        let extender_address = extend(&mut tasks, extender, &handles).await?;
        let comparer = Comparer {
            handles: handles.clone(),
            client: client.clone(),
            scheduler_name: scheduler_name.clone(),
            extended: extended.clone(),
        };
        let in_force = Arc::new(InForce::new(file));
        tasks.spawn(serve::serve(listener, comparer, Arc::clone(&in_force)));
        let executor = Executor::new(cluster, lease, instance, &scheduler_name, &handles)?;
        let executor = Arc::new(executor);
        let (relist, relisted) = watch::channel(0);
        let shared = Shared {
            client,
            handles: handles.clone(),
            relist: relisted,
        };
        watch_everything(&mut tasks, &shared, &|| {
            Converter::new(&scheduler_name, shared.handles.clock.now_ms())
                .with_extended(extended.as_deref())
                .with_conditions(settings.health.conditions())
                .with_preferences(preferences)
        });
        let recorded = journal.is_some();
        let recording = journal.map(|file| Recording::start(file, &settings, &handles.metrics));
        let recording = recording.transpose().map_err(SchedulerError::Thread)?;
        let driver = Driver::new(
            settings,
            server,
            handles.clone(),
            executor,
            relist,
            recording,
        );
        let ended = start_engine(driver)?;
        Ok(Self {
            handles,
            in_force,
            recorded,
            address,
            extender_address,
            ended,
            tasks,
        })
    }

    /// From now on takes over changes of the configuration file. The scheduler cannot change what
    /// it was built around (its name, its address, leader election): when the file changes that,
    /// the receiver gets the configuration with which the caller should start another scheduler
    /// after stopping this one.
    pub fn follow_configuration(&mut self, path: PathBuf) -> oneshot::Receiver<Configuration> {
        let follower = Follower::new(
            path,
            Arc::clone(&self.in_force),
            self.handles.clone(),
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

    /// Where the scheduler listens; the port is the real one if port 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where kube-scheduler finds its extender; the port is the real one if port 0 was asked for.
    /// `None`: there is none.
    #[must_use]
    pub fn extender_address(&self) -> Option<SocketAddr> {
        self.extender_address
    }

    /// A copy of what users see, at most a second old; `None` if the loop does not answer.
    pub async fn reports(&self) -> Option<Arc<Reports>> {
        self.handles.reports().await
    }

    /// Every invariant that is violated; `None` if the loop does not answer.
    pub async fn audit(&self) -> Option<Vec<String>> {
        self.handles.audit().await
    }

    /// How many binds the API server has confirmed since the start; costs the loop nothing.
    #[must_use]
    pub fn binds(&self) -> u64 {
        self.handles.metrics.binds()
    }

    /// Whether the scheduler has listed everything and may act.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.handles.health.missing().is_empty() && self.handles.health.is_leader()
    }

    /// Waits until the scheduler ends by itself, which it only does in distress.
    ///
    /// # Errors
    /// [`SchedulerError::Panicked`]: the engine panicked too often.
    pub async fn ended(&mut self) -> Result<(), SchedulerError> {
        match (&mut self.ended).await {
            Ok(Ended::Stopped) => Ok(()),
            Ok(Ended::Panicked) | Err(_) => Err(SchedulerError::Panicked),
        }
    }

    /// Stops planning, waits for requests under way for at most five seconds, and gives the lease
    /// back last. Afterwards the address is free.
    ///
    /// # Errors
    /// If the scheduler had ended in distress before.
    pub async fn stop(mut self) -> Result<(), SchedulerError> {
        self.handles.inbox.stop();
        let ended = self.ended().await;
        self.tasks.shutdown().await;
        ended
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.handles.inbox.stop();
    }
}

/// The `reportingInstance` of Kubernetes events: the replica's name, where there are several.
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

/// Serves kube-scheduler, where it has an extender: at this address.
async fn extend(
    tasks: &mut JoinSet<()>,
    settings: Option<ExtenderSettings>,
    handles: &Handles,
) -> Result<Option<SocketAddr>, SchedulerError> {
    let Some(settings) = settings else {
        return Ok(None);
    };
    let extender = Extender::new(settings.files, handles.clone())?;
    let (listener, address) = listen(settings.serve_address).await?;
    info!("serving kube-scheduler as an extender on {address}");
    tasks.spawn(extender.serve(listener));
    Ok(Some(address))
}

/// Starts the thread of the engine. What is received tells how the engine has ended.
fn start_engine(driver: Driver) -> Result<oneshot::Receiver<Ended>, SchedulerError> {
    let (sender, ended) = oneshot::channel();
    std::thread::Builder::new()
        .name("engine".to_owned())
        // The receiver is gone if the scheduler was dropped.
        .spawn(move || drop(sender.send(driver.run())))
        .map_err(SchedulerError::Thread)?;
    Ok(ended)
}

/// Starts a watcher for each kind, in the order in which lists are best read: objects that others
/// refer to come first.
fn watch_everything(tasks: &mut JoinSet<()>, shared: &Shared, converter: &dyn Fn() -> Converter) {
    watch_kind::<objects::Namespace>(tasks, shared, converter);
    watch_kind::<objects::PriorityClass>(tasks, shared, converter);
    watch_kind::<objects::Topology>(tasks, shared, converter);
    watch_kind::<objects::Queue>(tasks, shared, converter);
    watch_kind::<objects::StorageClass>(tasks, shared, converter);
    watch_kind::<objects::CsiDriver>(tasks, shared, converter);
    watch_kind::<objects::CsiNode>(tasks, shared, converter);
    watch_kind::<objects::CsiStorageCapacity>(tasks, shared, converter);
    watch_kind::<objects::PersistentVolume>(tasks, shared, converter);
    watch_kind::<objects::PersistentVolumeClaim>(tasks, shared, converter);
    watch_kind::<objects::NodeResourceTopology>(tasks, shared, converter);
    watch_kind::<objects::VolumeAttachment>(tasks, shared, converter);
    watch_kind::<objects::Node>(tasks, shared, converter);
    watch_kind::<objects::DisruptionBudget>(tasks, shared, converter);
    watch_kind::<objects::Job>(tasks, shared, converter);
    watch_kind::<objects::PodGroup>(tasks, shared, converter);
    watch_kind::<objects::NativePodGroup>(tasks, shared, converter);
    watch_kind::<objects::Pod>(tasks, shared, converter);
}

fn watch_kind<T: Watched>(
    tasks: &mut JoinSet<()>,
    shared: &Shared,
    converter: &dyn Fn() -> Converter,
) {
    tasks.spawn(Watcher::<T>::new(shared.clone(), converter()).run());
}
