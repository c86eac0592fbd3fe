//! From which gangs a waiting gang would take its room, or why it takes none.

use crate::explain::{EvictedPod, EvictionAction, EvictionPlan, NoEvictionPlan};
use crate::facts::{Amount, DisruptionBudgetFacts, HostPort, UnixMs, queue_quantity};
use crate::gangs::counts::count;
use crate::gangs::demand::{demand_of_pods, waiting_pods};
use crate::gangs::protected::{Holding, NEVER_MS, evictable_from, holdings, may_lose_room};
use crate::gpu::GPU;
use crate::ids::{GangId, NodeId, PodId};
use crate::names::joined;
use crate::plan::victims::{self, Action, Asked, Known, NoPlan, Plan, Why};
use crate::queues::{ClaimKind, Demand, GovernedId, QueueId};
use crate::state::ClusterState;
use crate::state::exclusive::Exclusive;
use crate::state::minima::Minimum;
use crate::state::node::Lacking;
use crate::tell::explain::takers::SWITCHED_OFF;
use crate::tell::why::obstacle_in_words;
use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// With more pods than this nothing is searched: an answer is worked out in one go, and must not
/// hold up bindings for more than a tenth of a second or so.
const PODS_MAX: usize = 20_000;

/// The plan that would be made for a gang that waits for room, or why there is none. `level`: the
/// level of which one domain must hold its members, if any. `delay_ends_ms`: when the gang's
/// `preemptionDelay` ends; `None`: it has ended.
pub(super) fn eviction(
    state: &mut ClusterState,
    asked: &Asked<'_>,
    level: Option<&str>,
    delay_ends_ms: Option<UnixMs>,
) -> Option<Result<EvictionPlan, NoEvictionPlan>> {
    if asked.settings.evictions.in_flight == 0 {
        return Some(Err(NoEvictionPlan {
            message: SWITCHED_OFF.into(),
            is_proved: true,
            next_ms: None,
            more_quota: Vec::new(),
        }));
    }
    if state.has_related_members(asked.gang) {
        return Some(Err(NoEvictionPlan {
            message: "a gang that rules about other pods concern takes no room from others".into(),
            is_proved: true,
            next_ms: None,
            more_quota: Vec::new(),
        }));
    }
    if state.pods.iter().nth(PODS_MAX).is_some() {
        return Some(Err(NoEvictionPlan {
            message: format!("more than {PODS_MAX} pods are too many for a short search"),
            is_proved: false,
            next_ms: None,
            more_quota: Vec::new(),
        }));
    }
    let found = victims::find(state, asked, &mut Known::default(), &mut 0)?;
    Some(match found {
        Ok(plan) => Ok(EvictionPlan {
            from_ms: delay_ends_ms.filter(|_| plan.action != Action::Free),
            ..in_words(state, &plan)
        }),
        Err(no_plan) => Err(NoEvictionPlan {
            message: why_none(state, asked, level, &no_plan) + &who_is_guarded(state, &no_plan),
            is_proved: no_plan.is_proved,
            next_ms: no_plan.next_ms,
            more_quota: more_quota(state, asked, &no_plan),
        }),
    })
}

