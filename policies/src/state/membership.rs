//! Which gang a pod belongs to: that of its label, else of its native group, else of its
//! controlling owner. A pod with both a label and a native group is a gang of its own.

use super::ClusterState;
use super::gang::{Gang, GangKey, GroupTree};
use super::holds::Holder;
use super::pod::{Own, Pod, Stage};
use super::sets::{put_in, take_out};
use crate::command::ObjectReference;
use crate::event::Kind;
use crate::facts::{GroupSource, JobFacts, PodGroupFacts, Uid, UnixMs};
use crate::ids::{GangId, PodId};
use alloc::{boxed::Box, format, string::String, sync::Arc, vec::Vec};

/// How long a pod of a Job waits until its Job, which may be a gang, is seen. Kinds are watched
/// apart, so the pod may be seen first; a Job that is not seen by then does not exist.
const JOB_PATIENCE_MS: u64 = 10_000;

impl ClusterState {
    pub(crate) fn apply_pod_group(&mut self, facts: PodGroupFacts) {
        let key = GangKey::Group(facts.source, facts.namespace.clone(), facts.name.clone());
        let name = format!("{}/{}", facts.namespace, facts.name);
        let gang = self.gang(key, &facts.namespace, name);
        let tree = GroupTree::of(&facts).map(|tree| tree.map(Arc::new));
        self.gangs[gang].tree = tree;
        self.gangs[gang].object = Some(Box::new(facts));
        self.touched.insert(gang);
    }

    pub(crate) fn delete_pod_group(&mut self, source: GroupSource, namespace: &str, name: &str) {
        let key = GangKey::Group(source, namespace.into(), name.into());
        let Some(&gang) = self.gang_ids.get(&key) else {
            return;
        };
        self.gangs[gang].object = None;
        self.gangs[gang].tree = Ok(None);
        self.touched.insert(gang);
    }

    pub(crate) fn apply_job(&mut self, facts: JobFacts) {
        let (uid, succeeded) = (facts.uid, facts.succeeded);
        let before = self.jobs.insert(uid, facts);
        let before = before.map(|before| JobFacts {
            succeeded,
            ..before
        });
        if before.as_ref() != self.jobs.get(&uid) {
            self.regroup_owned(uid);
        } else if self.jobs.get(&uid).is_some_and(runs_at_once) {
            // Members that ended well and were removed lower the minima of their gangs.
            let pods = self.owned.get(&uid).into_iter().flatten();
            let gangs = pods.filter_map(|pod| self.pods[*pod].gang());
            self.touched.extend(gangs);
        }
    }

    pub(crate) fn delete_job(&mut self, uid: Uid) {
        if self.jobs.remove(&uid).is_some() {
            self.regroup_owned(uid);
            // No controller makes the pods of the Job anew, so room need not be kept for them.
            self.end_hold(Holder::Owner(uid));
        }
    }

    fn regroup_owned(&mut self, uid: Uid) {
        let pods: Vec<PodId> = self
            .owned
            .get(&uid)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        for pod in pods {
            self.regroup(pod);
            self.touched.extend(self.pods[pod].gang());
        }
    }

    /// Puts a pod of ours into the gang that it belongs to now.
    pub(crate) fn regroup(&mut self, pod: PodId) {
        let Some(own) = &self.pods[pod].own else {
            return;
        };
        let key = self.gang_of(&self.pods[pod], own);
        let current = own.gang;
        if current.is_some_and(|gang| self.gangs[gang].key == key) {
            return;
        }
        self.leave_gang(pod);
        let record = &self.pods[pod];
        let held = match record.stage {
            Stage::Assumed(_) | Stage::Bound(_) => !record.deleting,
            Stage::Ended { succeeded } => succeeded,
            Stage::Waiting => false,
        };
        if let Some(gang) = current.filter(|_| held) {
            // The member was moved to another gang by a change, not lost: the gang does not become
            // stale by it.
            self.gangs[gang].departed = self.gangs[gang].departed.saturating_add(1);
        }
        let namespace = self.pods[pod].namespace.clone();
        let name = gang_name(&key, &self.pods[pod]);
        let gang = self.gang(key, &namespace, name);
        let record = &mut self.gangs[gang];
        record.members.push(pod);
        if let Some(job) = self.pods[pod].own.as_ref().and_then(|own| own.job())
            && !record.jobs.contains(&job)
        {
            record.jobs.push(job);
        }
        self.touched.insert(gang);
        if let Some(own) = &mut self.pods[pod].own {
            own.gang = Some(gang);
        }
    }

