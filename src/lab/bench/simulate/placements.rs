//! Placements beside each other: the same work on the same cluster in virtual time.
//!
//! Nothing here is a measurement of time: a seed gives the same figures on every machine.

mod room;

use crate::lab::bench::Row;
use crate::lab::bench::engine::facts::{START_MS, group_name, pod, pod_group, shape, topology};
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{GroupSource, Placement, PodShape, Uid};
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::random::Random;
use gpu_batch_simulator::timeline::{Moment, Timeline, undisturbed};
use room::{Amount, Room, Sums, nodes};
use std::collections::BTreeMap;
use std::sync::Arc;

const SEED: u64 = 1;
const JOBS: usize = 20_000;
const GPU_NODES: usize = 60;
const PLAIN_NODES: usize = 24;
const GPUS_PER_NODE: u64 = 8;
/// CPUs of each node, with GPUs or without.
const CPUS_PER_NODE: u64 = 128;
const NODES_PER_RACK: usize = 4;
/// The time from one job to the next, on average: nine tenths of the GPUs are asked for.
const BETWEEN_JOBS_MS: u64 = 47_000;
/// How often fragmentation is looked at.
const SAMPLE_MS: u64 = 3_600_000;

/// How many of a hundred jobs have how many members of how many GPUs.
const SIZES: [(u64, u32, u64); 6] = [
    (35, 1, 1),
    (10, 1, 2),
    (8, 1, 4),
    (10, 1, 8),
    (5, 2, 8),
    (2, 4, 8),
];
/// All other jobs ask for no GPUs, and for one of these numbers of CPUs.
const CPUS: [u64; 4] = [16, 32, 48, 64];
/// How long jobs run, in seconds.
const RUNTIMES_S: [u64; 10] = [
    600, 600, 600, 600, 3_600, 3_600, 3_600, 14_400, 14_400, 21_600,
];

/// The settings: a name, the placement of work with GPUs, and that of work without.
const PLACEMENTS: [(&str, Placement, Placement); 6] = [
    ("binpack", Placement::Binpack, Placement::Binpack),
    ("best-fit", Placement::BestFit, Placement::BestFit),
    (
        "fragmentation",
        Placement::Fragmentation,
        Placement::Fragmentation,
    ),
    ("spread", Placement::Spread, Placement::Spread),
    (
        "gpu: binpack, cpu: spread",
        Placement::Binpack,
        Placement::Spread,
    ),
    (
        "gpu: spread, cpu: binpack",
        Placement::Spread,
        Placement::Binpack,
    ),
];

/// A job: members of one shape that start together.
struct Job {
    arrives_ms: u64,
    runs_ms: u64,
    members: u32,
    gpus: u64,
    cpus: u64,
}

impl Job {
    /// What one member takes.
    fn member(&self) -> Amount {
        Amount {
            cpus: self.cpus,
            gpus: self.gpus,
        }
    }
}

/// Each placement for GPU and CPU work, together and apart.
pub(super) fn measure() -> anyhow::Result<Vec<Row>> {
    let jobs = jobs();
    let mut rows = Vec::new();
    for (name, gpu_placement, cpu_placement) in PLACEMENTS {
        let settings = Settings {
            gpu_placement,
            cpu_placement,
            ..undisturbed()
        };
        let world = World::run(&jobs, settings);
        anyhow::ensure!(
            world.started == jobs.len(),
            "{name}: {} of {} jobs started",
            world.started,
            jobs.len()
        );
        rows.extend(world.rows(name));
    }
    Ok(rows)
}

fn jobs() -> Vec<Job> {
    let mut random = Random::new(SEED);
    let mut arrives_ms = START_MS;
    let job = |_| {
        arrives_ms += random.below(2 * BETWEEN_JOBS_MS);
        let mut draw = random.below(100);
        let drawn = SIZES.iter().find(|(percent, ..)| {
            let here = draw < *percent;
            draw = draw.saturating_sub(*percent);
            here
        });
        let (members, gpus, cpus) = match drawn {
            Some((_, members, gpus)) => (*members, *gpus, 8 * gpus),
            None => (*random.pick(&[1, 1, 1, 4]), 0, *random.pick(&CPUS)),
        };
        Job {
            arrives_ms,
            runs_ms: 1_000 * random.pick(&RUNTIMES_S),
            members,
            gpus,
            cpus,
        }
    };
    (0..JOBS).map(job).collect()
}

