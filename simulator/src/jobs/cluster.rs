//! One cluster: an engine, its nodes, and the jobs that compete for them.

use super::evictions::{Courses, Eviction};
use super::lessons::Lessons;
use super::objects::{Arrival, Objects};
use super::promises::Promise;
use super::ratios::Foreseen;
use super::{Execution, FairShare, Never, Policy, Workload};
use crate::objects::GPU;
use crate::timeline::{Moment, Timeline};
use crate::trace::jobs::Job;
use gpu_batch_policies::command::Evict;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{UnixMs, amount};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The nodes of a cluster, and the jobs that compete for them.
#[derive(Debug)]
pub(super) struct Cluster {
    /// The queues, as indices into [`Workload::queues`].
    queues: Vec<usize>,
    nodes: u32,
    gpus_per_node: u32,
    /// The jobs by time of submission: the index of the job in the trace, and the index of its
    /// queue in [`Workload::queues`].
    pub(super) jobs: Vec<(usize, usize)>,
}

/// The result of simulating one cluster.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The jobs that started, and when, in seconds; `None`: the job was evicted. Of one job the
    /// last entry counts.
    pub(super) starts: Vec<(usize, Option<u64>)>,
    pub(super) evictions: Vec<Eviction>,
    /// The first promise to each job that waited for its first start.
    pub(super) promises: BTreeMap<usize, Promise>,
    pub(super) foreseen: Vec<Foreseen>,
    pub(super) never: Vec<Never>,
    pub(super) steps: u64,
    pub(super) fair_shares: Vec<FairShare>,
}

impl Cluster {
    pub(super) fn new(queues: Vec<usize>, workload: Workload<'_>) -> Self {
        let nodes = queues.iter().map(|queue| workload.queues[*queue].nodes);
        Self {
            nodes: nodes.sum(),
            queues,
            gpus_per_node: workload.gpus_per_node,
            jobs: Vec::new(),
        }
    }

    /// Why a job can never run here, however long it waits.
    pub(super) fn too_large(&self, job: &Job) -> Option<String> {
        let gpus = u64::from(self.nodes) * u64::from(self.gpus_per_node);
        (u64::from(job.num_gpus) > gpus).then(|| {
            format!(
                "it asks for {} GPUs, and its cluster has {gpus} on {} nodes",
                job.num_gpus, self.nodes
            )
        })
    }

    /// Runs all jobs to their ends.
    pub(super) fn run(
        &self,
        policy: Policy,
        workload: Workload<'_>,
        execution: Execution<'_>,
    ) -> Outcome {
        let mut world = World::new(self, policy, workload);
        let every_ms = execution
            .fair_shares_every_s
            .map(|every_s| ms(every_s.max(1)));
        let mut sample_ms = every_ms.filter(|_| policy.shares_nodes()).map(|_| 0);
        let jobs = &workload.jobs.jobs;
        let mut arriving = self.jobs.iter().peekable();
        loop {
            let arrival_ms = arriving.peek().map(|(job, _)| ms(jobs[*job].submit_s));
            // What the engine waits for in between happens with the next second, so that all times
            // are those of a trace.
            let next_ms = world.timeline.next_ms();
            let next_ms = next_ms.map(|next_ms| ms(next_ms.div_ceil(1_000)));
            let end_ms = world.next_end_ms();
            let Some(at_ms) = arrival_ms.into_iter().chain(next_ms).chain(end_ms).min() else {
                break;
            };
            let arrives = |(job, _): &&(usize, usize)| ms(jobs[*job].submit_s) <= at_ms;
            let mut batch = world.ended(at_ms);
            while let Some((job, _)) = arriving.next_if(arrives) {
                world.arrive((*job, 0), jobs[*job].submit_s, &mut batch);
            }
            let events = world.advance(at_ms, batch);
            execution.events.fetch_add(events, Ordering::Relaxed);
            if sample_ms.is_some_and(|due_ms| at_ms >= due_ms) {
                sample_ms = every_ms.map(|every_ms| at_ms + every_ms);
                let engine = world.timeline.engine_mut();
                world.outcome.sample(&self.queues, at_ms, engine, workload);
            }
        }
        let World {
            timeline,
            mut outcome,
            ..
        } = world;
        outcome.steps = timeline.steps();
        outcome.wait_for_ever(timeline.engine());
        outcome
    }
}

