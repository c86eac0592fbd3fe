//! What a real API server answers to each request of the scheduler. Here and not beside the
//! requests, because nothing of the scheduler may name this room. Skipped on a machine without Go,
//! except where `CI` is set.

use super::{Binaries, ControlPlane, LocalError, Options};
use crate::handles::Handles;
use crate::kube::connection;
use crate::kube::execute::fixtures::{
    TEN_O_CLOCK_MS, answered, bind_of, gang_patch_of, write_lease,
};
use crate::kube::execute::{Executor, LeaseName};
use gpu_batch_policies::command::{
    Action, Announcement, Evict, EvictionCause, ObjectReference, PodReference, StatusPatch,
};
use gpu_batch_policies::event::{Outcome, PodSeen};
use gpu_batch_policies::facts::{GroupSource, Uid};
use gpu_batch_policies::lease::LeaseCall;
use gpu_batch_policies::status::{GovernedAmounts, QueueStatus};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUEUES: &str = "/apis/gpu-batch.io/v1alpha1/queues";
const GROUPS: &str = "/apis/gpu-batch.io/v1alpha1/namespaces/default/podgroups";
const NATIVE: &str = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ELSE: Uid = Uid(5);

struct Real {
    _control_plane: ControlPlane,
    client: kube::Client,
    executor: Arc<Executor>,
    handles: Handles,
}

impl Real {
    async fn start() -> Option<Self> {
        let options = Options {
            native_gangs: true,
            ..Options::default()
        };
        let say = |line: &str| eprintln!("{line}");
        let binaries = match Binaries::find_or_build(&options.programs(), say) {
            Ok(binaries) => binaries,
            Err(LocalError::GoMissing { .. }) if std::env::var_os("CI").is_none() => {
                eprintln!("skipped: there is no Go to build a control plane with");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let control_plane = ControlPlane::start(&binaries, options).await.unwrap();
        let kubeconfig = Some(control_plane.kubeconfig());
        let config = connection::config(kubeconfig, None).await.unwrap();
        let handles = Handles::new(String::new());
        let lease = LeaseName {
            namespace: "default".to_owned(),
            name: "gb".to_owned(),
        };
        let executor =
            Executor::new(&config, lease, "me".to_owned(), "gpu-batch", &handles).unwrap();
        let real = Self {
            _control_plane: control_plane,
            client: connection::client(&config).unwrap(),
            executor: Arc::new(executor),
            handles,
        };
        for crd in crate::kube::api::crds() {
            real.post(CRDS, serde_json::to_value(crd).unwrap()).await;
        }
        while real.ask(Method::GET, QUEUES, Value::Null).await.is_err()
            || real.ask(Method::GET, GROUPS, Value::Null).await.is_err()
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Some(real)
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> kube::Result<Value> {
        let content_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(serde_json::to_vec(&body).unwrap())
            .unwrap();
        self.client.request(request).await
    }

    async fn post(&self, path: &str, body: Value) -> Uid {
        let made = self.ask(Method::POST, path, body).await.unwrap();
        Uid::parse(made["metadata"]["uid"].as_str().unwrap()).unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, Value::Null).await.unwrap()
    }

    async fn run(&self, action: Action) -> Outcome {
        answered(
            &self.executor,
            &self.handles,
            action,
            Duration::from_secs(5),
        )
        .await
    }

    async fn pod(&self, name: &str) -> PodReference {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "schedulerName": "gpu-batch",
                "containers": [{"name": "c", "image": "x"}],
            },
        });
        PodReference {
            namespace: "default".into(),
            name: name.into(),
            uid: self.post(PODS, pod).await,
        }
    }
}

/// A pod of this name with another identity.
fn other(pod: &PodReference) -> PodReference {
    PodReference {
        uid: ELSE,
        ..pod.clone()
    }
}

/// A conflict, in the API server's words.
fn is_conflict(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Conflict { message } if !message.is_empty())
}

fn observe(pod: &PodReference) -> Action {
    Action::Observe(pod.clone())
}

