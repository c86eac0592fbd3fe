//! What recording costs, and how fast a journal is run again.

use super::events::{Size, World};
use super::facts::START_MS;
use super::policy;
use super::session::{done, processor_time};
use crate::lab::bench::{Row, as_f64, milliseconds};
use gpu_batch_policies::command::Command;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::Event;
use gpu_batch_simulator::journal::{Reader, Recorder, Replayed, beginning, pack, replay};
use std::time::Duration;

const SIZE: Size = Size::of(5_000);
const EVENTS: usize = 20_000;
/// How far the clock advances between two events.
const PAUSE_MS: u64 = 2;

pub(super) fn measure() -> Vec<Row> {
    let Size { nodes, pods, gangs } = SIZE;
    let scenario = format!("{nodes} nodes, {pods} pods, {gangs} gangs pending");
    let row = |name, value, unit| Row::new(name, scenario.clone(), value, unit);
    let mut world = World::new(SIZE, false);
    let mut recorded = Recorded::new();
    let commands = recorded.step(Event::lists(world.objects()));
    recorded.settle(commands, &mut world);
    let listed = recorded.take_sums();
    for _ in 0..EVENTS {
        recorded.now_ms += PAUSE_MS;
        let commands = recorded.step(vec![world.next_event()]);
        recorded.settle(commands, &mut world);
    }
    let news = recorded.take_sums();
    let started = processor_time();
    let replayed = recorded.replay();
    let took = processor_time().saturating_sub(started);
    let steps = as_f64(usize::try_from(replayed.steps).unwrap_or(usize::MAX));
    vec![
        row("recording all lists", milliseconds(listed.encoding), "ms"),
        row("all lists in the journal", as_f64(listed.bytes) / 1e6, "MB"),
        row(
            "recording one step",
            milliseconds(news.encoding) * 1e3 / as_f64(news.steps),
            "us",
        ),
        row(
            "deflating one step, on another thread",
            milliseconds(news.packing) * 1e3 / as_f64(news.steps),
            "us",
        ),
        row(
            "one step in the journal",
            as_f64(news.bytes) / as_f64(news.steps),
            "bytes",
        ),
        row("replay", steps / took.as_secs_f64(), "steps/s"),
    ]
}

/// An engine, and the journal of what goes in and out.
struct Recorded {
    engine: Engine,
    recorder: Recorder,
    journal: Vec<u8>,
    now_ms: u64,
    sums: Sums,
}

#[derive(Debug, Default)]
struct Sums {
    encoding: Duration,
    packing: Duration,
    bytes: usize,
    steps: usize,
}

impl Recorded {
    fn new() -> Self {
        let settings = policy::settings();
        Self {
            recorder: Recorder::new("", &settings),
            engine: Engine::new(settings),
            journal: beginning(),
            now_ms: START_MS,
            sums: Sums::default(),
        }
    }

    fn step(&mut self, events: Vec<Event>) -> Vec<Command> {
        let started = processor_time();
        self.recorder.events(self.now_ms, &events);
        self.sums.encoding += processor_time().saturating_sub(started);
        let commands = self.engine.step(self.now_ms, events);
        let started = processor_time();
        self.recorder.commands(&commands);
        self.sums.encoding += processor_time().saturating_sub(started);
        self.sums.steps += 1;
        if self.recorder.is_full() {
            self.seal();
        }
        commands
    }

    /// Answers commands and goes on until the engine rests.
    fn settle(&mut self, mut commands: Vec<Command>, world: &mut World) {
        loop {
            world.carry_out(&commands);
            let outcomes = done(&commands);
            let goes_on = self.engine.next_deadline() == Some(self.now_ms);
            if outcomes.is_empty() && !goes_on {
                return;
            }
            commands = self.step(outcomes);
        }
    }

    fn seal(&mut self) {
        let raw = self.recorder.seal();
        let started = processor_time();
        let block = pack(&raw).unwrap_or_default();
        self.sums.packing += processor_time().saturating_sub(started);
        self.sums.bytes += block.len();
        self.journal.extend(block);
    }

    fn take_sums(&mut self) -> Sums {
        self.seal();
        std::mem::take(&mut self.sums)
    }

    fn replay(&self) -> Replayed {
        match Reader::new(&self.journal[..]) {
            Ok(mut reader) => replay(&mut reader),
            Err(_) => Replayed::default(),
        }
    }
}
