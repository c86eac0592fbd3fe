//! Users are told why a gang waits: in the status of the PodGroup, in conditions of pods and in
//! events.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::{condition, ensure, patched};

/// A gang of two that must wait.
struct Case {
    name: &'static str,
    group: Value,
    pods: usize,
    patch: Value,
    reason: &'static str,
    /// Of the pods' condition PodScheduled.
    pod_reason: &'static str,
    /// A part of the message.
    says: &'static str,
}

/// A case in which the PodGroup is wrong: its pods say the same reason.
fn case(name: &'static str, group: Value, reason: &'static str, says: &'static str) -> Case {
    Case {
        name,
        group: patched(json!({"minMember": 2}), &group),
        pods: 2,
        patch: json!({}),
        reason,
        pod_reason: reason,
        says,
    }
}

fn cases_of_queues() -> Vec<Case> {
    vec![
        case(
            "queue-missing",
            json!({"queue": "nowhere"}),
            "QueueNotFound",
            "the queue nowhere does not exist",
        ),
        case(
            "queue-inner",
            json!({"queue": "waiting-inner"}),
            "QueueNotLeaf",
            "has children",
        ),
        case(
            "queue-closed",
            json!({"queue": "waiting-closed"}),
            "QueueClosed",
            "waiting-closed is closed",
        ),
        case(
            "queue-foreign",
            json!({"queue": "waiting-other"}),
            "NamespaceNotAllowed",
            "waiting",
        ),
        case(
            "queue-limit",
            json!({"queue": "waiting-limit"}),
            "OverLimit",
            "waiting-limit",
        ),
        case(
            "queue-quota",
            json!({"queue": "waiting-quota", "preemptible": false}),
            "NonPreemptibleOverQuota",
            "waiting-quota",
        ),
    ]
}

fn cases_of_groups() -> Vec<Case> {
    vec![
        case(
            "topology-missing",
            json!({"topology": {"name": "nowhere", "required": "rack"}}),
            "TopologyNotFound",
            "nowhere",
        ),
        case(
            "level-missing",
            json!({"topology": {"name": "waiting", "required": "building"}}),
            "TopologyNotFound",
            "building",
        ),
        case(
            "class-missing",
            json!({"priorityClassName": "nobody"}),
            "InvalidSpec",
            "spec.priorityClassName: there is no PriorityClass \"nobody\"",
        ),
        Case {
            pod_reason: "Unschedulable",
            ..case(
                "too-large",
                json!({"minMember": 2}),
                "DoesNotFit",
                "there is room for 1",
            )
        },
        Case {
            pods: 1,
            ..case(
                "incomplete",
                json!({}),
                "WaitingForMembers",
                "1 of at least 2 members exist",
            )
        },
    ]
}

fn cases_of_pods() -> Vec<Case> {
    let claim = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let uri = "https://account.blob.core.windows.net/disks/a";
    let disk = json!({"diskName": "a", "diskURI": uri, "kind": "Dedicated"});
    vec![
        Case {
            patch: json!({"spec": {"volumes": claim}}),
            ..case(
                "claim",
                json!({}),
                "WaitingForVolumes",
                "PersistentVolumeClaim data does not exist",
            )
        },
        Case {
            patch: json!({"spec": {"volumes": [{"name": "v", "azureDisk": disk}]}}),
            ..case(
                "volume",
                json!({}),
                "Unsupported",
                "spec.volumes[0].azureDisk is not supported yet",
            )
        },
        Case {
            patch: json!({"spec": {"schedulingGates": [{"name": "example.com/data"}]}}),
            ..case("gated", json!({}), "SchedulingGated", "example.com/data")
        },
        Case {
            patch: json!({"metadata": {"labels": {"gpu-batch.io/subgroup": "decode"}}}),
            ..case("sub-group", json!({}), "SubGroupNotFound", "decode")
        },
        Case {
            patch: json!({"metadata": {"annotations": {"gpu-batch.io/min-member": "many"}}}),
            ..case(
                "annotation",
                json!({}),
                "InvalidSpec",
                "gpu-batch.io/min-member",
            )
        },
    ]
}

#[tokio::test]
async fn a_gang_that_is_held_says_why_in_its_status_on_its_pods_and_in_an_event() {
    let Some(cluster) = cluster::shared("waiting").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    cluster.racks("waiting").await;
    let gpus = |field: &str| json!({"resources": [{"name": "nvidia.com/gpu", field: "8"}]});
    cluster.queue("waiting-inner", &json!({})).await;
    cluster
        .queue("waiting-leaf", &json!({"parent": "waiting-inner"}))
        .await;
    cluster
        .queue("waiting-closed", &json!({"closed": true}))
        .await;
    let others = json!({"namespaceSelector": {"matchLabels": {"team": "others"}}});
    cluster.queue("waiting-other", &others).await;
    cluster.queue("waiting-limit", &gpus("limit")).await;
    cluster.queue("waiting-quota", &gpus("quota")).await;
    let cases = [cases_of_queues(), cases_of_groups(), cases_of_pods()];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    for case in &cases {
        cluster.group(case.name, &case.group).await;
        cluster.members(case.name, case.pods, 8, &case.patch).await;
    }
    for case in &cases {
        check(&cluster, case).await;
    }
}

