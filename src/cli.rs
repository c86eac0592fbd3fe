//! The command line: one file a command, and what several of them share.

mod bench;
mod completions;
mod config;
mod crds;
mod demo;
mod explain;
mod files;
mod gangs;
mod man;
mod options;
mod output;
mod plan;
mod progress;
mod queues;
mod replay;
mod run;
mod scheduler;
mod simulate;

use crate::kube::format::seconds;
use crate::views::table::printable;
use anyhow::{Context, anyhow};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// What the build script has found out; empty: not known.
const COMMIT: &str = env!("GPU_BATCH_BUILD_COMMIT");
const EPOCH: &str = env!("GPU_BATCH_BUILD_EPOCH");
const PROFILE: &str = env!("GPU_BATCH_BUILD_PROFILE");
const TARGET: &str = env!("GPU_BATCH_BUILD_TARGET");

/// A GPU-aware batch scheduler for Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "gpu-batch", version, long_version = long_version(), about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Demo(demo::Args),
    Plan(plan::Args),
    Explain(explain::Args),
    Gangs(gangs::Args),
    Queues(queues::Args),
    Replay(replay::Args),
    Simulate(simulate::Args),
    Bench(bench::Args),
    Crds(crds::Args),
    Config(config::Args),
    #[command(hide = true)]
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
}

/// How a command failed, and with it the exit code.
#[derive(Debug)]
enum Failure {
    /// Exit code 1: the command was used correctly and did not succeed.
    Failed(anyhow::Error),
    /// Exit code 2: bad usage or bad input; the message names the file, the object and the field.
    BadInput(anyhow::Error),
}

impl Failure {
    /// Adds something to the message of the error.
    fn and(self, more: &str) -> Self {
        let with = |error: anyhow::Error| anyhow!("{error:#}; {more}");
        match self {
            Self::Failed(error) => Self::Failed(with(error)),
            Self::BadInput(error) => Self::BadInput(with(error)),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Gangs(args) => gangs::run(args),
        Command::Queues(args) => queues::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Crds(args) => crds::run(args),
        Command::Config(args) => config::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) if reader_left(&error) => ExitCode::SUCCESS,
        Err(Failure::Failed(error)) => {
            eprintln!("error: {}", printable(&format!("{error:#}")));
            ExitCode::from(1)
        }
        Err(Failure::BadInput(error)) => {
            eprintln!("error: {}", printable(&format!("{error:#}")));
            ExitCode::from(2)
        }
    }
}

/// Waits for a future that does I/O and computes little.
fn wait_for<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start the asynchronous runtime")?;
    runtime.block_on(work)
}

/// Whether the output went into a pipe that nobody reads any more, as with `| head`.
fn reader_left(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    cause.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// The version, and what was built, where and how, a line each.
fn long_version() -> String {
    let built = EPOCH.parse::<u64>().ok();
    let built = built.map(|built_s| seconds(built_s.saturating_mul(1_000)));
    let facts = [
        ("commit", COMMIT),
        ("built", built.as_deref().unwrap_or_default()),
        ("profile", PROFILE),
        ("target", TARGET),
    ];
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    for (name, value) in facts {
        let value = if value.is_empty() { "unknown" } else { value };
        text.push_str(&format!("\n{:<9}{value}", format!("{name}:")));
    }
    text
}
