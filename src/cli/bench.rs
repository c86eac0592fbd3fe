use super::Failure;
use crate::bench::{self, Row};
use crate::config::LogFormat;
use crate::telemetry;
use anyhow::{Context, anyhow};
use std::path::PathBuf;

/// Measure the figures that the documentation claims.
///
/// Each row says what was measured, on what, and what it is compared with: the project's target, or
/// a bare binder in the same run, which only sends the bindings. Build with --release.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  gpu-batch bench engine --filter gang")]
pub(super) struct Args {
    /// What to measure
    suite: Suite,
    /// Only scenarios whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// How to print the rows
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// For `live`: measure this cluster instead of a local control plane. A namespace and the fake
    /// nodes `gpu-batch-bench-N` are made and removed again; no other scheduler named gpu-batch may
    /// run there
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// For `soak`: how long
    #[arg(long, default_value_t = 30)]
    minutes: u32,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Suite {
    /// The decision engine alone
    Engine,
    /// The whole scheduler against a real API server
    Live,
    /// The simulator: published traces, from the directory that the environment variable
    /// GPU_BATCH_TRACES names, and a generated one
    Simulate,
    /// The whole scheduler for a long time: memory, and drift between its state and the API server
    Soak,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    Table,
    Json,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    telemetry::init(LogFormat::Text, "warn,gpu_batch::bench=info");
    let rows = match args.suite {
        Suite::Engine => bench::engine::run(&args.filter),
        Suite::Live => {
            let kubeconfig = args.kubeconfig.as_deref();
            runtime()?.block_on(bench::live::run(&args.filter, kubeconfig))?
        }
        Suite::Simulate => bench::simulate::run(&args.filter)?,
        Suite::Soak => {
            let executable = std::env::current_exe().context("cannot find this program")?;
            runtime()?.block_on(bench::live::soak::run(args.minutes, &executable))?
        }
    };
    if rows.is_empty() {
        let filter = args.filter;
        return Err(Failure::BadInput(anyhow!(
            "no scenario's name contains {filter:?}; without --filter all are measured, and the \
             second column names them"
        )));
    }
    print(&rows, args.output)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the asynchronous runtime")
}

fn print(rows: &[Row], output: Output) -> Result<(), Failure> {
    match output {
        Output::Table => print!("{}", bench::table(rows)),
        Output::Json => println!("{}", serde_json::to_string_pretty(rows)?),
    }
    Ok(())
}
