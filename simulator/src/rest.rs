//! What must hold of a world at rest, worked out from the world alone.

mod gangs;
mod room;

use crate::cluster::Cluster;
use crate::contender::{Contender, listed};
use gangs::{Gang, gangs, level_domain};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Kind, Object};
use gpu_batch_policies::facts::{NodeFacts, PodFacts, Uid, UnixMs};
use gpu_batch_policies::report::GangReport;
use gpu_batch_policies::settings::{Leadership, Settings};
use room::Rooms;
use std::collections::{BTreeMap, BTreeSet};

/// Who has bound a pod, as far as that is to be judged: members of one binder are together.
pub(crate) type Binder = (usize, u32);

/// Everything that does not hold.
pub(crate) fn violations(
    cluster: &Cluster,
    leader: &Contender,
    binders: &BTreeMap<Uid, Binder>,
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
        partial(gang, &mut found);
        apart(cluster, gang, binders, &mut found);
        waiting(cluster, &rooms, gang, &reports, &mut found);
    }
    found.extend(rooms.over_limits(&gangs, binders));
    statuses(cluster, &reports, &mut found);
    if places(&leader.engine) != rebuilt(cluster, leader.settings(), now_ms) {
        found.push("I14: a rebuilt engine sees other places".to_owned());
    }
    found
}

/// I5. Who has done its part and was cleaned away counts. Not ours to mend: members that another
/// scheduler has bound, a minimum that was raised, and gangs that are never evicted.
fn partial(gang: &Gang<'_>, found: &mut Vec<String>) {
    let bound = gang.bound.len();
    let others = gang.bound.iter().any(|facts| facts.bound_queue.is_none());
    let held = bound + gang.succeeded;
    if bound > 0 && held + gang.done < gang.minimum && !others && !gang.changed && !gang.never_stale
    {
        found.push(format!(
            "I5: gang {} rests with {held} of {} members",
            gang.name, gang.minimum
        ));
    }
}

/// I7, of the members that one decider has bound.
fn apart(
    cluster: &Cluster,
    gang: &Gang<'_>,
    binders: &BTreeMap<Uid, Binder>,
    found: &mut Vec<String>,
) {
    let mut domains: BTreeMap<Binder, BTreeSet<Vec<String>>> = BTreeMap::new();
    for facts in &gang.bound {
        let node = facts.node.as_deref().and_then(|node| cluster.node(node));
        let domain = node.and_then(|node| level_domain(gang, node));
        if let (Some(binder), Some(domain)) = (binders.get(&facts.uid), domain) {
            domains.entry(*binder).or_default().insert(domain);
        }
    }
    if let Some(domains) = domains.values().find(|domains| domains.len() > 1) {
        found.push(format!("I7: gang {} is in {domains:?}", gang.name));
    }
}

/// I11 and I18: a gang that waits does so for a reason that is true.
fn waiting(
    cluster: &Cluster,
    rooms: &Rooms,
    gang: &Gang<'_>,
    reports: &BTreeMap<String, GangReport>,
    found: &mut Vec<String>,
) {
    if gang.waiting.is_empty() {
        return;
    }
    let Some(report) = reports.get(&gang.name) else {
        found.push(format!("I3: the leader does not know gang {}", gang.name));
        return;
    };
    let reason = report.status.reason;
    let held = gang.bound.len() + gang.succeeded;
    let need = gang.minimum.saturating_sub(held);
    if need > 0 && reason.is_none() {
        found.push(format!("I11: gang {} waits for no reason", gang.name));
    }
    let placeable: Vec<&PodFacts> = gang
        .waiting
        .iter()
        .copied()
        .filter(|facts| facts.gates.is_empty())
        .collect();
    if placeable.is_empty() || placeable.len() < need || gang.unknown {
        return;
    }
    let closed = rooms.queue_path(&gang.queue).any(|queue| queue.closed);
    // What a quota has left for gangs that are not preemptible is judged by the property tests.
    if closed || gang.protected {
        return;
    }
    if possible(cluster, gang)
        .iter()
        .any(|nodes| rooms.fit(nodes, &gang.queue, &placeable, need.max(1)))
    {
        found.push(format!(
            "I18: gang {} fits and waits for {reason:?}: {}",
            gang.name, report.status.message
        ));
    }
}

/// The sets of nodes in which all members may be.
fn possible<'world>(cluster: &'world Cluster, gang: &Gang<'_>) -> Vec<Vec<&'world NodeFacts>> {
    let mut domains: BTreeMap<Option<Vec<String>>, Vec<&NodeFacts>> = BTreeMap::new();
    for node in cluster.nodes() {
        let domain = level_domain(gang, node);
        domains.entry(domain).or_default().push(node);
    }
    let tied = gang.bound.iter().find_map(|facts| {
        let node = cluster.node(facts.node.as_deref()?)?;
        Some(level_domain(gang, node))
    });
    if let Some(tied) = tied {
        domains.retain(|domain, _| *domain == tied);
    }
    domains.into_values().collect()
}

/// The API server has been told the newest status of everything that waits.
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
        let short = |status: &gpu_batch_policies::status::PodGroupStatus| {
            (
                status.phase,
                status.reason,
                status.members,
                status.scheduled,
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
        if waits && facts.unscheduled.is_none() {
            found.push(format!("I11: pod {} is not told why it waits", facts.name));
        }
    }
}

fn places(engine: &Engine) -> BTreeMap<Uid, Option<Box<str>>> {
    let pods = engine.pod_reports().into_iter();
    pods.map(|pod| (pod.uid, pod.node)).collect()
}

/// Where an engine that begins anew sees the pods.
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
