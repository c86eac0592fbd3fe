//! Past use outlives the engine: whoever takes over serves queues in the same order.

use fastrand::Rng;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::PastUse;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{To, World, lost, names, node, pod, queue};

const MINUTE_MS: u64 = 60_000;
const GPUS: u64 = 12;
const QUEUES: usize = 3;

/// Worlds to which the same happens.
struct Worlds {
    random: Rng,
    worlds: Vec<World>,
    running: Vec<String>,
    created: usize,
}

impl Worlds {
    /// One that goes on, one that is restarted, and one that loses its past with that.
    fn new(seed: u64) -> Self {
        let settings = Settings {
            use_half_life_ms: Some(60 * MINUTE_MS),
            ..Settings::default()
        };
        let mut worlds = Self {
            random: Rng::with_seed(seed),
            worlds: (0..3).map(|_| World::with(settings.clone())).collect(),
            running: Vec::new(),
            created: 0,
        };
        worlds.each(|world| {
            world.apply((node("n1", GPUS), queue(&names("q", QUEUES)).limit(GPUS)));
        });
        worlds
    }

    fn each(&mut self, what: impl Fn(&mut World)) {
        self.worlds.iter_mut().for_each(what);
    }

    fn submit(&mut self, number: usize) -> String {
        self.created += 1;
        let name = format!("p{}", self.created);
        let queue = format!("q{number}");
        self.each(|world| world.apply(pod(&name, 1).queue(&queue)));
        name
    }

    fn end_all(&mut self) {
        for name in std::mem::take(&mut self.running) {
            self.each(|world| world.end(&name));
        }
    }

    /// A minute in which one queue gets other work than before.
    fn live(&mut self) {
        if self.random.u8(0..4) == 0 {
            self.end_all();
            let number = self.random.usize(0..QUEUES);
            for _ in 0..self.random.u64(1..=GPUS) {
                let name = self.submit(number);
                self.running.push(name);
            }
        }
        self.rest();
    }

    fn rest(&mut self) {
        self.each(World::settle);
        self.each(|world| world.pass(MINUTE_MS));
        self.each(World::settle);
    }

    /// Which pods each world starts when all queues want everything.
    fn contest(&mut self) -> Vec<Vec<Option<String>>> {
        self.end_all();
        let each = (0..QUEUES * 12).map(|at| at % QUEUES);
        let names: Vec<String> = each.map(|number| self.submit(number)).collect();
        self.each(World::settle);
        let nodes = |world: &World| names.iter().map(|name| world.node_of(name)).collect();
        self.worlds.iter().map(nodes).collect()
    }
}

/// The special circumstances of a restart.
#[derive(Debug, Clone, Copy)]
enum Restart {
    /// It comes in the middle of a minute.
    MidMinute,
    /// The last statuses of queues were not written.
    LostStatuses,
    /// The clock of the machine that takes over is behind.
    ClockBehind,
}

fn check(seed: u64, how: Restart) -> bool {
    let mut worlds = Worlds::new(seed);
    for _ in 0..worlds.random.u32(5..40) {
        worlds.live();
    }
    let part_ms = worlds.random.u64(1..MINUTE_MS);
    match how {
        Restart::MidMinute => worlds.each(|world| world.pass(part_ms)),
        Restart::LostStatuses => {
            worlds.each(|world| world.answers(To::QueueStatus, lost()));
            for _ in 0..3 {
                worlds.rest();
            }
            worlds.each(|world| world.answers_again(&To::QueueStatus));
        }
        Restart::ClockBehind => {
            worlds.end_all();
            worlds.rest();
            worlds.each(World::settle);
            worlds.worlds[1].now_ms -= 7 * MINUTE_MS;
        }
    }
    worlds.worlds[1].take_over();
    for object in worlds.worlds[2].objects.values_mut() {
        if let Object::Queue(queue) = object {
            queue.past_use = None;
        }
    }
    worlds.worlds[2].take_over();
    worlds.each(World::settle);
    let started = worlds.contest();
    assert_eq!(started[0], started[1], "seed {seed}, {how:?}");
    started[0] != started[2]
}

#[test]
fn whoever_takes_over_serves_queues_in_the_same_order() {
    let mut by_past = 0;
    for seed in 0..60 {
        for how in [
            Restart::MidMinute,
            Restart::LostStatuses,
            Restart::ClockBehind,
        ] {
            by_past += u32::from(check(seed, how));
        }
    }
    assert!(by_past > 60, "the past has hardly mattered: {by_past}");
}

/// What the status of the queue tells of its past.
fn told_by(world: &World) -> Option<PastUse> {
    let queues = world.objects.values().find_map(|other| match other {
        Object::Queue(queue) => Some(queue),
        _ => None,
    });
    queues?.past_use.clone()
}

/// An older write of a status arrives after a newer one: what a successor would begin with is
/// written once more.
#[test]
fn past_use_that_a_late_write_has_taken_away_is_written_again() {
    let settings = Settings {
        use_half_life_ms: Some(60 * MINUTE_MS),
        ..Settings::default()
    };
    let mut world = World::with(settings);
    world.then((
        node("n1", GPUS),
        queue("q0").limit(GPUS),
        pod("p", GPUS).queue("q0"),
    ));
    world.later(MINUTE_MS);
    let told = told_by(&world);
    assert!(told.is_some());
    world.then(queue("q0").limit(GPUS));
    assert_eq!(told_by(&world), None);
    for _ in 0..12 {
        world.later(1_000);
    }
    assert_eq!(told_by(&world), told);
}
