//! Statuses as the scheduler writes them. A new status does not change the spec, so the generation
//! stays.

use super::pods::StoredPod;
use super::{Answer, ApiServer, Name, Status, fields, found, whole_seconds};
use gpu_batch_policies::command::{PodReference, StatusPatch};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{GroupSource, ScheduledCondition, Uid};
use gpu_batch_policies::status::{MemberCounts, Phase, PodGroupStatus};

pub(super) const OTHER_UID: &str = "metadata.uid is another one";

impl ApiServer {
    /// Writes a status. If the object has another UID than the patch, the patch is invalid (422):
    /// in a merge patch the UID is a field that must not change, in a JSON patch it is a test that
    /// fails.
    pub(super) fn patch_status(&mut self, patch: StatusPatch) -> Answer {
        match patch {
            StatusPatch::PodGroup {
                source,
                namespace,
                name,
                uid,
                status,
            } => {
                let name = Name {
                    kind: source.into(),
                    namespace,
                    name,
                };
                self.write_status(name, uid, Status::PodGroup(Some(written(source, status))))
            }
            StatusPatch::Queue {
                name,
                uid,
                mut status,
            } => {
                status.ready_since_ms = whole_seconds(status.ready_since_ms);
                if let Some(past) = &mut status.past_use {
                    past.at_ms = whole_seconds(past.at_ms);
                    // The averages are a JSON object, whose keys the API server sorts.
                    past.averages.sort_unstable();
                }
                let name = Name {
                    kind: Kind::Queue,
                    namespace: "".into(),
                    name,
                };
                self.write_status(name, uid, Status::Queue(Some(status)))
            }
            StatusPatch::Nominated { pod, node } => {
                let mut pod = match self.pod_of_patch(&pod) {
                    Ok(pod) => pod,
                    Err(answer) => return answer,
                };
                if let Err(why) = fields::may_be_nominated(&pod.facts, node.as_deref()) {
                    return Answer::Invalid(why);
                }
                pod.facts.nominated = node;
                found(self.change_pod(pod))
            }
            StatusPatch::Unscheduled {
                pod,
                reason,
                message,
                since_ms,
            } => {
                let mut pod = match self.pod_of_patch(&pod) {
                    Ok(pod) => pod,
                    Err(answer) => return answer,
                };
                pod.facts.unscheduled = Some(ScheduledCondition { reason, message });
                pod.facts.bound_ms = None;
                pod.status.scheduled = Some(false);
                pod.status.scheduled_since_s = since_ms / 1_000;
                found(self.change_pod(pod))
            }
        }
    }

    pub(super) fn pod_of_patch(&self, reference: &PodReference) -> Result<StoredPod, Answer> {
        let pod = self.pod(&reference.namespace, &reference.name);
        let pod = pod.ok_or(Answer::NotFound)?;
        if pod.facts.uid == reference.uid {
            Ok(pod)
        } else {
            Err(Answer::Invalid(OTHER_UID))
        }
    }

    fn write_status(&mut self, name: Name, uid: Uid, status: Status) -> Answer {
        let Some(old) = self.get(&name).cloned() else {
            return Answer::NotFound;
        };
        if old.object.uid() != Some(uid) {
            return Answer::Invalid(OTHER_UID);
        }
        let mut object = old.object.clone();
        if let (Object::PodGroup(facts), Status::PodGroup(status)) = (&mut object, &status) {
            let shown = facts.source == GroupSource::GpuBatch;
            facts.status = status.clone().filter(|_| shown);
        }
        if let (Object::Queue(facts), Status::Queue(Some(status))) = (&mut object, &status) {
            facts.past_use.clone_from(&status.past_use);
            facts.runtimes.clone_from(&status.runtimes);
        }
        found(self.change(name, &old, object, status))
    }
}

/// A PodGroup's status as it is stored. Of a native group only the condition is stored.
fn written(source: GroupSource, mut status: PodGroupStatus) -> PodGroupStatus {
    status.scheduled_since_ms = whole_seconds(status.scheduled_since_ms);
    if let Some(staleness) = &mut status.staleness {
        staleness.since_ms = whole_seconds(staleness.since_ms);
    }
    if source == GroupSource::Native {
        status.phase = Phase::Pending;
        status.members = MemberCounts::default();
        status.staleness = None;
        (status.protected, status.estimated_start_ms) = (None, None);
    }
    status
}
