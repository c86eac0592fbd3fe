//! Seeded fault schedules on the command line.
//!
//! ```text
//! chaos --seed N [--without-faults]       one seed, told line by line
//! chaos --seeds FROM..TO [--without-faults] [--threads N] [--stop-at-first]
//!                                         a campaign, on all cores unless told otherwise
//! chaos --digest FROM..TO [--without-faults] [--threads N]
//!                                         one line of hashes, equal if all commands are
//! ```
//!
//! Exit codes: 0 nothing was violated, 1 a rule was violated, 2 bad usage.

use gpu_batch_simulator::campaign::{Campaign, campaign};
use gpu_batch_simulator::run::tell;
use std::io::Write;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: chaos --seed N [--without-faults]
       chaos --seeds FROM..TO [--without-faults] [--threads N] [--stop-at-first]
       chaos --digest FROM..TO [--without-faults] [--threads N]";

/// What the program prints about the seeds that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Print {
    /// One seed, line by line.
    Story,
    /// Counts and failures of all seeds.
    Findings,
    /// Hashes of what all seeds did.
    Digest,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments) {
        Some((orders, Print::Story)) => one(orders.seeds.start, orders.with_faults),
        Some((orders, print)) => many(&orders, print),
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The campaign to be run, and what is printed of it.
fn parse(arguments: &[String]) -> Option<(Campaign, Print)> {
    let mut seeds = None;
    let mut print = Print::Findings;
    let mut orders = Campaign {
        seeds: 0..0,
        with_faults: true,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        stop_at_first: false,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seed" => {
                let seed: u64 = words.next()?.parse().ok()?;
                seeds = Some(seed..seed.checked_add(1)?);
                print = Print::Story;
            }
            "--seeds" | "--digest" => {
                let (from, to) = words.next()?.split_once("..")?;
                seeds = Some(from.parse().ok()?..to.parse().ok()?);
                print = match word.as_str() {
                    "--digest" => Print::Digest,
                    _ => Print::Findings,
                };
            }
            "--threads" => orders.threads = words.next()?.parse().ok()?,
            "--without-faults" => orders.with_faults = false,
            "--stop-at-first" => orders.stop_at_first = true,
            _ => return None,
        }
    }
    orders.seeds = seeds?;
    Some((orders, print))
}

fn one(seed: u64, with_faults: bool) -> ExitCode {
    let mut out = std::io::stdout().lock();
    // The reader of the output may close the pipe before the end, which is no error.
    let result = tell(seed, with_faults, &mut |line| drop(writeln!(out, "{line}")));
    match result {
        Ok(summary) => {
            drop(writeln!(out, "seed {seed}: nothing violated: {summary:?}"));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            drop(writeln!(out, "VIOLATED: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn many(orders: &Campaign, print: Print) -> ExitCode {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    fn clock() -> Duration {
        START.elapsed()
    }
    let findings = campaign(orders, clock);
    if print == Print::Digest {
        let (commands, decisions) = (findings.commands, findings.decisions);
        let (seeds, failed) = (&orders.seeds, findings.failed);
        let faults = if orders.with_faults {
            "with"
        } else {
            "without"
        };
        println!(
            "{seeds:?} {faults} faults: commands {commands:016x}, binds and evictions \
             {decisions:016x}, {failed} failed"
        );
    } else {
        println!("{findings}in {:?}", clock());
    }
    if findings.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
