//! Volumes are made or kept for the claims of a gang before any of its members is bound.
//!
//! ```text
//! Preparing: each claim without a volume is told the node of its pod, or a free volume that the
//!    |       node reaches is kept for it
//!    +--every claim of every member has its volume--------> Queued
//!    +--the node is not selected any more, a claim, a
//!       volume or the node is lost, Refused, or it takes
//!       too long------------------------------------------> the place is given up, and what was
//!                                                           selected for it is taken back
//! Queued: a volume is lost before the bind is sent, or sent again -> the place is given up
//! ```
//!
//! The provisioner of a claim hears by the annotation `selected-node` where the volume is to be,
//! and takes the annotation away if it can make none there. A volume that exists is kept for a
//! claim by its `claimRef`, and Kubernetes binds the two. All members wait for the volumes of all,
//! so that no part of a gang begins alone. Claims that have got their volumes keep them: the gang
//! is placed near them when it is tried again.
//!
//! kube-scheduler has the volumes made of pods that it asks to bind, so these are not prepared.
//!
//! Source: `BindPodVolumes` of the plugin VolumeBinding, which waits for 10 minutes, too.

use super::{Step, assumed, gang_members, pause_ms};
use crate::bind::Binder;
use crate::bind::outbox::Flight;
use crate::bind::timers::Timer;
use crate::command::{Action, KeepVolume, SelectNode};
use crate::event::Outcome;
use crate::facts::{ClaimFacts, ClaimReference, Uid, UnixMs};
use crate::gangs::progress::Progress;
use crate::ids::{ById, GangId, NodeId, PodId};
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::state::pod::Stage;
use crate::state::storage::{Named, OpenClaim};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// How long the volumes of a pod may take.
const PREPARING_MS: u64 = 600_000;

/// Pods that wait for volumes, and the requests about nodes of their claims.
#[derive(Debug, Default)]
pub(in crate::bind) struct Preparations {
    /// Pods whose gang waits for volumes.
    pods: BTreeSet<Uid>,
    /// Claims that were told a node, for a pod.
    selections: BTreeMap<Uid, Selection>,
    /// Claims of which a request is under way. Of two requests the one that arrives last would
    /// count.
    busy: BTreeSet<Uid>,
    /// Claims that are to forget the node which they were told, or to lose the volume that is kept
    /// for them.
    unselected: VecDeque<Unselection>,
    /// Claims of which the volume is to be freed once the watch tells that it is kept for them.
    unseen: Vec<Unselection>,
    /// Claims of which a request to free the volume is under way.
    freeing: BTreeMap<Uid, Unselection>,
}

/// A claim that was told a node, or for which a volume was kept.
#[derive(Debug)]
struct Selection {
    /// The pod for which the claim was told the node, or the volume was kept.
    pod: Uid,
    claim: Named,
    /// The volume; `None`: the claim was told a node.
    volume: Option<Box<str>>,
    /// The API server has the node, or has the claim on the volume.
    is_told: bool,
    /// The watch has told of the node, or of the claim on the volume, since.
    is_seen: bool,
}

/// A selection that is to be taken back.
#[derive(Debug)]
struct Unselection {
    claim: Named,
    uid: Uid,
    /// The volume; `None`: the claim was told a node.
    volume: Option<Box<str>>,
    /// The version of the volume of which the API server was asked to free it last.
    asked_of: Option<Box<str>>,
}

impl Binder {
    /// The first step of the bindings of these pods, which were placed together, if any of them
    /// needs a volume that is not bound yet.
    pub(super) fn begin_preparing(
        &mut self,
        state: &mut ClusterState,
        placed: &[(PodId, NodeId)],
        now_ms: UnixMs,
    ) -> Option<Step> {
        let (first, _) = placed.first()?;
        let is_open = |(pod, _): &(PodId, NodeId)| state.has_open_claims(*pod);
        if !placed.iter().any(is_open) && !self.is_begun(state, *first) {
            return None;
        }
        state.choose_volumes(placed);
        let until_ms = now_ms.saturating_add(PREPARING_MS);
        let placed = placed.iter().map(|(pod, _)| *pod);
        let not_planned: Vec<PodId> = placed
            .filter(|pod| !state.pods[*pod].is_planned())
            .collect();
        for pod in not_planned {
            let uid = state.pods[pod].uid;
            self.preparations.pods.insert(uid);
            self.timers.set(until_ms, Timer::Binding(uid));
            note_preparing(state, pod);
            self.tell_failure(state, uid);
        }
        Some(Step::Preparing(until_ms))
    }

