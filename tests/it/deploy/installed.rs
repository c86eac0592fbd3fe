//! The chart on a real API server, and the program as the service account that it installs: it does
//! all its work, and has no right that this did not need.

use std::collections::BTreeSet;
use std::time::Duration;

use gpu_batch::lab::local::Options;
use serde_json::{Value, json};

use super::Program;
use super::requests::allowed;
use crate::chart::{CHART, Helm};
use crate::cluster::{self, Cluster, stays, until};
use crate::hami;
use crate::http;
use crate::numa;
use crate::volumes::{claims, disk, selected, storage_class, with_claim};
use crate::work::{ensure, patched};

/// The service account of the release.
const ACCOUNT: &str = "system:serviceaccount:gpu-batch:gpu-batch";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/gpu-batch/leases/gpu-batch";
/// Stands where only those who may read the object should see it.
const PRIVATE: &str = "do-not-tell";

#[tokio::test]
async fn an_installed_chart_lets_the_program_do_its_work_and_nothing_else() {
    let options = Options {
        native_gangs: true,
        audit: true,
        ..Options::default()
    };
    let Some(helm) = Helm::find().await else {
        return;
    };
    let Some(cluster) = cluster::own("installed", options).await else {
        return;
    };
    let notes = cluster.helm(
        &helm,
        &[
            "install",
            "gpu-batch",
            CHART,
            "--create-namespace",
            "--set",
            "gangGate.enabled=true",
        ],
    );
    assert!(notes.contains("kubectl get pods -n gpu-batch"), "{notes}");
    pods_meet_the_restricted_standard(&cluster).await;
    requests_are_served_before_those_of_others(&cluster).await;

    let [node] = cluster.nodes(["r1"]).await;
    numa::define(&cluster).await;
    let mut program = Program::start(&cluster).await;
    until("readiness", async || {
        let (status, page) = http::get(program.address, "/readyz").await;
        ensure(status == 200, (page, program.log()))
    })
    .await;
    whatever_it_does(&cluster, &node).await;
    pages_tell_nothing(&program, &["train-0", "basic-0", &node, PRIVATE]).await;
    program.stop().await;
    let log = program.log();
    for word in ["forbidden", "(403)", "panicked", PRIVATE] {
        assert!(!log.contains(word), "{log}");
    }
    // The Lease is given back, so that another need not wait.
    let lease = cluster.get(LEASE).await.unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "{lease:#}");

    its_roles_are_what_it_asked_for(&cluster).await;
    it_is_upgraded_and_removed(&cluster, &helm).await;
}

impl Cluster {
    /// Runs Helm on the release's namespace.
    pub(super) fn helm(&self, helm: &Helm, arguments: &[&str]) -> String {
        let kubeconfig = self.kubeconfig.to_str().unwrap();
        let common = ["--namespace", "gpu-batch", "--kubeconfig", kubeconfig];
        let result = helm.run(&[arguments, &common].concat());
        result.unwrap_or_else(|message| panic!("{arguments:?}: {message}"))
    }
}

/// Everything that needs a request: binds, a lost answer, statuses, conditions, events, evictions,
/// the Lease.
async fn whatever_it_does(cluster: &Cluster, node: &str) {
    let spec = json!({"minMember": 2, "stalenessGracePeriod": "1s"});
    cluster.group("train", &spec).await;
    let private = json!({
        "metadata": {"annotations": {"example.com/note": PRIVATE}},
        "spec": {"containers": [{
            "name": "c",
            "image": "none",
            "command": [PRIVATE],
            "env": [{"name": "TOKEN", "value": PRIVATE}],
            "resources": {"limits": {"nvidia.com/gpu": "2"}},
        }]},
    });
    let pods = cluster.members("train", 2, 2, &private).await;
    cluster.bound(&pods).await;
    let odd = json!({"metadata": {"annotations": {"gpu-batch.io/expected-runtime": PRIVATE}}});
    cluster.create(&cluster.pod("odd", 1, &odd)).await;
    cluster.pod_waits("odd", "InvalidSpec").await;
    cluster.create(&cluster.pod("large", 8, &json!({}))).await;
    cluster.pod_waits("large", "Unschedulable").await;
    cluster.event("Pod", "large", "DoesNotFit").await;
    cluster
        .group_when("train", |status| status["phase"] == "Running")
        .await;
    cluster.delete(&cluster.pod_path(&pods[0])).await;
    until("eviction", async || {
        let pod = cluster.get(&cluster.pod_path(&pods[1])).await;
        ensure(pod.is_err(), pod)
    })
    .await;
    cluster.bound(&["large".to_owned()]).await;
    let queue = "/apis/gpu-batch.io/v1alpha1/queues/default";
    until("the status of the queue", async || {
        let queue = cluster.get(queue).await?;
        ensure(queue["status"]["allocated"]["nvidia.com/gpu"] == "8", queue)
    })
    .await;
    cluster.delete(&cluster.pod_path("large")).await;

    let basic = json!({"schedulingPolicy": {"gang": {"minCount": 1}}});
    cluster.native_group("basic", &basic).await;
    let basic = cluster.native_members("basic", 1, 1).await;
    cluster.bound(&basic).await;
    cluster.native_when("basic", "True", "Scheduled").await;
    a_gate_is_lifted(cluster).await;
    a_claim_is_told_its_node(cluster).await;
    a_disk_is_kept_for_a_claim(cluster, node).await;
    hami::a_pod_gets_a_part_of_a_card(cluster).await;
    an_answer_is_lost(cluster).await;
    let lease = cluster.get(LEASE).await.unwrap();
    assert_ne!(
        lease["spec"]["holderIdentity"], "",
        "no process holds the Lease"
    );
}

