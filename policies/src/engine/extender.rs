//! The engine as an extender of kube-scheduler: which nodes a pod may have, in which order, whom
//! kube-scheduler may evict, and binds that it asks for.
//!
//! ```text
//!  filter_nodes, score_nodes, allow_victims: questions, which change nothing
//!  Event::BindAsked --phase 4--> judged once more --fits--> placed, as a gang in its turn is
//!                                                 --else--> nothing; bind_answer says why
//! ```
//!
//! A *planned* pod has its place before kube-scheduler looks at it: of it every question has the
//! answer that it may have this node, and nothing else.
//!
//! A question may be old when its answer is used: between it and the bind, other pods take room.
//! So a bind is judged anew, when the engine alone decides, and queues never exceed their limits.

use crate::engine::Engine;
use crate::extender::{BindAnswer, NodeAnswer, SCORE_MAX, Unanswered};
use crate::facts::{GANG_GATE, Placement, Uid, UnixMs};
use crate::gangs::counts::count;
use crate::gangs::wait::Wait;
use crate::gangs::{demand, judge, request};
use crate::ids::{GangId, NodeId, PodId};
use crate::place::{Request, Scope, in_order, widest_scope};
use crate::plan::bounds;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::state::pod::{Pod, Stage};
use crate::tell::{bound_in_words, reports};
use crate::txn::Txn;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;

impl Engine {
    /// What each of these nodes is for a pod of kube-scheduler, in the order of the nodes. Of a pod
    /// that is not extended only room counts, so that it takes none that is held for others.
    ///
    /// # Errors
    /// The engine does not decide now, or does not know the pod.
    pub fn filter_nodes(
        &mut self,
        pod: Uid,
        nodes: &[Box<str>],
    ) -> Result<Vec<NodeAnswer>, Unanswered> {
        let pod = self.asked_pod(pod)?;
        if self.state.pods[pod].is_planned() {
            let nodes = nodes.iter();
            return Ok(nodes.map(|node| self.planned_answer(pod, node)).collect());
        }
        let nodes = self.state.nodes_named(nodes);
        Ok(self.without_own_hold(pod, |engine| engine.judge_nodes(pod, &nodes)))
    }

    /// The scores of these nodes for a pod of kube-scheduler, from 0 to [`SCORE_MAX`], by the
    /// placement of its queue: the better a node, the higher. Nodes on which the pod does not fit
    /// get 0, as all do for a pod that is planned or not extended.
    ///
    /// # Errors
    /// The engine does not decide now, or does not know the pod.
    pub fn score_nodes(&mut self, pod: Uid, nodes: &[Box<str>]) -> Result<Vec<u8>, Unanswered> {
        let pod = self.asked_pod(pod)?;
        let nodes = self.state.nodes_named(nodes);
        Ok(self.without_own_hold(pod, |engine| engine.rank_nodes(pod, &nodes)))
    }

    /// Whether kube-scheduler may evict each of these groups of pods for a pod of its own. Of pods
    /// of ours it may evict only whole gangs, or what they have beyond their minima, that are
    /// preemptible; for an extended pod, only pods of the pod's own queue; for a planned pod, none.
    ///
    /// # Errors
    /// The engine does not decide now, or does not know the pod.
    pub fn allow_victims(&self, pod: Uid, victims: &[Vec<Uid>]) -> Result<Vec<bool>, Unanswered> {
        let pod = self.asked_pod(pod)?;
        if self.state.pods[pod].is_planned() {
            return Ok(victims.iter().map(|_| false).collect());
        }
        let allow = |victims: &Vec<Uid>| self.may_be_evicted(pod, victims);
        Ok(victims.iter().map(allow).collect())
    }

