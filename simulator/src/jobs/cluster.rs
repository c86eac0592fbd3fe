//! One cluster: an engine, its nodes, and the jobs that compete for them.

use super::objects::{GPU, Objects};
use super::{Execution, FairShare, Never, Policy, Workload};
use crate::timeline::Timeline;
use crate::trace::jobs::Job;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, ObjectKey};
use gpu_batch_policies::facts::{UnixMs, amount};
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
    /// The jobs that started, and when, in seconds.
    pub(super) starts: Vec<(usize, u64)>,
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
        let mut objects = Objects::new(self.gpus_per_node);
        let mut world = objects.nodes(self.nodes);
        for queue in &self.queues {
            world.push(objects.queue(*queue, &workload.queues[*queue]));
        }
        let mut timeline = Timeline::new(policy.settings(), 0, world);
        let mut outcome = Outcome {
            starts: Vec::with_capacity(self.jobs.len()),
            never: Vec::new(),
            steps: 0,
            fair_shares: Vec::new(),
        };
        let every_ms = execution
            .fair_shares_every_s
            .map(|every_s| ms(every_s.max(1)));
        let mut sample_ms = every_ms.filter(|_| policy.shares_nodes()).map(|_| 0);
        let jobs = &workload.jobs.jobs;
        let mut arriving = self.jobs.iter().peekable();
        let mut batch = Vec::new();
        loop {
            let arrival_ms = arriving.peek().map(|(job, _)| ms(jobs[*job].submit_s));
            let Some(at_ms) = arrival_ms.into_iter().chain(timeline.next_ms()).min() else {
                break;
            };
            let arrives = |(job, _): &&(usize, usize)| ms(jobs[*job].submit_s) <= at_ms;
            while let Some((job, queue)) = arriving.next_if(arrives) {
                let name = &workload.queues[*queue].name;
                objects.arrive(*job, &jobs[*job], name, &mut batch);
            }
            let mut events = batch.len() as u64;
            let moment = timeline.advance(at_ms, batch.drain(..));
            for bind in moment.bound {
                let (job, member) = Objects::member(bind.pod.uid);
                if member == 0 {
                    outcome.starts.push((job, at_ms / 1_000));
                    // Two events: the start of the job now, and its end later.
                    events += 2;
                }
                let end = Event::Deleted(ObjectKey::Pod(bind.pod.uid));
                timeline.schedule(at_ms + ms(jobs[job].duration_s), end);
            }
            execution.events.fetch_add(events, Ordering::Relaxed);
            if sample_ms.is_some_and(|due_ms| at_ms >= due_ms) {
                sample_ms = every_ms.map(|every_ms| at_ms + every_ms);
                outcome.sample(&self.queues, at_ms, timeline.engine_mut(), workload);
            }
        }
        outcome.steps = timeline.steps();
        outcome.wait_for_ever(timeline.engine());
        outcome
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
                gpus: amount(&report.status.fair_share, GPU),
            });
        }
    }

    /// Notes the jobs that still wait when nothing happens any more.
    fn wait_for_ever(&mut self, engine: &Engine) {
        for pod in engine.pod_reports() {
            let (job, member) = Objects::member(pod.uid);
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

/// Seconds in milliseconds. Times of the trace are small enough, see
/// [`crate::trace::jobs::SECONDS_MAX`].
fn ms(seconds: u64) -> UnixMs {
    seconds.saturating_mul(1_000)
}