/// A pod of kube-scheduler, which is not there, has a place.
async fn a_gate_is_lifted(cluster: &Cluster) {
    let gated = json!({
        "metadata": {"labels": {"gpu-batch.io/queue": "default"}},
        "spec": {
            "schedulerName": "default-scheduler",
            "schedulingGates": [{"name": "gpu-batch.io/gang"}],
        },
    });
    cluster.create(&cluster.pod("gated", 1, &gated)).await;
    until("the gate is lifted", async || {
        let pod = cluster.get(&cluster.pod_path("gated")).await?;
        ensure(pod["spec"]["schedulingGates"].is_null(), &pod["spec"])
    })
    .await;
    cluster.delete(&cluster.pod_path("gated")).await;
}

/// A claim of a pod waits for its volume, which nobody makes.
async fn a_claim_is_told_its_node(cluster: &Cluster) {
    storage_class(cluster).await;
    claims(cluster, &["data"]).await;
    let claiming = cluster.pod("claiming", 1, &with_claim("data"));
    cluster.create(&claiming).await;
    selected(cluster, "data").await;
    cluster.delete(&cluster.pod_path("claiming")).await;
}

/// A claim of a pod gets a disk that exists. No controller is there to bind the two.
async fn a_disk_is_kept_for_a_claim(cluster: &Cluster, node: &str) {
    claims(cluster, &["kept"]).await;
    let disk = format!("/api/v1/persistentvolumes/{}", disk(cluster, node, 0).await);
    let available = json!({"status": {"phase": "Available"}});
    cluster.merge(&format!("{disk}/status"), &available).await;
    let keeping = cluster.pod("keeping", 1, &with_claim("kept"));
    cluster.create(&keeping).await;
    until("the disk is kept", async || {
        let disk = cluster.get(&disk).await?;
        ensure(disk["spec"]["claimRef"]["name"] == "kept", &disk)
    })
    .await;
    cluster.delete(&cluster.pod_path("keeping")).await;
}

/// A webhook that takes connections and says nothing holds up each binding for longer than the
/// scheduler waits for an answer: nobody knows whether it was done.
async fn an_answer_is_lost(cluster: &Cluster) {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "down"},
        "webhooks": [{
            "name": "down.example.com",
            "clientConfig": {"url": url},
            "timeoutSeconds": 8,
            "rules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods/binding"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    cluster.create(&webhook).await;
    let other = json!({"spec": {"schedulerName": "nobody"}});
    cluster.create(&cluster.pod("other", 1, &other)).await;
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "other"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    });
    let path = format!("{}/binding?dryRun=All", cluster.pod_path("other"));
    until("the webhook", async || {
        let request = ::http::Request::post(&path).body(binding.to_string().into_bytes());
        let answer = cluster.send(request.unwrap()).await;
        let called = matches!(&answer, Err(message) if message.contains("calling webhook"));
        ensure(called, answer)
    })
    .await;
    cluster.create(&cluster.pod("lost", 1, &json!({}))).await;
    until("a look at the pod", async || {
        let requests = cluster.requests_of(ACCOUNT);
        ensure(requests.contains_key("get /pods"), requests)
    })
    .await;
    let path = cluster.collection(&webhook);
    cluster.delete(&format!("{path}/down")).await;
    cluster.bound(&["lost".to_owned()]).await;
}

async fn its_roles_are_what_it_asked_for(cluster: &Cluster) {
    let requests = cluster.requests_of(ACCOUNT);
    eprintln!("{requests:#?}");
    let asked: BTreeSet<String> = requests.into_keys().collect();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut granted = BTreeSet::new();
    for role in [
        format!("{rbac}/clusterroles/gpu-batch"),
        format!("{rbac}/clusterroles/gpu-batch-gang-gate"),
        format!("{rbac}/namespaces/gpu-batch/roles/gpu-batch-leader-election"),
    ] {
        granted.extend(allowed(&cluster.get(&role).await.unwrap()));
    }
    let missing: Vec<_> = asked.difference(&granted).collect();
    let unused: Vec<_> = granted.difference(&asked).collect();
    assert!(
        missing.is_empty(),
        "asked for, and not in its roles: {missing:?}"
    );
    assert!(
        unused.is_empty(),
        "in its roles, and never asked for: {unused:?}"
    );
}