    /// The outcome of a bind that was asked for: the pod is bound to the node, may still be, or
    /// will not be.
    ///
    /// # Errors
    /// The engine does not decide now, or does not know the pod.
    pub fn bind_answer(&mut self, pod: Uid, node: &str) -> Result<BindAnswer, Unanswered> {
        let id = self.asked_pod(pod)?;
        let pod = &self.state.pods[id];
        let is_asked = |at: NodeId| *self.state.nodes[at].name == *node;
        let refused = |why: &str| Ok(BindAnswer::Refused(why.into()));
        match pod.stage {
            Stage::Bound(at) if is_asked(at) => return Ok(BindAnswer::Bound),
            Stage::Assumed(at) if is_asked(at) => return Ok(BindAnswer::UnderWay),
            Stage::Bound(_) | Stage::Assumed(_) => return refused("the pod has another node"),
            Stage::Ended { .. } => return refused("the pod has ended"),
            Stage::Waiting if pod.deleting => return refused("the pod is being deleted"),
            Stage::Waiting => {}
        }
        let Some(own) = pod.own.as_ref() else {
            // It is bound as it was asked, and the watch will tell.
            return Ok(BindAnswer::UnderWay);
        };
        if let Some(failure) = own.failure.as_deref().filter(|_| own.extended) {
            return refused(failure);
        }
        let answers = self.filter_nodes(self.state.pods[id].uid, &[node.into()])?;
        match answers.into_iter().next() {
            Some(NodeAnswer::Refused(why) | NodeAnswer::Hopeless(why)) => {
                Ok(BindAnswer::Refused(why))
            }
            Some(NodeAnswer::Fits) | None => refused("the bind came to nothing; ask again"),
        }
    }

    fn asked_pod(&self, uid: Uid) -> Result<PodId, Unanswered> {
        if !self.is_synced() || !self.is_leader() {
            return Err(Unanswered::NotLeading);
        }
        let pod = self.state.pod_ids.get(&uid);
        pod.copied().ok_or(Unanswered::PodNotSeen)
    }

    /// Answers a question as if nothing was held for a pod.
    fn without_own_hold<T>(&mut self, pod: PodId, answer: impl FnOnce(&mut Self) -> T) -> T {
        self.what_if(|engine| {
            let mut txn = Txn::default();
            let begin = txn.checkpoint();
            give_up_own(&mut engine.state, &mut txn, pod);
            let answer = answer(engine);
            txn.rollback(&mut engine.state, begin);
            answer
        })
    }

    /// What a node is for a planned pod.
    fn planned_answer(&self, pod: PodId, node: &str) -> NodeAnswer {
        let why = match self.state.node_of(pod) {
            Some(planned) if *self.state.nodes[planned].name == *node => return NodeAnswer::Fits,
            Some(_) => "gpu-batch has planned the pod for another node",
            None => "gpu-batch has no place for the pod's gang now",
        };
        NodeAnswer::Hopeless(why.into())
    }

    fn judge_nodes(&mut self, pod: PodId, nodes: &[Option<NodeId>]) -> Vec<NodeAnswer> {
        let request = match self.request_of(pod) {
            Ok(request) => request,
            Err(why) => {
                return nodes
                    .iter()
                    .map(|_| NodeAnswer::Hopeless(why.clone()))
                    .collect();
            }
        };
        let class = self.state.pods[pod].class;
        self.state.refresh(class);
        let view = self.state.view(class);
        let request = request.as_ref();
        let scope = request.map_or(Scope::Cluster, |request| {
            let root = request.root();
            widest_scope(&self.state, root.near, root.anchor)
        });
        let judge = |node: &Option<NodeId>| {
            let Some(node) = *node else {
                return NodeAnswer::Hopeless("gpu-batch has not seen the node".into());
            };
            // What a pod says that is not extended is read in part, so only its room is judged.
            let why_not = match request {
                None => reports::too_little_on(&self.state, class, node),
                Some(_) if self.state.fits_on(class, node) > 0 => None,
                Some(_) => reports::why_not_on(&self.state, class, view.as_ref(), node),
            };
            if let Some(why) = why_not {
                return NodeAnswer::Refused(why.into());
            }
            if !scope.holds(&self.state, node) {
                let why = "outside of the domain in which the other members of its gang are";
                return NodeAnswer::Hopeless(why.into());
            }
            if request.is_some_and(|it| it.model_allows(&self.state, class, node) == 0) {
                let why = "a limit of its queue on the GPU model would be exceeded";
                return NodeAnswer::Hopeless(why.into());
            }
            NodeAnswer::Fits
        };
        nodes.iter().map(judge).collect()
    }

