use super::options::ClusterArgs;
use super::{Failure, wait_for};
use crate::lab::bench::{self, Row};
use crate::live::log::{self, LogFormat};
use anyhow::{Context, anyhow};

/// Measure the figures that the documentation claims.
///
/// Each row says what was measured, on what, and what it is compared with: the project's target, or
/// a bare binder in the same run, which only sends the bindings. The documented figures are those
/// of a build with `--profile dist`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch bench engine --filter gang
  gpu-batch bench live --context tests

With --kubeconfig or --context, `live` and `soak` measure that cluster instead of a local control
plane. A namespace and the fake nodes `gpu-batch-bench-N` are made and removed again; no other
scheduler named gpu-batch may run there.")]
pub(super) struct Args {
    /// What to measure
    suite: Suite,
    /// Only benchmarks whose name, which the first column shows, contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// How to print the rows
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// For `soak`: how long
    #[arg(long, default_value_t = 30)]
    minutes: u32,
    #[command(flatten)]
    cluster: ClusterArgs,
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

impl Suite {
    fn names(self) -> Vec<&'static str> {
        match self {
            Self::Engine => bench::engine::names(),
            Self::Live => bench::live::names(),
            Self::Simulate => bench::simulate::names(),
            Self::Soak => vec![bench::live::soak::NAME],
        }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    Table,
    Json,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    log::init(LogFormat::Text, "warn,gpu_batch::lab::bench=info");
    let names = args.suite.names();
    if !names.iter().any(|name| name.contains(&args.filter)) {
        let (filter, names) = (args.filter, names.join(", "));
        return Err(Failure::BadInput(anyhow!(
            "no benchmark's name contains {filter:?}; there are: {names}"
        )));
    }
    if args.cluster.is_named() {
        wait_for(args.cluster.check())?;
    }
    let named = args.cluster.is_named().then(|| args.cluster.named());
    let rows = match args.suite {
        Suite::Engine => bench::engine::run(&args.filter),
        Suite::Live => runtime()?.block_on(bench::live::run(&args.filter, named.as_ref()))?,
        Suite::Simulate => bench::simulate::run(&args.filter)?,
        Suite::Soak => {
            let executable = std::env::current_exe().context("cannot find this program")?;
            let soak = bench::live::soak::run(args.minutes, &executable, named.as_ref());
            runtime()?.block_on(soak)?
        }
    };
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