    /// Whether members of a pod's gang wait for volumes, and none is on a node yet: surplus must
    /// not begin before them.
    fn is_begun(&self, state: &ClusterState, pod: PodId) -> bool {
        if self.preparations.pods.is_empty() {
            return false;
        }
        let members = gang_members(state, state.pods[pod].uid);
        let mut stages = members.iter().map(|member| &state.pods[*member].stage);
        !stages.any(|stage| matches!(stage, Stage::Bound(_)))
            && members
                .iter()
                .any(|member| self.preparations.pods.contains(&state.pods[*member].uid))
    }

    /// Tells the next claim of a pod the node of the pod, or keeps a volume for it.
    pub(super) fn send_selection(&mut self, state: &ClusterState, uid: Uid, deadline_ms: UnixMs) {
        let Some((_, node)) = assumed(state, uid) else {
            return;
        };
        let pod = state.pod_ids[&uid];
        // What is lost is noticed when the events are followed.
        let open = state.open_claims(pod, node).unwrap_or_default();
        let unselected = open.into_iter().filter(|claim| self.is_to_be_told(claim));
        let unselected: Vec<OpenClaim> = unselected.collect();
        let Some(claim) = unselected.first() else {
            return;
        };
        self.preparations.busy.insert(claim.uid);
        let selection = Selection {
            pod: uid,
            claim: claim.name.clone(),
            volume: claim.chosen.clone(),
            is_told: false,
            is_seen: false,
        };
        self.preparations.selections.insert(claim.uid, selection);
        match &claim.chosen {
            Some(volume) => {
                let facts = state.storage.claim(&claim.name);
                let reference = facts.map(ClaimFacts::reference);
                self.send_volume(state, volume, (claim.uid, reference), deadline_ms);
            }
            None => {
                let node = state.nodes[node].name.clone();
                self.send_node(&claim.name, claim.uid, Some(node), deadline_ms);
            }
        }
        if unselected.len() > 1 {
            self.outbox.binds.push_front(uid);
        }
    }

    /// Whether a claim waits to be told its node. A claim that several pods share is told the node
    /// of one of them.
    fn is_to_be_told(&self, claim: &OpenClaim) -> bool {
        let known = self.preparations.selections.get(&claim.uid);
        !claim.is_selected
            && !claim.has_volume
            && known.is_none_or(|known| !known.is_told && !known.is_seen)
            && !self.preparations.busy.contains(&claim.uid)
    }

    fn send_node(
        &mut self,
        (namespace, name): &Named,
        uid: Uid,
        node: Option<Box<str>>,
        deadline_ms: UnixMs,
    ) {
        let (namespace, name) = (namespace.clone(), name.clone());
        let action = Action::SelectNode(SelectNode {
            namespace,
            name,
            uid,
            node,
        });
        self.outbox.send(Flight::Select(uid), deadline_ms, action);
    }

    /// Keeps a volume for a claim, or frees it.
    fn send_volume(
        &mut self,
        state: &ClusterState,
        volume: &str,
        (uid, claim): (Uid, Option<ClaimReference>),
        deadline_ms: UnixMs,
    ) {
        let known = state.storage.volume(volume);
        let version = known.map(|known| known.version.clone());
        let action = Action::KeepVolume(KeepVolume {
            volume: volume.into(),
            version: version.unwrap_or_default(),
            claim,
        });
        self.outbox.send(Flight::Select(uid), deadline_ms, action);
    }