fn in_words(state: &ClusterState, plan: &Plan) -> EvictionPlan {
    let name = |pod: PodId| {
        let pod = &state.pods[pod];
        format!("{}/{}", pod.namespace, pod.name)
    };
    let on_nodes = |places: &[(PodId, NodeId)]| {
        let mut named: Vec<(String, Box<str>)> = places
            .iter()
            .map(|(pod, node)| (name(*pod), state.nodes[*node].name.clone()))
            .collect();
        named.sort();
        named
    };
    let evicted = plan.evict.iter().map(|pod| {
        let record = &state.pods[*pod];
        let gang = record.gang().map(|gang| &state.gangs[gang]);
        let queue = record
            .account()
            .map(|account| state.queues.name(account.queue));
        EvictedPod {
            pod: name(*pod),
            gang: gang.map_or_else(String::new, |gang| (&*state.name_of(gang)).into()),
            queue: queue.unwrap_or_default().into(),
        }
    });
    EvictionPlan {
        action: match plan.action {
            Action::Free => EvictionAction::Free,
            Action::Consolidate => EvictionAction::Consolidate,
            Action::Reclaim(_) => EvictionAction::Reclaim,
            Action::Preempt => EvictionAction::Preempt,
            Action::Mixed(_) => EvictionAction::Mixed,
        },
        evict: evicted.collect(),
        places: on_nodes(&plan.places),
        moved: on_nodes(&plan.moved),
        gangs_broken: plan.cost.broken(),
        gpu_seconds_lost: plan.cost.gpu_seconds(),
        is_optimal: plan.is_optimal(),
        gangs_broken_at_least: plan.bound.broken_at_least(),
        from_ms: None,
    }
}

fn why_none(
    state: &mut ClusterState,
    asked: &Asked<'_>,
    level: Option<&str>,
    no_plan: &NoPlan,
) -> String {
    let gang = (asked.gang, asked.queue);
    let too_little_to_claim = |state: &_| too_little_to_claim(state, gang, asked.now_ms);
    let queue = |state: &ClusterState, queue: &QueueId| String::from(state.queues.name(*queue));
    match &no_plan.why {
        Why::Never => "its pods say preemptionPolicy: Never".into(),
        Why::Nobody => format!(
            "no gang that runs may be evicted for it{}",
            who_stays(state, asked)
        ),
        Why::Room(_) | Why::TooLittle => {
            let too_little = too_little_room(state, asked, level);
            match too_little_to_claim(state) {
                Some(claims) => format!("{claims}; {too_little}"),
                None => too_little,
            }
        }
        Why::Budget(uid) => {
            let budget = state.budget(*uid).map(name_of).unwrap_or_default();
            format!("the disruption budget {budget} allows fewer evictions")
        }
        Why::Unneeded => "gangs would have to leave whose room it does not need".into(),
        Why::Gives(of) => format!(
            "the queue {} would give what is within its bound",
            queue(state, of)
        ),
        Why::Promised(of, to) => format!(
            "the queue {} gives for the gang {}, and would hold too little for that",
            queue(state, of),
            state.name_of(&state.gangs[*to])
        ),
        Why::Claims(of) => too_little_to_claim(state).unwrap_or_else(|| {
            let queue = queue(state, of);
            format!("the queue {queue} would hold more than it may claim")
        }),
        Why::Outgrows(of) => {
            let queue = queue(state, of);
            format!("the queue {queue} would grow beyond its fair share")
        }
        Why::NoOtherPlace => "gangs that may only move have no other place".into(),
        Why::MovesTooMuch => "more GPUs would have to move than it is worth".into(),
    }
}

/// The gangs that have a host port or a disk which is all that a member lacks on some node, each
/// with what is told of it.
fn holders_in_way(state: &ClusterState, asked: &Asked<'_>) -> BTreeMap<GangId, String> {
    let waiting = waiting_pods(state, asked.gang, asked.now_ms);
    let classes = BTreeSet::from_iter(waiting.iter().map(|pod| state.pods[*pod].class));
    let mut in_way = BTreeMap::new();
    for id in classes {
        let class = &state.classes[id];
        if class.exclusive.is_empty() {
            continue;
        }
        let takes = |node| state.static_verdict(id, node) == Some(Ok(()));
        for (node_id, node) in state.nodes.iter() {
            let lacking = node.lacking(class);
            if matches!(lacking, Lacking::HostPort | Lacking::Disk) && takes(node_id) {
                let holders = node.holders_in_way(class);
                let gangs = holders.map(|(one, pod)| Some((state.pods[pod].gang()?, held(one))));
                in_way.extend(gangs.flatten());
            }
        }
    }
    in_way
}

