//! Equal states give equal decisions, in whatever order the world came to be known.

mod drawn;

use drawn::{Scene, scene};
use fastrand::Rng;
use gpu_batch_policies::command::Command;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::explain::{Explanation, Subject};
use gpu_batch_policies::report::{GangReport, PodReport, QueueReport};
use gpu_batch_testing::World;

/// How many worlds are drawn.
const SEEDS: u64 = 300;
/// How often a world goes on after it has come to rest.
const ROUNDS: usize = 2;
/// Longer than the engine waits for a node that is gone.
const FORGOTTEN_MS: u64 = 3_600_000;

/// Everything that is decided and said.
#[derive(Debug, PartialEq)]
struct Said {
    pods: Vec<PodReport>,
    gangs: Vec<GangReport>,
    queues: Vec<QueueReport>,
    explanations: Vec<Explanation>,
}

fn said(world: &mut World) -> Said {
    let engine = &mut world.engine;
    let gangs = engine.gang_reports();
    let explain = |gang: &GangReport| engine.explain(Subject::Gang(&gang.name)).unwrap();
    let explanations = gangs.iter().map(explain).collect();
    Said {
        pods: engine.pod_reports(),
        explanations,
        queues: engine.queue_reports(),
        gangs,
    }
}

fn told(world: &mut World, objects: &[Object], order: &mut Rng) {
    let mut objects: Vec<&Object> = objects.iter().collect();
    order.shuffle(&mut objects);
    for object in objects {
        world.apply(object.clone());
    }
}

/// A world that has known other objects, which are gone.
fn with_a_past(seed: u64) -> World {
    let mut world = World::new();
    let mut order = Rng::with_seed(!seed);
    let past = scene(&mut Rng::with_seed(seed.wrapping_add(SEEDS)), 1 << 20);
    told(&mut world, &past.objects, &mut order);
    world.settle();
    let mut gone: Vec<&Object> = past.objects.iter().collect();
    order.shuffle(&mut gone);
    for object in gone {
        world.forget(object.key());
    }
    world.settle();
    world
}

/// Lets everything be done, also what is worked out once a second.
fn rest(world: &mut World) {
    world.settle();
    world.later(2_000);
    world.settle_and_review();
}

/// The statuses at each rest of a world that is told in this order.
fn course(mut world: World, scene: &Scene, mut order: Rng, choice: &mut Rng) -> Vec<Said> {
    world.pass(FORGOTTEN_MS);
    told(&mut world, &scene.objects, &mut order);
    rest(&mut world);
    let mut course = Vec::from([said(&mut world)]);
    for later in &scene.later {
        world.pass(60_000);
        let running = course.last().into_iter().flat_map(|said| &said.pods);
        let running = running.filter(|pod| pod.node.is_some());
        let mut ends: Vec<Box<str>> = running.map(|pod| pod.name.clone()).collect();
        ends.retain(|_| choice.u32(0..4) == 0);
        order.shuffle(&mut ends);
        for name in ends {
            world.end(&name);
        }
        for object in &later.gone {
            world.forget(object.key());
        }
        told(&mut world, &later.objects, &mut order);
        rest(&mut world);
        course.push(said(&mut world));
    }
    course
}

/// The first thing in which two courses differ.
fn difference(what: &str, expected: &[Said], found: &[Said]) -> Option<String> {
    if expected == found {
        return None;
    }
    let [expected, found] = [expected, found].map(|course| format!("{course:#?}"));
    let mut lines = expected.lines().zip(found.lines()).enumerate();
    let (line, (expected, found)) = lines.find(|(_, (one, other))| one != other)?;
    Some(format!(
        "{what}, line {line}: {} became {}",
        expected.trim(),
        found.trim()
    ))
}

#[test]
fn the_order_in_which_objects_are_told_and_what_was_there_before_decide_nothing() {
    let (mut bound, mut waiting) = (0, 0);
    let mut differences = Vec::new();
    for seed in 0..SEEDS {
        let scene = scene(&mut Rng::with_seed(seed), 0);
        assert_eq!(scene.later.len(), ROUNDS);
        let choice = Rng::with_seed(seed ^ 0xc0ff_ee00);
        let run = |world, order| course(world, &scene, order, &mut choice.clone());
        let expected = run(World::new(), Rng::with_seed(1));
        let shuffled = run(World::new(), Rng::with_seed(seed ^ 2));
        let shuffled = difference("shuffled", &expected, &shuffled);
        let old = run(with_a_past(seed), Rng::with_seed(seed ^ 3));
        let old = difference("with a past", &expected, &old);
        let found = shuffled.into_iter().chain(old);
        differences.extend(found.map(|difference| format!("seed {seed}, {difference}")));
        let pods = expected.iter().flat_map(|said| &said.pods);
        for pod in pods {
            let placed = pod.node.is_some();
            (bound, waiting) = (bound + u64::from(placed), waiting + u64::from(!placed));
        }
    }
    let first = differences.iter().take(12).cloned().collect::<Vec<_>>();
    let first = first.join("\n");
    assert!(first.is_empty(), "{}:\n{first}", differences.len());
    // The worlds are worth something: some find a place, and some do not.
    assert!(
        bound > 10 * SEEDS && waiting > 5 * SEEDS,
        "{bound} {waiting}"
    );
}

/// Explains every gang; returns how many shortages the explanations have.
fn ask(engine: &mut Engine) -> usize {
    let gangs = engine.gang_reports().into_iter();
    let explanations = gangs.map(|gang| engine.explain(Subject::Gang(&gang.name)).unwrap());
    explanations.map(|said| said.shortages.len()).sum()
}

/// The commands of all steps of a scene. After each step every gang is explained, or none;
/// `shortages` grows by what the explanations have.
fn commands(seed: u64, scene: &Scene, mut asking: Option<&mut usize>) -> Vec<Vec<Command>> {
    let mut steps = Vec::new();
    let mut each = |engine: &mut Engine, commands: &[Command]| {
        steps.push(commands.to_vec());
        if let Some(shortages) = &mut asking {
            **shortages += ask(engine);
        }
    };
    let mut world = World::new();
    let mut order = Rng::with_seed(seed);
    told(&mut world, &scene.objects, &mut order);
    world.settle_and_review_with(&mut each);
    for later in &scene.later {
        world.pass(60_000);
        let mut running = world.engine.pod_reports();
        running.retain(|pod| pod.node.is_some() && order.u32(0..4) == 0);
        for pod in running {
            world.end(&pod.name);
        }
        for object in &later.gone {
            world.forget(object.key());
        }
        told(&mut world, &later.objects, &mut order);
        world.settle_and_review_with(&mut each);
    }
    steps
}

#[test]
fn asking_changes_no_decision() {
    let mut shortages = 0;
    for seed in 0..SEEDS {
        let scene = scene(&mut Rng::with_seed(seed), 0);
        let asked = commands(seed, &scene, Some(&mut shortages));
        let unasked = commands(seed, &scene, None);
        let differs = asked
            .iter()
            .zip(&unasked)
            .position(|(one, other)| one != other);
        let lengths = (asked.len(), unasked.len());
        assert!(
            differs.is_none() && lengths.0 == lengths.1,
            "seed {seed}: {differs:?} {lengths:?}"
        );
    }
    assert!(shortages > 1_000, "{shortages}");
}
