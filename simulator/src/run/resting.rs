//! Raised minima and restarts after the first rest. No member is lost then, so no gang may be
//! evicted, however often schedulers start anew and however far minima are raised.

use super::{LATE_MOVES_MAX, MOVERS_MS, REST_MS, Run, change_minimum};
use gpu_batch_policies::command::{Action, Evict, EvictionCause};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{GroupSource, PodFacts, PodGroupFacts};

impl Run<'_> {
    /// Notes the gang of a pod that is evicted for another gang. If its plan comes to nothing in
    /// the middle, the rest of the gang is below its minimum.
    pub(super) fn note_victim(&mut self, action: &Action) {
        let Action::Evict(evict) = action else {
            return;
        };
        let pod = self.cluster.pod(evict.pod.uid);
        let group = pod.and_then(|pod| Some((pod.namespace.clone(), pod.pod_group.clone()?)));
        if let Some(group) = group.filter(|_| evict.beneficiary.is_some()) {
            self.victims.insert(group);
        }
    }

    /// Puts off the time by which the world must be at rest, because a pod moves: its place is kept
    /// for a while. Only a few times, so that a world in which pods move for ever fails.
    pub(super) fn put_off_rest(&mut self, action: &Action) {
        let moves =
            matches!(action, Action::Evict(evict) if evict.cause == EvictionCause::Consolidate);
        let is_late = self.rest_by_ms < self.now_ms + MOVERS_MS;
        if moves && is_late && self.late_moves < LATE_MOVES_MAX {
            self.rest_by_ms = self.now_ms + MOVERS_MS + REST_MS;
            self.late_moves += 1;
        }
    }

    /// Raises the minimum of a PodGroup with members on nodes. If it has sub-groups, that of the
    /// first leaf.
    pub(super) fn raise_minimum(&mut self, number: u64, by: u32) {
        let runs = |group: &PodGroupFacts| {
            let mut pods = self.cluster.api.pods();
            pods.any(|pod| pod.node.is_some() && pod.pod_group.as_ref() == Some(&group.name))
        };
        let groups = self.cluster.api.objects(Kind::PodGroup);
        let groups = groups.filter_map(|stored| match &stored.object {
            Object::PodGroup(group) if group.source == GroupSource::GpuBatch => Some(group),
            _ => None,
        });
        let running: Vec<PodGroupFacts> = groups.filter(|group| runs(group)).cloned().collect();
        let Some(index) = number.checked_rem(running.len() as u64) else {
            return;
        };
        let mut group = running[usize::try_from(index).unwrap_or(0)].clone();
        let minimum = minimum_of(&group);
        change_minimum(&mut group, minimum + by);
        self.cluster.put(Object::PodGroup(group), self.now_ms);
    }

    /// L1: no gang is evicted after the first rest. Two cases are not judged. Gangs without a
    /// PodGroup of this scheduler: nothing remembers whether their members were lost, or have
    /// succeeded and were cleaned away. Gangs of which another scheduler has bound a member:
    /// nothing tells the minimum at that time, so if it is raised, a scheduler that starts anew
    /// sees a gang that may have lost members, or a sub-group that may never have been complete,
    /// even if that member has succeeded and is gone.
    pub(super) fn judge_eviction(&self, action: &Action) -> Option<String> {
        let Action::Evict(Evict { pod, cause, .. }) = action else {
            return None;
        };
        if matches!(
            cause,
            EvictionCause::Reclaim
                | EvictionCause::Preempt
                | EvictionCause::Consolidate
                | EvictionCause::CardFailed
        ) {
            return None;
        }
        let facts = self.cluster.pod(pod.uid)?;
        let group = facts.pod_group.as_ref().filter(|_| self.is_calm())?;
        if self
            .victims
            .contains(&(facts.namespace.clone(), group.clone()))
        {
            return None;
        }
        let of_another = |other: &PodFacts| {
            let bound = other.node.is_some() && other.bound_queue.is_none();
            bound && other.namespace == facts.namespace && other.pod_group.as_ref() == Some(group)
        };
        let mut now = self.cluster.api.pods();
        let mut ended = self.cluster.done.iter();
        if now.any(of_another) || (*cause == EvictionCause::Unwind && ended.any(of_another)) {
            return None;
        }
        Some(format!(
            "L1: pod {} of gang {group} is evicted ({cause:?}), and nothing was lost",
            pod.name
        ))
    }
}

/// The minimum that [`change_minimum`] changes.
fn minimum_of(group: &PodGroupFacts) -> u32 {
    let groups = &group.sub_groups;
    let is_leaf = |name: &str| groups.iter().all(|child| *child.parent != *name);
    let leaf = groups.iter().find(|entry| is_leaf(&entry.name));
    leaf.map_or(group.minimum, |leaf| leaf.min_member.unwrap_or(1))
}