/// That a gang has what a member lacks.
fn held(one: &Exclusive) -> String {
    match one {
        Exclusive::Port(HostPort { port, .. }) => {
            format!("has the host port {port}, which is missing, and no queue gives back ports")
        }
        Exclusive::Disk(_) => {
            "has a disk, which is missing, and no queue gives back disks".to_owned()
        }
    }
}

/// That room, or a limit, keeps the gang from starting even if all gangs leave that may be evicted
/// for it, and what it runs into then: in which domain, on which nodes, by which limit.
fn too_little_room(state: &mut ClusterState, asked: &Asked<'_>, level: Option<&str>) -> String {
    let gang = (asked.gang, asked.queue);
    let &Asked {
        settings,
        progress,
        now_ms,
        ..
    } = asked;
    let left = victims::without_all(state, asked, |state| {
        obstacle_in_words(state, settings, progress, gang, now_ms)
    });
    match left {
        Some(left) => {
            format!("it could not start even without all gangs that may be evicted for it: {left}")
        }
        None => {
            let within = level.map_or_else(String::new, |level| format!(" in one {level}"));
            let stay = who_stays(state, asked);
            format!(
                "there is too little room{within} for it and for the gangs that would have to \
                 move for it{stay}"
            )
        }
    }
}

/// Which gangs that run stay, and by which rule, in brackets; empty: none of these rules keeps any.
fn who_stays(state: &ClusterState, asked: &Asked<'_>) -> String {
    let in_way = holders_in_way(state, asked);
    let mut by_rule: BTreeMap<Cow<'_, str>, BTreeSet<Arc<str>>> = BTreeMap::new();
    for queue in state.queues.ids() {
        for holding in holdings(state, queue) {
            let gang = holding.minimum.gang;
            if gang != asked.gang && may_lose_room(state, asked.progress, gang) {
                let held = in_way.get(&gang);
                let rule = rule_that_keeps(state, asked, &holding, held);
                let name = state.name_of(&state.gangs[gang]);
                rule.map(|rule| by_rule.entry(rule).or_default().insert(name));
            }
        }
    }
    let rules = by_rule.into_iter().map(|(rule, gangs)| {
        let more = match gangs.len() {
            0 | 1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        let first = gangs.first().map_or("", |name| &**name);
        format!("{rule}: {first}{more}")
    });
    let rules = Vec::from_iter(rules).join("; ");
    match rules.is_empty() {
        true => rules,
        false => format!(" ({rules})"),
    }
}

/// The rule that keeps others from evicting a gang for good; `None`: nothing but what all victims
/// of a plan are judged by together. `held`: that the gang has a port or a disk which the claimant
/// lacks.
fn rule_that_keeps(
    state: &ClusterState,
    asked: &Asked<'_>,
    holding: &Holding,
    held: Option<&String>,
) -> Option<Cow<'static, str>> {
    let Holding {
        minimum,
        is_protected,
        ..
    } = holding;
    let (own, other) = (
        &state.gangs[asked.gang].spec,
        &state.gangs[minimum.gang].spec,
    );
    let from = evictable_from(state, minimum, asked.now_ms);
    let too_young = |field: &str, from_ms: UnixMs| {
        (from_ms > asked.now_ms).then(|| match from_ms {
            NEVER_MS => format!("since {field} of its queue cannot be read").into(),
            _ => format!("before {field}").into(),
        })
    };
    if !other.preemptible {
        Some("not preemptible".into())
    } else if minimum.queue == asked.queue {
        match other.priority < own.priority {
            true => too_young("preemptMinRuntime", from.preempt_ms),
            false => Some("of no lower priority in its queue".into()),
        }
    } else if *is_protected {
        Some("within the quota of its own queue".into())
    } else if count(state, asked.gang, asked.now_ms).needed == 0 {
        Some("since surplus breaks no gang".into())
    } else if !state.queues.takes_part(minimum.queue) {
        Some("of a queue of which nothing is divided, since it is not Ready or no leaf".into())
    } else if !minimum.is_settled {
        Some("since it is still being bound".into())
    } else if let Some(young) = too_young("reclaimMinRuntime", from.reclaim_ms) {
        Some(young)
    } else if minimum.core.iter().any(|pod| is_guarded(state, *pod)) {
        Some("guarded by disruption budgets".into())
    } else if let Some(held) = held {
        // Queues stand over their bounds in amounts alone (R2).
        Some(held.clone().into())
    } else {
        bound_that_keeps(state, asked, minimum).map(Cow::from)
    }
}

