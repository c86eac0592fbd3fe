use super::super::Failure;
use super::super::output::{Results, print};
use crate::cli::progress::Progress;
use crate::views::table::{self, Entry, Screen, Tone};
use anyhow::anyhow;
use gpu_batch_simulator::input::InputError;
use gpu_batch_simulator::openb::{Experiment, Files, Policy, Run, read_published, write_csv};
use gpu_batch_simulator::report::openb::{Curve, Metric};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The most seeds that one call runs.
const SEEDS_MAX: u64 = 10_000;

/// Fill a cluster with the pods of the Alibaba trace openb, under FGD and its rivals.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  gpu-batch simulate openb --nodes openb_node_list_gpu_node.csv \\
    --pods openb_pod_list_default.csv.gz --order order_default.csv.gz \\
    --policy fgd,bestfit --seeds 42-51 --out openb

Pods arrive one after the other until 130 % of the GPUs were asked for. Each is tried once, and none
leaves (Weng et al., Beware of Fragmentation, USENIX ATC 2023). Writes curves.csv in the published
layout, report.html and report.json. The same files give the same bytes on every machine.")]
pub(super) struct Args {
    /// The nodes: sn,cpu_milli,memory_mib,gpu,model
    #[arg(long, value_name = "FILE")]
    nodes: PathBuf,
    /// The pods: name,cpu_milli,memory_mib,num_gpu,gpu_milli and, if there, gpu_spec
    #[arg(long, value_name = "FILE")]
    pods: PathBuf,
    /// The order of arrival and the ranks of the nodes, by seed: seed,kind,pos,row
    #[arg(long, value_name = "FILE")]
    order: PathBuf,
    /// The target workload: cpu_milli,gpu_milli,num_gpu,gpu_spec,freq. Without it: the most
    /// frequent kinds of pods, until they are 95 % of all
    #[arg(long, value_name = "FILE")]
    typical: Option<PathBuf>,
    /// What places the pods
    #[arg(
        long,
        value_name = "NAMES",
        value_enum,
        value_delimiter = ',',
        default_value = "fgd,bestfit,dotprod,gpupacking,gpuclustering,random"
    )]
    policy: Vec<PolicyName>,
    /// Which orders of arrival, as in 42-51 or 42,45. Without it: all of the file
    #[arg(long, value_name = "SEEDS")]
    seeds: Option<String>,
    /// A folder with the published curves (expected_alloc.csv, expected_frag_amount.csv and
    /// expected_frag_ratio.csv, or .csv.gz), for the report to show beside ours
    #[arg(long, value_name = "DIR")]
    published: Option<PathBuf>,
    /// Where to write the results; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// The policies by the names of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PolicyName {
    Fgd,
    Bestfit,
    Dotprod,
    Gpupacking,
    Gpuclustering,
    Random,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Fgd => Self::Fgd,
            PolicyName::Bestfit => Self::BestFit,
            PolicyName::Dotprod => Self::DotProd,
            PolicyName::Gpupacking => Self::GpuPacking,
            PolicyName::Gpuclustering => Self::GpuClustering,
            PolicyName::Random => Self::Random,
        }
    }
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let experiment = Experiment::read(Files {
        nodes: &args.nodes,
        pods: &args.pods,
        order: &args.order,
        typical: args.typical.as_deref(),
    })
    .map_err(bad_input)?;
    let published = match &args.published {
        Some(directory) => published(directory)?,
        None => Vec::new(),
    };
    let seeds = seeds(&args, &experiment)?;
    let results = Results::make(&args.out)?;
    let mut policies: Vec<Policy> = args.policy.iter().map(|name| (*name).into()).collect();
    policies.sort_unstable();
    policies.dedup();
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let arrivals = seeds.iter().filter_map(|seed| experiment.arrivals(*seed));
    let pods = arrivals.sum::<usize>().saturating_mul(policies.len());
    let progress = Progress::start("openb", "pods", u64::try_from(pods)?);
    let counter = progress.counter();
    let tried = || {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    let runs = experiment.run_all(&policies, &seeds, threads, tried);
    drop(progress);
    write(&results, &experiment, &runs, &published)?;
    print(&draw(&experiment, &runs))
}

fn bad_input(error: InputError) -> Failure {
    Failure::BadInput(error.into())
}

/// The seeds that were asked for, each once, rising.
fn seeds(args: &Args, experiment: &Experiment) -> Result<Vec<u64>, Failure> {
    let Some(text) = &args.seeds else {
        return Ok(experiment.seeds().collect());
    };
    let bad = |message: String| Failure::BadInput(anyhow!("--seeds: {message}"));
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let range = number(from).zip(number(to)).filter(|(from, to)| from <= to);
        let Some((from, to)) = range else {
            return Err(bad(format!(
                "`{part}` is not a number or a range such as 42-51"
            )));
        };
        if to - from >= SEEDS_MAX {
            return Err(bad(format!("`{part}` is more than {SEEDS_MAX} seeds")));
        }
        seeds.extend(from..=to);
    }
    seeds.sort_unstable();
    seeds.dedup();
    match seeds
        .iter()
        .find(|seed| experiment.arrivals(**seed).is_none())
    {
        Some(unknown) => {
            let file = args.order.display();
            Err(bad(format!("{file} has no order for seed {unknown}")))
        }
        None => Ok(seeds),
    }
}

fn published(directory: &Path) -> Result<Vec<Curve>, Failure> {
    let mut curves = Vec::new();
    for (name, metric) in [
        ("expected_alloc.csv", Metric::Alloc),
        ("expected_frag_amount.csv", Metric::FragAmount),
        ("expected_frag_ratio.csv", Metric::FragRatio),
    ] {
        let plain = directory.join(name);
        let packed = directory.join(format!("{name}.gz"));
        let path = if plain.exists() { plain } else { packed };
        curves.extend(read_published(&path, metric).map_err(bad_input)?);
    }
    Ok(curves)
}

fn write(
    results: &Results,
    experiment: &Experiment,
    runs: &[Run],
    published: &[Curve],
) -> Result<(), Failure> {
    let curves: Vec<Curve> = runs.iter().flat_map(|run| run.curves.clone()).collect();
    results.write("curves.csv", |file| {
        file.write_all(write_csv(&curves).as_bytes())
    })?;
    results.write_report(&experiment.report(runs, published))
}

fn draw(experiment: &Experiment, runs: &[Run]) -> String {
    let summary = experiment.table(runs);
    let headings: Vec<&str> = summary.columns.iter().map(String::as_str).collect();
    let plain = |row: Vec<String>| row.into_iter().map(|cell| Entry::new(cell, Tone::Plain));
    let rows = summary.rows.into_iter().map(|row| plain(row).collect());
    table::draw(&headings, rows.collect(), Screen::of_stdout())
}
