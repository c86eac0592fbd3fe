//! The gangs of the demo: made up from a fixed seed, so that every run has equal gangs.

mod manifest;

use super::setting::{GPUS, TEAMS, Team};
use std::time::Duration;

const SEED: u64 = 2026;
/// The part of the time in which gangs arrive; the rest is for them to end.
const ARRIVALS: f64 = 0.6;
/// The work of all gangs, in thousandths of what all GPUs can do in the whole time.
const WORK_THOUSANDTHS: u64 = 800;
/// The part of the first team's gangs that arrive at the very start.
const BURST: f64 = 0.45;
/// How long a gang runs, in seconds, at least and at most.
const RUN_S: (u32, u32) = (4, 60);

/// How a gang reaches the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// An Indexed Job, which is a gang by itself (of one pod: a gang of one).
    Job,
    /// A Job whose pods name a PodGroup.
    PodGroup,
}

/// One kind of work.
#[derive(Debug)]
struct Shape {
    name: &'static str,
    /// How many of 1,000 gangs are of this shape.
    frequency: u32,
    form: Form,
    /// The least and the greatest number of pods.
    pods: (u32, u32),
    /// The minimum: pods above it are surplus; 0: all pods are needed.
    minimum: u32,
    gpus: u32,
    traits: Traits,
}

/// What a gang asks for beside GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traits {
    Plain,
    /// The whole gang in one rack.
    OneRack,
    /// As few members to a node as possible.
    Spread,
    /// Never evicted, and only within quota.
    NonPreemptible,
}

const SHAPES: [Shape; 9] = [
    shape("eval", 240, Form::Job, (1, 1), 0, 1, Traits::Plain),
    shape("tune", 110, Form::Job, (1, 1), 0, 2, Traits::Plain),
    shape("distill", 100, Form::Job, (1, 1), 0, 4, Traits::Plain),
    shape("finetune", 200, Form::Job, (2, 3), 0, 8, Traits::Plain),
    shape("pretrain", 90, Form::Job, (4, 6), 0, 8, Traits::OneRack),
    shape(
        "frontier",
        20,
        Form::PodGroup,
        (10, 14),
        0,
        8,
        Traits::Plain,
    ),
    shape("sweep", 110, Form::PodGroup, (5, 8), 2, 2, Traits::Plain),
    shape("serve", 70, Form::Job, (4, 4), 0, 1, Traits::Spread),
    shape(
        "release",
        60,
        Form::PodGroup,
        (2, 2),
        0,
        4,
        Traits::NonPreemptible,
    ),
];

const fn shape(
    name: &'static str,
    frequency: u32,
    form: Form,
    pods: (u32, u32),
    minimum: u32,
    gpus: u32,
    traits: Traits,
) -> Shape {
    Shape {
        name,
        frequency,
        form,
        pods,
        minimum,
        gpus,
        traits,
    }
}

/// A gang that will be submitted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gang {
    /// The name of the gang's Job and, if it has one, of its PodGroup; no two gangs share a name.
    pub(super) name: String,
    pub(super) namespace: &'static str,
    pub(super) queue: &'static str,
    pub(super) form: Form,
    pub(super) pods: u32,
    pub(super) minimum: u32,
    /// GPUs of each pod.
    pub(super) gpus: u32,
    pub(super) traits: Traits,
    /// When the gang arrives, since the start of the demo.
    pub(super) arrival: Duration,
    pub(super) run_s: u32,
    /// Whether the gang asks for what it can never get.
    pub(super) hopeless: bool,
}

impl Gang {
    pub(super) fn all_gpus(&self) -> u32 {
        self.pods * self.gpus
    }
}

/// `count` gangs for a demo of `length`, by arrival, and a few that wait for ever, so that users
/// see reasons.
pub(super) fn gangs(count: u32, length: Duration) -> Vec<Gang> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut gangs: Vec<Gang> = (0..count)
        .map(|number| gang(number, length, &mut random))
        .collect();
    scale_run_times(&mut gangs, length);
    gangs.extend(hopeless(length));
    gangs.sort_by(|a, b| (a.arrival, &a.name).cmp(&(b.arrival, &b.name)));
    gangs
}

