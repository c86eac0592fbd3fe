//! The planning loop: whose turn it is, and whether there is a place.

use super::Engine;
use super::counts::{Counts, count};
use crate::explain;
use crate::facts::{Amount, Placement, TopologyRequest, UnixMs};
use crate::ids::{ClassId, DomainId, GangId, NodeId, PodId};
use crate::place::{Group, Memo, Near, Refusal, Request, only_limits_refuse, place};
use crate::queues::{Demand, Excess, GovernedId, QueueId};
use crate::reason::Reason;
use crate::state::gang::{Shortfall, Verdict, Wait, Wake};
use crate::state::pod::{Pod, Stage};
use crate::state::topologies::DEFAULT_TOPOLOGY;
use crate::topology::Level;
use crate::txn::{Checkpoint, Txn};
use alloc::{format, string::String, vec::Vec};
use core::cmp::Reverse;
use smallvec::SmallVec;

/// How much work one step does, in units of about ten nanoseconds, before it lets events in again.
const SLICE_WORK: u64 = 200_000;

impl Engine {
    /// Tries the gangs whose turn it is, until none is left or the slice is used up. Whether it was
    /// used up.
    pub(crate) fn plan(&mut self, now_ms: UnixMs) -> bool {
        let mut work = 0;
        while work < SLICE_WORK {
            work += 100;
            let before_all = self.agenda.first_unfinished();
            if let Some((queue, gang)) = before_all.or_else(|| self.searching()) {
                self.in_hand(gang, |engine| {
                    engine.attempt(gang, queue, now_ms, &mut work);
                });
                continue;
            }
            let line_up = self.line_up(&mut work);
            let Some(queue) = self.state.queues.next_leaf(line_up) else {
                self.forget_freed();
                return false;
            };
            match self.agenda.head(line_up, queue) {
                Some((_, Some(shortfall))) if !self.agenda.is_over(&mut self.state, shortfall) => {}
                Some((gang, _)) => self.in_hand(gang, |engine| {
                    engine.attempt(gang, queue, now_ms, &mut work);
                }),
                None => self.show_head(line_up, queue),
            }
        }
        true
    }

    /// What the pods ask for that the gang wants to place next. The order of queues is by what it
    /// is at [`UnixMs::MAX`]: it does not change while the gang waits.
    pub(crate) fn demand_of(&self, id: GangId, queue: QueueId, now_ms: UnixMs) -> Demand {
        if self.state.gangs[id].tree().is_some() {
            let pods = self.next_of_sub_groups(id, queue, now_ms);
            return self.demand_of_pods(pods.iter());
        }
        let gang = &self.state.gangs[id];
        // Most gangs are of one.
        if let [only] = gang.members.as_slice() {
            let may_be_placed = self
                .state
                .may_be_placed(gang, &self.state.pods[*only], now_ms);
            return self.demand_of_pods(Some(only).filter(|_| may_be_placed).into_iter());
        }
        let need = count(&self.state, id, now_ms).needed.max(1);
        let pods = self.waiting_pods(id, now_ms);
        self.demand_of_pods(pods.iter().take(need as usize))
    }

