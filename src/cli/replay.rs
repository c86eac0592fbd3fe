use super::Failure;
use super::plan::{Output, print};
use crate::replay::{self, ReplayReport};
use anyhow::{Context, anyhow};
use gpu_batch_simulator::journal::{Damage, Reader, replay as run_again};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Run a recorded session again, and compare every decision.
///
/// The journal comes from `gpu-batch run --record FILE`. The same events at the same times go into
/// an engine of this program, and every command must come out as it is recorded. The first
/// difference is printed, with exit code 1. A journal that is cut or damaged is run as far as it is
/// whole, with exit code 2.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch demo --record demo.journal
  gpu-batch replay demo.journal
  gpu-batch replay demo.journal -o json")]
pub(super) struct Args {
    /// The journal
    #[arg(value_name = "FILE")]
    journal: PathBuf,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let mut reader = open(&args.journal)?;
    let started = Instant::now();
    let mut replayed = run_again(&mut reader);
    let took = started.elapsed();
    let damage = replayed.damage.take();
    let report = ReplayReport::new(&replayed, took);
    print(&match args.output {
        Output::Table => replay::draw(&report),
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
    })?;
    if report.difference.is_some() {
        return Err(anyhow!("the replay went another way than the record").into());
    }
    match damage {
        Some(damage) => Err(bad(&args.journal, damage)),
        None => Ok(()),
    }
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let file = File::open(path).with_context(|| path.display().to_string());
    let file = file.map_err(Failure::BadInput)?;
    Reader::new(BufReader::new(file)).map_err(|damage| bad(path, damage))
}

fn bad(path: &Path, damage: Damage) -> Failure {
    Failure::BadInput(anyhow::Error::new(damage).context(path.display().to_string()))
}