fn gang(number: u32, length: Duration, random: &mut fastrand::Rng) -> Gang {
    // The teams begin one after the other, so that what the first took over its quota goes back.
    let (team, from) = match random.u32(0..10) {
        0..4 => (&TEAMS[0], 0.0),
        4..8 => (&TEAMS[1], 0.08),
        _ => (&TEAMS[2], 0.16),
    };
    let shape = pick(team, random);
    let arrival = if from == 0.0 && random.f64() < BURST {
        0.01 * random.f64()
    } else {
        from + (ARRIVALS - from) * random.f64()
    };
    let pods = random.u32(shape.pods.0..=shape.pods.1);
    Gang {
        name: format!("{}-{number:03}", shape.name),
        namespace: team.namespace,
        queue: team.queue,
        form: shape.form,
        pods,
        minimum: if shape.minimum == 0 {
            pods
        } else {
            shape.minimum
        },
        gpus: shape.gpus,
        traits: shape.traits,
        arrival: length.mul_f64(arrival),
        // Only the proportions matter: run times are scaled later.
        run_s: random.u32(10..=60),
        hopeless: false,
    }
}

/// Picks a shape. A team with a limit gets no shapes that would take most of it.
fn pick(team: &Team, random: &mut fastrand::Rng) -> &'static Shape {
    let largest = team.limit.map_or(GPUS, |limit| limit / 2);
    let fitting = || {
        SHAPES
            .iter()
            .filter(move |shape| shape.pods.1 * shape.gpus <= largest)
    };
    let all = fitting().map(|shape| shape.frequency).sum();
    let mut ticket = random.u32(0..all);
    for shape in fitting() {
        if ticket < shape.frequency {
            return shape;
        }
        ticket -= shape.frequency;
    }
    &SHAPES[0]
}

/// Scales run times, within [`RUN_S`], so that the sum of all work is [`WORK_THOUSANDTHS`] of what
/// all GPUs can do in `length`.
fn scale_run_times(gangs: &mut [Gang], length: Duration) {
    let work: u64 = gangs
        .iter()
        .map(|gang| u64::from(gang.all_gpus()) * u64::from(gang.run_s))
        .sum();
    let target_thousandths = WORK_THOUSANDTHS * u64::from(GPUS) * length.as_secs();
    for gang in gangs {
        let run_s = u64::from(gang.run_s) * target_thousandths / (1_000 * work.max(1));
        let longest = u64::from(RUN_S.1).min(length.as_secs() / 3);
        let run_s = u32::try_from(run_s.min(longest)).unwrap_or(RUN_S.1);
        gang.run_s = run_s.max(RUN_S.0);
    }
}

/// One gang for each of the commonest reasons to wait.
fn hopeless(length: Duration) -> Vec<Gang> {
    let [language, vision, robotics] = &TEAMS;
    let waits = |name: &str, team: &Team, queue, pods, traits, at: f64| Gang {
        name: name.into(),
        namespace: team.namespace,
        queue,
        form: Form::Job,
        pods,
        minimum: pods,
        gpus: 8,
        traits,
        arrival: length.mul_f64(at),
        run_s: 10,
        hopeless: true,
    };
    let too_large = waits("too-large", vision, vision.queue, 9, Traits::OneRack, 0.03);
    let typo = waits("typo", language, "team-langauge", 2, Traits::Plain, 0.05);
    let greedy = waits("greedy", robotics, robotics.queue, 21, Traits::Plain, 0.07);
    let incomplete = Gang {
        form: Form::PodGroup,
        minimum: 4,
        ..waits("incomplete", vision, vision.queue, 3, Traits::Plain, 0.09)
    };
    vec![too_large, typo, greedy, incomplete]
}

#[cfg(test)]
mod tests;