/// Which queue on the path of a minimum is within its bound in all that the minimum holds: in its
/// quota, if the claimant's queue may claim its own quota, else in its fair share. `None`: none is.
fn bound_that_keeps(
    state: &ClusterState,
    asked: &Asked<'_>,
    minimum: &Minimum,
) -> Option<&'static str> {
    let queues = &state.queues;
    let claims = asked_for(state, asked.gang, asked.now_ms);
    let more = |key| claims.iter().find(|(asked, _)| *asked == key);
    let more = |key| more(key).map_or(0, |(_, amount)| *amount);
    let mut kinds = [ClaimKind::Quota, ClaimKind::FairShare].into_iter();
    let kind = kinds.find(|kind| queues.beyond(asked.queue, &claims, *kind, more).is_none());
    let kind = kind.unwrap_or(ClaimKind::FairShare);
    let is_over = |queue: QueueId, key: GovernedId| {
        let key = queues.deciding(queue, queues.plain_of(key), Some(key));
        queues.stands_over(queue, key, 0, kind)
    };
    let levels = queues.below_common(minimum.queue, asked.queue);
    let gives = |key: GovernedId| levels.iter().all(|queue| is_over(*queue, key));
    let mut keys = minimum.holds.iter().map(|(key, _)| *key);
    if keys.clone().any(gives) {
        return None;
    }
    let leaf_is_over = keys.any(|key| is_over(minimum.queue, key));
    Some(match (kind, leaf_is_over) {
        (ClaimKind::Quota, false) => "of a queue that holds no more than its quota",
        (ClaimKind::Quota, true) => "below a queue that holds no more than its quota",
        (ClaimKind::FairShare, false) => "of a queue that holds no more than its fair share",
        (ClaimKind::FairShare, true) => "below a queue that holds no more than its fair share",
    })
}

/// Whether disruption budgets keep a pod from being evicted now. A pod under two is never evicted.
fn is_guarded(state: &ClusterState, pod: PodId) -> bool {
    let mut budgets = state.budgets_of(pod);
    match (budgets.next(), budgets.next()) {
        (None, _) => false,
        (Some(only), None) => only.allowed == 0,
        (Some(_), Some(_)) => true,
    }
}

/// The end of the sentence why there is no plan: of which gang disruption budgets keep pods, if
/// any.
fn who_is_guarded(state: &ClusterState, no_plan: &NoPlan) -> String {
    no_plan.guarded.map_or_else(String::new, |gang| {
        let name = state.name_of(&state.gangs[gang]);
        let running = state.gangs[gang].members.iter();
        let running = running.filter(|pod| state.pods[**pod].running);
        let budgets = running.flat_map(|pod| state.budgets_of(*pod));
        let budgets = Vec::from_iter(BTreeSet::from_iter(budgets.map(name_of)));
        let kind = match budgets.len() {
            1 => "disruption budget",
            _ => "disruption budgets",
        };
        let budgets = joined(&budgets);
        format!("; gangs that a disruption budget guards stay, as {name} does: {kind} {budgets}")
    })
}

fn name_of(budget: &DisruptionBudgetFacts) -> String {
    format!("{}/{}", budget.namespace, budget.name)
}

