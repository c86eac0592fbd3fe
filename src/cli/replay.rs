use super::Failure;
use super::output::{Output, Results, print};
use crate::kube::convert::ClusterPreferences;
use crate::live::config::Configuration;
use crate::plan::{self, Input, Reading};
use crate::views::replay::{self, ReplayReport, WhatIfReport};
use crate::views::table::Screen;
use anyhow::{Context, anyhow, bail};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{Problem, QueueFacts};
use gpu_batch_policies::settings::Health;
use gpu_batch_simulator::journal::{Damage, Reader, replay as run_again};
use gpu_batch_simulator::what_if::Session;
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
///
/// With --config or --queues the session goes on in the simulator instead, as it would have gone
/// with that configuration or those queues: pods, nodes and groups come and go as recorded, each
/// pod runs as long as it ran, and both courses are printed side by side.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpu-batch demo --record demo.journal
  gpu-batch replay demo.journal
  gpu-batch replay demo.journal -o json
  gpu-batch replay demo.journal --config examples/what-if-spread.yaml
  gpu-batch replay demo.journal --queues examples/what-if-queues.yaml --out results

With --out, what-if writes gangs.csv, pods.csv, report.html and report.json.",
    group = clap::ArgGroup::new("change").multiple(true))]
pub(super) struct Args {
    /// The journal
    #[arg(value_name = "FILE")]
    journal: PathBuf,
    /// What if this had been the configuration? (see `gpu-batch config --print-defaults`)
    #[arg(long, value_name = "FILE", group = "change")]
    config: Option<PathBuf>,
    /// What if these had been the queues? Files of Queue objects (YAML or JSON), or folders of such
    /// files; other queues stay as recorded
    #[arg(long, value_name = "FILE", num_args = 1.., group = "change")]
    queues: Vec<PathBuf>,
    /// The folder for the files and the page about both courses; it is made if it does not exist
    #[arg(long, value_name = "DIR", requires = "change")]
    out: Option<PathBuf>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) fn run(args: Args) -> Result<(), Failure> {
    let mut reader = open(&args.journal)?;
    if args.config.is_some() || !args.queues.is_empty() {
        return what_if(&args, reader);
    }
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

fn what_if(args: &Args, mut reader: Reader<BufReader<File>>) -> Result<(), Failure> {
    let bad_input = |error: anyhow::Error| Failure::BadInput(error);
    let configuration = args.config.as_deref();
    let configuration = configuration.map(|path| Configuration::load(Some(path)));
    let configuration = configuration
        .transpose()
        .map_err(|it| bad_input(it.into()))?;
    let queues = read_queues(&args.queues).map_err(bad_input)?;
    let mut session = Session::read(&mut reader);
    let damage = session.damage.take();
    if session.is_empty() {
        let journal = args.journal.display();
        let nothing = anyhow!("{journal}: the scheduler never began to decide");
        return Err(damage.map_or(bad_input(nothing), |damage| bad(&args.journal, damage)));
    }
    let results = args.out.as_deref().map(Results::make).transpose()?;
    let settings = configuration.map(|configuration| configuration.settings);
    let course = session.under(settings.as_ref().unwrap_or(&session.settings), &queues);
    let comparison = session.compare(&course);
    if let Some(results) = results {
        results.write("gangs.csv", |file| session.write_gangs(&course, file))?;
        results.write("pods.csv", |file| session.write_pods(&course, file))?;
        results.write_report(&session.report(&course, &comparison, facts(args, &session)))?;
    }
    let report = WhatIfReport::new(&session, &comparison, &course);
    print(&match args.output {
        Output::Table => replay::draw_what_if(&report, Screen::of_stdout()),
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
    })?;
    damage.map_or(Ok(()), |damage| Err(bad(&args.journal, damage)))
}

/// What a reader needs to make the same page again.
fn facts(args: &Args, session: &Session) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let span = replay::span(session);
    let mut facts = vec![
        fact("journal", args.journal.display().to_string()),
        fact("recorded", format!("{} to {}", span.0, span.1)),
    ];
    if let Some(configuration) = &args.config {
        facts.push(fact("configuration", configuration.display().to_string()));
    }
    if !args.queues.is_empty() {
        facts.push(fact("queues", shown(&args.queues)));
    }
    facts.push(fact("version", env!("CARGO_PKG_VERSION").to_owned()));
    facts
}

fn read_queues(files: &[PathBuf]) -> anyhow::Result<Vec<QueueFacts>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    // The notes are about what a plan needs, so they are not shown.
    let reading = Reading {
        scheduler_name: "gpu-batch",
        namespace: "default",
        now_ms: 0,
        health: &Health::default(),
        preferences: ClusterPreferences::default(),
    };
    let Input { objects, .. } = plan::read(None, files, reading)?;
    let queue = |object| match object {
        Object::Queue(queue) => match queue.problems.first() {
            None => Ok(queue),
            Some(Problem { field, message }) => {
                bail!("--queues: Queue {}: {field}: {message}", queue.name)
            }
        },
        other => {
            let (_, kind) = other.kind().api_type();
            let files = shown(files);
            bail!("--queues: {files}: there is a {kind}; only Queues can be given")
        }
    };
    let queues: Vec<QueueFacts> = objects.into_iter().map(queue).collect::<Result<_, _>>()?;
    if queues.is_empty() {
        bail!("--queues: {}: there is no Queue", shown(files));
    }
    Ok(queues)
}

fn shown(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
    names.join(", ")
}

fn open(path: &Path) -> Result<Reader<BufReader<File>>, Failure> {
    let file = File::open(path).with_context(|| path.display().to_string());
    let file = file.map_err(Failure::BadInput)?;
    Reader::new(BufReader::new(file)).map_err(|damage| bad(path, damage))
}

fn bad(path: &Path, damage: Damage) -> Failure {
    Failure::BadInput(anyhow::Error::new(damage).context(path.display().to_string()))
}