    /// Lets a claim forget the node that it was told for a place that was given up, or frees the
    /// volume that was kept for it, unless it has its volume. Returns whether there was such a
    /// claim. A request that fails is not repeated: then the pod is placed on that node again.
    pub(super) fn send_unselection(&mut self, state: &ClusterState, deadline_ms: UnixMs) -> bool {
        let Some(mut unselection) = self.preparations.unselected.pop_front() else {
            return false;
        };
        let (name, uid) = (&unselection.claim, unselection.uid);
        let has_volume = state
            .storage
            .claim(name)
            .is_none_or(|claim| claim.uid != uid || claim.volume.is_some());
        let is_told_anew = self.preparations.selections.contains_key(&uid);
        if has_volume || is_told_anew {
            return true;
        }
        let Some(volume) = &unselection.volume else {
            if self.preparations.busy.insert(uid) {
                self.send_node(name, uid, None, deadline_ms);
            }
            return true;
        };
        if self.preparations.busy.contains(&uid) || !is_kept(state, volume, uid) {
            self.preparations.unseen.push(unselection);
        } else {
            self.preparations.busy.insert(uid);
            self.send_volume(state, volume, (uid, None), deadline_ms);
            let known = state.storage.volume(volume);
            unselection.asked_of = known.map(|known| known.version.clone());
            self.preparations.freeing.insert(uid, unselection);
        }
        true
    }

    /// Frees volumes once the watch tells that they are kept for claims that are not to get them,
    /// and forgets those that others have. A volume that was changed by others before a request to
    /// free it arrived is freed once the watch tells of the change.
    fn follow_unseen(&mut self, state: &ClusterState) {
        for unselection in core::mem::take(&mut self.preparations.unseen) {
            let volume = unselection.volume.as_deref();
            let known = volume.and_then(|volume| state.storage.volume(volume));
            let busy = self.preparations.busy.contains(&unselection.uid);
            match known {
                Some(known)
                    if busy
                        || unselection.asked_of.as_ref() == Some(&known.version)
                        || (known.claim.is_none() && unselection.asked_of.is_none()) =>
                {
                    self.preparations.unseen.push(unselection);
                }
                Some(known) if is_kept(state, &known.name, unselection.uid) => {
                    self.preparations.unselected.push_back(unselection);
                }
                _ => {}
            }
        }
    }

    /// A request about the node of a claim has ended.
    pub(crate) fn selection_ended(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        claim: Uid,
        outcome: Outcome,
        now_ms: UnixMs,
    ) {
        self.preparations.busy.remove(&claim);
        let freed = self.preparations.freeing.remove(&claim);
        let Some(selection) = self.preparations.selections.get_mut(&claim) else {
            // The claim has forgotten its node, or its place was given up meanwhile. Another pod
            // may wait to tell it a node.
            let waiting = self.preparations.pods.iter();
            self.outbox.binds.extend(waiting.copied());
            if outcome != Outcome::Done {
                self.preparations.unseen.retain(|it| it.uid != claim);
            }
            let is_conflict = matches!(outcome, Outcome::Conflict { .. });
            self.preparations
                .unseen
                .extend(freed.filter(|_| is_conflict));
            return;
        };
        let (pod, name) = (selection.pod, selection.claim.1.clone());
        if assumed(state, pod).is_none() {
            // Events have overtaken the pod; its preparation ends when they are followed.
            return;
        }
        match outcome {
            Outcome::Done => selection.is_told = true,
            Outcome::Refused { message } => {
                let what = match &selection.volume {
                    Some(volume) => format!("keep PersistentVolume {volume}"),
                    None => String::from("select a node"),
                };
                let why = format!(
                    "the API server refused to {what} for PersistentVolumeClaim {name}: {message}"
                );
                self.refuse(state, settings, progress, (pod, why.into()), now_ms);
            }
            // The claim may be gone, of which the watch tells.
            uncertain => {
                let at_ms = now_ms.saturating_add(pause_ms(settings, &uncertain));
                self.timers.set(at_ms, Timer::Binding(pod));
            }
        }
    }