    fn rank_nodes(&mut self, pod: PodId, nodes: &[Option<NodeId>]) -> Vec<u8> {
        if !self.state.pods[pod].is_chosen_by_kube_scheduler() {
            return nodes.iter().map(|_| 0).collect();
        }
        let class = self.state.pods[pod].class;
        let placement = self.placement_of(pod);
        let asked: BTreeSet<NodeId> = nodes.iter().flatten().copied().collect();
        let order = in_order(&mut self.state, class, placement);
        let order: Vec<NodeId> = order.into_iter().filter(|it| asked.contains(it)).collect();
        let total = order.len();
        // The first node gets the best score, and the last one at least 1.
        let score = |rank: usize| usize::from(SCORE_MAX).saturating_sub(9 * rank / total.max(1));
        let ranks = order.iter().enumerate();
        let scores: BTreeMap<NodeId, u8> = ranks
            .map(|(rank, node)| (*node, u8::try_from(score(rank)).unwrap_or(SCORE_MAX)))
            .collect();
        let score = |node: &Option<NodeId>| node.and_then(|node| scores.get(&node).copied());
        nodes.iter().map(|node| score(node).unwrap_or(0)).collect()
    }

    /// The placement for a pod: of its queue, else of the settings.
    fn placement_of(&self, pod: PodId) -> Placement {
        let state = &self.state;
        let accelerated = state.classes[state.pods[pod].class].accelerated;
        let gang = state.pods[pod].gang();
        let of_queue = gang.and_then(|gang| {
            let queue = state.queues.find(&state.gangs[gang].spec.queue)?;
            Some(request::placement(state, &self.settings, gang, queue))
        });
        let of_settings = (self.settings.gpu_placement, self.settings.cpu_placement);
        let (gpu, cpu) = of_queue.unwrap_or(of_settings);
        if accelerated { gpu } else { cpu }
    }

    /// The request for an extended pod alone; `None`: the pod is not extended, and no queue is
    /// asked.
    ///
    /// # Errors
    /// Why the pod may have no node at all.
    fn request_of(&mut self, pod: PodId) -> Result<Option<Request>, Box<str>> {
        let record = &self.state.pods[pod];
        let Some(gang) = record
            .gang()
            .filter(|_| record.is_chosen_by_kube_scheduler())
        else {
            return Ok(None);
        };
        if let Some(why) = placed_whole(&self.state, gang) {
            return Err(why);
        }
        let (now_ms, counts) = (self.now_ms, count(&self.state, gang, self.now_ms));
        let (state, progress) = (&mut self.state, &self.progress);
        if let (Wait::Barred(verdict), _) = judge::judge(state, progress, gang, &counts, now_ms)
            && verdict.reason != Reason::WaitingForKubeScheduler
        {
            return Err(verdict.message.into());
        }
        let queue = judge::admit(&self.state, &self.progress, gang, &counts);
        let queue = queue.map_err(|verdict| verdict.message)?;
        let demand = demand::demand_of_pods(&self.state, [&pod].into_iter());
        if let Err(excess) = bounds::within_bounds(&self.state, gang, queue, &demand) {
            return Err(bound_in_words(&self.state.queues, &excess).into());
        }
        let pods = Vec::from([pod]);
        Ok(Some(request::request(
            &self.state,
            &self.settings,
            gang,
            queue,
            pods,
            1,
        )))
    }

