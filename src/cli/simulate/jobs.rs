mod page;
mod screen;

use super::super::Failure;
use super::super::output::{Results, print};
use crate::cli::progress::Progress;
use crate::live::config::numbers;
use crate::views::table::printable;
use clap::ValueEnum;
use gpu_batch_simulator::input::InputError;
use gpu_batch_simulator::jobs::output::{self, Evaluated};
use gpu_batch_simulator::jobs::{
    Execution, Policy, RESERVATIONS, Workload, expectations, simulate,
};
use gpu_batch_simulator::trace::jobs::Jobs;
use gpu_batch_simulator::trace::queues::{self, NODES_MAX, TraceQueue};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How many times fair shares are sampled while jobs are submitted: more often than a page can
/// show.
const FAIR_SHARES: u64 = 500;

/// Run the jobs of a trace under one or several policies.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch simulate jobs --trace trace.csv --queues queues.csv
  gpu-batch simulate jobs --trace trace.csv.gz --queues queues.csv --node-scale 0.5 \\
    --policy fifo,drf --out results
  gpu-batch simulate jobs --trace trace.csv --queues queues.csv --policy drf,drf+evictions
  gpu-batch simulate jobs --trace trace.csv --queues queues.csv --policy drf,drf+reservations

The trace has the columns row,submit_s,duration_s,num_gpus,vc and, if jobs save their work,
checkpoint_s, if owners know how long they run, expected_s, and, if runtimes are to be learned from
earlier jobs of the same owner, owner; the file of queues vc,node num.
Under fifo, sjf and first-fit every queue has its own nodes. Under the others all nodes are one
cluster: with easy and conservative all jobs stand in one line; with drf a queue's nodes are its
quota. With easy, conservative and +reservations jobs that find no room are promised a start, and
expected_s says when jobs are expected to end (without it: as learned, else never). With +evictions
a job that is evicted goes back to its queue and loses what it has not saved: checkpoint_s says
after how many seconds of running it saves its work, each time; without it all is lost. Writes
jobs.csv, summary.csv, sizes.csv, fairness.csv, report.html, report.json and, where they say
something, evictions.csv, promises.csv, expectations.csv and runtimes.csv.
The same files give the same bytes, whatever the number of threads.")]
pub(super) struct Args {
    /// The jobs, plain or compressed with gzip
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// The queues and their nodes
    #[arg(long, value_name = "FILE")]
    queues: PathBuf,
    /// Multiply the nodes of every queue by this; a queue that has nodes keeps at least one
    #[arg(long, value_name = "X", default_value = "1", value_parser = node_scale)]
    node_scale: u64,
    /// GPUs of each node
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1_024))]
    gpus_per_node: u32,
    /// The policies, side by side
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "fifo,sjf,first-fit,drf"
    )]
    policy: Vec<Name>,
    #[arg(long, value_name = "N", value_parser = reservations, allow_negative_numbers = true,
          help = format!("With +reservations: how many jobs at a time are promised a start. \
                          Without it: {RESERVATIONS}"))]
    reservations: Option<u32>,
    /// The folder for the files; it is made if it does not exist. Without it only the summary is
    /// printed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How many threads. Without it: one for each core
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// First in, first out; a job without room keeps all behind it waiting
    Fifo,
    /// The shortest job first; a job without room keeps all behind it waiting
    Sjf,
    /// First in, first out; a job without room lets later ones start
    FirstFit,
    /// First in, first out; the first job without room is promised a start that later ones do not
    /// delay
    Easy,
    /// First in, first out; every job is promised a start that later ones do not delay
    Conservative,
    /// Fair shares between queues with quotas that borrow from each other; nobody is evicted
    Drf,
    /// As drf, and running jobs are evicted for what is another queue's own, as the scheduler does
    /// it
    #[value(name = "drf+evictions")]
    DrfEvictions,
    /// As drf, and jobs that find no room are promised a start that others do not delay
    #[value(name = "drf+reservations")]
    DrfReservations,
    /// As drf+evictions, with promised starts
    #[value(
        name = "drf+evictions+reservations",
        alias = "drf+reservations+evictions"
    )]
    DrfEvictionsReservations,
}

impl Args {
    fn reservations(&self) -> u32 {
        self.reservations.unwrap_or(RESERVATIONS)
    }

    /// Refuses a number of reservations that no policy would heed.
    fn check_reservations(&self) -> Result<(), Failure> {
        let heeds = |name: &Name| name.policy(RESERVATIONS).without_reservations().is_some();
        if self.reservations.is_none() || self.policy.iter().any(heeds) {
            return Ok(());
        }
        Err(Failure::BadInput(anyhow::anyhow!(
            "--reservations is for drf+reservations and drf+evictions+reservations: easy promises \
             one job a start, conservative all of them, and the other policies none"
        )))
    }
}

impl Name {
    fn policy(self, reservations: u32) -> Policy {
        match self {
            Self::Fifo => Policy::Fifo,
            Self::Sjf => Policy::Sjf,
            Self::FirstFit => Policy::FirstFit,
            Self::Easy => Policy::Easy,
            Self::Conservative => Policy::Conservative,
            Self::Drf => Policy::Drf,
            Self::DrfEvictions => Policy::DrfEvictions,
            Self::DrfReservations => Policy::DrfReservations(reservations),
            Self::DrfEvictionsReservations => Policy::DrfEvictionsReservations(reservations),
        }
    }
}

