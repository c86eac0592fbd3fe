//! One event in a full cluster where many gangs wait.

mod world;

use super::policy;
use super::session::{Session, done};
use crate::lab::bench::row::over_sizes;
use crate::lab::bench::{Bound, Row, milliseconds, quantile};
use gpu_batch_policies::event::Event;
use gpu_batch_policies::settings::Settings;
pub(super) use world::World;

/// How far the clock advances between two events.
const PAUSE_MS: u64 = 2;

/// Numbers of nodes; the target is for the last number.
const SIZES: [usize; 3] = [500, 2_000, 5_000];

/// So many that more than a minute passes, after which past use is added up.
const EVENTS: usize = 40_000;

/// So many times gangs overrun their expected runtimes, and all promises are made anew.
const OVERRUNS: u32 = 11;

/// When the first running gangs are expected to end, see [`World`].
const FIRST_END_MS: u64 = 2 * 3_600_000;

/// The size of a world: nodes, pods that run or wait, and gangs that wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) pods: usize,
    pub(super) gangs: usize,
}

impl Size {
    /// 28 pods for each node, and a gang that waits for each five nodes.
    pub(super) const fn of(nodes: usize) -> Self {
        Self {
            nodes,
            pods: 28 * nodes,
            gangs: nodes / 5,
        }
    }
}

/// Times of steps, in milliseconds.
#[derive(Debug, Default)]
struct Samples {
    /// Steps that take in one event of the world.
    events: Vec<f64>,
    /// Steps that take in the outcomes of commands.
    outcomes: Vec<f64>,
    /// Steps that go on with a search.
    slices: Vec<f64>,
}

/// What gangs that wait may do, and what an event may cost then, in microseconds.
struct Case {
    settings: Settings,
    /// How the gangs are named in rows.
    which: &'static str,
    /// How many gangs are promised a start: only then it is known for how long gangs run.
    promised: usize,
    median_us: f64,
    p99_us: f64,
}

pub(super) fn measure() -> Vec<Row> {
    let plain = Case {
        settings: policy::settings(),
        which: "",
        promised: 0,
        median_us: 50.0,
        p99_us: 1_000.0,
    };
    let claiming = Case {
        settings: Settings {
            evictions: Settings::default().evictions,
            ..policy::settings()
        },
        which: " that may claim",
        ..plain
    };
    let cases = [plain, claiming].into_iter();
    let rows = cases.flat_map(|case| over_sizes(SIZES, |nodes| at_size(nodes, &case)));
    rows.collect()
}

/// One event where the first gangs that wait are promised starts.
pub(super) fn with_reservations() -> Vec<Row> {
    let promised = Case {
        settings: Settings {
            reservations: 8,
            ..policy::settings()
        },
        which: ", 8 with reservations",
        promised: 8,
        median_us: 60.0,
        p99_us: 1_500.0,
    };
    over_sizes(SIZES, |nodes| at_size(nodes, &promised))
}

fn at_size(nodes: usize, case: &Case) -> Vec<Row> {
    let size = Size::of(nodes);
    let Size { pods, gangs, .. } = size;
    let which = case.which;
    let scenario = format!("{nodes} nodes, {pods} pods, {gangs} gangs pending{which}");
    let mut world = World::new(size, case.promised > 0);
    let mut session = Session::begin(case.settings.clone(), 128, world.objects());
    let planned = session.plan(Session::listed());
    session.settle(planned.commands);
    let mut samples = measure_events(&mut session, &mut world);

    let target = nodes == SIZES[SIZES.len() - 1];
    let row = |name, milliseconds: f64, bound: Option<f64>| {
        let row = Row::new(name, scenario.clone(), milliseconds * 1e3, "us");
        match bound.filter(|_| target) {
            Some(bound) => row.against(
                Bound::AtMost,
                bound,
                "target; KAI takes 1 to 2.5 s a cycle (KAI#315)",
            ),
            None => row,
        }
    };
    let mut rows = vec![
        row(
            "one event, median",
            quantile(&mut samples.events, 0.5),
            Some(case.median_us),
        ),
        row(
            "one event, p99",
            quantile(&mut samples.events, 0.99),
            Some(case.p99_us),
        ),
        row(
            "one event, longest",
            quantile(&mut samples.events, 1.0),
            None,
        ),
        row("outcomes, p99", quantile(&mut samples.outcomes, 0.99), None),
    ];
    if !samples.slices.is_empty() {
        rows.push(row(
            "search slice, longest",
            quantile(&mut samples.slices, 1.0),
            Some(5_000.0),
        ));
    }
    if case.promised > 0 {
        assert_eq!(session.promised(), case.promised, "promises are measured");
        let (mut whole, longest) = measure_overruns(&mut session, &mut world);
        let median = quantile(&mut whole, 0.5);
        rows.push(row("all promises anew, median", median, None));
        let name = "all promises anew, longest step";
        rows.push(row(name, longest, Some(5_000.0)));
    }
    rows
}

/// Lets gangs overrun their times, so that all promises are made anew. The result is how long that
/// took each time, and the longest step, in milliseconds. The first time is left out: two hours
/// pass at once then, and what they bring is not what promises cost.
fn measure_overruns(session: &mut Session, world: &mut World) -> (Vec<f64>, f64) {
    let (mut whole, mut longest) = (Vec::new(), 0.0_f64);
    let mut pause_ms = FIRST_END_MS;
    for round in 0..OVERRUNS {
        session.now_ms += pause_ms;
        // A gang that overruns is expected to end in 1, 2, 4 ... minutes.
        pause_ms = 60_000 << round;
        let (mut sum, mut events) = (0.0, vec![Event::Continue]);
        while !events.is_empty() {
            let step = session.step(events);
            let took = milliseconds(step.took);
            if round > 0 {
                (sum, longest) = (sum + took, longest.max(took));
            }
            world.carry_out(&step.commands);
            events = done(&step.commands);
            if events.is_empty() && session.is_unfinished() {
                events.push(Event::Continue);
            }
        }
        if round > 0 {
            whole.push(sum);
        }
    }
    (whole, longest)
}

fn measure_events(session: &mut Session, world: &mut World) -> Samples {
    let mut samples = Samples::default();
    for _ in 0..EVENTS {
        session.now_ms += PAUSE_MS;
        let mut stepped = session.step(vec![world.next_event()]);
        samples.events.push(milliseconds(stepped.took));
        loop {
            world.carry_out(&stepped.commands);
            let outcomes = done(&stepped.commands);
            stepped = if session.is_unfinished() {
                let slice = session.step(outcomes);
                samples.slices.push(milliseconds(slice.took));
                slice
            } else if outcomes.is_empty() {
                break;
            } else {
                let answered = session.step(outcomes);
                samples.outcomes.push(milliseconds(answered.took));
                answered
            };
        }
    }
    samples
}
