//! The invariants of the state, recomputed from scratch.
//!
//! | | invariant |
//! |---|---|
//! | I1 | what a node counts as used, as leaving and as held is the sum over its pods and holds |
//! | I3 | every pod of ours is a member of exactly one gang |
//! | I8 | what a queue holds is the sum of its members' accounts and of its holds, up to the root |
//!
//! I2, that we never fill a node above its capacity, is asserted where places are taken
//! ([`crate::txn::Txn::place`]): afterwards a node may shrink under its pods. The other invariants
//! of the list (one bind for each pod, no unfinished gang at rest, topology rules) need the history
//! or a world at rest; the simulator checks them.

use crate::facts::{Amount, CARD, CardPart, saturated};
use crate::gangs::protected::minima_of;
use crate::ids::{ClassId, GangId, NodeId, PodId, ResourceId};
use crate::queues::{GovernedId, QueueId};
use crate::state::ClusterState;
use crate::state::cards::Cards;
use crate::state::minima::Minimum;
use crate::state::node::Node;
use crate::state::pod::{Pod, Stage};
use crate::state::shared::{NodeVolumes, Use};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{format, string::String, vec::Vec};

/// Every violation, as sentences.
pub(crate) fn violations(state: &ClusterState) -> Vec<String> {
    let mut found = Vec::new();
    node_sums(state, &mut found);
    coming(state, &mut found);
    members(state, &mut found);
    accounts(state, &mut found);
    grains(state, &mut found);
    reaches(state, &mut found);
    cards_added(state, &mut found);
    tables(state, &mut found);
    free_nodes(state, &mut found);
    minima(state, &mut found);
    footprints(state, &mut found);
    for node in state.nodes_with_wrong_cells() {
        found.push(format!(
            "I1: node {node} counts other parts of NUMA nodes as used than its pods have"
        ));
    }
    for pod in state.wrongly_guarded() {
        found.push(format!("pod {pod} is guarded by other disruption budgets"));
    }
    found
}

/// I1: the used amounts and cards of each node are the sums over its pods.
fn node_sums(state: &ClusterState, found: &mut Vec<String>) {
    let mut on_node: BTreeMap<NodeId, Vec<PodId>> = BTreeMap::new();
    for (id, pod) in state.pods.iter() {
        if let Some(node) = pod.stage.node() {
            on_node.entry(node).or_default().push(id);
        }
    }
    for (id, node) in state.nodes.iter() {
        let mut pods = node.pods.clone();
        pods.sort_unstable();
        let expected = on_node.remove(&id).unwrap_or_default();
        if pods != expected {
            found.push(format!(
                "I1: node {} lists other pods than are on it",
                node.name
            ));
        }
        let mut used: BTreeMap<ResourceId, u128> = BTreeMap::new();
        let shared = shared_volumes(state, id, &expected);
        if shared != node.shared {
            found.push(format!(
                "I1: node {} counts other uses of shared volumes than its pods and holds have",
                node.name
            ));
        }
        for (resource, taken) in shared.taken() {
            *used.entry(resource).or_insert(0) += taken.used;
        }
        let mut cards = named_cards(state, node);
        for pod in expected {
            let class = &state.classes[state.pods[pod].class];
            for (resource, amount) in class.apart() {
                *used.entry(*resource).or_insert(0) += u128::from(*amount);
            }
            cards.take(&state.pods[pod].cards);
        }
        overlaps(state, node, found);
        scattered(state, node, found);
        if cards != node.cards {
            found.push(format!(
                "I1: node {} counts other parts of cards as used than its pods hold",
                node.name
            ));
        }
        for (resource, _, taken) in node.resources() {
            let sum = saturated(used.remove(&resource).unwrap_or(0));
            let name = state.resource_names.name(resource);
            if node.free(resource) != node.free_without(resource, 0) {
                found.push(format!(
                    "I1: node {} keeps a wrong free amount of {name}",
                    node.name
                ));
            }
            if sum != taken {
                found.push(format!(
                    "I1: node {} counts {taken} {name} as used, its pods use {sum}",
                    node.name
                ));
            }
        }
        for (resource, sum) in used {
            let name = state.resource_names.name(resource);
            let node = &node.name;
            found.push(format!("I1: node {node} does not count {sum} {name}"));
        }
    }
    for node in on_node.into_keys() {
        found.push(format!("I1: pods are on node {node:?}, which is not known"));
    }
}

