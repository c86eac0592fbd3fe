//! What controllers and kubelets do: pods for Jobs, and their lives on nodes.

use crate::lab::demo::seen::Pod;
use crate::lab::demo::setting::GANG_LABEL;
use crate::lab::demo::workload::Gang;
use gpu_batch_policies::facts::{PodFacts, PodPhase, UnixMs};
use gpu_batch_simulator::random::Random;
use serde_json::{Value, json};

/// From the binding of a pod until it runs.
const START_MS: UnixMs = 500;
/// How long a pod that is being deleted takes until it is gone.
const LEAVE_MS: UnixMs = 1_000;
/// How many of a hundred pods that start while things go wrong are rejected by their kubelet.
const REJECTED_PERCENT: u64 = 2;

/// The label that the Job controller gives the pods of an Indexed Job.
const INDEX_LABEL: &str = "batch.kubernetes.io/job-completion-index";

/// One place in a Job: pods are made for it again and again until its work is done.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) index: u32,
    /// The name of the pod that fills the place.
    pub(super) pod: Option<Box<str>>,
    attempts: u32,
    /// When the kubelet does its next action.
    due_ms: Option<UnixMs>,
    /// Whether the pod is being deleted, and the kubelet knows.
    leaving: bool,
    pub(super) done: bool,
}

impl Member {
    pub(super) fn new(index: u32) -> Self {
        Self {
            index,
            pod: None,
            attempts: 0,
            due_ms: None,
            leaving: false,
            done: false,
        }
    }

    /// The next pod of the place, as the Job controller makes it from the template.
    pub(super) fn next_pod(&mut self, gang: &Gang, template: &Value) -> Value {
        self.attempts += 1;
        (self.due_ms, self.leaving) = (None, false);
        let name = format!("{}-{}-{:05}", gang.name, self.index, self.attempts);
        self.pod = Some(name.as_str().into());
        let mut pod = template.clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = name.into();
        pod["metadata"]["namespace"] = gang.namespace.into();
        pod["metadata"]["labels"][INDEX_LABEL] = self.index.to_string().into();
        pod
    }

    /// What the kubelet does about the pod now.
    pub(super) fn kubelet(
        &mut self,
        facts: &PodFacts,
        gang: &Gang,
        chaos: Option<&mut Random>,
        now_ms: UnixMs,
    ) -> Kubelet {
        let lasts_ms = match facts.phase {
            _ if facts.deletion_ms.is_some() => LEAVE_MS,
            PodPhase::Pending => START_MS,
            PodPhase::Running => UnixMs::from(gang.run_s) * 1_000,
            PodPhase::Succeeded | PodPhase::Failed => return Kubelet::Nothing,
        };
        if facts.deletion_ms.is_some() && !self.leaving {
            // The action that was due before is cancelled.
            (self.due_ms, self.leaving) = (None, true);
        }
        let due_ms = *self.due_ms.get_or_insert(now_ms + lasts_ms);
        if now_ms < due_ms {
            return Kubelet::Nothing;
        }
        self.due_ms = None;
        if facts.deletion_ms.is_some() {
            return Kubelet::Removes;
        }
        let rejected = |random: &mut Random| random.percent(REJECTED_PERCENT);
        Kubelet::Sets(match facts.phase {
            PodPhase::Pending if chaos.is_some_and(rejected) => PodPhase::Failed,
            PodPhase::Pending => PodPhase::Running,
            _ => PodPhase::Succeeded,
        })
    }
}

/// What a kubelet does about a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kubelet {
    Nothing,
    Sets(PodPhase),
    /// The kubelet lets the pod go.
    Removes,
}

/// The pod as an API server would show it to the witness.
pub(super) fn shown(facts: &PodFacts) -> Option<Pod> {
    let name = &*facts.name;
    let mut parts = name.rsplitn(3, '-').skip(1);
    let (index, gang) = (parts.next()?, parts.next()?);
    let quantity = |(resource, amount): &(Box<str>, u64)| {
        let unit = if &**resource == "cpu" { "m" } else { "" };
        (resource.to_string(), Value::from(format!("{amount}{unit}")))
    };
    let requests = facts.shape.requests.iter();
    let requests: serde_json::Map<String, Value> = requests
        .filter(|(resource, _)| &**resource != "pods")
        .map(quantity)
        .collect();
    let pod = json!({
        "metadata": {
            "name": name,
            "namespace": &*facts.namespace,
            "uid": facts.uid.to_string(),
            "labels": {GANG_LABEL: gang, INDEX_LABEL: index},
        },
        "spec": {
            "nodeName": facts.node.as_deref(),
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": format!("{:?}", facts.phase)},
    });
    serde_json::from_value(pod).ok()
}
