//! What must hold when a world is at rest, worked out from the objects of the world and not by the
//! engine's own code.
//!
//! If a gang waits, every placement is tried (`search`) to see that it does not fit. Minima,
//! domains and reasons are judged at every level of a tree of sub-groups.

mod related;
mod room;
mod search;

use crate::cluster::Cluster;
use crate::contender::{Contender, listed};
use crate::gangs::{Gang, contradict, gangs_of, is_met};
use crate::objects::GPU;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Object};
use gpu_batch_policies::facts::{PodFacts, Uid, UnixMs, amount};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::GangReport;
use gpu_batch_policies::settings::{Leadership, Settings};
use gpu_batch_policies::status::{Phase, PodGroupStatus};
use room::Rooms;
use std::collections::{BTreeMap, BTreeSet};

/// The process that has bound a pod: its place in the run, and the number of its start there.
/// Members that one binder has bound must be together.
pub(crate) type Binder = (usize, u32);

/// Everything that does not hold, one sentence each. `calm`: no fault has struck.
pub(crate) fn violations(
    cluster: &Cluster,
    leader: &Contender,
    binders: &BTreeMap<Uid, Binder>,
    calm: bool,
    now_ms: UnixMs,
) -> Vec<String> {
    let mut found = Vec::new();
    let reports: BTreeMap<String, GangReport> = leader
        .engine
        .gang_reports()
        .into_iter()
        .map(|gang| (gang.name.clone(), gang))
        .collect();
    let gangs = gangs(cluster);
    let rooms = Rooms::of(cluster, &gangs);
    for gang in &gangs {
        partial(gang, calm, &mut found);
        apart(cluster, gang, binders, &mut found);
        match reports.get(&gang.name) {
            Some(report) => {
                unsaid(&gang.name, &report.status.message, &mut found);
                described(&rooms, gang, report, &mut found);
                waiting(cluster, &rooms, gang, report, &mut found);
            }
            None => found.push(format!("I3: the leader does not know gang {}", gang.name)),
        }
    }
    if calm {
        // A node that was away comes back with pods that nobody has counted meanwhile.
        related::too_near(cluster, binders, &mut found);
    }
    found.extend(rooms.over_limits(&gangs, binders));
    statuses(cluster, &reports, &mut found);
    found.extend(rebuilt_elsewhere(cluster, leader, now_ms));
    found
}

/// What queues hold, by queue and resource: GPUs, in thousandths of a card, and resources that some
/// queue has an entry for.
pub(crate) fn held(cluster: &Cluster) -> BTreeMap<(Box<str>, Box<str>), u64> {
    Rooms::of(cluster, &gangs(cluster)).held()
}

/// Whether a gang, or its surplus, waits because of promises, its own or those to others. A gang
/// that was promised a start may fit before, and delay others then.
pub(crate) fn is_behind_promises(status: &PodGroupStatus) -> bool {
    // There is no reason once the minimum has places, and the sentence is about the surplus.
    let message = &status.message;
    status.estimated_start_ms.is_some()
        || message.contains("promised to start")
        || message.contains("it was promised")
}

/// The members of a gang that wait.
pub(crate) fn waiting_members(cluster: &Cluster, gang: &str) -> BTreeSet<Uid> {
    let gangs = gangs(cluster);
    let waiting = gangs.iter().filter(|of| of.name == gang);
    let waiting = waiting.flat_map(|of| &of.waiting);
    waiting.map(|facts| facts.uid).collect()
}

/// What all pods of this scheduler ask for of a resource, together with those that have succeeded
/// and were cleaned away.
pub(crate) fn asked_of_all(cluster: &Cluster, resource: &str) -> u64 {
    let pods = cluster.api.pods().chain(&cluster.done);
    let ours = pods.filter(|facts| facts.ours);
    ours.map(|facts| amount(&facts.shape.requests, resource))
        .sum()
}

