//! Whose room a gang could take, and who could take its own.

use crate::kube::format::seconds;
use gpu_batch_policies::explain::{EvictedPod, EvictionPlan, NoEvictionPlan, Takers};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many gangs the text names.
const GANGS_NAMED: usize = 6;
/// How many of the nodes with other places are named.
const NODES_NAMED: usize = 4;

/// The cheapest evictions that would make room for a gang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionView {
    /// `Free` (the room is being left), `Consolidate`, `Reclaim`, `Preempt` or `Mixed`; `null`:
    /// no evictions that the rules allow make room.
    pub action: Option<String>,
    /// `Optimal`: no evictions by this right cost less. `Feasible`: a cheaper set may have been
    /// overlooked. `Impossible`: there is none. `NotFound`: none was found within the bound of the
    /// search.
    pub verdict: String,
    /// Why there is none, as a sentence; `null`: there is one.
    pub why: Option<String>,
    /// The pods that would be evicted.
    pub evict: Vec<EvictedView>,
    /// Where the gang's members would be.
    pub places: Vec<PlaceView>,
    /// Where evicted pods would be placed again.
    pub moved: Vec<PlaceView>,
    /// How many gangs would lose their minimum.
    pub gangs_broken: u64,
    /// How many gangs any evictions by this right break, as far as is proved.
    pub gangs_broken_at_least: u64,
    /// The GPU-seconds of work since the last checkpoints that would be lost.
    pub gpu_seconds_lost: u64,
    /// When the next gang will have run for long enough to be evicted; `null`: time alone changes
    /// nothing, or there are evictions already.
    pub next: Option<String>,
    /// When the gang's `preemptionDelay` ends, before which nobody is evicted for it. Absent: it
    /// has ended, or nobody has to leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// A pod that would be evicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictedView {
    /// `NS/NAME` of the pod.
    pub pod: String,
    /// The pod's gang.
    pub gang: String,
    /// The queue that holds the pod.
    pub queue: String,
}

/// A pod and a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceView {
    /// `NS/NAME` of the pod.
    pub pod: String,
    /// The node.
    pub node: String,
}

/// The queues and gangs that could take the room of a running gang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TakersView {
    /// Whether the gang may be evicted for others at all.
    pub preemptible: bool,
    /// From when on other queues could reclaim the gang's minimum; `null`: they cannot.
    pub reclaim_from: Option<String>,
    /// From when on gangs of higher priority of its queue could preempt it; `null`: none can.
    pub preempt_from: Option<String>,
    /// From when on it could be moved to other nodes for another gang; `null`: it is not moved.
    pub move_from: Option<String>,
    /// How many pods it has beyond its minimum, which neither quota nor time protects.
    pub surplus: u32,
    /// All of this in words, and what disruption budgets say now, a sentence each.
    pub sentences: Vec<String>,
}

impl From<Takers> for TakersView {
    fn from(takers: Takers) -> Self {
        Self {
            preemptible: takers.preemptible,
            reclaim_from: takers.reclaim_from_ms.map(seconds),
            preempt_from: takers.preempt_from_ms.map(seconds),
            move_from: takers.move_from_ms.map(seconds),
            surplus: takers.surplus,
            sentences: takers.sentences,
        }
    }
}

impl From<Result<EvictionPlan, NoEvictionPlan>> for EvictionView {
    fn from(found: Result<EvictionPlan, NoEvictionPlan>) -> Self {
        let places = |places: Vec<(String, Box<str>)>| {
            let places = places.into_iter();
            let places = places.map(|(pod, node)| PlaceView {
                pod,
                node: node.into(),
            });
            places.collect()
        };
        match found {
            Ok(plan) => Self {
                action: Some(plan.action.as_str().to_owned()),
                verdict: if plan.is_optimal {
                    "Optimal"
                } else {
                    "Feasible"
                }
                .to_owned(),
                why: None,
                evict: plan.evict.into_iter().map(Into::into).collect(),
                places: places(plan.places),
                moved: places(plan.moved),
                gangs_broken: plan.gangs_broken,
                gangs_broken_at_least: plan.gangs_broken_at_least,
                gpu_seconds_lost: plan.gpu_seconds_lost,
                next: None,
                from: plan.from_ms.map(seconds),
            },
            Err(none) => Self {
                action: None,
                verdict: if none.is_proved {
                    "Impossible"
                } else {
                    "NotFound"
                }
                .to_owned(),
                why: Some(none.message),
                evict: Vec::new(),
                places: Vec::new(),
                moved: Vec::new(),
                gangs_broken: 0,
                gangs_broken_at_least: 0,
                gpu_seconds_lost: 0,
                next: none.next_ms.map(seconds),
                from: None,
            },
        }
    }
}