/// The cluster, and what is counted of it while time goes by.
struct World<'a> {
    jobs: &'a [Job],
    timeline: Timeline,
    shapes: BTreeMap<(u64, u64), Arc<PodShape>>,
    room: Room,
    /// The node of each member that has one.
    held: BTreeMap<Uid, Box<str>>,
    /// The members that end at each time.
    ends: BTreeMap<u64, Vec<Uid>>,
    started: usize,
    now_ms: u64,
    waits_ms: Vec<u64>,
    gang_waits_ms: Vec<u64>,
    plain_waits_ms: Vec<u64>,
    plain_pods: u64,
    plain_pods_beside_gpus: u64,
    /// How many of `plain_pods_beside_gpus` are in gangs that would have found room elsewhere as a
    /// whole.
    plain_pods_astray: u64,
    /// Fragmented and free thousandths of GPUs, summed over the samples.
    fragmented: (f64, f64),
}

impl<'a> World<'a> {
    fn run(jobs: &'a [Job], settings: Settings) -> Self {
        let mut world = Self::new(jobs, settings);
        let mut next_sample_ms = START_MS + SAMPLE_MS;
        for (number, job) in jobs.iter().enumerate() {
            while let Some(at_ms) = world.next_ms().filter(|at_ms| *at_ms < job.arrives_ms) {
                world.advance(at_ms, Vec::new());
            }
            let events = world.arrival(number, job);
            world.advance(job.arrives_ms, events);
            if job.arrives_ms >= next_sample_ms {
                world.sample();
                next_sample_ms += SAMPLE_MS;
            }
        }
        // From here on no job arrives and the line runs empty, which tells of a placement only how
        // long the last jobs had to wait. So the sums over time stay as they are now.
        let (sums, until_ms) = (world.room.sums, world.now_ms);
        while let Some(at_ms) = world.next_ms().filter(|_| world.started < jobs.len()) {
            world.advance(at_ms, Vec::new());
        }
        (world.room.sums, world.now_ms) = (sums, until_ms);
        world
    }

    fn new(jobs: &'a [Job], settings: Settings) -> Self {
        let mut objects: Vec<Object> = nodes().map(Object::Node).collect();
        objects.push(Object::Topology(topology()));
        Self {
            jobs,
            timeline: Timeline::new(settings, START_MS, objects),
            shapes: BTreeMap::new(),
            room: Room::new(),
            held: BTreeMap::new(),
            ends: BTreeMap::new(),
            started: 0,
            now_ms: START_MS,
            waits_ms: Vec::new(),
            gang_waits_ms: Vec::new(),
            plain_waits_ms: Vec::new(),
            plain_pods: 0,
            plain_pods_beside_gpus: 0,
            plain_pods_astray: 0,
            fragmented: (0.0, 0.0),
        }
    }

    /// The events of a job's arrival: a PodGroup and its pods. Job N has the pods with numbers from
    /// 8 N on.
    fn arrival(&mut self, number: usize, job: &Job) -> Vec<Event> {
        let shape = self
            .shapes
            .entry((job.gpus, job.cpus))
            .or_insert_with(|| Arc::new(shape(1_000 * job.cpus, 4 * job.cpus, job.gpus)));
        let mut group = pod_group(number, job.members, None);
        group.created_ms = job.arrives_ms;
        let members = (0..job.members as usize).map(|member| {
            let mut pod = pod(8 * number + member, shape);
            pod.created_ms = job.arrives_ms;
            pod.pod_group = Some(group_name(number));
            Object::Pod(pod)
        });
        let members: Vec<Event> = members.map(Event::from).collect();
        std::iter::once(Object::PodGroup(group).into())
            .chain(members)
            .collect()
    }

    fn next_ms(&self) -> Option<u64> {
        let end = self.ends.keys().next().copied();
        self.timeline.next_ms().into_iter().chain(end).min()
    }

    fn advance(&mut self, at_ms: u64, mut events: Vec<Event>) {
        let at_ms = at_ms.max(self.now_ms);
        self.room.pass(at_ms - self.now_ms);
        self.now_ms = at_ms;
        while let Some(entry) = self
            .ends
            .first_entry()
            .filter(|entry| *entry.key() <= at_ms)
        {
            for uid in entry.remove() {
                let (job, member) = number_of(uid);
                if let Some(node) = self.held.remove(&uid) {
                    self.room.give_back(&node, self.jobs[job].member());
                }
                events.push(Event::Deleted(ObjectKey::Pod(uid)));
                if member == 0 {
                    let name = group_name(job);
                    let key = ObjectKey::PodGroup(GroupSource::GpuBatch, "team".into(), name);
                    events.push(Event::Deleted(key));
                }
            }
        }
        let moment = self.timeline.advance(at_ms, events);
        self.count(&moment);
    }