/// I5: no gang and no group of it is bound in part, at every level of the tree. Members that have
/// succeeded and were cleaned away count. Gangs are not judged if another scheduler has bound a
/// member, if their spec was changed, or if they are never evicted. A sub-group that the gang can
/// go without may lose members to faults, but never starts in part.
fn partial(gang: &Gang<'_>, calm: bool, found: &mut Vec<String>) {
    let others = gang.bound.iter().any(|facts| facts.bound_queue.is_none());
    if others || gang.changed || gang.never_stale {
        return;
    }
    let ever = gang.bound.iter().chain(&gang.succeeded).chain(&gang.done);
    let ever = gang.by_leaf(ever.copied());
    for (index, group) in gang.groups.iter().enumerate() {
        let begun = gang.bound.iter().any(|facts| gang.is_below(facts, index));
        if begun && !is_met(&gang.groups, index, &ever) && (index == 0 || calm) {
            found.push(format!(
                "I5: gang {} rests with a part of its group {:?}",
                gang.name, group.name
            ));
        }
    }
    if !gang.bound.is_empty() && contradict(&gang.groups) {
        found.push(format!("I5: gang {} contradicts itself", gang.name));
    }
}

/// I7: members that one process has bound are in one domain: those of the gang, and those of each
/// of its sub-groups.
///
/// A stray, a pod that was bound by a request that its process had given up, may come to another
/// domain while requests for this one are on their way; members that are bound later join one or
/// the other. So a further domain is no mistake if a stray is there, or was there until it
/// succeeded. A further domain is no mistake either if the process has joined a member there that
/// another process had bound first: the process had begun elsewhere before it knew of that member,
/// and could not call back the requests that it had sent.
fn apart(
    cluster: &Cluster,
    gang: &Gang<'_>,
    binders: &BTreeMap<Uid, Binder>,
    found: &mut Vec<String>,
) {
    for (index, group) in gang.groups.iter().enumerate() {
        let Some(required) = &group.required else {
            continue;
        };
        let domain_of = |facts: &PodFacts| {
            let node = facts.node.as_deref().and_then(|node| cluster.node(node));
            node.map(|node| required.domain(node))
        };
        let below = |facts: &&&PodFacts| gang.is_below(facts, index);
        let mut members: BTreeMap<Binder, Vec<&PodFacts>> = BTreeMap::new();
        for facts in gang.bound.iter().filter(below) {
            if let Some(binder) = binders.get(&facts.uid) {
                members.entry(*binder).or_default().push(facts);
            }
        }
        let ever = gang.bound.iter().chain(&gang.succeeded).chain(&gang.done);
        let ours = ever.filter(|facts| facts.bound_queue.is_some());
        let ours: Vec<&PodFacts> = ours.filter(below).copied().collect();
        for (binder, members) in members {
            let domains: BTreeSet<_> = members.iter().filter_map(|it| domain_of(it)).collect();
            let explained = |domain: &&Vec<String>| {
                let there = |facts: &&&PodFacts| domain_of(facts).as_ref() == Some(*domain);
                let begun_ms = members.iter().filter(there).map(|it| it.bound_ms).min();
                let mut ours = ours.iter().filter(there);
                ours.any(|other| match binders.get(&other.uid) {
                    None => true,
                    Some(another) => *another != binder && Some(other.bound_ms) <= begun_ms,
                })
            };
            let mistaken = domains.iter().filter(|domain| !explained(domain));
            if mistaken.count() > 1 {
                found.push(format!(
                    "I7: gang {}, group {:?} is in {domains:?}",
                    gang.name, group.name
                ));
            }
        }
    }
}

/// Whether no gate holds a pod back that schedulers do not lift.
fn is_free(facts: &PodFacts) -> bool {
    facts.holding_gates().next().is_none()
}

/// What is told of a refused gang only until it is told why.
const NOT_WHY: [&str; 2] = ["about to be tried again", "when it was last tried"];

/// I11: the user of each gang that waits is told why.
fn unsaid(name: &str, message: &str, found: &mut Vec<String>) {
    if message.is_empty() || NOT_WHY.iter().any(|end| message.ends_with(end)) {
        found.push(format!("I11: {name} is not told why it waits: {message:?}"));
    }
}

