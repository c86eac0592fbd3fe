//! How the hosts of a job are chosen: by the engine, or by one of two ways that it is compared
//! with.

use super::room::{Place, Room};
use super::{Network, Objects, pods};
use crate::generate::GPUS_PER_NODE;
use crate::jobs::objects::Arrival;
use crate::random::Random;
use crate::timeline::{Timeline, undisturbed};
use crate::trace::jobs::Job;
use crate::trace::queues::TraceQueue;
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::UnixMs;
use std::collections::BTreeMap;

/// The one queue of all jobs.
const QUEUE: &str = "all";

/// A way to choose hosts. Only [`Choice::Engine`] is for users; the others are there to be compared
/// with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The engine, with its default settings.
    Engine,
    /// The first hosts by name that have room.
    FirstFit,
    /// Any hosts that have room, drawn from this seed.
    Random(u64),
}

/// A job that starts, and where its pods run.
type Start = (usize, Vec<Place>);

/// A choice at work.
pub(super) enum Chooser {
    Engine(Box<EngineWorld>),
    Blind(Blind),
}

impl Chooser {
    pub(super) fn new(choice: Choice, network: &Network) -> Self {
        let blind = |random| {
            Self::Blind(Blind {
                waiting: Vec::new(),
                random,
            })
        };
        match choice {
            Choice::Engine => Self::Engine(Box::new(EngineWorld::new(network))),
            Choice::FirstFit => blind(None),
            Choice::Random(seed) => blind(Some(Random::new(seed))),
        }
    }

    /// When the engine next has something to do by itself.
    pub(super) fn next_ms(&self) -> Option<UnixMs> {
        match self {
            Self::Engine(engine) => engine.timeline.next_ms(),
            Self::Blind(_) => None,
        }
    }

    /// The jobs that start at `at_ms`, after the `ended` jobs have ended and the `arrived` jobs
    /// have come. In `room` the ended jobs are gone already; the places of jobs that start are
    /// taken from it.
    pub(super) fn advance(
        &mut self,
        at_ms: UnixMs,
        jobs: &[Job],
        ended: &[usize],
        arrived: &[usize],
        room: &mut Room<'_>,
    ) -> Vec<Start> {
        match self {
            Self::Engine(engine) => {
                let starts = engine.advance(at_ms, jobs, ended, arrived);
                let places = starts.iter().flat_map(|(_, places)| places);
                places.for_each(|place| room.take(*place));
                starts
            }
            Self::Blind(blind) => blind.advance(jobs, arrived, room),
        }
    }
}

/// The engine, and what makes the objects that it is told of.
pub(super) struct EngineWorld {
    timeline: Timeline,
    objects: Objects,
    /// The number of each host, by the name of its node.
    hosts: BTreeMap<Box<str>, usize>,
}

impl EngineWorld {
    fn new(network: &Network) -> Self {
        let objects = Objects::new(GPUS_PER_NODE, false);
        let nodes = u32::try_from(network.hosts()).unwrap_or(u32::MAX);
        let mut world = objects.nodes(nodes);
        let facts = world.iter_mut().filter_map(|object| match object {
            Object::Node(node) => Some(node),
            _ => None,
        });
        let topology = network.label(facts);
        let names = world.iter().filter_map(|object| match object {
            Object::Node(node) => Some(node.name.clone()),
            _ => None,
        });
        let hosts = names.zip(0..).collect();
        let name = QUEUE.to_owned();
        world.push(objects.queue(0, &TraceQueue { name, nodes }));
        world.push(topology);
        Self {
            timeline: Timeline::new(undisturbed(), 0, world),
            objects,
            hosts,
        }
    }

    fn advance(
        &mut self,
        at_ms: UnixMs,
        jobs: &[Job],
        ended: &[usize],
        arrived: &[usize],
    ) -> Vec<Start> {
        let mut batch = Vec::new();
        for number in ended {
            let pods = (0..).zip(pods(&jobs[*number]));
            let uids = pods.map(|(member, _)| Objects::uid(*number, 0, member));
            batch.extend(uids.map(|uid| Event::Deleted(ObjectKey::Pod(uid))));
        }
        for number in arrived {
            let arrival = Arrival::first(*number, &jobs[*number], QUEUE);
            self.objects.arrive(arrival, &mut batch);
        }
        let moment = self.timeline.advance(at_ms, batch);
        let mut starts: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
        for bind in &moment.bound {
            let (job, _, member) = Objects::member(bind.pod.uid);
            let gpus = pods(&jobs[job]).nth(member as usize).unwrap_or(0);
            let host = self.hosts[&bind.node];
            starts.entry(job).or_default().push(Place { host, gpus });
        }
        starts.into_iter().collect()
    }
}

/// Takes hosts without a look at their domains: the first ones, or any at random.
pub(super) struct Blind {
    /// The jobs that have found no room, the oldest first.
    waiting: Vec<usize>,
    random: Option<Random>,
}

impl Blind {
    fn advance(&mut self, jobs: &[Job], arrived: &[usize], room: &mut Room<'_>) -> Vec<Start> {
        let mut starts = Vec::new();
        self.waiting.extend(arrived);
        let random = &mut self.random;
        self.waiting.retain(|number| {
            let job = &jobs[*number];
            if !room.fits(job) {
                return true;
            }
            let places = pods(job).filter_map(|gpus| {
                let place = Place {
                    host: pick(room.free(), gpus, random.as_mut())?,
                    gpus,
                };
                room.take(place);
                Some(place)
            });
            starts.push((*number, places.collect()));
            false
        });
        starts
    }
}

/// A host with so many free GPUs: the first one, or any at random.
fn pick(free: &[u32], gpus: u32, random: Option<&mut Random>) -> Option<usize> {
    let mut open = (0..free.len()).filter(|host| free[*host] >= gpus);
    match random {
        None => open.next(),
        Some(random) => {
            let open: Vec<usize> = open.collect();
            (!open.is_empty()).then(|| *random.pick(&open))
        }
    }
}
