use super::Failure;
use super::options::{ClusterArgs, RecordArgs};
use crate::live::config::Configuration;
use crate::live::{Scheduler, SchedulerError, log};
use anyhow::Context;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

/// Run the scheduler: inside a cluster as its service account, or with a kubeconfig.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  gpu-batch run --kubeconfig ~/.kube/config\n  \
    gpu-batch run --kubeconfig ~/.kube/config --record session.journal"
)]
pub(super) struct Args {
    /// The configuration file; `gpu-batch config --print-defaults` prints one. Its changes are
    /// followed
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let configuration = Configuration::load(args.config.as_deref())
        .map_err(|error| Failure::BadInput(error.into()))?;
    log::init(configuration.log_format, &configuration.log_level);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the asynchronous runtime")?;
    runtime.block_on(schedule(args, configuration))
}

async fn schedule(args: Args, configuration: Configuration) -> Result<(), Failure> {
    let cluster = args.cluster.config().await?;
    // Not created before this point: a start that fails replaces no journal.
    let journal = args.record.create_or_warn();
    let mut terminate = signal(SignalKind::terminate()).context("failed to wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to wait for SIGINT")?;
    let mut scheduler = Scheduler::start_recorded(&cluster, configuration, journal).await?;
    loop {
        let changed = changed(&mut scheduler, args.config.clone());
        let anew = tokio::select! {
            ended = scheduler.ended() => return Ok(ended?),
            _ = terminate.recv() => {
                info!("stopping on SIGTERM");
                break;
            }
            _ = interrupt.recv() => {
                info!("stopping on SIGINT");
                break;
            }
            configuration = changed => configuration,
        };
        info!("beginning anew, as the configuration asks for");
        let before = Configuration::of(&scheduler.configuration(), "the old configuration")?;
        scheduler.stop().await?;
        scheduler = match Scheduler::start(&cluster, anew).await {
            // Another process has taken the port meanwhile, or a file is gone. The configuration is
            // tried again as soon as that is different.
            Err(SchedulerError::Listen { .. } | SchedulerError::Extender(_)) => {
                Scheduler::start(&cluster, before).await?
            }
            started => started?,
        };
    }
    Ok(scheduler.stop().await?)
}

/// Resolves to the configuration with which the scheduler must begin anew, once it must.
fn changed(
    scheduler: &mut Scheduler,
    file: Option<PathBuf>,
) -> impl Future<Output = Configuration> + use<> {
    let anew = file.map(|file| scheduler.follow_configuration(file));
    async {
        match anew {
            Some(anew) => match anew.await {
                Ok(configuration) => configuration,
                // The follower is gone together with its scheduler, which says so itself.
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}