/// The cards that a node names, with nothing taken of them.
fn named_cards(state: &ClusterState, node: &Node) -> Cards {
    let mut cards = Cards::default();
    let named = node.known.as_ref();
    let (named, links) = named.map_or((&[][..], &[][..]), |known| {
        (&known.facts.cards, &known.facts.card_links)
    });
    cards.set(named, links, &mut state.mig_models.clone());
    cards
}

/// I1: the cards that are chosen for a container are of one NUMA node where the pod says so.
fn scattered(state: &ClusterState, node: &Node, found: &mut Vec<String>) {
    let named = || node.known.iter().flat_map(|known| &known.facts.cards);
    let cell = |part: &CardPart| {
        let card = named().find(|card| card.id == part.card);
        card.map(|card| card.numa)
    };
    let pods = node.pods.iter().map(|pod| &state.pods[*pod]);
    let assumed = pods.filter(|pod| matches!(pod.stage, Stage::Assumed(_)));
    let bound = assumed.filter(|pod| {
        let terms = state.classes[pod.class].shape.card_terms.as_ref();
        terms.is_some_and(|terms| terms.in_one_cell)
    });
    for parts in bound.flat_map(|pod| pod.cards.by_container()) {
        let cells: BTreeSet<u32> = parts.iter().filter_map(cell).collect();
        if cells.len() > 1 {
            found.push(format!(
                "I1: a container gets cards of several NUMA nodes of {}",
                node.name
            ));
        }
    }
}

/// I1: of the memory slices of a card in MIG mode, none is chosen for two pods.
fn overlaps(state: &ClusterState, node: &Node, found: &mut Vec<String>) {
    let mut taken: BTreeMap<&str, u8> = BTreeMap::new();
    let pods = node.pods.iter().map(|pod| &state.pods[*pod]);
    let assumed = pods.filter(|pod| matches!(pod.stage, Stage::Assumed(_)));
    for part in assumed.flat_map(|pod| pod.cards.iter()) {
        let mask = taken.entry(&part.card).or_default();
        for instance in &part.instances {
            if *mask & instance.placement.mask() != 0 {
                let (card, name) = (&part.card, &node.name);
                found.push(format!(
                    "I1: two pods get one place of card {card} of {name}"
                ));
            }
            *mask |= instance.placement.mask();
        }
    }
}

/// The uses of shared volumes on a node by the pods there, and by holds.
fn shared_volumes(state: &ClusterState, node: NodeId, pods: &[PodId]) -> NodeVolumes {
    let mut volumes = NodeVolumes::default();
    let mut count = |class: ClassId, which: Use| {
        let shared = state.classes[class].shared.iter();
        for volume in shared.flat_map(|shared| shared.volumes()) {
            volumes.change(volume, which, true);
        }
    };
    for pod in pods.iter().map(|pod| &state.pods[*pod]) {
        count(pod.class, Use::Pod);
        if pod.leaving {
            count(pod.class, Use::Leaving);
        }
    }
    let places = state.holds.iter().flat_map(|hold| &hold.places);
    for (class, _) in places.filter(|(_, on)| *on == node) {
        count(*class, Use::Held);
    }
    volumes
}