/// What a gang asks for next.
fn asked_for(state: &ClusterState, gang: GangId, now_ms: UnixMs) -> Demand {
    let needed = count(state, gang, now_ms).needed.max(1) as usize;
    let pods = waiting_pods(state, gang, now_ms);
    demand_of_pods(state, pods.iter().take(needed))
}

/// A key of which a gang's queue may claim less from others than the gang asks for, with amounts in
/// base units.
struct ShortClaim<'a> {
    name: &'a str,
    /// How much the queue may still claim.
    left: Amount,
    /// How much the queue holds for gangs that do not give way to the gang.
    stays: Amount,
    asked: Amount,
    /// How much there is.
    there_is: Amount,
}

/// The keys of which a gang's queue may claim too little, GPUs before all else.
fn short_claims(
    state: &ClusterState,
    (gang, queue): (GangId, QueueId),
    now_ms: UnixMs,
) -> Vec<ShortClaim<'_>> {
    let asked = asked_for(state, gang, now_ms);
    let queues = &state.queues;
    let short = asked.iter().filter_map(|(key, asked)| {
        let kinds = [ClaimKind::Quota, ClaimKind::FairShare].into_iter();
        let bounds = kinds.filter_map(|kind| queues.bound(queue, *key, kind));
        let stays = stays(state, gang, queue, *key);
        let left = bounds.max()?.saturating_sub(stays);
        (left < *asked).then(|| ShortClaim {
            name: queues.governed_name(*key),
            left,
            stays,
            asked: *asked,
            there_is: queues.capacity(*key),
        })
    });
    let mut short: Vec<ShortClaim<'_>> = short.collect();
    short.sort_by_key(|claim| (!claim.name.starts_with(GPU), claim.name));
    short
}

/// How much a gang's queue may still claim from others, where that is less than the gang asks for;
/// `None`: it is enough.
fn too_little_to_claim(
    state: &ClusterState,
    gang: (GangId, QueueId),
    now_ms: UnixMs,
) -> Option<String> {
    let short = short_claims(state, gang, now_ms);
    let ShortClaim {
        name, left, asked, ..
    } = short.first()?;
    Some(format!(
        "its queue may claim {} more {name} by its quota and fair share, and it asks for {}",
        queue_quantity(name, *left),
        queue_quantity(name, *asked)
    ))
}

/// The quotas with which the gang's queue could claim what the gang asks for, in base units, by
/// key; empty: something else keeps the gang from an eviction plan, or there is not as much.
fn more_quota(
    state: &ClusterState,
    asked: &Asked<'_>,
    no_plan: &NoPlan,
) -> Vec<(Box<str>, Amount)> {
    if !matches!(no_plan.why, Why::Claims(_)) {
        return Vec::new();
    }
    let short = short_claims(state, (asked.gang, asked.queue), asked.now_ms).into_iter();
    let quotas = short.map(|claim| {
        let quota = claim.stays.saturating_add(claim.asked);
        (quota <= claim.there_is).then(|| (claim.name.into(), quota))
    });
    quotas.collect::<Option<_>>().unwrap_or_default()
}

/// How much of a key a gang's queue holds for gangs that do not give way to it.
fn stays(state: &ClusterState, gang: GangId, queue: QueueId, key: GovernedId) -> Amount {
    let gives_way = |of: GangId| {
        let (own, other) = (&state.gangs[gang].spec, &state.gangs[of].spec);
        other.preemptible && other.priority < own.priority
    };
    let minima = state.minima.of_queue(queue);
    let leaves = minima.filter(|minimum| minimum.gang != gang && gives_way(minimum.gang));
    let amounts = leaves.flat_map(|minimum| &minimum.holds);
    let amounts = amounts.filter(|(held, _)| *held == key);
    let leaves = amounts.fold(0, |sum: Amount, (_, amount)| sum.saturating_add(*amount));
    state.queues.allocated_of(queue, key).saturating_sub(leaves)
}
