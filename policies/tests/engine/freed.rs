//! Room that has been freed is offered to those gangs alone that counting says it helps, and nobody
//! can tell: a world in which every gang is tried again at each event goes the same way.

use fastrand::Rng;
use gpu_batch_policies::settings::{Evictions, LeafOrder, Queueing, Settings};
use gpu_batch_testing::{World, gang, node, pod, queue, topology};

const WORLDS: u64 = 450;
const EVENTS: usize = 60;
const NODES: usize = 5;
const QUEUES: usize = 4;

/// Two worlds to which the same happens.
struct Both {
    random: Rng,
    lazy: World,
    /// Here a setting changes with each event, so that everybody is tried again.
    eager: World,
    settings: Settings,
    /// Pods that have not ended.
    pods: Vec<String>,
    created: usize,
}

impl Both {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let strict = random.bool();
        let settings = Settings {
            queueing: if strict {
                Queueing::Strict
            } else {
                Queueing::BestEffort
            },
            leaf_order: if random.bool() {
                LeafOrder::ShortestFirst
            } else {
                LeafOrder::Age
            },
            // No gang is evicted: the two engines would not evict in the same step.
            evictions: Evictions {
                in_flight: 0,
                ..Settings::default().evictions
            },
            // Promises are made anew with each change of a setting.
            reservations: 0,
            ..Settings::default()
        };
        let mut both = Self {
            lazy: World::with(settings.clone()),
            eager: World::with(settings.clone()),
            settings,
            random,
            pods: Vec::new(),
            created: 0,
        };
        both.each(|world| world.apply(topology("default", "rack")));
        for number in 0..NODES {
            both.node(number);
        }
        for number in 0..QUEUES {
            both.queue(number);
        }
        both
    }

    fn each(&mut self, mut what: impl FnMut(&mut World)) {
        what(&mut self.lazy);
        what(&mut self.eager);
    }

    fn node(&mut self, number: usize) {
        let gpus = self.random.u64(1..9);
        let rack = format!("r{}", number / 2);
        let name = format!("n{number}");
        let product = if number.is_multiple_of(2) {
            "H100"
        } else {
            "A100"
        };
        self.each(|world| {
            let node = node(&name, gpus).label("rack", &rack);
            world.apply(node.model(product));
        });
    }

    fn queue(&mut self, number: usize) {
        let limit = self.random.u64(0..24);
        let facts = |limited: bool, product: bool| {
            let facts = queue(&format!("q{number}"));
            match (limited, product) {
                (false, _) => facts,
                (true, false) => facts.limit(limit),
                (true, true) => facts.limit_of("H100", limit),
            }
        };
        let (limited, product) = (self.random.bool(), self.random.bool());
        self.each(|world| world.apply(facts(limited, product)));
    }

    /// A pod, or some that need each other, perhaps of different sizes or for different models,
    /// perhaps in one rack.
    fn arrive(&mut self) {
        self.created += 1;
        let queue = format!("q{}", self.random.usize(0..QUEUES));
        let runtime_ms = self.random.u64(1..5);
        let group = format!("g{}", self.created);
        let members = self.random.usize(1..5);
        let minimum = self.random.u32(1..=4).min(u32::try_from(members).unwrap());
        let together = self.random.bool();
        let required = self.random.u8(0..3) == 0;
        let sizes = if self.random.bool() { 1 } else { 4 };
        let of_models = self.random.u8(0..3) == 0;
        if together {
            let facts = || {
                let facts = gang(&group, minimum).queue(&queue);
                if required {
                    facts.required("rack")
                } else {
                    facts
                }
            };
            self.each(|world| world.apply(facts()));
        }
        for member in 0..if together { members } else { 1 } {
            let name = format!("p{}-{member}", self.created);
            let gpus = self.random.u64(1..=sizes);
            let model = of_models.then(|| if self.random.bool() { "H100" } else { "A100" });
            let sketch = || {
                let sketch = pod(&name, gpus).queue(&queue).runtime(runtime_ms);
                let sketch = match model {
                    Some(model) => sketch.model(model),
                    None => sketch,
                };
                if together { sketch.of(&group) } else { sketch }
            };
            self.each(|world| world.apply(sketch()));
            self.pods.push(name);
        }
    }

    fn happen(&mut self) {
        match self.random.u8(0..12) {
            0..4 => self.arrive(),
            4..9 => {
                let bound = |name: &&String| self.lazy.node_of(name).is_some();
                let bound: Vec<String> = self.pods.iter().filter(bound).cloned().collect();
                for _ in 0..self.random.usize(1..4) {
                    let Some(name) = self.random.choice(&bound) else {
                        break;
                    };
                    self.pods.retain(|other| other != name);
                    self.each(|world| world.end(name));
                }
            }
            9 if !self.pods.is_empty() => {
                let number = self.random.usize(0..self.pods.len());
                let name = self.pods.swap_remove(number);
                self.each(|world| world.delete(&name));
            }
            10 => {
                let number = self.random.usize(0..QUEUES);
                self.queue(number);
            }
            _ => {
                let number = self.random.usize(0..NODES);
                self.node(number);
            }
        }
    }
}

#[test]
fn who_is_not_tried_again_would_not_have_started() {
    let mut waiting = 0;
    for seed in 0..WORLDS {
        let mut both = Both::new(seed);
        for event in 0..EVENTS {
            both.happen();
            let mut settings = both.settings.clone();
            settings.request_deadline_ms += 1 + u64::from(event % 2 == 0);
            both.eager.configure(settings);
            both.each(World::settle);
            for name in &both.pods {
                let (lazy, eager) = (both.lazy.node_of(name), both.eager.node_of(name));
                assert_eq!(lazy, eager, "seed {seed}, event {event}, pod {name}");
                waiting += usize::from(lazy.is_none());
            }
        }
    }
    assert!(waiting > 10_000, "hardly anybody has waited: {waiting}");
}

/// In each rack another member lacks room: room for any of them may complete a rack.
#[test]
fn room_in_a_rack_where_another_member_has_room_is_offered() {
    for freed in ["h", "a"] {
        let mut world = World::of((
            topology("default", "rack"),
            node("h1", 8).model("H100").label("rack", "r1"),
            node("a1", 8).model("A100").label("rack", "r1"),
            node("h2", 8).model("H100").label("rack", "r2"),
            node("a2", 8).model("A100").label("rack", "r2"),
            pod("a", 8).on("a1"),
            pod("h", 8).on("h2"),
        ));
        world.then((
            gang("g", 2).required("rack"),
            pod("g-h", 8).of("g").model("H100"),
            pod("g-a", 8).of("g").model("A100"),
        ));
        let expected = "do not fit together in one rack";
        assert!(!world.is_placed("g-h"), "{}", world.message("g"));
        assert!(
            world.message("g").contains(expected),
            "{}",
            world.message("g")
        );
        world.end(freed);
        world.settle();
        assert!(world.is_placed("g-h") && world.is_placed("g-a"), "{freed}");
    }
}