/// I1: what is leaving and what is held on each node are the sums over its pods and over all holds.
fn coming(state: &ClusterState, found: &mut Vec<String>) {
    let mut sums: BTreeMap<(NodeId, ResourceId), (u128, u128)> = BTreeMap::new();
    for pod in state.pods.iter().map(|(_, pod)| pod) {
        for node in pod.stage.node().into_iter().filter(|_| pod.leaving) {
            for (resource, amount) in state.classes[pod.class].apart() {
                sums.entry((node, *resource)).or_default().0 += u128::from(*amount);
            }
        }
    }
    for (class, node) in state.holds.iter().flat_map(|hold| &hold.places) {
        for (resource, amount) in state.classes[*class].apart() {
            sums.entry((*node, *resource)).or_default().1 += u128::from(*amount);
        }
    }
    for (id, node) in state.nodes.iter() {
        // That these are right is looked at with what is used.
        for (resource, taken) in node.shared.taken() {
            if taken.leaving + taken.held > 0 {
                let sum = sums.entry((id, resource)).or_default();
                *sum = (sum.0 + taken.leaving, sum.1 + taken.held);
            }
        }
    }
    for (id, node) in state.nodes.iter() {
        for (resource, leaving, held) in node.coming() {
            let sum = sums.remove(&(id, resource)).unwrap_or_default();
            if sum != (leaving, held) {
                found.push(format!(
                    "I1: node {} counts {leaving} {} as leaving and {held} as held, the sums are \
                     {sum:?}",
                    node.name,
                    state.resource_names.name(resource)
                ));
            }
        }
    }
    let mut leaving: Vec<PodId> = state.holds.leaving().collect();
    leaving.retain(|pod| state.pods.get(*pod).is_none_or(|pod| !pod.leaving));
    if !leaving.is_empty() || sums.into_values().any(|sum| sum != (0, 0)) {
        found.push("I1: what is leaving or held is counted on no node".into());
    }
}

/// I3: gangs and members name each other, and each pod of ours is in one gang.
fn members(state: &ClusterState, found: &mut Vec<String>) {
    let mut listed: BTreeMap<PodId, u32> = BTreeMap::new();
    for (id, gang) in state.gangs.iter() {
        for member in &gang.members {
            *listed.entry(*member).or_insert(0) += 1;
            let own = state.pods.get(*member).and_then(|pod| pod.own.as_ref());
            if own.and_then(|own| own.gang) != Some(id) {
                found.push(format!(
                    "I3: gang {} lists a pod of another gang",
                    gang.name
                ));
            }
        }
    }
    for (id, pod) in state.pods.iter().filter(|(_, pod)| pod.own.is_some()) {
        if listed.get(&id) != Some(&1) {
            found.push(format!(
                "I3: pod {}/{} is not in exactly one gang",
                pod.namespace, pod.name
            ));
        }
    }
}

/// The minima by which protection is decided are those of the members as they are, except of gangs
/// whose change is noted.
fn minima(state: &ClusterState, found: &mut Vec<String>) {
    let mut kept: BTreeMap<GangId, Vec<&Minimum>> = BTreeMap::new();
    for minimum in state.minima.all() {
        kept.entry(minimum.gang).or_default().push(minimum);
    }
    kept.retain(|gang, _| !state.minima.is_changed(*gang));
    for (id, gang) in state.gangs.iter() {
        let kept = kept.remove(&id).unwrap_or_default();
        if state.minima.is_changed(id) {
            continue;
        }
        if !minima_of(state, id).iter().map(|now| &**now).eq(kept) {
            found.push(format!("gang {} is kept with other minima", gang.name));
        }
    }
    if !kept.is_empty() {
        found.push(format!("minima are kept of gangs {:?}", kept.keys()));
    }
}

/// The footprint that is kept of a gang is the sum over its members as they are now.
fn footprints(state: &ClusterState, found: &mut Vec<String>) {
    for (id, gang) in state.gangs.iter() {
        let kept = state.footprints.kept(id);
        if kept.is_some() && kept != state.sum_up(id).as_ref() {
            found.push(format!("gang {} is kept with another footprint", gang.name));
        }
    }
}