/// A cluster while its jobs run.
struct World<'a> {
    workload: Workload<'a>,
    /// For each queue of the trace its index in [`Workload::queues`].
    places: Vec<Option<usize>>,
    objects: Objects,
    timeline: Timeline,
    policy: Policy,
    /// `None`: no job is evicted.
    courses: Option<Courses>,
    /// `None`: the engine learns no runtimes.
    lessons: Option<Lessons>,
    outcome: Outcome,
}

impl<'a> World<'a> {
    fn new(cluster: &Cluster, policy: Policy, workload: Workload<'a>) -> Self {
        let objects = Objects::new(cluster.gpus_per_node, policy.evicts());
        let mut world = objects.nodes(cluster.nodes);
        for queue in &cluster.queues {
            world.push(objects.queue(*queue, &workload.queues[*queue]));
        }
        Self {
            workload,
            places: workload.queues_of_trace(),
            objects,
            timeline: Timeline::new(policy.settings(), 0, world),
            policy,
            courses: policy.evicts().then(Courses::default),
            lessons: workload.teaches(policy).then(Lessons::default),
            outcome: Outcome {
                starts: Vec::with_capacity(cluster.jobs.len()),
                evictions: Vec::new(),
                promises: BTreeMap::new(),
                foreseen: Vec::new(),
                never: Vec::new(),
                steps: 0,
                fair_shares: Vec::new(),
            },
        }
    }

    /// Adds the pods of a run of a job to a batch.
    fn arrive(&mut self, (number, run): (usize, u32), at_s: u64, batch: &mut Vec<Event>) {
        let job = &self.workload.jobs.jobs[number];
        let Some(queue) = self.places[job.queue as usize] else {
            return;
        };
        let queue = match self.policy.is_one_line() {
            true => ONE_LINE,
            false => &self.workload.queues[queue].name,
        };
        let arrival = Arrival {
            run,
            at_s,
            expected_s: self.expected_s(number),
            ..Arrival::first(number, job, queue)
        };
        let first = batch.len();
        self.objects.arrive(arrival, batch);
        if let Some(lessons) = &mut self.lessons {
            lessons.arrive(number, batch[first..].iter());
        }
    }

    /// When the next job ends from which the engine learns a runtime.
    fn next_end_ms(&self) -> Option<UnixMs> {
        self.lessons.as_ref()?.next_s().map(ms)
    }

    /// The jobs from which the engine learns a runtime, and that have ended until now.
    fn ended(&mut self, at_ms: UnixMs) -> Vec<Event> {
        let Some(lessons) = &mut self.lessons else {
            return Vec::new();
        };
        let ended = lessons.ended(at_s(at_ms));
        for pod in &ended {
            let gone = Event::Deleted(ObjectKey::Pod(pod.uid));
            self.timeline.schedule(at_ms + ms(1), gone);
        }
        let ended = ended.into_iter();
        ended.map(|pod| Event::from(Object::Pod(pod))).collect()
    }

    /// How long a job is said to have still to run. Where jobs are promised starts, the owner of
    /// the job says it, and knows what work is saved. Otherwise the true time is told: only an
    /// order by runtime asks for it.
    fn expected_s(&self, number: usize) -> Option<u64> {
        let job = &self.workload.jobs.jobs[number];
        let left_s = self.left_s(number);
        if !self.policy.reserves() {
            return Some(left_s);
        }
        let saved_s = job.duration_s - left_s;
        let expected_s = job.expected_s?;
        Some(expected_s.saturating_sub(saved_s))
    }

    /// How long a job has still to run.
    fn left_s(&self, number: usize) -> u64 {
        let job = &self.workload.jobs.jobs[number];
        let courses = self.courses.as_ref();
        courses.map_or(job.duration_s, |courses| courses.left_s(number, job))
    }

    /// Lets time come to `at_ms`. Returns how many events there were, for figures of speed.
    fn advance(&mut self, at_ms: UnixMs, batch: Vec<Event>) -> u64 {
        let mut events = batch.len() as u64;
        let moment = self.timeline.advance(at_ms, batch);
        events += self.follow(at_ms, moment);
        // Plans of evictions take the engine no time, as nothing else does.
        while self.courses.is_some() && self.timeline.engine_mut().search_on() {
            let moment = self.timeline.advance(at_ms, []);
            events += self.follow(at_ms, moment);
        }
        self.note_promises(at_ms);
        if self.lessons.is_some() {
            let forecasts = self.timeline.engine_mut().take_forecasts();
            let foreseen = forecasts.filter_map(Foreseen::of);
            self.outcome.foreseen.extend(foreseen);
        }
        events
    }