fn evict(pod: &PodReference) -> Action {
    Action::Evict(Evict {
        pod: pod.clone(),
        cause: EvictionCause::Stale,
        beneficiary: None,
    })
}

fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_answers_as_expected() {
    let Some(real) = Real::start().await else {
        return;
    };
    pods_are_bound_once(&real).await;
    evictions_respect_budgets(&real).await;
    statuses_are_written(&real).await;
    events_are_taken(&real).await;
    the_lease_changes_hands(&real).await;
}

async fn pods_are_bound_once(real: &Real) {
    let pod = real.pod("a").await;
    let waits = |pod: &PodReference| {
        Action::PatchStatus(StatusPatch::Unscheduled {
            pod: pod.clone(),
            reason: "OverLimit".into(),
            message: "the queue is at its limit".into(),
            since_ms: TEN_O_CLOCK_MS,
        })
    };
    assert_eq!(real.run(waits(&pod)).await, Outcome::Done);
    assert!(is_refused(&real.run(waits(&other(&pod))).await));
    let condition = real.get(&format!("{PODS}/a")).await["status"]["conditions"][0].clone();
    assert_eq!(condition["reason"], "OverLimit");

    let nominate = |pod: &PodReference, node: Option<&str>| {
        Action::PatchStatus(StatusPatch::Nominated {
            pod: pod.clone(),
            node: node.map(Into::into),
        })
    };
    let nominated = async || {
        let pod = real.get(&format!("{PODS}/a")).await;
        pod["status"]["nominatedNodeName"].clone()
    };
    assert_eq!(real.run(nominate(&pod, Some("n1"))).await, Outcome::Done);
    assert_eq!(nominated().await, "n1");
    assert_eq!(real.run(nominate(&pod, None)).await, Outcome::Done);
    assert_eq!(nominated().await, Value::Null);
    assert!(is_refused(&real.run(nominate(&other(&pod), None)).await));

    let seen = |seen| Outcome::Observed(seen);
    assert_eq!(real.run(observe(&pod)).await, seen(PodSeen::Unbound));
    assert!(is_conflict(&real.run(bind_of(&other(&pod))).await));
    assert_eq!(real.run(bind_of(&pod)).await, Outcome::Done);
    assert!(is_conflict(&real.run(bind_of(&pod)).await));
    assert!(is_refused(&real.run(nominate(&pod, Some("n1"))).await));
    assert_eq!(
        real.run(observe(&pod)).await,
        seen(PodSeen::Bound("n1".into()))
    );
    assert_eq!(real.run(observe(&other(&pod))).await, seen(PodSeen::Gone));
    let annotations = real.get(&format!("{PODS}/a")).await["metadata"]["annotations"].clone();
    assert_eq!(annotations["gpu-batch.io/bound-queue"], "team");
    assert_eq!(annotations["gpu-batch.io/bound-podgroup"], "train");

    let nothing = PodReference {
        name: "nothing".into(),
        ..pod
    };
    assert_eq!(real.run(observe(&nothing)).await, seen(PodSeen::Gone));
    assert_eq!(real.run(bind_of(&nothing)).await, Outcome::NotFound);
}

async fn evictions_respect_budgets(real: &Real) {
    let pod = real.pod("b").await;
    assert_eq!(real.run(bind_of(&pod)).await, Outcome::Done);
    let ready = json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let path = format!("{PODS}/b/status");
    real.ask(Method::PATCH, &path, ready).await.unwrap();
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "b"}}},
    });
    real.post(BUDGETS, budget).await;
    assert!(is_refused(&real.run(evict(&pod)).await));
    let path = format!("{BUDGETS}/b");
    real.ask(Method::DELETE, &path, Value::Null).await.unwrap();
    assert_eq!(real.run(evict(&pod)).await, Outcome::Done);
    let evicted = real.get(&format!("{PODS}/b")).await;
    assert!(evicted["metadata"]["deletionTimestamp"].is_string());
}