/// I8: what queues count as wanted and as allocated is the sum over the accounts of members.
fn accounts(state: &ClusterState, found: &mut Vec<String>) {
    let mut allocated: BTreeMap<(QueueId, GovernedId), u128> = BTreeMap::new();
    let mut wanted: BTreeMap<(QueueId, GovernedId), u128> = BTreeMap::new();
    for (_, pod) in state.pods.iter() {
        let account = pod.own.as_ref().and_then(|own| own.account.as_ref());
        let Some(account) = account else {
            if is_unpaid(state, pod) {
                found.push(format!(
                    "I8: pod {}/{} is on its way and no queue pays for it",
                    pod.namespace, pod.name
                ));
            }
            continue;
        };
        for (entry, amount) in state.demand(pod.class, None) {
            *wanted.entry((account.queue, entry)).or_insert(0) += u128::from(amount);
        }
        if account.allocated != pod.stage.node().is_some()
            || account.leaving != (pod.leaving && account.allocated)
        {
            found.push(format!(
                "I8: pod {}/{} is booked wrongly",
                pod.namespace, pod.name
            ));
        }
        for queue in state.queues.path(account.queue) {
            let stays = account.allocated && !account.leaving;
            for (entry, amount) in account.demand.iter().filter(|_| stays) {
                *allocated.entry((queue, *entry)).or_insert(0) += u128::from(*amount);
            }
        }
    }
    booked_holds(state, &mut allocated);
    for queue in state.queues.ids() {
        for (entry, amount) in state.queues.wanted(queue) {
            let sum = wanted.remove(&(queue, entry)).unwrap_or(0);
            if sum != amount {
                found.push(format!(
                    "I8: queue {} wants {amount} of {}, its members ask for {sum}",
                    state.queues.name(queue),
                    state.queues.governed_name(entry)
                ));
            }
        }
        for (entry, amount) in state.queues.allocated(queue) {
            let sum = saturated(allocated.remove(&(queue, entry)).unwrap_or(0));
            if sum != amount {
                found.push(format!(
                    "I8: queue {} counts {amount} of {}, its members hold {sum}",
                    state.queues.name(queue),
                    state.queues.governed_name(entry)
                ));
            }
        }
    }
    for ((queue, entry), sum) in wanted.into_iter().filter(|(_, sum)| *sum > 0) {
        found.push(format!(
            "I8: queue {} does not want {sum} of {}",
            state.queues.name(queue),
            state.queues.governed_name(entry)
        ));
    }
    for ((queue, entry), sum) in allocated.into_iter().filter(|(_, sum)| *sum > 0) {
        found.push(format!(
            "I8: queue {} does not count {sum} of {}",
            state.queues.name(queue),
            state.queues.governed_name(entry)
        ));
    }
}

/// I8: what is divided is cut no coarser than what pods count for and what queues are promised.
fn grains(state: &ClusterState, found: &mut Vec<String>) {
    for (_, pod) in state.pods.iter() {
        let account = pod.own.as_ref().and_then(|own| own.account.as_ref());
        let demand = account.map_or(&[][..], |account| &account.demand);
        for (entry, amount) in demand {
            if state.queues.is_cut_off(*entry, *amount) {
                found.push(format!(
                    "I8: shares of {} are cut coarser than the {amount} of pod {}/{}",
                    state.queues.governed_name(*entry),
                    pod.namespace,
                    pod.name
                ));
            }
        }
    }
    for entry in state.queues.wrong_promises() {
        found.push(format!(
            "I8: shares of {} are cut coarser than what a queue is promised",
            state.queues.governed_name(entry)
        ));
    }
}

/// I8: no node that shares its cards adds more GPUs to what is divided than it has cards.
fn cards_added(state: &ClusterState, found: &mut Vec<String>) {
    for (id, node) in state.nodes.iter() {
        let known = node.known.as_ref();
        let cards = known.map_or(0, |known| known.facts.cards.len());
        let added = state.capacity.gpus_of(id);
        if cards > 0 && added > CARD * cards as Amount {
            found.push(format!(
                "I8: node {} adds {added} thousandths of GPUs to what is divided, and has {cards} \
                 cards",
                node.name
            ));
        }
    }
}