impl From<EvictedPod> for EvictedView {
    fn from(evicted: EvictedPod) -> Self {
        Self {
            pod: evicted.pod,
            gang: evicted.gang,
            queue: evicted.queue.into(),
        }
    }
}

/// The evictions in lines of text.
pub(super) fn lines(view: &EvictionView) -> Vec<String> {
    if let Some(why) = &view.why {
        let sure = match view.verdict.as_str() {
            "Impossible" => "Nobody's",
            _ => "Nobody's that a short search found",
        };
        let mut lines = vec![format!("{sure}: {why}.")];
        if let Some(next) = &view.next {
            lines.push(format!(
                "The next gang will have run for long enough at {next}."
            ));
        }
        return lines;
    }
    let action = view.action.as_deref().unwrap_or_default();
    if view.evict.is_empty() {
        return vec!["Nobody has to leave: room that is being left is enough.".to_owned()];
    }
    // By queue and gang: how many pods leave, and where some of them have another place.
    let mut gangs: BTreeMap<(&str, &str), (usize, BTreeSet<&str>)> = BTreeMap::new();
    for evicted in &view.evict {
        let (pods, other_places) = gangs.entry((&evicted.queue, &evicted.gang)).or_default();
        *pods += 1;
        let mut moved = view.moved.iter();
        let place = moved.find(|place| place.pod == evicted.pod);
        other_places.extend(place.map(|place| place.node.as_str()));
    }
    let pods = counted(view.evict.len(), "pod");
    let verb = match action {
        "Consolidate" => "moving",
        _ => "evicting",
    };
    let broken = usize::try_from(view.gangs_broken).unwrap_or(usize::MAX);
    let broken = match broken {
        0 => "no gang would lose its minimum".to_owned(),
        broken => format!("{} would lose the minimum", counted(broken, "gang")),
    };
    let mut lines = vec![format!(
        "{action}: {verb} {pods} would make room; {broken}; {} of work would be lost.",
        gpu_time(view.gpu_seconds_lost)
    )];
    for ((queue, gang), (pods, other_places)) in gangs.iter().take(GANGS_NAMED) {
        let to = match other_places.is_empty() {
            true => String::new(),
            false => format!(", with room on {}", listed(other_places)),
        };
        lines.push(format!(
            "  {} of {gang} in {queue}{to}",
            counted(*pods, "pod")
        ));
    }
    if gangs.len() > GANGS_NAMED {
        lines.push(format!(
            "  and {} more",
            counted(gangs.len() - GANGS_NAMED, "gang")
        ));
    }
    if let Some(from) = &view.from {
        lines.push(format!(
            "Nobody leaves before {from}, when its preemptionDelay ends: new nodes may come first."
        ));
    }
    lines.push(verdict(view));
    lines
}

/// How sure it is that nothing cheaper makes room.
fn verdict(view: &EvictionView) -> String {
    if view.verdict == "Optimal" {
        return "It is proved that nothing cheaper makes room by this right.".to_owned();
    }
    let at_least = match view.gangs_broken_at_least {
        0 => "no gang".to_owned(),
        gangs => {
            let gangs = usize::try_from(gangs).unwrap_or(usize::MAX);
            format!("at least {}", counted(gangs, "gang"))
        }
    };
    format!(
        "Something cheaper may make room: it is proved only that {at_least} must lose the minimum."
    )
}

/// The first of these names, and how many more there are.
fn listed(names: &BTreeSet<&str>) -> String {
    let named: Vec<&str> = names.iter().take(NODES_NAMED).copied().collect();
    let more = match names.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

pub(super) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

fn gpu_time(seconds: u64) -> String {
    match seconds {
        0..3_600 => format!("{seconds} GPU-seconds"),
        _ => format!("{}.{} GPU-hours", seconds / 3_600, seconds % 3_600 / 360),
    }
}