async fn statuses_are_written(real: &Real) {
    let kind = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "gpu-batch.io/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        })
    };
    let uid = real.post(QUEUES, kind("Queue", "team", json!({}))).await;
    let queue = |uid: Uid, allocated: GovernedAmounts| {
        Action::PatchStatus(StatusPatch::Queue {
            name: "team".into(),
            uid,
            status: QueueStatus {
                allocated,
                dominant_share_millionths: 420_000,
                ready_since_ms: TEN_O_CLOCK_MS,
                ..QueueStatus::default()
            },
        })
    };
    let first = vec![("cpu".into(), 1_500), ("memory".into(), 1 << 35)];
    assert_eq!(real.run(queue(uid, first)).await, Outcome::Done);
    let second = vec![("cpu".into(), 2_000)];
    assert_eq!(real.run(queue(uid, second)).await, Outcome::Done);
    assert!(is_refused(&real.run(queue(ELSE, vec![])).await));
    let status = real.get(&format!("{QUEUES}/team")).await["status"].clone();
    assert_eq!(
        status["allocated"],
        json!({"cpu": "2"}),
        "what is gone is gone"
    );

    let spec = json!({"minMember": 8});
    let uid = real.post(GROUPS, kind("PodGroup", "train", spec)).await;
    let patch = |source| gang_patch_of(source, "default", uid);
    assert_eq!(real.run(patch(GroupSource::GpuBatch)).await, Outcome::Done);
    let status = real.get(&format!("{GROUPS}/train")).await["status"].clone();
    assert_eq!(status["reason"], "OverLimit");
    assert_eq!(status["conditions"][0]["type"], "PodGroupScheduled");
    assert_eq!(
        real.run(patch(GroupSource::Native)).await,
        Outcome::NotFound
    );
    let uid = native_group(real).await;
    let native = gang_patch_of(GroupSource::Native, "default", uid);
    assert_eq!(real.run(native).await, Outcome::Done);
    let status = real.get(&format!("{NATIVE}/podgroups/train")).await["status"].clone();
    assert_eq!(status["conditions"][0]["reason"], "OverLimit");
}

async fn native_group(real: &Real) -> Uid {
    let policy = json!({"gang": {"minCount": 8}});
    let workload = json!({
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload",
        "metadata": {"name": "w"},
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": policy}]},
    });
    real.post(&format!("{NATIVE}/workloads"), workload).await;
    let template = json!({"workload": {"workloadName": "w", "podGroupTemplateName": "t"}});
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"podGroupTemplateRef": template, "schedulingPolicy": policy},
    });
    real.post(&format!("{NATIVE}/podgroups"), group).await
}

async fn events_are_taken(real: &Real) {
    for (kind, namespace) in [("Pod", "default"), ("Queue", "")] {
        let publish = Action::Publish(Announcement {
            regarding: ObjectReference {
                api_version: "v1".into(),
                kind: kind.into(),
                namespace: namespace.into(),
                name: "a".into(),
                uid: ELSE,
            },
            warning: true,
            reason: "OverLimit".into(),
            message: "ä".repeat(2_000).into(),
            once: false,
        });
        assert_eq!(real.run(publish).await, Outcome::Done, "{kind}");
    }
}

async fn the_lease_changes_hands(real: &Real) {
    let read = || real.run(Action::Lease(LeaseCall::Read));
    let version = |outcome: Outcome| match outcome {
        Outcome::Lease(seen) => seen.resource_version,
        other => panic!("{other:?}"),
    };
    assert_eq!(version(read().await), None);
    let first = version(real.run(write_lease(None, true)).await);
    assert!(is_conflict(&real.run(write_lease(None, true)).await));
    assert_eq!(version(read().await), first);
    let second = version(real.run(write_lease(first.as_deref(), false)).await);
    assert_ne!(second, first, "a renewal changes the version");
    let late = real.run(write_lease(first.as_deref(), false)).await;
    assert!(is_conflict(&late));
}