async fn pages_tell_nothing(program: &Program, private: &[&str]) {
    for page in ["/healthz", "/readyz", "/metrics", "/debug/audit"] {
        let (status, text) = http::get(program.address, page).await;
        assert_eq!(status, 200, "{page}: {text}");
        for name in private {
            assert!(!text.contains(name), "{page} tells {name}: {text}");
        }
        if page == "/metrics" {
            http::check_open_metrics(&text);
            assert!(text.contains("outcome=\"unknown\""), "{text}");
        }
    }
}

/// The pods of the Deployment are accepted where the restricted standard is enforced, and pods that
/// may do more are not.
async fn pods_meet_the_restricted_standard(cluster: &Cluster) {
    let label = "pod-security.kubernetes.io/enforce=restricted";
    cluster
        .kubectl(&["label", "namespace", "gpu-batch", label])
        .await;
    let deployment = "/apis/apps/v1/namespaces/gpu-batch/deployments/gpu-batch";
    let template = cluster.get(deployment).await.unwrap()["spec"]["template"].take();
    let pod = patched(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "scheduler"}}),
        &template,
    );
    let create = async |pod: &Value| {
        let path = "/api/v1/namespaces/gpu-batch/pods?dryRun=All&fieldValidation=Strict";
        let request = ::http::Request::post(path).body(pod.to_string().into_bytes());
        cluster.send(request.unwrap()).await
    };
    // The label takes a moment to be seen.
    until("a pod that is refused", async || {
        let mut pod = pod.clone();
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
        let answer = create(&pod).await;
        let refused = matches!(&answer, Err(message) if message.contains("violates PodSecurity"));
        ensure(refused, answer)
    })
    .await;
    let created = create(&pod).await.unwrap();
    assert_eq!(
        created["spec"]["priorityClassName"],
        "system-cluster-critical"
    );
}

/// The API server sorts the account's requests into the chart's flow schemas.
async fn requests_are_served_before_those_of_others(cluster: &Cluster) {
    let config = gpu_batch::kube::connection::config(Some(&cluster.kubeconfig), None).await;
    let client = gpu_batch::kube::connection::client(&config.unwrap()).unwrap();
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let pods = "/api/v1/pods?limit=1";
    for (path, user, schema, level) in [
        (pods, ACCOUNT, "gpu-batch", "workload-high"),
        (
            LEASE,
            ACCOUNT,
            "gpu-batch-leader-election",
            "leader-election",
        ),
        (
            pods,
            "system:serviceaccount:gpu-batch:other",
            "service-accounts",
            "workload-low",
        ),
    ] {
        let schema = cluster.get(&format!("{schemas}/{schema}")).await.unwrap();
        assert_eq!(schema["spec"]["priorityLevelConfiguration"]["name"], level);
        // As if that user asked: what counts is who it is, not what it may do.
        until(path, async || {
            let request = ::http::Request::get(path)
                .header("Impersonate-User", user)
                .header("Impersonate-Group", "system:serviceaccounts")
                .header("Impersonate-Group", "system:authenticated")
                .body(kube::client::Body::empty());
            let answer = client.send(request.unwrap()).await.unwrap();
            let uid = answer.headers().get("x-kubernetes-pf-flowschema-uid");
            let uid = uid.and_then(|uid| uid.to_str().ok()).unwrap_or_default();
            ensure(schema["metadata"]["uid"] == uid, (&schema["metadata"], uid))
        })
        .await;
    }
}

/// As `docs/upgrade.md` says. Definitions, queues and gangs outlive the release.
async fn it_is_upgraded_and_removed(cluster: &Cluster, helm: &Helm) {
    cluster.queue("team", &json!({})).await;
    let definitions = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&definitions, helm.run(&["show", "crds", CHART]).unwrap()).unwrap();
    let file = definitions.path().to_str().unwrap();
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", file];
    let applied = cluster.kubectl(&apply).await;
    assert_eq!(
        applied.matches("serverside-applied").count(),
        3,
        "{applied}"
    );
    let notes = cluster.helm(
        helm,
        &[
            "upgrade",
            "gpu-batch",
            CHART,
            "--reset-then-reuse-values",
            "--set",
            "replicas=3,configuration.log.level=debug",
        ],
    );
    assert!(notes.contains("helm show crds"), "{notes}");
    let deployment = "/apis/apps/v1/namespaces/gpu-batch/deployments/gpu-batch";
    let upgraded = cluster.get(deployment).await.unwrap();
    assert_eq!(upgraded["spec"]["replicas"], 3);
    cluster.helm(helm, &["uninstall", "gpu-batch"]);
    cluster.get(deployment).await.unwrap_err();
    stays(
        "what users created",
        Duration::from_millis(500),
        async || {
            cluster
                .get("/apis/gpu-batch.io/v1alpha1/queues/team")
                .await?;
            cluster.get(&cluster.group_path("train")).await.map(drop)
        },
    )
    .await;
}