    /// Keeps the first promise to each job that has not started yet.
    fn note_promises(&mut self, at_ms: UnixMs) {
        for (gang, start_ms) in self.timeline.engine().promised_starts() {
            let Some(job) = Objects::job_of_gang(gang) else {
                continue;
            };
            let courses = self.courses.as_ref();
            if courses.is_none_or(|courses| !courses.has_started(job)) {
                let promises = &mut self.outcome.promises;
                promises.entry(job).or_insert_with(|| Promise {
                    job,
                    made_s: at_s(at_ms),
                    // As everything that the engine waits for, a start between two seconds happens
                    // with the second one.
                    start_s: start_ms.div_ceil(1_000),
                });
            }
        }
    }

    /// Takes in what the engine has done. Returns how many events follow.
    fn follow(&mut self, at_ms: UnixMs, moment: Moment) -> u64 {
        let mut events = 0;
        // In one moment a job may be evicted only after it has started.
        for bind in moment.bound {
            let (job, _, member) = Objects::member(bind.pod.uid);
            if member == 0 {
                self.outcome.starts.push((job, Some(at_s(at_ms))));
                if let Some(courses) = &mut self.courses {
                    courses.start(job, at_s(at_ms));
                }
                // Two events: the start of the job now, and its end later.
                events += 2;
            }
            let end_ms = at_ms + ms(self.left_s(job));
            if let Some(lessons) = &mut self.lessons {
                lessons.bind(&bind, at_s(end_ms));
                continue;
            }
            let end = Event::Deleted(ObjectKey::Pod(bind.pod.uid));
            self.timeline.schedule(end_ms, end);
        }
        for evict in moment.evicted {
            events += self.evicted(at_ms, &evict);
        }
        events
    }

    /// A pod was evicted: its job ends, and goes back to its queue. Returns how many events follow.
    fn evicted(&mut self, at_ms: UnixMs, evict: &Evict) -> u64 {
        let Some(courses) = &mut self.courses else {
            return 0;
        };
        let (number, run, _) = Objects::member(evict.pod.uid);
        let job = &self.workload.jobs.jobs[number];
        let beneficiary = evict.beneficiary.as_ref();
        let beneficiary = beneficiary.and_then(|it| Objects::job_of_gang(&it.gang));
        let whom = (number, run);
        let why = (evict.cause, beneficiary);
        let Some(eviction) = courses.evict(whom, job, at_s(at_ms), why) else {
            return 0;
        };
        self.outcome.evictions.push(eviction);
        self.outcome.starts.push((number, None));
        let pods = (0..self.objects.members(job)).map(|member| Objects::uid(number, run, member));
        let mut batch: Vec<Event> = pods
            .map(|pod| Event::Deleted(ObjectKey::Pod(pod)))
            .collect();
        self.arrive((number, run + 1), at_s(at_ms), &mut batch);
        let events = batch.len() as u64;
        for event in batch {
            self.timeline.schedule(at_ms, event);
        }
        events
    }
}

impl Outcome {
    /// Notes the fair shares of the queues as they are now.
    fn sample(
        &mut self,
        queues: &[usize],
        at_ms: UnixMs,
        engine: &mut Engine,
        workload: Workload<'_>,
    ) {
        let reports = engine.queue_reports();
        for queue in queues {
            let name = &workload.queues[*queue].name;
            let report = reports.iter().find(|report| *report.name == **name);
            let Some(report) = report else {
                continue;
            };
            self.fair_shares.push(FairShare {
                at_s: at_ms / 1_000,
                queue: *queue,
                gpu_thousandths: amount(&report.status.fair_share, GPU),
            });
        }
    }

    /// Notes the jobs that still wait when nothing happens any more.
    fn wait_for_ever(&mut self, engine: &Engine) {
        for pod in engine.pod_reports() {
            let (job, _, member) = Objects::member(pod.uid);
            if member > 0 {
                continue;
            }
            let reason = pod
                .reason
                .map_or("WaitingForTurn", |reason| reason.as_str());
            let why = match &*pod.message {
                "" => reason.to_owned(),
                message => format!("{reason}: {message}"),
            };
            self.never.push(Never { job, why });
        }
    }
}

/// The queue of all jobs where they stand in one line: it always exists.
const ONE_LINE: &str = "default";

/// The second of a time. The worlds of traces are advanced at whole seconds only.
fn at_s(at_ms: UnixMs) -> u64 {
    at_ms / 1_000
}

/// Seconds in milliseconds. Times of the trace are small enough, see
/// [`crate::trace::jobs::SECONDS_MAX`].
fn ms(seconds: u64) -> UnixMs {
    seconds.saturating_mul(1_000)
}
