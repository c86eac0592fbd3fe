use super::super::Failure;
use super::super::output::{Output, Results, print};
use crate::views::table::{self, Screen};
use clap::ValueEnum;
use gpu_batch_simulator::generate::profile::{self, Profile};
use gpu_batch_simulator::generate::statistics::Statistics;
use gpu_batch_simulator::generate::{Expected, Scale, Settings, Trace, generate};
use gpu_batch_simulator::trace::queues;
use std::path::PathBuf;

/// The name of the file of jobs in `--out`. Not `jobs.csv`: `simulate jobs` writes a file of that
/// name.
const TRACE: &str = "trace.csv";

const QUEUES: &str = "queues.csv";

const LOAD_PERCENT: u32 = 90;

/// Make a trace from a seed that looks like a published one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch simulate generate --like philly --seed 1 --out month
  gpu-batch simulate generate --like helios --seed 1 --days 7 --gpus 512 --load 110 --out week
  gpu-batch simulate generate --like helios --seed 1 --expected rough --out told
  gpu-batch simulate generate --like openb --seed 1 --jobs 1000000 --out million

Writes trace.csv and queues.csv, which `gpu-batch simulate jobs` reads. Of --jobs, --gpus and
--load two decide the third. The same options give the same bytes on every machine. docs/traces.md
says what the traces are like, and where the real ones are.")]
pub(super) struct Args {
    /// The cluster that the trace is like
    #[arg(long, value_enum)]
    like: Like,
    /// Another seed gives another trace of the same kind
    #[arg(long)]
    seed: u64,
    /// How many days jobs are submitted, from a Monday 0:00
    #[arg(long, default_value_t = 30)]
    days: u32,
    /// How many jobs. Without it: as many as give the load
    #[arg(long)]
    jobs: Option<u64>,
    /// The GPUs of the cluster, 8 a node. Without it: as many as the real one had, or with --jobs
    /// as give the load
    #[arg(long)]
    gpus: Option<u32>,
    /// How much GPU time the jobs need, in percent of what the cluster has in these days [default:
    /// 90]
    #[arg(long, value_name = "PERCENT")]
    load: Option<u32>,
    /// How many queues share the cluster. Without it: as many as the real one had
    #[arg(long)]
    queues: Option<u32>,
    /// How long owners expect their jobs to run: the column expected_s
    #[arg(long, value_enum, default_value_t = Expect::None)]
    expected: Expect,
    /// The folder for the files; it is made if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// How to print what the trace is like
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Like {
    /// Microsoft 2017: few queues, most jobs small, large ones long
    Philly,
    /// SenseTime 2020: short jobs, and gangs of up to 1,024 GPUs
    Helios,
    /// Alibaba 2023: nearly all jobs on one GPU, some for weeks
    Openb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Expect {
    /// Nobody expects anything: there is no column
    None,
    /// Exactly as long as they run
    Exact,
    /// As users do: most expect far too much, and some too little
    Rough,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let like = match args.like {
        Like::Philly => profile::Like::Philly,
        Like::Helios => profile::Like::Helios,
        Like::Openb => profile::Like::Openb,
    };
    let settings = Settings {
        like,
        seed: args.seed,
        days: args.days,
        scale: scale(&args)?,
        queues: args.queues,
    };
    let mut trace = generate(&settings).map_err(|error| {
        let error = anyhow::Error::from(error);
        Failure::BadInput(error.context("no trace can be made of these options"))
    })?;
    match args.expected {
        Expect::None => {}
        Expect::Exact => trace.expect(Expected::Exact, args.seed),
        Expect::Rough => trace.expect(Expected::Rough, args.seed),
    }
    let results = Results::make(&args.out)?;
    results.write(TRACE, |file| trace.jobs.write(file))?;
    results.write(QUEUES, |file| queues::write(&trace.queues, file))?;
    let found = Statistics::of(&trace, args.days);
    print(&match args.output {
        Output::Table => summary(&found, like.profile(), &trace, &args),
        Output::Json => serde_json::to_string_pretty(&found)? + "\n",
    })
}

fn scale(args: &Args) -> Result<Scale, Failure> {
    let load_percent = args.load.unwrap_or(LOAD_PERCENT);
    match (args.jobs, args.gpus) {
        (Some(_), Some(_)) if args.load.is_some() => Err(Failure::BadInput(anyhow::anyhow!(
            "of --jobs, --gpus and --load give two: they decide the third"
        ))),
        (Some(jobs), Some(gpus)) => Ok(Scale::Both { jobs, gpus }),
        (Some(jobs), None) => Ok(Scale::Jobs { jobs, load_percent }),
        (None, gpus) => Ok(Scale::Cluster { gpus, load_percent }),
    }
}

fn summary(found: &Statistics, real: &Profile, trace: &Trace, args: &Args) -> String {
    let row = |name: &str, found: f64, real: f64, digits: usize| {
        let shown = |value: f64| format!("{value:.digits$}").into();
        vec![name.into(), shown(found), shown(real)]
    };
    let rows = vec![
        row("mean GPUs of a job", found.mean_gpus, real.mean_gpus, 2),
        row(
            "mean duration, s",
            found.mean_duration_s,
            real.mean_duration_s,
            0,
        ),
        row(
            "median duration, s",
            found.median_duration_s as f64,
            real.median_duration_s,
            0,
        ),
    ];
    let table = table::draw(&["", "GENERATED", "REAL"], rows, Screen::of_stdout());
    let folder = args.out.display();
    format!(
        "{} jobs of up to {} GPUs in {} days, for {} queues on {} GPUs: {:.0} % of their time\n\n\
         {table}\n\
         written to {folder}/{TRACE} and {folder}/{QUEUES}\n",
        found.jobs,
        found.largest_gpus,
        args.days,
        trace.queues.len(),
        found.gpus,
        found.load_percent,
    )
}
