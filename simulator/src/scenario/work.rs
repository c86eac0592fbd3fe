//! The work that arrives: gangs of every kind, and the changes that users make.

use super::{APP, APPS, DISK, NONE, QUEUES};
use crate::api_server::Name;
use crate::cluster::Recipe;
use crate::objects::{NAMESPACE, pod, pod_group};
use crate::random::Random;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    DisruptionBudgetFacts, GroupSource, HostPort, JobFacts, OwnerReference, Placement, PodFacts,
    PodGroupFacts, PodLabels, Protocol, Toleration, TolerationOperator, TopologyConstraint, UnixMs,
};
use std::sync::Arc;

/// One thing that users do.
#[derive(Debug, Clone)]
pub(crate) enum Arrival {
    /// A gang: the PodGroup or Job that describes it, and its pods. If it is a Job, it is the owner
    /// of the pods.
    Gang(Option<Box<Object>>, Vec<Recipe>),
    /// The gates of all pods of the gang with this name are removed.
    GatesOpen(Box<str>),
    /// A running pod, if there is one, succeeds: the one with this number, modulo their count.
    PodEnds(u64),
    /// A queue is closed, or opened again.
    QueueClosed(&'static str, bool),
    /// The PodGroup with this name gets this minimum.
    MinimumChanges(Box<str>, u32),
    /// A disruption budget that wants so many healthy pods, or its new selector.
    Guarded(DisruptionBudgetFacts, u32),
    /// The disruption budget with this name is deleted.
    Unguarded(Box<str>),
    /// An object about volumes is made, unless there is one of its name.
    Stored(Box<Object>),
    /// An object about volumes is deleted.
    Gone(Name),
    /// A volume, if there is one, is deleted: the one with this number, modulo their count.
    VolumeGone(u64),
    /// The node with this number in its name, if it is there, shows a condition, or not any more.
    Ails(u64, &'static str, bool),
    /// The free volume with this number, modulo their count, is given to a claim of somebody else.
    VolumeTaken(u64),
}

/// Everything that arrives, sorted by time, and how many gangs there are among it.
pub(crate) fn arrivals(
    random: &mut Random,
    start_ms: UnixMs,
    span_ms: u64,
) -> (Vec<(UnixMs, Arrival)>, u32) {
    let mut arrivals = Vec::new();
    let gangs = random.between(7, 15);
    for number in 0..gangs {
        let at_ms = start_ms + random.below(span_ms);
        let name = format!("g{number}");
        let gang = gang(&name, random);
        if let Arrival::Gang(description, pods) = &gang {
            if pods.iter().any(|recipe| !recipe.pod.gates.is_empty()) && random.percent(80) {
                let later_ms = at_ms + random.between(500, 8_000);
                arrivals.push((later_ms, Arrival::GatesOpen(name.as_str().into())));
            }
            let ours = matches!(description.as_deref(), Some(Object::PodGroup(group))
                if group.source == GroupSource::GpuBatch);
            if ours && random.percent(10) {
                let minimum = u32::try_from(random.between(1, 4)).unwrap_or(1);
                let change = Arrival::MinimumChanges(name.as_str().into(), minimum);
                arrivals.push((at_ms + random.below(10_000), change));
            }
        }
        arrivals.push((at_ms, gang));
    }
    for _ in 0..random.below(6) {
        let at_ms = start_ms + random.below(span_ms);
        arrivals.push((at_ms, Arrival::PodEnds(random.next_u64())));
    }
    if random.percent(25) {
        let queue = *random.pick(&["research", "red", "green"]);
        let at_ms = start_ms + random.below(span_ms);
        arrivals.push((at_ms, Arrival::QueueClosed(queue, true)));
        if random.percent(70) {
            let later_ms = at_ms + random.below(10_000);
            arrivals.push((later_ms, Arrival::QueueClosed(queue, false)));
        }
    }
    arrivals.sort_by_key(|(at_ms, _)| *at_ms);
    (arrivals, u32::try_from(gangs).unwrap_or(0))
}

fn gang(name: &str, random: &mut Random) -> Arrival {
    let count = random.between(1, 6);
    let minimum = u32::try_from(random.between(1, count)).unwrap_or(1);
    let mut pods = members(name, count, random);
    let queue: Box<str> = (*random.pick(&QUEUES)).into();
    let mut all = |change: &mut dyn FnMut(&mut PodFacts)| {
        pods.iter_mut().for_each(|recipe| change(&mut recipe.pod));
    };
    let description = match random.below(100) {
        0..60 => {
            all(&mut |pod| pod.pod_group = Some(name.into()));
            let mut group = group(name, minimum, random);
            group.queue = Some(queue);
            Some(Object::PodGroup(group))
        }
        60..75 => {
            all(&mut |pod| pod.native_group = Some(name.into()));
            let mut group = pod_group(name, NONE, 0, minimum);
            group.source = GroupSource::Native;
            group.queue = Some(queue);
            group.required_label = random.percent(30).then(|| "zone".into());
            if random.percent(25) {
                // A native group with the policy `basic` has the minimum 1.
                group.minimum = 1;
            }
            Some(Object::PodGroup(group))
        }
        75..85 => {
            let parallelism = u32::try_from(count).unwrap_or(1);
            all(&mut |pod| {
                pod.queue = Some(queue.clone());
                pod.owner = Some(owner("batch/v1", "Job", name));
            });
            Some(Object::Job(JobFacts {
                uid: NONE,
                namespace: NAMESPACE.into(),
                name: name.into(),
                indexed: random.percent(80),
                parallelism,
                completions: Some(parallelism),
                succeeded: 0,
                active_deadline_ms: None,
                ignores_evictions: false,
                unknown_keys: Vec::new(),
            }))
        }
        85..93 => {
            let mut owner = owner("apps/v1", "ReplicaSet", name);
            owner.uid.0 = (1 << 100) | u128::from(random.next_u64());
            // In half of the cases the owner is a Deployment in a rolling update, with pods of two
            // ReplicaSets.
            let updated = owner.uid.0 & 1 == 1;
            let mut new = false;
            all(&mut |pod| {
                pod.queue = Some(queue.clone());
                pod.hints.min_member = Some(minimum);
                let mut owner = owner.clone();
                if updated {
                    pod.deployment = Some(name.into());
                    owner.name = format!("{name}-{}", u8::from(new)).into();
                    owner.uid.0 ^= u128::from(new) << 96;
                    new = !new;
                }
                pod.owner = Some(owner);
            });
            None
        }
        _ => {
            all(&mut |pod| pod.queue = Some(queue.clone()));
            None
        }
    };
    Arrival::Gang(description.map(Box::new), pods)
}

pub(super) fn group(name: &str, minimum: u32, random: &mut Random) -> PodGroupFacts {
    let mut group = pod_group(name, NONE, 0, minimum);
    if random.percent(40) {
        let level = Some((*random.pick(&["zone", "rack", "node"])).into());
        let mut topology = TopologyConstraint::default();
        if random.percent(70) {
            topology.required = level;
        } else {
            topology.preferred = level;
        }
        if random.percent(15) {
            topology.name = Some("zones".into());
            topology.required = Some("zone".into());
            topology.preferred = None;
        }
        group.topology = Some(topology);
    }
    if random.percent(20) {
        group.placement.gpu = Some(Placement::Spread);
    }
    if random.percent(30) {
        group.priority_class = Some((*random.pick(&["low", "high"])).into());
    }
    if random.percent(10) {
        group.preemptible = Some(false);
    }
    group.staleness_grace_ms = match random.below(10) {
        0 => Some(-1),
        1..4 => None,
        _ => Some(i64::try_from(random.between(1_000, 8_000)).unwrap_or(5_000)),
    };
    group
}

/// A reference to an owner. Where the owner is an object of the world, the reference later gets the
/// UID that the API server sets.
fn owner(api_version: &str, kind: &str, name: &str) -> OwnerReference {
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: NONE,
    }
}

pub(super) fn members(name: &str, count: u64, random: &mut Random) -> Vec<Recipe> {
    let usual = size(random);
    let gated = random.percent(10);
    let same_name = random.percent(50);
    let runtime_ms = random.percent(50).then(|| random.between(2_000, 20_000));
    let mut recipes = Vec::new();
    for member in 0..count {
        let other = random.percent(20);
        let (cpus, gpus) = if other { size(random) } else { usual };
        let mut facts = pod(&format!("{name}-{member}"), NONE, 0, cpus, gpus);
        let app = APPS[usize::from(count.is_multiple_of(2))];
        let labels = vec![(APP.into(), app.into())];
        facts.labels = PodLabels::new(&labels, &facts.name, None);
        let shape = Arc::make_mut(&mut facts.shape);
        if random.percent(8) {
            shape.node_selector = vec![(DISK.into(), "fast".into())];
        }
        if random.percent(8) {
            shape.host_ports.push(HostPort {
                port: 8080,
                protocol: Protocol::Tcp,
                host_ip: "".into(),
            });
        }
        if random.percent(8) {
            shape.tolerations.push(Toleration {
                key: "".into(),
                operator: TolerationOperator::Exists,
                value: "".into(),
                effect: None,
            });
        }
        if gated && random.percent(70) {
            facts.gates.push("example.com/wait".into());
        }
        recipes.push(Recipe {
            pod: facts,
            runtime_ms,
            same_name,
            farewell: None,
        });
    }
    recipes
}

fn size(random: &mut Random) -> (u64, u64) {
    (
        random.between(1, 4),
        *random.pick(&[0, 1, 1, 2, 2, 3, 4, 8]),
    )
}
