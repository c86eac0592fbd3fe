//! Seeded fault schedules on the command line.
//!
//! ```text
//! chaos --seed N                          one seed, told line by line
//! chaos --seeds FROM..TO [--threads N]    a campaign on all cores
//! ```
//!
//! Exit codes: 0 nothing violated, 1 something was, 2 bad usage.

use gpu_batch_simulator::campaign::campaign;
use gpu_batch_simulator::run::tell;
use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: chaos --seed N | chaos --seeds FROM..TO [--threads N]";

enum Order {
    One(u64),
    Many(Range<u64>, usize),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments) {
        Some(Order::One(seed)) => one(seed),
        Some(Order::Many(seeds, threads)) => many(seeds, threads),
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[String]) -> Option<Order> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let range = |text: &str| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    };
    match words[..] {
        ["--seed", seed] => Some(Order::One(seed.parse().ok()?)),
        ["--seeds", seeds] => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            Some(Order::Many(range(seeds)?, threads))
        }
        ["--seeds", seeds, "--threads", threads] => {
            Some(Order::Many(range(seeds)?, threads.parse().ok()?))
        }
        _ => None,
    }
}

fn one(seed: u64) -> ExitCode {
    let mut out = std::io::stdout().lock();
    // Whoever reads may have enough before the end.
    let result = tell(seed, &mut |line| drop(writeln!(out, "{line}")));
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

fn many(seeds: Range<u64>, threads: usize) -> ExitCode {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    fn clock() -> Duration {
        START.elapsed()
    }
    let findings = campaign(seeds, threads, true, clock);
    println!("{findings}in {:?}", clock());
    if findings.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