    /// Goes on with pods whose claims have changed, and ends the preparations of pods that have no
    /// place any more.
    pub(crate) fn follow_preparations(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        now_ms: UnixMs,
    ) {
        self.follow_unseen(state);
        let changed = core::mem::take(&mut state.claims_changed);
        let gone = |uid: &Uid| {
            let place = assumed(state, *uid);
            place.is_none_or(|(pod, node)| pod.deleting || state.nodes[node].known.is_none())
        };
        let pods = self.preparations.pods.iter();
        let pods = pods.filter(|uid| changed.contains(uid) || gone(uid));
        for uid in pods.copied().collect::<Vec<_>>() {
            self.go_on_preparing(state, settings, progress, uid, now_ms);
        }
        for uid in changed {
            self.keep_volumes(state, settings, progress, uid, now_ms);
        }
    }

    /// Gives up the place of a pod whose bind is still to be sent, or to be sent again, and whose
    /// volumes are lost.
    fn keep_volumes(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        uid: Uid,
        now_ms: UnixMs,
    ) {
        let place = assumed(state, uid).filter(|_| self.step_of(uid) == Some(Step::Queued));
        let Some((pod, node)) = place else { return };
        let name = pod.name.clone();
        // A bound claim whose volume is gone stands open for ever.
        let why = match state.open_claims(state.pod_ids[&uid], node) {
            Err(why) => why,
            Ok(open) => match open.first() {
                Some(claim) => {
                    format!("PersistentVolumeClaim {} has no volume", claim.name.1).into()
                }
                None => return,
            },
        };
        let why = format!("pod {name}: {why}");
        self.refuse(state, settings, progress, (uid, why.into()), now_ms);
    }

    fn go_on_preparing(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        uid: Uid,
        now_ms: UnixMs,
    ) {
        let Some((pod, node)) = assumed(state, uid) else {
            self.end_preparing(state, uid);
            if let Some(Step::Preparing(_)) = self.step_of(uid) {
                self.bindings.remove(&uid);
            }
            return;
        };
        if pod.deleting || state.nodes[node].known.is_none() {
            self.take_back_with_gang(state, uid);
            return;
        }
        let name = pod.name.clone();
        match self.see_claims(state, state.pod_ids[&uid], node) {
            Err(why) => {
                let why = format!("pod {name}: {why}");
                self.refuse(state, settings, progress, (uid, why.into()), now_ms);
            }
            Ok(open) if open.is_empty() => self.bind_prepared(state, uid),
            Ok(open) => {
                if open.iter().any(|claim| self.is_to_be_told(claim)) {
                    self.outbox.binds.push_back(uid);
                }
            }
        }
    }

    /// Takes in what is known of the claims of a pod that have no volume yet.
    ///
    /// # Errors
    /// Why the pod cannot be on its node.
    fn see_claims(
        &mut self,
        state: &ClusterState,
        pod: PodId,
        node: NodeId,
    ) -> Result<Vec<OpenClaim>, Box<str>> {
        let open = state.open_claims(pod, node)?;
        for claim in &open {
            let known = self.preparations.selections.get_mut(&claim.uid);
            let uid = state.pods[pod].uid;
            let Some(selection) = known.filter(|known| known.pod == uid) else {
                continue;
            };
            if claim.is_selected {
                selection.is_seen = true;
            } else if selection.is_seen && !claim.has_volume {
                let (name, node) = (&claim.name.1, &state.nodes[node].name);
                let why = match &selection.volume {
                    Some(volume) => format!(
                        "PersistentVolume {volume} is not kept for PersistentVolumeClaim {name} \
                         any more"
                    ),
                    None => format!(
                        "no volume could be made for PersistentVolumeClaim {name} on node {node}; \
                         its events say why"
                    ),
                };
                return Err(why.into());
            }
        }
        Ok(open)
    }

