//! The demo without Kubernetes: the model API server, and the same engine, in virtual time.
//!
//! What happens depends on the arguments alone; only how fast it is shown depends on the clock.

mod machines;
mod model;

use super::check::{self, Check};
use super::seen::Node;
use super::setting;
use super::show::Show;
use super::witness::{self, Books, Witness};
use super::workload;
use super::{Embedded, Interrupt, Options};
use crate::kube::convert::Converter;
use crate::live::recording::JournalFile;
use gpu_batch_simulator::journal::pack;
use model::Model;
use std::time::{Duration, Instant};

/// How often, in real time, the table is drawn; and how often, in the world's time, to look whether
/// all is over.
const TICK: Duration = Duration::from_millis(200);

/// Shows the gangs, until all have ended, time is up, or the process is interrupted.
///
/// # Errors
/// If the final checks find a violation.
pub(super) async fn run(
    options: &Options,
    embedded: Embedded,
    journal: Option<JournalFile>,
) -> anyhow::Result<()> {
    let mut interrupt = Interrupt::new()?;
    announce(embedded);
    let gangs = workload::gangs(options.gangs, options.length);
    let objects = setting::objects(false)?;
    let nodes = objects
        .iter()
        .filter(|(path, _)| path == "/api/v1/nodes")
        .map(|(_, node)| serde_json::from_value(node.clone()))
        .collect::<Result<Vec<Node>, _>>()?;
    let mut witness = Witness::new(gangs.clone(), &nodes);
    if embedded.chaos.is_some() {
        witness.partial_within = witness::PARTIAL_WITHIN_CHAOS;
    }
    let books = Books::new(witness);
    // The world's time begins now and runs by itself.
    let start = Instant::now();
    let chaos = embedded.chaos.map(|seed| (seed, options.length * 2 / 3));
    let mut model = Model::new(Converter::new("gpu-batch", 0), chaos, journal.is_some());
    for (_, object) in objects {
        model.create(object)?;
    }
    model.expect(gangs);
    let mut show = Show::new("gpu-batch demo, embedded", &books, start);
    'world: loop {
        let frame_ends = tokio::time::Instant::now() + TICK;
        for _ in 0..embedded.speed {
            if show.is_over(options.length, start + model.elapsed()) {
                break 'world;
            }
            let until = model.elapsed() + TICK;
            while model.elapsed() < until {
                model.advance()?;
                model.tell(&books, start);
            }
            show.look(start + model.elapsed());
            // A large world may need longer than it should, and the user may interrupt it.
            tokio::select! {
                biased;
                () = interrupt.wait() => break 'world,
                () = tokio::task::yield_now() => {}
            }
        }
        show.tick(Some(model.reports()), start + model.elapsed());
        tokio::select! {
            () = tokio::time::sleep_until(frame_ends) => {}
            () = interrupt.wait() => break,
        }
    }
    show.tick(Some(model.reports()), start + model.elapsed());
    let now = start + model.elapsed();
    let mut checks = check::all(&books.open(), &nodes, &model.pods(), now);
    checks.push(audit(&model));
    let ended = show.end("the model world", &checks, now);
    if embedded.chaos.is_some() {
        say!();
        say!("What went wrong on the way");
        for (count, what) in model.struck() {
            say!("  {count:>5} {what}");
        }
    }
    if let (Some(mut journal), Some(recorded)) = (journal, model.into_recorded()) {
        journal.append(&pack(&recorded)?)?;
    }
    ended
}

fn announce(embedded: Embedded) {
    let Embedded { speed, chaos } = embedded;
    let pace = match speed {
        1 => "in real time".to_owned(),
        speed => format!("{speed} times as fast as real time"),
    };
    say!("A model of Kubernetes inside this program, {pace}; the scheduler is the real one.");
    if let Some(seed) = chaos {
        say!("Things go wrong for two thirds of the time: faults of seed {seed}.");
    }
    say!("The real API server, etcd and controllers: gpu-batch demo");
    say!();
}

fn audit(model: &Model) -> Check {
    Check {
        promise: "the scheduler's books hold",
        extent: format!("audited {} times", model.audits()),
        violations: model.violations().to_vec(),
    }
}

#[cfg(test)]
mod tests;