/// Adds what is booked for holds, up to the root.
fn booked_holds(state: &ClusterState, allocated: &mut BTreeMap<(QueueId, GovernedId), u128>) {
    for (queue, demand) in state.holds.iter().filter_map(|hold| hold.booked.as_ref()) {
        for queue in state.queues.path(*queue) {
            for (entry, amount) in demand {
                *allocated.entry((queue, *entry)).or_insert(0) += u128::from(*amount);
            }
        }
    }
}

/// I8: the reaches of classes and the contributions of nodes to the capacity are right.
fn reaches(state: &ClusterState, found: &mut Vec<String>) {
    for class in state.wrong_reaches() {
        found.push(format!(
            "I8: class {class} knows wrongly on which models it can run"
        ));
    }
    for node in state.wrong_contributions() {
        found.push(format!(
            "I8: node {node} adds a wrong amount to what is divided"
        ));
    }
}

/// Whether a pod takes room by our decision and counts in no queue, although its queue exists.
fn is_unpaid(state: &ClusterState, pod: &Pod) -> bool {
    let gang = pod.gang();
    let settled = gang.filter(|gang| !state.touched.contains(gang));
    let queue = settled.and_then(|gang| state.queues.find(&state.gangs[gang].spec.queue));
    matches!(pod.stage, Stage::Assumed(_)) && queue.is_some()
}

/// Each node that is free as a whole is counted in its domain, and has its domain's openness.
fn free_nodes(state: &ClusterState, found: &mut Vec<String>) {
    for (id, node) in state.nodes.iter() {
        let domain = state.free_domain(id);
        if state.free_nodes.counted_in(id) != domain {
            found.push(format!("node {} counts in a wrong domain", node.name));
        }
        let fresh = domain.is_none_or(|domain| !state.free_nodes.is_stale(domain));
        let openness = domain.map_or(0, |domain| state.free_nodes.openness(domain));
        if fresh && node.openness != openness {
            found.push(format!("node {} stands at a wrong place", node.name));
        }
    }
    for (domain, nodes) in state.free_nodes.iter() {
        let counted = |id: &NodeId| state.free_nodes.counted_in(*id) == Some(domain);
        if !nodes.iter().all(counted) {
            found.push("a domain counts a node that is elsewhere".into());
        }
    }
}

/// The tables of classes agree with the nodes.
fn tables(state: &ClusterState, found: &mut Vec<String>) {
    let wrong = state.wrong_tallies();
    if wrong > 0 {
        found.push(format!("{wrong} counts of pods by domain are wrong"));
    }
    for pod in state.pods_with_stale_claims() {
        found.push(format!(
            "pod {pod} is not judged by what its claims ask for"
        ));
    }
    for (id, class) in state.classes.iter() {
        let is_offered = state.offered.has(&class.shape.requests, &class.models);
        if state.offered.is_told() && class.is_offered != is_offered {
            found.push("a class does not know whether nodes have what it asks for".into());
        }
        let Some(table) = class.table.as_ref() else {
            continue;
        };
        if table.cursor != state.changes.end() || table.relation_stamp != state.relation_stamp(id) {
            continue;
        }
        let (view, searched) = (state.view_anew(id), state.lanes.searched(id));
        let mut total = 0u64;
        for (id, node) in state.nodes.iter() {
            let fits = if table.is_eligible(id) {
                let most = view.as_ref().map_or(u32::MAX, |view| view.room(id));
                node.multiplicity(class).min(most)
            } else {
                0
            };
            total += u64::from(fits);
            if table.count(id) != fits {
                found.push(format!(
                    "a table counts {} on node {}, {fits} fit",
                    table.count(id),
                    node.name
                ));
            }
            if fits > 0 && searched.passes(node) {
                let name = &node.name;
                found.push(format!(
                    "searches begin behind node {name}, where {fits} fit"
                ));
            }
        }
        if total != table.total {
            found.push(format!(
                "a table counts {} in all, {total} fit",
                table.total
            ));
        }
    }
}
