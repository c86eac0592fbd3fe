use super::Failure;
use crate::connection;
use crate::driver::{Scheduler, ShellSettings};
use crate::telemetry;
use anyhow::Context;
use gpu_batch_policies::settings::Settings;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

/// Run the scheduler: inside a cluster as its service account, or with a kubeconfig.
///
/// Example: gpu-batch run --kubeconfig ~/.kube/config
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kubeconfig to use. Without it: $KUBECONFIG, ~/.kube/config, then the service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig
    #[arg(long)]
    context: Option<String>,
    /// The configuration file (see `gpu-batch config --print-defaults`)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the log as JSON, a line each
    #[arg(long)]
    log_json: bool,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    telemetry::init(args.log_json);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the asynchronous runtime")?;
    runtime.block_on(schedule(args))
}

async fn schedule(args: Args) -> Result<(), Failure> {
    let config = connection::config(args.kubeconfig.as_deref(), args.context.as_deref())
        .await
        .map_err(|error| Failure::BadInput(error.into()))?;
    let (settings, shell) = (Settings::default(), ShellSettings::default());
    let mut terminate = signal(SignalKind::terminate()).context("failed to wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to wait for SIGINT")?;
    let mut scheduler = Scheduler::start(&config, settings, shell).await?;
    info!("scheduling for {}", config.cluster_url);
    tokio::select! {
        ended = scheduler.ended() => return Ok(ended?),
        _ = terminate.recv() => info!("stopping on SIGTERM"),
        _ = interrupt.recv() => info!("stopping on SIGINT"),
    }
    Ok(scheduler.stop().await?)
}