    pub(crate) fn leave_gang(&mut self, pod: PodId) {
        let Some(gang) = self.pods[pod].own.as_mut().and_then(|own| own.gang.take()) else {
            return;
        };
        self.gangs[gang].members.retain(|member| *member != pod);
        self.touched.insert(gang);
        self.holds.rebooked.push(self.pods[pod].uid);
    }

    /// The gang that a pod belongs to by what is known of its owner now.
    fn gang_of(&self, pod: &Pod, own: &Own) -> GangKey {
        let group =
            |source, group: &str| GangKey::Group(source, pod.namespace.clone(), group.into());
        match (&own.pod_group, &own.native_group) {
            (Some(_), Some(_)) => return GangKey::Pod(pod.uid),
            (Some(label), None) => return group(GroupSource::GpuBatch, label),
            (None, Some(native)) => return group(GroupSource::Native, native),
            (None, None) => {}
        }
        let Some(owner) = &own.owner else {
            return GangKey::Pod(pod.uid);
        };
        let job_gang = self.jobs.get(&owner.uid).and_then(job_minimum).is_some();
        if !job_gang && own.hints.min_member.is_none_or(|minimum| minimum <= 1) {
            return GangKey::Pod(pod.uid);
        }
        match &own.deployment {
            Some(deployment) => GangKey::Deployment(pod.namespace.clone(), deployment.clone()),
            None => GangKey::Owner(owner.uid),
        }
    }

    /// The Jobs of a preemptible gang that evictions of its pods would make fail.
    pub(crate) fn fragile_jobs(&self, gang: &Gang) -> impl Iterator<Item = &JobFacts> {
        // While the PodGroup of a gang is not known, nor is whether the gang is preemptible.
        let preemptible = gang.spec.preemptible && !gang.lacks_object();
        let jobs = self.jobs_of(gang).filter(move |_| preemptible);
        jobs.filter(|job| !job.ignores_evictions)
    }

    /// The Jobs that control members of a gang, or did so earlier, and are still there.
    pub(crate) fn jobs_of(&self, gang: &Gang) -> impl Iterator<Item = &JobFacts> {
        gang.jobs.iter().filter_map(|job| self.jobs.get(job))
    }

    /// Enters a pod under its controlling owner, which may make it part of a gang.
    pub(crate) fn note_owner(&mut self, pod: PodId) {
        if let Some(owner) = self.pods[pod].owner() {
            let uid = owner.uid;
            put_in(&mut self.owned, uid, pod);
        }
    }

    pub(crate) fn forget_owner(&mut self, pod: PodId) {
        let Some(uid) = self.pods[pod].owner().map(|owner| owner.uid) else {
            return;
        };
        take_out(&mut self.owned, &uid, &pod);
    }

    /// Whether a waiting member could start one day as it stands: nothing about the pod or its gang
    /// forbids it, and there are nodes with what the pod asks for.
    pub(crate) fn could_start(&self, gang: &Gang, pod: &Pod) -> bool {
        let class = &self.classes[pod.class];
        pod.could_be_placed() && gang.has_group_of(pod) && class.may_be_placed() && class.is_offered
    }