async fn check(cluster: &Cluster, case: &Case) {
    // The first answer may have been given before all members were there.
    let group = cluster
        .group_when(case.name, |status| {
            let message = status["message"].as_str().unwrap_or_default();
            status["reason"] == case.reason && message.contains(case.says)
        })
        .await;
    assert_eq!(group["status"]["phase"], "Pending", "{}", case.name);
    let scheduled = condition(&group, "PodGroupScheduled");
    assert_eq!(scheduled["status"], "False", "{}", case.name);
    assert_eq!(scheduled["reason"], case.reason, "{}", case.name);
    for member in 0..case.pods {
        let pod = format!("{}-{member}", case.name);
        let said = cluster.pod_waits(&pod, case.pod_reason).await;
        // The API server itself writes the condition of a gated pod.
        let gated = case.reason == "SchedulingGated";
        assert!(gated || said.contains(case.says), "{pod}: {said}");
        cluster.none_bound(&[pod]).await.unwrap();
    }
    cluster.event("PodGroup", case.name, case.reason).await;
}

#[tokio::test]
async fn a_pod_waits_for_the_pod_group_that_it_names() {
    let Some(cluster) = cluster::shared("nameless").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    let pods = cluster.members("later", 2, 4, &json!({})).await;
    for pod in &pods {
        let said = cluster.pod_waits(pod, "PodGroupNotFound").await;
        assert!(said.contains("later"), "{said}");
        cluster.event("Pod", &pods[0], "PodGroupNotFound").await;
    }
    cluster.group("later", &json!({"minMember": 2})).await;
    cluster.bound(&pods).await;
}

#[tokio::test]
async fn what_held_a_gang_is_taken_away_and_it_starts() {
    let Some(cluster) = cluster::shared("freed").await else {
        return;
    };
    cluster.nodes(["r1", "r1", "r1", "r1", "r1"]).await;
    cluster
        .queue("freed-closed", &json!({"closed": true}))
        .await;
    let limit = |gpus: &str| json!({"resources": [{"name": "nvidia.com/gpu", "limit": gpus}]});
    cluster.queue("freed-limit", &limit("4")).await;
    let selector = json!({"namespaceSelector": {"matchLabels": {"allowed": "yes"}}});
    cluster.queue("freed-other", &selector).await;
    let queues = [
        ("closed", "freed-closed", "QueueClosed"),
        ("limit", "freed-limit", "OverLimit"),
        ("other", "freed-other", "NamespaceNotAllowed"),
        ("missing", "freed-missing", "QueueNotFound"),
    ];
    for (name, queue, _) in queues {
        cluster
            .group(name, &json!({"minMember": 2, "queue": queue}))
            .await;
        cluster.members(name, 2, 4, &json!({})).await;
    }
    let gate = json!({"spec": {"schedulingGates": [{"name": "example.com/data"}]}});
    cluster.create(&cluster.pod("gated", 1, &gate)).await;
    for (name, _, reason) in queues {
        cluster.group_waits(name, reason).await;
    }
    cluster.pod_waits("gated", "SchedulingGated").await;

    let queue = |name: &str| format!("/apis/gpu-batch.io/v1alpha1/queues/{name}");
    let open = json!({"spec": {"closed": false}});
    cluster.merge(&queue("freed-closed"), &open).await;
    let more = json!({"spec": limit("8")});
    cluster.merge(&queue("freed-limit"), &more).await;
    let label = json!({"metadata": {"labels": {"allowed": "yes"}}});
    cluster.merge("/api/v1/namespaces/freed", &label).await;
    cluster.queue("freed-missing", &json!({})).await;
    let ungated = json!({"spec": {"schedulingGates": null}});
    cluster.merge(&cluster.pod_path("gated"), &ungated).await;
    for (name, _, _) in queues {
        let pods = [format!("{name}-0"), format!("{name}-1")];
        cluster.bound(&pods).await;
    }
    cluster.bound(&["gated".to_owned()]).await;
}

#[tokio::test]
async fn each_member_says_why_it_waits_where_people_look_and_follows_a_lowered_minimum() {
    let Some(cluster) = cluster::shared("members").await else {
        return;
    };
    cluster.nodes(["r1"]).await;
    cluster.group("large", &json!({"minMember": 4})).await;
    let pods = cluster.members("large", 4, 8, &json!({})).await;
    for pod in &pods {
        let said = cluster.pod_waits(pod, "Unschedulable").await;
        assert!(said.contains("4 members with"), "{said}");
        let event = cluster.event("Pod", pod, "DoesNotFit").await;
        assert!(event.contains("4 members with"), "{event}");
    }
    let described = ["describe", "pod", "-n", &cluster.namespace, &pods[3]];
    let described = cluster.kubectl(&described).await;
    assert!(described.contains("DoesNotFit"), "{described}");

    let fewer = json!({"spec": {"minMember": 2}});
    cluster.merge(&cluster.group_path("large"), &fewer).await;
    let lowered = Instant::now();
    for pod in &pods {
        until(pod, async || {
            let pod = cluster.get(&cluster.pod_path(pod)).await?;
            let said = condition(&pod, "PodScheduled")["message"].to_string();
            ensure(said.contains("2 members with"), said)
        })
        .await;
    }
    let took = lowered.elapsed();
    assert!(took < Duration::from_secs(2), "told after {took:?}");
}