    /// Lets the members of a pod's gang be bound, if no claim of any waits for its volume.
    fn bind_prepared(&mut self, state: &mut ClusterState, uid: Uid) {
        let alone = [state.pod_ids[&uid]];
        let members = match gang_members(state, uid) {
            [] => &alone[..],
            members => members,
        };
        let uid_of = |pod: &PodId| state.pods[*pod].uid;
        let waits = |pod: &&PodId| self.preparations.pods.contains(&uid_of(pod));
        let waiting: Vec<PodId> = members.iter().filter(waits).copied().collect();
        let is_ready = |pod: &PodId| {
            let node = state.pods[*pod].stage.node();
            let open = node.map(|node| state.open_claims(*pod, node));
            open.is_some_and(|open| open.is_ok_and(|open| open.is_empty()))
        };
        if !waiting.iter().all(is_ready) {
            return;
        }
        for pod in waiting {
            let uid = state.pods[pod].uid;
            self.take_selections(uid);
            if let Some(own) = &mut state.pods[pod].own {
                (own.failure, own.prepares) = (None, false);
            }
            self.enter_step(uid, Step::Queued);
            self.outbox.binds.push_back(uid);
        }
    }

    /// The time of a pod's preparation has come: the next request is due, or there is no more time.
    pub(super) fn preparing_due(
        &mut self,
        state: &mut ClusterState,
        settings: &Settings,
        progress: &mut ById<GangId, Progress>,
        (uid, until_ms): (Uid, UnixMs),
        now_ms: UnixMs,
    ) {
        let Some((pod, node)) = assumed(state, uid).filter(|_| until_ms <= now_ms) else {
            self.outbox.binds.push_back(uid);
            return;
        };
        let (pod, node) = (&pod.name, &state.nodes[node].name);
        let minutes = PREPARING_MS / 60_000;
        let why = format!(
            "the volumes of pod {pod}, or of another member of its gang, were not ready for node \
             {node} within {minutes} min; the events of their claims say why"
        );
        self.refuse(state, settings, progress, (uid, why.into()), now_ms);
    }

    /// Ends the preparation of a pod, whose place is given up: claims that were told its node are
    /// to forget it, and volumes that were chosen are free again.
    pub(super) fn end_preparing(&mut self, state: &mut ClusterState, uid: Uid) {
        state.storage.unchoose_with(uid);
        for (claim_uid, selection) in self.take_selections(uid) {
            let Selection { claim, volume, .. } = selection;
            self.preparations.unselected.push_back(Unselection {
                claim,
                uid: claim_uid,
                volume,
                asked_of: None,
            });
        }
    }

    /// Ends the preparation of a pod, and returns what was selected for it.
    fn take_selections(&mut self, uid: Uid) -> Vec<(Uid, Selection)> {
        let Preparations {
            pods, selections, ..
        } = &mut self.preparations;
        if !pods.remove(&uid) {
            return Vec::new();
        }
        let of_pod = selections.iter().filter(|(_, it)| it.pod == uid);
        let of_pod: Vec<Uid> = of_pod.map(|(claim, _)| *claim).collect();
        let taken = of_pod.into_iter();
        taken
            .filter_map(|claim| Some((claim, selections.remove(&claim)?)))
            .collect()
    }

    /// This process does not lead any more: no claim forgets its node or loses its volume for it.
    pub(super) fn drop_preparations(&mut self) {
        self.preparations.unselected.clear();
        self.preparations.unseen.clear();
        self.preparations.freeing.clear();
    }
}

/// Whether a volume that is not bound yet is kept for the claim with this UID.
fn is_kept(state: &ClusterState, volume: &str, claim: Uid) -> bool {
    let volume = state.storage.volume(volume);
    volume.is_some_and(|volume| {
        let kept_for = volume.claim.as_ref().and_then(|kept_for| kept_for.uid);
        volume.is_available && kept_for == Some(claim)
    })
}

/// Notes what a placed pod waits for.
fn note_preparing(state: &mut ClusterState, pod: PodId) {
    let record = &state.pods[pod];
    let Some(node) = record.stage.node() else {
        return;
    };
    let open = state.open_claims(pod, node).unwrap_or_default();
    let waits_for = match open.first() {
        Some(claim) => format!("the volume of PersistentVolumeClaim {}", claim.name.1),
        None => String::from("the volumes of other members of its gang"),
    };
    let (name, node) = (&record.name, &state.nodes[node].name);
    let sentence = format!("pod {name} is to run on node {node}, and waits for {waits_for}");
    if let Some(own) = &mut state.pods[pod].own {
        (own.failure, own.prepares) = (Some(sentence.into()), true);
    }
}