    fn may_be_evicted(&self, pod: PodId, victims: &[Uid]) -> bool {
        let state = &self.state;
        let mut by_gang: BTreeMap<GangId, u32> = BTreeMap::new();
        for uid in victims {
            // Of pods of others, and of pods that are gone, kube-scheduler knows best.
            let victim = state.pod_ids.get(uid).map(|id| &state.pods[*id]);
            if let Some(gang) = victim.and_then(Pod::gang) {
                *by_gang.entry(gang).or_insert(0) += 1;
            }
        }
        let asker = state.pods[pod]
            .gang()
            .filter(|_| state.pods[pod].is_chosen_by_kube_scheduler());
        by_gang.into_iter().all(|(id, leaving)| {
            let gang = &state.gangs[id];
            let counts = count(state, id, self.now_ms);
            let have = counts.bound + counts.assumed;
            let stays_whole = have.saturating_sub(leaving) >= gang.spec.minimum;
            let of_queue = asker.is_none_or(|by| state.gangs[by].spec.queue == gang.spec.queue);
            let is_apart = gang.tree().is_none() && stays_whole;
            gang.spec.preemptible && of_queue && (leaving >= have || is_apart)
        })
    }

    /// Binds the pods that kube-scheduler has asked to bind since the last step, as far as their
    /// queues and nodes have room for them. An engine that is to stop binds only those that it has
    /// given places before: they may be what is left of a gang.
    pub(super) fn take_asked_binds(&mut self, now_ms: UnixMs) {
        for (uid, node) in core::mem::take(&mut self.asked_binds) {
            let Ok(pod) = self.asked_pod(uid) else {
                continue;
            };
            let record = &self.state.pods[pod];
            if record.is_planned() {
                if self.planned_answer(pod, &node) == NodeAnswer::Fits {
                    self.binder.bind_asked(uid);
                }
                continue;
            }
            if self.leader.stopping {
                continue;
            }
            if record.stage != Stage::Waiting || record.deleting {
                continue;
            }
            let Some(gang) = record.gang() else {
                let deadline_ms = now_ms.saturating_add(self.settings.request_deadline_ms);
                self.binder
                    .bind_for_others(&self.state, pod, &node, deadline_ms);
                continue;
            };
            if record.is_chosen_by_kube_scheduler() {
                self.in_hand(gang, |engine| {
                    engine.bind_extended(pod, gang, &node, now_ms);
                });
            }
        }
    }

    fn bind_extended(&mut self, pod: PodId, gang: GangId, node: &str, now_ms: UnixMs) {
        if let Some(own) = &mut self.state.pods[pod].own {
            own.failure = None;
        }
        let node = self.state.nodes_named(&[node.into()]);
        let mut txn = Txn::default();
        let begin = txn.checkpoint();
        give_up_own(&mut self.state, &mut txn, pod);
        // tests plant bugs here: asked-bind
        let answers = self.judge_nodes(pod, &node);
        let ([NodeAnswer::Fits], [Some(node)]) = (answers.as_slice(), node.as_slice()) else {
            txn.rollback(&mut self.state, begin);
            return;
        };
        let placement = self.placement_of(pod);
        txn.place(&mut self.state, pod, *node, placement);
        let placed = txn.commit(&mut self.state);
        let record = &self.state.pods[pod];
        // The pod has taken the room to which kube-scheduler had nominated it.
        self.state
            .end_hold(Holder::Foreign(record.priority, record.uid));
        self.begin(gang, &placed, now_ms);
    }
}

/// Gives up what is held for a pod and its gang.
fn give_up_own(state: &mut ClusterState, txn: &mut Txn, pod: PodId) {
    let record = &state.pods[pod];
    let (gang, holder) = (record.gang(), Holder::Foreign(record.priority, record.uid));
    if let Some(gang) = gang {
        txn.give_up_own(state, gang);
    }
    txn.give_up(state, holder);
}

/// Why no pod of a gang is placed by itself; `None`: the gang is of one pod.
fn placed_whole(state: &ClusterState, gang: GangId) -> Option<Box<str>> {
    let gang = &state.gangs[gang];
    (gang.spec.minimum > 1 || gang.tree().is_some()).then(|| {
        let name = &gang.name;
        let why = format!(
            "gang {name} is placed whole, for which its pods need the scheduling gate {GANG_GATE} \
             or the schedulerName of gpu-batch"
        );
        why.into()
    })
}
