//! Seeded fault schedules on the command line.
//!
//! ```text
//! chaos --seed N [--without-faults]       one seed, told line by line
//! chaos --seeds FROM..TO [--without-faults] [--threads N] [--stop-at-first]
//!                                         a campaign, on all cores unless told otherwise
//! ```
//!
//! Exit codes: 0 nothing violated, 1 something was, 2 bad usage.

use gpu_batch_simulator::campaign::{Campaign, campaign};
use gpu_batch_simulator::run::tell;
use std::io::Write;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: chaos --seed N [--without-faults]
       chaos --seeds FROM..TO [--without-faults] [--threads N] [--stop-at-first]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments) {
        Some((orders, true)) => one(orders.seeds.start, orders.with_faults),
        Some((orders, false)) => many(&orders),
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The campaign to be run, and whether its one seed is to be told line by line.
fn parse(arguments: &[String]) -> Option<(Campaign, bool)> {
    let mut seeds = None;
    let mut told = false;
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
                told = true;
            }
            "--seeds" => {
                let (from, to) = words.next()?.split_once("..")?;
                seeds = Some(from.parse().ok()?..to.parse().ok()?);
                told = false;
            }
            "--threads" => orders.threads = words.next()?.parse().ok()?,
            "--without-faults" => orders.with_faults = false,
            "--stop-at-first" => orders.stop_at_first = true,
            _ => return None,
        }
    }
    orders.seeds = seeds?;
    Some((orders, told))
}

fn one(seed: u64, with_faults: bool) -> ExitCode {
    let mut out = std::io::stdout().lock();
    // Whoever reads may have enough before the end.
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

fn many(orders: &Campaign) -> ExitCode {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    fn clock() -> Duration {
        START.elapsed()
    }
    let findings = campaign(orders, clock);
    println!("{findings}in {:?}", clock());
    if findings.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