/// Reads a factor in thousandths, from 0.001 to 1000: with whole numbers all machines round alike.
fn node_scale(text: &str) -> Result<u64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let read = || {
        let sound = digits(whole) && digits(fraction) && fraction.len() <= 3;
        let whole: u64 = whole.parse().ok().filter(|_| sound)?;
        let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
        whole.checked_mul(1_000)?.checked_add(fraction)
    };
    let scale = read().filter(|scale| (1..=1_000_000).contains(scale));
    scale.ok_or_else(|| "must be a number from 0.001 to 1000 with at most 3 decimals".to_owned())
}

/// Reads how many reservations there are, in the range that the configuration has for them.
fn reservations(text: &str) -> Result<u32, String> {
    let range = numbers("reservations");
    let number = text.parse::<i64>().ok();
    let number = number.filter(|number| range.contains(number));
    number
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| {
            let (first, last) = range.into_inner();
            format!("must be a whole number from {first} to {last}; 0 turns reservations off")
        })
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    args.check_reservations()?;
    let bad = |error: InputError| Failure::BadInput(error.into());
    let (jobs, unknown) = Jobs::read_noting(&args.trace).map_err(bad)?;
    if let Some(unknown) = unknown {
        let file = args.trace.display();
        let note = format!("{file}: these columns mean nothing: {unknown}");
        eprintln!("note: {}", printable(&note));
    }
    let mut queues = queues::read(&args.queues).map_err(bad)?;
    scale(&mut queues, &args)?;
    let workload = Workload {
        jobs: &jobs,
        queues: &queues,
        gpus_per_node: args.gpus_per_node,
    };
    let results = args.out.as_deref().map(Results::make).transpose()?;
    let runs = simulated(&args, workload);
    if let Some(results) = &results {
        write(results, &runs, workload, &args)?;
    }
    print(&screen::text(&runs, workload, args.out.as_deref()))
}

fn scale(queues: &mut [TraceQueue], args: &Args) -> Result<(), Failure> {
    let mut all: u64 = 0;
    for queue in queues.iter_mut().filter(|queue| queue.nodes > 0) {
        let scaled = (u64::from(queue.nodes) * args.node_scale + 500) / 1_000;
        all += scaled.max(1);
        queue.nodes = u32::try_from(scaled.max(1)).unwrap_or(u32::MAX);
    }
    if all > u64::from(NODES_MAX) {
        return Err(Failure::BadInput(anyhow::anyhow!(
            "--node-scale: {all} nodes are more than {NODES_MAX}"
        )));
    }
    Ok(())
}

fn simulated(args: &Args, workload: Workload<'_>) -> Vec<Evaluated> {
    let mut policies: Vec<Policy> = Vec::new();
    for name in &args.policy {
        let policy = name.policy(args.reservations());
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let until_s = workload.jobs.jobs.last().map_or(0, |job| job.submit_s);
    let events = 3 * workload.jobs.jobs.len() as u64 * policies.len() as u64;
    let progress = Progress::start("jobs", "events", events);
    let execution = Execution {
        threads: args.threads.unwrap_or_else(cores),
        events: progress.counter(),
        fair_shares_every_s: args.out.as_ref().map(|_| until_s / FAIR_SHARES),
    };
    let runs = simulate(&policies, workload, execution);
    let runs = runs.into_iter().map(|run| output::evaluate(run, workload));
    runs.collect()
}

fn write(
    results: &Results,
    runs: &[Evaluated],
    workload: Workload<'_>,
    args: &Args,
) -> Result<(), Failure> {
    results.write("jobs.csv", |file| output::write_jobs(runs, workload, file))?;
    results.write("summary.csv", |file| {
        output::write_summary(runs, workload, file)
    })?;
    results.write("sizes.csv", |file| output::write_sizes(runs, file))?;
    results.write("fairness.csv", |file| {
        output::write_fairness(runs, workload, file)
    })?;
    results.write_if(output::any_evicts(runs), "evictions.csv", |file| {
        output::write_evictions(runs, workload, file)
    })?;
    results.write_if(output::any_reserves(runs), "promises.csv", |file| {
        output::write_promises(runs, workload, file)
    })?;
    let expected = expectations::expectations(workload.jobs);
    results.write_if(!expected.is_empty(), "expectations.csv", |file| {
        expectations::write(&expected, file)
    })?;
    results.write_if(output::any_learns(runs, workload), "runtimes.csv", |file| {
        output::write_runtimes(runs, file)
    })?;
    results.write_report(&page::report(runs, workload, &expected, args))
}

#[cfg(test)]
mod tests {
    use super::{node_scale, reservations};

    #[test]
    fn a_scale_is_a_number_of_thousandths() {
        for (text, thousandths) in [
            ("1", 1_000),
            ("0.5", 500),
            ("1000", 1_000_000),
            ("2.125", 2_125),
        ] {
            assert_eq!(node_scale(text), Ok(thousandths), "{text}");
        }
        for text in [
            "", ".", ".5", "0", "0.0005", "1000.1", "-1", "+1", "1e3", "1/2", "0.5 ",
        ] {
            assert!(node_scale(text).is_err(), "{text}");
        }
    }

    #[test]
    fn reservations_have_the_range_of_the_configuration() {
        for (text, number) in [("0", 0), ("8", 8), ("100000", 100_000)] {
            assert_eq!(reservations(text), Ok(number), "{text}");
        }
        let told = "must be a whole number from 0 to 100000; 0 turns reservations off";
        for text in ["-1", "abc", "", "100001", "1.5"] {
            assert_eq!(reservations(text), Err(told.to_owned()), "{text}");
        }
    }
}