    pub(crate) fn demand_of_pods<'a>(&self, pods: impl Iterator<Item = &'a PodId>) -> Demand {
        let mut by_class: SmallVec<[(ClassId, u64); 2]> = SmallVec::new();
        for pod in pods {
            let class = self.state.pods[*pod].class;
            match by_class.iter_mut().find(|(known, _)| *known == class) {
                Some((_, pods)) => *pods += 1,
                None => by_class.push((class, 1)),
            }
        }
        let times = |(class, pods): (ClassId, u64)| {
            let mut demand = self.state.demand(class, None);
            for (_, amount) in &mut demand {
                *amount = amount.saturating_mul(pods);
            }
            demand
        };
        let mut by_class = by_class.into_iter().map(times);
        let mut sum = by_class.next().unwrap_or_default();
        for demand in by_class {
            for (entry, amount) in demand {
                match sum.iter_mut().find(|(known, _)| *known == entry) {
                    Some((_, total)) => *total = total.saturating_add(amount),
                    None => sum.push((entry, amount)),
                }
            }
        }
        sum.sort_unstable_by_key(|(entry, _)| *entry);
        sum
    }

    /// The pods of a gang that may be placed, in the order in which they are taken.
    pub(crate) fn waiting_pods(&self, id: GangId, now_ms: UnixMs) -> Vec<PodId> {
        let gang = &self.state.gangs[id];
        let placeable = |pod: &&PodId| {
            self.state
                .may_be_placed(gang, &self.state.pods[**pod], now_ms)
        };
        let mut pods: Vec<PodId> = gang.members.iter().filter(placeable).copied().collect();
        let key = |pod: &PodId| {
            let pod = &self.state.pods[*pod];
            (Reverse(pod.priority), pod.created_ms)
        };
        pods.sort_by(|a, b| {
            key(a)
                .cmp(&key(b))
                .then_with(|| self.state.pods[*a].name.cmp(&self.state.pods[*b].name))
        });
        pods
    }

    /// Tries one gang: its minimum, or one more of its surplus. Its search may need more slices.
    fn attempt(&mut self, id: GangId, queue: QueueId, now_ms: UnixMs, work: &mut u64) {
        #[cfg(feature = "planted-panic")]
        self.spring_planted_panic(id);
        let counts = count(&self.state, id, now_ms);
        let mut search = self.begin_slice(id, queue, &counts, now_ms);
        let result = self.try_place(id, queue, &counts, now_ms, &mut search.memo, work);
        self.charge_search(&mut search);
        if result.is_err() && search.memo.is_interrupted() {
            self.keep_search(search, queue, &counts, now_ms);
            *work = SLICE_WORK.max(*work);
            return;
        }
        match result {
            Ok(placed) => {
                self.leave_agenda(id);
                for (pod, _) in placed {
                    self.start_binding(pod);
                }
                self.review.note();
                self.state.gangs[id].wait = Wait::Nothing;
                self.assess_as_specified(id, now_ms);
            }
            Err((verdict, wake)) => {
                self.state.gangs[id].tried = self.fingerprint(id, &counts);
                self.note_refusal(id, &search, (&verdict, &wake));
                self.park(id, verdict, wake);
                self.follow_unfinished(id, &counts, now_ms);
                self.report(id, &counts);
            }
        }
        self.assess_touched(now_ms);
    }

    fn try_place(
        &mut self,
        id: GangId,
        queue: QueueId,
        counts: &Counts,
        now_ms: UnixMs,
        memo: &mut Memo,
        work: &mut u64,
    ) -> Result<Vec<(PodId, NodeId)>, (Verdict, Wake)> {
        if self.state.gangs[id].tree().is_some() {
            return self.try_sub_groups(id, queue, counts, now_ms, memo, work);
        }
        let pods = self.waiting_pods(id, now_ms);
        let need = counts.needed.max(1) as usize;
        *work += 20 * pods.len() as u64;
        let first = self.demand_of_pods(pods.iter().take(need));
        if let Err((verdict, over)) = self.check_queue(id, queue, &first) {
            if pods.len() == need {
                return Err((verdict, Wake::Over(over.into())));
            }
            return self.try_selections(id, queue, (pods, need), counts, memo, work);
        }
        let mut request = self.request(id, queue, pods, need);
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        match place(&mut self.state, &mut txn, &mut request, memo, work) {
            Ok(()) => {}
            Err(refusal) => return Err(self.explain_refusal(id, &mut request, counts, &refusal)),
        }
        // Of one shape, all ask for the same.
        let checked = request.groups.len() == 1;
        if checked || self.keeps_to_queue((id, queue), &request, &first, start, &mut txn) {
            return Ok(txn.commit());
        }
        // Others than those that were checked found a place, and are too many for the queue.
        let pods = self.waiting_pods(id, now_ms);
        self.try_selections(id, queue, (pods, need), counts, memo, work)
    }

    /// Whether the queue has room for the members that were placed, which may be others than those
    /// whose demand was checked. If not, nothing is placed any more.
    pub(crate) fn keeps_to_queue(
        &mut self,
        (id, queue): (GangId, QueueId),
        request: &Request,
        checked: &Demand,
        start: Checkpoint,
        txn: &mut Txn,
    ) -> bool {
        let placed = txn.placed().to_vec();
        let demand = self.demand_of_pods(placed.iter().map(|(pod, _)| pod));
        if demand == *checked {
            return true;
        }
        // The members that are placed are charged already: the queue is checked without them.
        txn.rollback(&mut self.state, start);
        if self.check_queue(id, queue, &demand).is_err() {
            return false;
        }
        for (pod, node) in placed {
            let placement = request.placement_of(&self.state, self.state.pods[pod].class);
            txn.place(&mut self.state, pod, node, placement);
        }
        true
    }

    /// Whether the queue has room for so much more of the gang.
    ///
    /// # Errors
    /// Why not, and the bound under which something must be released.
    pub(crate) fn check_queue(
        &self,
        id: GangId,
        queue: QueueId,
        demand: &Demand,
    ) -> Result<(), (Verdict, Excess)> {
        self.within_bounds(id, queue, demand).map_err(|over| {
            let message = self.state.queues.describe(&over);
            (Verdict::new(over.reason(), message), over)
        })
    }

    /// Whether no bound of the queue and those above it is exceeded by so much more of the gang.
    ///
    /// # Errors
    /// The bound that would be.
    pub(crate) fn within_bounds(
        &self,
        id: GangId,
        queue: QueueId,
        demand: &Demand,
    ) -> Result<(), Excess> {
        self.state
            .queues
            .room(queue, &self.under_limits(id, demand))?;
        if self.state.gangs[id].spec.preemptible {
            return Ok(());
        }
        self.state.queues.quota_room(queue, demand)
    }

    /// The part of a demand for which limits are checked before nodes are looked at. A model that
    /// the gang demands only because there are no other nodes for it is not part of it: limits on
    /// that model filter nodes, and new nodes help.
    fn under_limits(&self, id: GangId, demand: &Demand) -> Demand {
        let queues = &self.state.queues;
        let names = |key: GovernedId| {
            let members = self.state.gangs[id].members.iter();
            let mut classes = members.map(|pod| &self.state.classes[self.state.pods[*pod].class]);
            classes.any(|class| class.only_model().is_some() && class.confined.model == Some(key))
        };
        let counts = |(key, _): &&(GovernedId, Amount)| !queues.is_model(*key) || names(*key);
        demand.iter().filter(counts).copied().collect()
    }

    pub(crate) fn request(
        &self,
        id: GangId,
        queue: QueueId,
        pods: Vec<PodId>,
        need: usize,
    ) -> Request {
        let groups = self.by_size(pods);
        let occupied = self.occupied(id);
        // A resolved topology was checked when the gang was assessed; one that has gone since makes
        // the gang touched, and it is assessed before it is tried again.
        let near = self.resolve_topology_now(id);
        Request {
            groups,
            need,
            near,
            // tests plant bugs here: returning-member
            anchor: near.and_then(|near| self.anchor_among(&occupied, Some(near))),
            inside: Vec::new(),
            plain_only: false,
            model_limits: self.model_limits(queue),
            placement: self.placement(id, queue),
            occupied,
        }
    }

    /// The request for all members of a gang without sub-groups that wait, of which as many are
    /// needed as the gang lacks.
    pub(crate) fn request_of_waiting(
        &self,
        id: GangId,
        queue: QueueId,
        counts: &Counts,
    ) -> Request {
        let pods = self.waiting_pods(id, self.now_ms);
        self.request(id, queue, pods, counts.needed.max(1) as usize)
    }

    /// The pods by class, the largest class first.
    pub(crate) fn by_size(&self, pods: Vec<PodId>) -> Vec<Group> {
        let mut groups = self.by_class(pods);
        groups.sort_by_cached_key(|group| {
            let class = &self.state.classes[group.class];
            let amounts: Vec<_> = class
                .in_order
                .iter()
                .map(|(id, n)| (Reverse(self.state.resource_names.place(*id)), *n))
                .collect();
            (
                Reverse((class.gpus, class.cards)),
                Reverse(amounts),
                self.state.pods[group.pods[0]].name.clone(),
            )
        });
        groups
    }

    /// The pods by class, classes and pods in the order in which they come.
    pub(crate) fn by_class(&self, pods: Vec<PodId>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for pod in pods {
            let class = self.state.pods[pod].class;
            match groups.iter_mut().find(|group| group.class == class) {
                Some(group) => group.pods.push(pod),
                None => groups.push(Group {
                    class,
                    pods: Vec::from([pod]),
                }),
            }
        }
        groups
    }

    /// The nodes of the members that run or are being bound, by member name.
    fn occupied(&self, id: GangId) -> Vec<NodeId> {
        self.occupied_by(id, &|_| true)
    }

    /// The nodes of those of these members that `member` picks.
    pub(crate) fn occupied_by(&self, id: GangId, member: &dyn Fn(&Pod) -> bool) -> Vec<NodeId> {
        let held = |pod: &&PodId| {
            let pod = &self.state.pods[**pod];
            let held = matches!(pod.stage, Stage::Bound(_) | Stage::Assumed(_)) && !pod.deleting;
            held && member(pod)
        };
        let members = self.state.gangs[id].members.iter();
        let mut members: Vec<&PodId> = members.filter(held).collect();
        members.sort_by(|a, b| self.state.pods[**a].name.cmp(&self.state.pods[**b].name));
        // Where we put members counts, whatever another scheduler has added.
        let stranger = |pod: &&PodId| {
            let pod = &self.state.pods[**pod];
            let own = pod.own.as_ref();
            pod.stage.is_bound() && own.is_none_or(|own| own.bound_queue.is_none())
        };
        if !members.iter().all(stranger) {
            members.retain(|pod| !stranger(pod));
        }
        let nodes = members.iter().map(|pod| self.state.node_of(**pod));
        nodes.flatten().collect()
    }

    /// The node whose domains are those of the members that run.
    pub(crate) fn anchor(&self, id: GangId) -> Option<NodeId> {
        let occupied = self.occupied(id);
        if occupied.is_empty() {
            return None;
        }
        self.anchor_among(&occupied, self.resolve_topology_now(id))
    }

    /// The first of the nodes that is there; if they are in several of the domains of which one is
    /// required (nodes were labelled anew, say), the first in the one with most of them.
    pub(crate) fn anchor_among(&self, nodes: &[NodeId], near: Option<Near>) -> Option<NodeId> {
        let known = |node: &&NodeId| self.state.nodes[**node].known.is_some();
        let mut domains: Vec<(Option<DomainId>, NodeId, usize)> = Vec::new();
        for node in nodes.iter().filter(known) {
            let domain = near.and_then(|near| match near.required? {
                Level::Domain(level) => {
                    let topology = &self.state.topologies[near.topology];
                    topology.path(*node).get(level).copied()
                }
                Level::Node => None,
            });
            match domains.iter_mut().find(|(other, ..)| *other == domain) {
                Some((.., members)) => *members += 1,
                None => domains.push((domain, *node, 1)),
            }
        }
        domains.reverse();
        let most = domains.into_iter().max_by_key(|(.., members)| *members);
        most.map(|(_, node, _)| node)
    }

    /// Why nobody knows in which domain the gang must stay: all nodes of its members are gone. They
    /// may come back, with the same labels.
    pub(crate) fn domain_unknown(&self, id: GangId) -> Option<Verdict> {
        // tests plant bugs here: domain-unknown
        self.resolve_topology_now(id)?.required?;
        if self.anchor(id).is_some() {
            return None;
        }
        let node = &self.state.nodes[*self.occupied(id).first()?].name;
        let message = format!(
            "the domain of the members that run is not known while their node {node} is gone"
        );
        Some(Verdict {
            more_nodes_help: false,
            ..Verdict::new(Reason::DoesNotFit, message)
        })
    }

    /// The gang's own choice, else its queue's, else the configuration's.
    pub(crate) fn placement(&self, id: GangId, queue: QueueId) -> (Placement, Placement) {
        let own = self.state.gangs[id].spec.placement;
        let inherited = self.state.queues.placement(queue);
        (
            own.gpu
                .or(inherited.gpu)
                .unwrap_or(self.settings.gpu_placement),
            own.cpu
                .or(inherited.cpu)
                .unwrap_or(self.settings.cpu_placement),
        )
    }

    /// Makes sure that what the gang says of topology means something; makes the topology of a
    /// native group's label.
    pub(crate) fn resolve_topology(&mut self, id: GangId) -> Result<(), String> {
        let spec = &self.state.gangs[id].spec;
        if let Some(label) = spec.required_label.clone() {
            self.state.label_topology(&label);
            return Ok(());
        }
        let TopologyRequest {
            name,
            required,
            preferred,
        } = &spec.topology;
        if name.is_none() && required.is_none() && preferred.is_none() {
            return Ok(());
        }
        self.check_levels(&spec.topology)
    }

    /// Makes sure that a Topology and its levels exist.
    pub(crate) fn check_levels(&self, request: &TopologyRequest) -> Result<(), String> {
        let topology = &self.state.topologies[self.state.topology_of(request)?];
        for level in request.levels() {
            if topology.level(level).is_none() {
                let known: Vec<&str> = topology.levels.iter().map(|l| &*l.name).collect();
                let known: String = match known.as_slice() {
                    [] => "no level but node".into(),
                    known => format!("{} and node", known.join(", ")),
                };
                let name = request.name.as_deref().unwrap_or(DEFAULT_TOPOLOGY);
                return Err(format!(
                    "Topology {name:?} has no level {level:?}; it has {known}"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn resolve_topology_now(&self, id: GangId) -> Option<Near> {
        let spec = &self.state.gangs[id].spec;
        if let Some(label) = &spec.required_label {
            let topology = self.state.known_label_topology(label)?;
            return Some(Near {
                topology,
                required: Some(Level::Domain(0)),
                preferred: None,
                implied: false,
            });
        }
        self.near(&spec.topology)
    }

    /// A request for topology, if it means something.
    pub(crate) fn near(&self, request: &TopologyRequest) -> Option<Near> {
        let id = self.state.topology_of(request).ok()?;
        let topology = &self.state.topologies[id];
        let level = |name: Option<&str>| topology.level(name?);
        let required = level(request.required.as_deref());
        let mut preferred = level(request.preferred.as_deref());
        let implied = required.is_none() && preferred.is_none();
        if implied {
            // As near as the finest level.
            let finest = topology.levels.len().checked_sub(1)?;
            preferred = Some(Level::Domain(finest));
        }
        Some(Near {
            topology: id,
            required,
            preferred,
            implied,
        })
    }

    /// Puts a refusal into words, and says what must change before the gang is tried again.
    pub(crate) fn explain_refusal(
        &mut self,
        id: GangId,
        request: &mut Request,
        counts: &Counts,
        refusal: &Refusal,
    ) -> (Verdict, Wake) {
        let proved = refusal.is_proved();
        let limit = request
            .model_limits
            .filter(|_| request.is_limited(&self.state));
        let wake = match refusal.innermost() {
            // Under limits on GPU models there may be room where nothing has been freed.
            Refusal::TooFew {
                class, scope, need, ..
            } if limit.is_none() => Wake::Over(Shortfall::Room {
                class: *class,
                scope: *scope,
                need: *need,
            }),
            _ => {
                let classes = request.groups.iter().map(|group| group.class).collect();
                let limit = limit.and_then(|queue| self.state.queues.highest_model_limit(queue));
                Wake::AnyRoom(classes, limit)
            }
        };
        if only_limits_refuse(&mut self.state, request, refusal) {
            let message = explain::model_limits(&self.state, request, refusal);
            let verdict = Verdict {
                // Nodes of other models may take what the limits keep out.
                more_nodes_help: self.more_nodes_would_help(request, refusal),
                ..Verdict::new(Reason::OverLimit, message)
            };
            return (verdict, wake);
        }
        let lost = counts.needed > 0 && self.state.gangs[id].lost_ms.is_some();
        let reason = match (lost, proved) {
            (true, _) => Reason::MembersLost,
            (false, true) => Reason::DoesNotFit,
            (false, false) => Reason::NotFoundWithinBound,
        };
        // Counting over all nodes for a sentence that nobody reads would cost more than the rest.
        let message = if self.outbox.writes_statuses() {
            explain::refusal(&mut self.state, request, refusal, counts.needed == 0)
        } else {
            String::new()
        };
        let counted = matches!(refusal.innermost(), Refusal::TooFew { .. });
        let verdict = Verdict {
            reason,
            message,
            counted,
            more_nodes_help: self.more_nodes_would_help(request, refusal),
        };
        (verdict, wake)
    }
}