    /// Whether a member may be placed now: it waits, and nothing about the pod or its gang forbids
    /// it.
    pub(crate) fn may_be_placed(&self, gang: &Gang, pod: &Pod, now_ms: UnixMs) -> bool {
        let deadline_ms = || self.job_deadline(pod);
        pod.can_be_placed(now_ms)
            && gang.has_group_of(pod)
            && self.classes[pod.class].may_be_placed()
            && deadline_ms().is_none_or(|deadline_ms| deadline_ms <= now_ms)
    }

    /// Until when a pod waits for its Job to be seen; `None`: it does not wait for one.
    pub(crate) fn job_deadline(&self, pod: &Pod) -> Option<UnixMs> {
        if !pod.glance.needs_job {
            return None;
        }
        let known = self.jobs.contains_key(&pod.owner()?.uid);
        (!known).then(|| pod.created_ms.saturating_add(JOB_PATIENCE_MS))
    }

    /// The name of a gang as users see it. A native group whose name a PodGroup of ours has too
    /// goes by its long name.
    pub(crate) fn name_of(&self, gang: &Gang) -> Arc<str> {
        let shared = gang.native_name().is_some_and(|(namespace, name)| {
            let ours = GangKey::Group(GroupSource::GpuBatch, namespace.into(), name.into());
            self.gang_ids.contains_key(&ours)
        });
        let long = gang.long_name().filter(|_| shared);
        long.map_or_else(|| Arc::clone(&gang.name), Into::into)
    }

    /// The object that stands for a gang in Kubernetes events: its PodGroup, else the owner of a
    /// member, else a member. `None`: the gang has none of these.
    pub(crate) fn object_of(&self, gang: &Gang) -> Option<ObjectReference> {
        if let Some(object) = &gang.object {
            let kind = Kind::from(object.source);
            return Some(kind.reference(&object.namespace, &object.name, object.uid));
        }
        // The pods of a Deployment may have several owners: that of a waiting pod is meant.
        let mut members = gang.members.iter().map(|id| &self.pods[*id]);
        let waiting = members.clone().find(|pod| pod.stage == Stage::Waiting);
        let pod = waiting.or_else(|| members.next())?;
        let owner = pod.own.as_ref().and_then(|own| own.owner.as_ref());
        match owner {
            Some(owner) if !gang.is_explicit() => Some(ObjectReference {
                api_version: owner.api_version.clone(),
                kind: owner.kind.clone(),
                namespace: pod.namespace.clone(),
                name: owner.name.clone(),
                uid: owner.uid,
            }),
            _ => Some(pod.object()),
        }
    }

    fn gang(&mut self, key: GangKey, namespace: &str, name: String) -> GangId {
        if let Some(gang) = self.gang_ids.get(&key) {
            return *gang;
        }
        let gang = self.gangs.insert(Gang::new(key.clone(), namespace, name));
        self.gang_ids.insert(key, gang);
        gang
    }
}

/// The name of the gang with this key, to which a pod belongs.
fn gang_name(key: &GangKey, pod: &Pod) -> String {
    let namespace = &pod.namespace;
    match (key, pod.owner()) {
        (GangKey::Group(_, _, group), _) => format!("{namespace}/{group}"),
        (GangKey::Deployment(_, name), _) => format!("{namespace}/deployment/{name}"),
        (GangKey::Owner(_), Some(owner)) => {
            let kind = owner.kind.to_ascii_lowercase();
            format!("{namespace}/{kind}/{}", owner.name)
        }
        (GangKey::Owner(_), None) | (GangKey::Pod(_), _) => format!("{namespace}/pod/{}", pod.name),
    }
}

/// How many pods of a Job start together: an Indexed Job with as many completions as it runs in
/// parallel is a gang. `None`: the Job is no gang.
pub(crate) fn job_minimum(job: &JobFacts) -> Option<u32> {
    let gang = job.indexed && job.parallelism > 1 && runs_at_once(job);
    gang.then_some(job.parallelism)
}

/// Whether all pods of a Job run at the same time, each once: no pod is left to make when as many
/// have ended well.
pub(crate) fn runs_at_once(job: &JobFacts) -> bool {
    job.completions == Some(job.parallelism)
}