/// I11: the phase and the reason that the engine reports for a gang are true.
fn described(rooms: &Rooms, gang: &Gang<'_>, report: &GangReport, found: &mut Vec<String>) {
    let status = &report.status;
    let held = gang.held();
    let met = is_met(&gang.groups, 0, &held);
    if !gang.bound.is_empty() && (status.phase == Phase::Running) != met {
        found.push(format!(
            "I11: gang {} is {:?}, and has its minimum: {met}",
            gang.name, status.phase
        ));
    }
    if met || gang.waiting.is_empty() || gang.unknown {
        return;
    }
    let free = gang.waiting.iter().filter(|facts| is_free(facts));
    let mut able = gang.by_leaf(free.copied());
    for (sum, held) in able.iter_mut().zip(&held) {
        *sum += held;
    }
    let enough = is_met(&gang.groups, 0, &able);
    let right = match status.reason {
        None => false,
        // Which of its faults is told first of a gang that kube-scheduler places is not judged.
        Some(_) if gang.waiting.iter().any(|facts| facts.is_chosen_elsewhere()) => true,
        // Nor is it of a gang that waits for volumes.
        Some(_) if gang.waiting.iter().any(|facts| !facts.claims.is_empty()) => true,
        Some(Reason::InvalidSpec) => contradict(&gang.groups),
        Some(Reason::WaitingForVolumes) => false,
        // Slots of HAMi are not for pods that ask for whole GPUs. Which fault of its pods a gang
        // with such pods is told first is not judged.
        Some(Reason::Unsupported) => rooms.has_slots(),
        Some(Reason::SubGroupNotFound | Reason::SchedulingGated)
            if rooms.has_slots() && gang.waiting.iter().any(|facts| asks_for_whole(facts)) =>
        {
            true
        }
        Some(Reason::WaitingForMembers | Reason::SubGroupNotFound | Reason::SchedulingGated) => {
            !enough
        }
        // A closed queue stops a gang before its members and its topology are looked at.
        Some(Reason::QueueClosed) => rooms.is_closed(&gang.queue),
        Some(Reason::NamespaceNotAllowed) => rooms.selects_namespaces(&gang.queue),
        Some(_) => enough && !contradict(&gang.groups),
    };
    if !right {
        found.push(format!(
            "I11: gang {} waits for {:?}: {}",
            gang.name, status.reason, status.message
        ));
    }
}

/// Whether a pod asks for GPUs, and for no parts of cards.
fn asks_for_whole(facts: &PodFacts) -> bool {
    facts.shape.cards.is_none() && amount(&facts.shape.requests, GPU) > 0
}

/// I18: no gang that fits waits.
fn waiting(
    cluster: &Cluster,
    rooms: &Rooms,
    gang: &Gang<'_>,
    report: &GangReport,
    found: &mut Vec<String>,
) {
    let free = gang.waiting.iter().filter(|facts| is_free(facts));
    let placeable: Vec<&PodFacts> = free.copied().collect();
    let closed = rooms.is_closed(&gang.queue);
    // Gangs that are not preemptible stay within the quota, which this search does not know; the
    // property tests judge them.
    // A gang may wait behind promises as long as there are any, which `run/promises` judges.
    let is_behind = is_behind_promises(&report.status);
    let kept_out =
        gang.unknown || closed || gang.protected || is_behind || contradict(&gang.groups);
    let kept_out = kept_out || related::has_rules(cluster);
    // Where claims let pods be is judged when they are bound, see `contender/watchdog/volumes`.
    let kept_out = kept_out || placeable.iter().any(|facts| !facts.claims.is_empty());
    // kube-scheduler asks for pods of its choice as long as one fits, see `run/asking`.
    let kept_out = kept_out || placeable.iter().any(|facts| facts.is_chosen_elsewhere());
    if !kept_out && search::fits(cluster, rooms, gang, &placeable) {
        found.push(format!(
            "I18: gang {} fits and waits for {:?}: {}",
            gang.name, report.status.reason, report.status.message
        ));
    }
}

/// F16 and I11: the API server has the newest status of each PodGroup, and each waiting pod is told
/// why it waits.
fn statuses(cluster: &Cluster, reports: &BTreeMap<String, GangReport>, found: &mut Vec<String>) {
    use crate::api_server::Status;
    for stored in cluster.api.objects(Kind::PodGroup) {
        let (Object::PodGroup(facts), Status::PodGroup(written)) = (&stored.object, &stored.status)
        else {
            continue;
        };
        let name = format!("{}/{}", facts.namespace, facts.name);
        let now = reports.get(&name).map(|report| &report.status);
        let told = written.as_ref();
        let short = |status: &PodGroupStatus| {
            (
                status.phase,
                status.reason,
                status.members,
                status.scheduled,
                status.estimated_start_ms,
            )
        };
        if told.map(short) != now.map(short) {
            found.push(format!(
                "F16: the status of {name} is {told:?} and not {now:?}"
            ));
        }
    }
    for facts in cluster.api.pods() {
        let waits = facts.ours && facts.node.is_none() && !facts.phase.ended();
        // kube-scheduler tells of the pods that it looks at.
        if waits && (!facts.extended || facts.has_gang_gate()) {
            let told = facts.unscheduled.as_ref();
            let message = told.map_or("", |told| &*told.message);
            unsaid(&format!("pod {}", facts.name), message, found);
        }
    }
}