    fn count(&mut self, moment: &Moment) {
        // Whether a gang without GPUs finds room on nodes without GPUs, asked once for each gang:
        // its members are bound one after the other.
        let mut fits_elsewhere = BTreeMap::new();
        for bind in &moment.bound {
            let uid = bind.pod.uid;
            let (number, member) = number_of(uid);
            let job = &self.jobs[number];
            if member == 0 {
                self.count_start(job);
            }
            if job.gpus == 0 {
                let members = u64::from(job.members);
                let room = &self.room;
                let fits = *fits_elsewhere
                    .entry(number)
                    .or_insert_with(|| room.fit_without_gpus(job.cpus) >= members);
                let beside = self.room.has_gpus(&bind.node);
                self.plain_pods += 1;
                self.plain_pods_beside_gpus += u64::from(beside);
                self.plain_pods_astray += u64::from(beside && fits);
            }
            self.room.take(&bind.node, job.member());
            self.held.insert(uid, bind.node.clone());
            let ends_ms = self.now_ms + job.runs_ms;
            self.ends.entry(ends_ms).or_default().push(uid);
        }
    }

    fn count_start(&mut self, job: &Job) {
        let wait_ms = self.now_ms - job.arrives_ms;
        self.started += 1;
        self.waits_ms.push(wait_ms);
        if job.gpus == 0 {
            self.plain_waits_ms.push(wait_ms);
        } else if job.members > 1 {
            self.gang_waits_ms.push(wait_ms);
        }
    }

    fn sample(&mut self) {
        let found = self.timeline.engine_mut().fragmentation();
        if found.weight > 0 {
            self.fragmented.0 += found.weighted as f64 / found.weight as f64;
            self.fragmented.1 += found.free_thousandths as f64;
        }
    }

    fn rows(&self, placement: &str) -> Vec<Row> {
        let scenario = format!("{JOBS} jobs in {GPU_NODES} nodes of 8 GPUs, {placement}");
        let lasted_ms = (self.now_ms - START_MS) as f64;
        let gpus = (GPU_NODES as u64 * GPUS_PER_NODE) as f64;
        let mean = |sum_ms: u64| sum_ms as f64 / lasted_ms;
        let of_plain = |pods: u64| 100.0 * pods as f64 / self.plain_pods as f64;
        let Sums {
            gpus_ms,
            whole_ms,
            racks_ms,
            in_rack_ms,
            plain_ms,
        } = self.room.sums;
        let useless = 100.0 * self.fragmented.0 / self.fragmented.1;
        let beside = of_plain(self.plain_pods_beside_gpus);
        let astray = of_plain(self.plain_pods_astray);
        [
            ("GPUs in use", 100.0 * mean(gpus_ms) / gpus, "%"),
            ("free GPUs of no use for what was seen", useless, "%"),
            ("whole free nodes", mean(whole_ms), "nodes"),
            ("whole free racks", mean(racks_ms), "racks"),
            (
                "largest gang that would still fit in one rack",
                mean(in_rack_ms),
                "nodes",
            ),
            ("whole free nodes without GPUs", mean(plain_ms), "nodes"),
            ("mean wait", mean_s(&self.waits_ms), "s"),
            (
                "mean wait of gangs of whole nodes",
                mean_s(&self.gang_waits_ms),
                "s",
            ),
            (
                "mean wait of jobs without GPUs",
                mean_s(&self.plain_waits_ms),
                "s",
            ),
            ("pods without GPUs on nodes with GPUs", beside, "%"),
            ("the same while others had room", astray, "%"),
        ]
        .map(|(name, value, unit)| Row::new(name, scenario.clone(), value, unit))
        .into()
    }
}

/// The job of a pod, and the number of the pod among the job's members.
fn number_of(uid: Uid) -> (usize, u64) {
    let number = u64::try_from(uid.0 & u128::from(u64::MAX)).unwrap_or(u64::MAX);
    (
        usize::try_from(number / 8).unwrap_or(usize::MAX),
        number % 8,
    )
}

fn mean_s(waits_ms: &[u64]) -> f64 {
    waits_ms.iter().sum::<u64>() as f64 / 1_000.0 / waits_ms.len().max(1) as f64
}