fn places(engine: &Engine) -> BTreeMap<Uid, Option<Box<str>>> {
    let pods = engine.pod_reports().into_iter();
    pods.map(|pod| (pod.uid, pod.node)).collect()
}

/// I14: pods that a new engine, which starts from lists, sees on other nodes than the leader does.
/// The new engine has the leader's clock, because times that a wrong clock has written mean nothing
/// to a right one. If the leader's clock is behind, nothing is judged: the new engine takes later
/// times of the API server for the present, and cannot tell which of them came first. Nor is it
/// judged where the new engine places waiting members of a gang of which a member succeeded and was
/// cleaned away: only the leader knows that they are not needed any more. Nor is it judged of gangs
/// behind promises: the new engine makes promises of its own, behind which other gangs wait.
fn rebuilt_elsewhere(cluster: &Cluster, leader: &Contender, now_ms: UnixMs) -> Vec<String> {
    let clock_ms = leader.clock_ms(now_ms);
    if clock_ms < now_ms {
        return Vec::new();
    }
    let rebuilt = rebuilt(cluster, leader.settings(), clock_ms);
    let seen = places(&leader.engine);
    let pods: BTreeSet<_> = seen.keys().chain(rebuilt.keys()).collect();
    let gangs = gangs(cluster);
    let forgotten = gangs.iter().filter(|gang| !gang.done.is_empty());
    let mut reports = leader.engine.gang_reports();
    reports.retain(|report| is_behind_promises(&report.status));
    let behind: BTreeSet<&str> = reports.iter().map(|report| &*report.name).collect();
    let behind = gangs.iter().filter(|gang| behind.contains(&*gang.name));
    // What pods have of NUMA nodes is guessed by a new engine.
    let is_aligned = |gang: &&Gang<'_>| {
        let mut waiting = gang.waiting.iter();
        waiting.any(|facts| !facts.shape.aligned.is_empty())
    };
    let aligned = gangs.iter().filter(is_aligned);
    let waiting = forgotten.chain(behind).chain(aligned);
    let waiting = waiting.flat_map(|gang| &gang.waiting);
    let unjudged: BTreeSet<Uid> = waiting.map(|facts| facts.uid).collect();
    let elsewhere = pods
        .into_iter()
        .filter(|pod| seen.get(*pod) != rebuilt.get(*pod) && !unjudged.contains(pod));
    let told = elsewhere.map(|pod| {
        let (one, other) = (seen.get(pod), rebuilt.get(pod));
        format!("I14: {pod:?} is at {one:?}, and to a rebuilt engine at {other:?}")
    });
    told.collect()
}

/// The nodes on which a new engine, which starts from lists, sees the pods.
fn rebuilt(
    cluster: &Cluster,
    settings: &Settings,
    now_ms: UnixMs,
) -> BTreeMap<Uid, Option<Box<str>>> {
    let settings = Settings {
        leadership: Leadership::Assumed,
        ..settings.clone()
    };
    let mut engine = Engine::new(settings);
    let lists: Vec<Event> = Kind::ALL
        .into_iter()
        .map(|kind| {
            let objects: Vec<_> = cluster.api.objects(kind).cloned().collect();
            listed(kind, &objects, now_ms)
        })
        .collect();
    drop(engine.step(now_ms, lists));
    places(&engine)
}

/// All gangs that have pods.
fn gangs(cluster: &Cluster) -> Vec<Gang<'_>> {
    let stored = Kind::ALL.map(|kind| cluster.api.objects(kind));
    let objects = stored.into_iter().flatten().map(|stored| &stored.object);
    gangs_of(objects, &cluster.done)
}
