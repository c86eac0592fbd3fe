use super::*;
use gpu_batch_policies::facts::{CardPart, Problem, Uid};
use serde_json::{Value, json};
use std::sync::Arc;

const NOW_MS: u64 = 1_795_255_200_000;
const UID: &str = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";

fn facts(value: Value) -> Option<PodFacts> {
    let decoded = serde_json::from_value(value).unwrap();
    pod(&decoded, &mut Converter::new("gpu-batch", NOW_MS))
}

fn own_facts(mut value: Value) -> PodFacts {
    value["spec"]["schedulerName"] = json!("gpu-batch");
    facts(value).unwrap()
}

fn full_pod() -> Value {
    json!({
        "metadata": {
            "name": "train-0",
            "namespace": "vision",
            "uid": UID,
            "creationTimestamp": "2026-11-21T09:00:00Z",
            "deletionTimestamp": "2026-11-21T10:00:30Z",
            "labels": {
                "app": "train",
                "gpu-batch.io/pod-group": "train",
                "gpu-batch.io/subgroup": "workers",
                "gpu-batch.io/queue": "team-vision",
            },
            "annotations": {
                "gpu-batch.io/bound-queue": "team-vision",
                "gpu-batch.io/bound-podgroup": "train",
                "gpu-batch.io/bound-minimum": "2/3",
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"},
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": UID,
                 "controller": true},
            ],
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "schedulerName": "gpu-batch",
            "nodeName": "n1",
            "priority": -5,
            "preemptionPolicy": "Never",
            "schedulingGates": [{"name": "example.com/wait"}],
            "schedulingGroup": {"podGroupName": "native"},
            "containers": [{"name": "c", "image": "x",
                            "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        },
        "status": {
            "phase": "Running",
            "nominatedNodeName": "n2",
            "startTime": "2026-11-21T09:01:00Z",
            "conditions": [{"type": "PodScheduled", "status": "False",
                            "reason": "Unschedulable", "message": "no room"}],
        },
    })
}

#[test]
fn pods_of_one_job_share_their_labels_and_each_has_its_own_index() {
    let mut converter = Converter::new("gpu-batch", NOW_MS);
    let mut labels_of = |index: u32| {
        let mut value = full_pod();
        value["metadata"]["name"] = json!(format!("train-{index}-abcde"));
        let labels = &mut value["metadata"]["labels"];
        labels["batch.kubernetes.io/job-completion-index"] = json!(index.to_string());
        labels["batch.kubernetes.io/job-name"] = json!("train");
        labels["controller-uid"] = json!(UID);
        let decoded = serde_json::from_value(value).unwrap();
        pod(&decoded, &mut converter).unwrap()
    };
    let (one, other) = (labels_of(1), labels_of(17));
    let value = |facts: &PodFacts, key: &str| {
        let value = facts.labels.value(key, &facts.name, facts.owner.as_ref());
        value.map(std::borrow::Cow::into_owned)
    };
    for (key, expected) in [
        ("app", Some("train")),
        ("gpu-batch.io/pod-group", Some("train")),
        ("batch.kubernetes.io/job-completion-index", Some("17")),
        ("batch.kubernetes.io/job-name", Some("train")),
        ("controller-uid", Some(UID)),
        ("batch.kubernetes.io/controller-uid", None),
        ("job-name", None),
    ] {
        assert_eq!(value(&other, key).as_deref(), expected, "{key}");
    }
    let stated = |facts: &PodFacts| facts.labels.stated.clone().unwrap();
    assert!(Arc::ptr_eq(&stated(&one), &stated(&other)));
}

#[test]
fn a_flood_of_labels_is_kept_and_bars_no_pod() {
    let mut value = full_pod();
    let flood = (0..600).map(|number| (number.to_string(), json!("x")));
    value["metadata"]["labels"] = Value::Object(flood.collect());
    let facts = own_facts(value);
    let kept = facts.labels.value("599", &facts.name, facts.owner.as_ref());
    assert_eq!(kept.as_deref(), Some("x"));
    assert_eq!(facts.problems, []);
}

#[test]
fn labels_of_other_schedulers_pods_are_kept_as_they_are_for_rules_that_select_them() {
    let mut value = full_pod();
    value["spec"]["schedulerName"] = json!("another");
    let labels = facts(value).unwrap().labels;
    assert_eq!(labels.implied, 0);
    let stated = labels.stated.unwrap();
    assert!(
        stated.contains(&("app".into(), "train".into())),
        "{stated:?}"
    );
}

#[test]
fn a_bound_pod_says_when_it_was_bound() {
    let bound_ms = |status: &str, since: &str| {
        let mut value = full_pod();
        value["status"]["conditions"] = json!([
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T09:40:00Z"},
            {"type": "PodScheduled", "status": status, "lastTransitionTime": since},
        ]);
        own_facts(value).bound_ms
    };
    let half_past = Some(NOW_MS - 1_800_000);
    assert_eq!(bound_ms("True", "2026-11-21T09:30:00Z"), half_past);
    assert_eq!(bound_ms("False", "2026-11-21T09:30:00Z"), None);
    // A clock that runs ahead binds no pod in the future.
    assert_eq!(bound_ms("True", "2026-11-21T10:00:09Z"), Some(NOW_MS));
}

#[test]
fn a_pod_of_ours_is_read_in_full() {
    let facts = facts(full_pod()).unwrap();
    let uid = Uid::parse(UID).unwrap();
    assert_eq!(facts.uid, uid);
    assert_eq!((&*facts.namespace, &*facts.name), ("vision", "train-0"));
    assert!(facts.ours && facts.never_preempts);
    assert_eq!(facts.deletion_ms, Some(NOW_MS + 30_000), "in the future");
    assert_eq!(facts.node.as_deref(), Some("n1"));
    assert_eq!(facts.nominated.as_deref(), Some("n2"));
    assert_eq!(facts.phase, PodPhase::Running);
    assert_eq!(facts.created_ms, NOW_MS - 3_600_000);
    assert_eq!(facts.started_ms, Some(NOW_MS - 3_540_000));
    assert_eq!(facts.priority, -5);
    assert_eq!(facts.gates, ["example.com/wait".into()]);
    assert_eq!(
        facts.shape.requests,
        [("nvidia.com/gpu".into(), 8), ("pods".into(), 1)]
    );
    assert_eq!(facts.pod_group.as_deref(), Some("train"));
    assert_eq!(facts.sub_group.as_deref(), Some("workers"));
    assert_eq!(facts.queue.as_deref(), Some("team-vision"));
    assert_eq!(facts.native_group.as_deref(), Some("native"));
    assert_eq!(facts.bound_queue.as_deref(), Some("team-vision"));
    assert_eq!(facts.bound_pod_group.as_deref(), Some("train"));
    assert_eq!(facts.bound_minima, [2, 3]);
    let owner = OwnerReference {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: "train".into(),
        uid,
    };
    assert_eq!(facts.owner, Some(owner));
    let unscheduled = ScheduledCondition {
        reason: "Unschedulable".into(),
        message: "no room".into(),
    };
    assert_eq!(facts.unscheduled, Some(unscheduled));
    assert_eq!(facts.problems, []);
}

#[test]
fn a_pod_that_says_nothing_has_the_defaults() {
    let facts = own_facts(json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {}}));
    assert_eq!(facts.phase, PodPhase::Pending);
    assert_eq!(facts.created_ms, NOW_MS);
    assert_eq!((facts.priority, facts.never_preempts), (0, false));
    assert_eq!(
        (facts.node, facts.owner, facts.unscheduled),
        (None, None, None)
    );
    assert_eq!(facts.problems, []);
}

#[test]
fn ended_pods_of_others_are_dropped_and_ours_are_kept() {
    for (scheduler, phase, kept) in [
        ("default-scheduler", "Pending", true),
        ("default-scheduler", "Running", true),
        ("default-scheduler", "Unknown", true),
        ("default-scheduler", "Succeeded", false),
        ("default-scheduler", "Failed", false),
        ("gpu-batch", "Succeeded", true),
        ("gpu-batch", "Failed", true),
    ] {
        let pod = json!({"spec": {"schedulerName": scheduler}, "status": {"phase": phase}});
        let facts = facts(pod);
        assert_eq!(facts.is_some(), kept, "{scheduler} {phase}");
    }
}

#[test]
fn a_pod_of_another_scheduler_only_takes_room() {
    let facts = facts(json!({
        "metadata": {"name": "a", "labels": {"gpu-batch.io/pod-group": "g"},
                     "annotations": {"gpu-batch.io/min-member": "many"}},
        "spec": {
            "nodeName": "n1",
            "priority": 7,
            "containers": [{"resources": {"requests": {"cpu": "1", "memory": "much"}}}],
        },
        "status": {"phase": "Running"},
    }))
    .unwrap();
    assert!(!facts.ours);
    assert_eq!(facts.priority, 7);
    assert_eq!(facts.node.as_deref(), Some("n1"));
    assert_eq!(
        facts.shape.requests,
        [("cpu".into(), 1_000), ("pods".into(), 1)]
    );
    assert_eq!((facts.pod_group, facts.problems), (None, Vec::new()));
}

#[test]
fn pods_of_kube_scheduler_that_name_a_queue_are_extended_where_it_is_asked_for() {
    let pod = |scheduler: &str, label: &str| {
        json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": UID, "labels": {label: "a"}},
            "spec": {"schedulerName": scheduler, "containers": []},
        })
    };
    let convert = |extended: Option<&str>, pod| {
        let mut converter = Converter::new("gpu-batch", 0).with_extended(extended);
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let facts = super::pod(&pod, &mut converter).unwrap();
        (facts.ours, facts.extended, facts.queue.is_some())
    };
    let default = Some("default-scheduler");
    let queue = "gpu-batch.io/queue";
    for (extended, scheduler, label, expected) in [
        (default, "default-scheduler", queue, (true, true, true)),
        (default, "default-scheduler", "app", (false, false, false)),
        (default, "other", queue, (false, false, false)),
        (default, "gpu-batch", queue, (true, false, true)),
        (None, "default-scheduler", queue, (false, false, false)),
    ] {
        assert_eq!(
            convert(extended, pod(scheduler, label)),
            expected,
            "{scheduler} {label}"
        );
    }
}

#[test]
fn the_future_counts_as_now() {
    let facts = own_facts(json!({
        "metadata": {"creationTimestamp": "2999-01-01T00:00:00Z"},
        "spec": {},
        "status": {"startTime": "2999-01-01T00:00:00Z"},
    }));
    assert_eq!((facts.created_ms, facts.started_ms), (NOW_MS, Some(NOW_MS)));
}

#[test]
fn equal_shapes_are_one() {
    let decoded: Pod =
        serde_json::from_value(json!({"spec": {"schedulerName": "gpu-batch"}})).unwrap();
    let mut converter = Converter::new("gpu-batch", NOW_MS);
    let one = pod(&decoded, &mut converter).unwrap();
    let other = pod(&decoded, &mut converter).unwrap();
    assert!(Arc::ptr_eq(&one.shape, &other.shape));
}

#[test]
fn bad_labels_and_phases_are_problems() {
    let long = "x".repeat(limits::TEXT + 1);
    let fields = |pod: Value| -> Vec<String> {
        let problems: Vec<Problem> = own_facts(pod).problems;
        problems
            .iter()
            .map(|problem| problem.field.to_string())
            .collect()
    };
    for name in ["pod-group", "subgroup", "queue"] {
        let key = format!("gpu-batch.io/{name}");
        for value in ["", &long] {
            let pod = json!({"metadata": {"labels": {&key: value}}, "spec": {}});
            assert_eq!(fields(pod), [format!("metadata.labels[{key}]")], "{value}");
        }
    }
    let pod = json!({"spec": {"schedulingGroup": {"podGroupName": ""}}});
    assert_eq!(fields(pod), ["spec.schedulingGroup.podGroupName"]);
    let pod = json!({"spec": {}, "status": {"phase": "Resting"}});
    assert_eq!(fields(pod), ["status.phase"]);
}

#[test]
fn a_file_without_uids_still_connects_a_pod_with_its_owner() {
    let facts = own_facts(json!({
        "metadata": {"name": "a", "namespace": "ns", "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": true},
        ]},
        "spec": {},
    }));
    let job: crate::kube::objects::Job =
        serde_json::from_value(json!({"metadata": {"name": "j", "namespace": "ns"}})).unwrap();
    assert_eq!(ObjectKey::Job(facts.owner.unwrap().uid), job.key());
}

#[test]
fn a_priority_beyond_the_range_is_the_nearest_one() {
    for (priority, expected) in [(i64::MAX, i32::MAX), (i64::MIN, i32::MIN), (3, 3)] {
        assert_eq!(
            own_facts(json!({"spec": {"priority": priority}})).priority,
            expected
        );
    }
}

#[test]
fn an_endless_message_is_cut() {
    let facts = own_facts(json!({"spec": {}, "status": {"conditions": [
        {"type": "PodScheduled", "status": "False", "message": "x".repeat(1_000_000)},
    ]}}));
    assert!(facts.unscheduled.unwrap().message.len() <= limits::MESSAGE + 3);
}

/// Else half a gang would start without a word about the reason.
#[test]
fn a_minimum_on_a_pod_that_belongs_to_nobody_is_a_problem() {
    let problems = |metadata: Value| {
        let facts = own_facts(json!({"metadata": metadata, "spec": {}}));
        let problems = facts.problems.into_iter();
        let said = problems.map(|problem| format!("{}: {}", problem.field, problem.message));
        said.collect::<Vec<_>>()
    };
    let annotated = |minimum: &str| json!({"gpu-batch.io/min-member": minimum});
    let alone = json!({"name": "a", "namespace": "b", "annotations": annotated("2")});
    assert_eq!(
        problems(alone),
        [
            "metadata.annotations[gpu-batch.io/min-member]: makes a gang of the pods of one owner, \
             and this pod has none; use a PodGroup"
        ]
    );
    for other in [
        json!({"name": "a", "namespace": "b", "annotations": annotated("1")}),
        json!({"name": "a", "namespace": "b", "annotations": annotated("2"),
               "labels": {"gpu-batch.io/pod-group": "g"}}),
        json!({"name": "a", "namespace": "b", "annotations": annotated("2"), "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": UID,
             "controller": true}]}),
    ] {
        assert_eq!(problems(other), Vec::<String>::new());
    }
}

#[test]
fn the_gate_and_afterwards_the_annotation_say_that_an_extended_pod_is_planned() {
    let convert = |scheduler: &str, gates: Value, annotations: Value| {
        let mut converter = Converter::new("gpu-batch", 0).with_extended(Some("default-scheduler"));
        let pod = json!({
            "metadata": {
                "name": "p", "namespace": "ns", "uid": UID, "annotations": annotations,
                "labels": {"gpu-batch.io/queue": "a"},
            },
            "spec": {"schedulerName": scheduler, "schedulingGates": gates, "containers": []},
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        super::pod(&pod, &mut converter).unwrap()
    };
    let gates = json!([{"name": "gpu-batch.io/gang"}, {"name": "example.com/wait"}]);
    let lifted = json!({
        "gpu-batch.io/planned-node": "n1", "gpu-batch.io/planned-at": "2026-11-21T10:00:00Z",
    });
    let before = convert("default-scheduler", gates.clone(), json!({}));
    assert!(before.is_planned());
    assert_eq!(
        before.holding_gates().collect::<Vec<_>>(),
        ["example.com/wait"]
    );
    let after = convert("default-scheduler", json!([]), lifted);
    assert!(after.is_planned() && after.unknown_keys.is_empty());
    let never = convert("default-scheduler", json!([]), json!({}));
    assert!(!never.is_planned() && never.is_chosen_elsewhere());
    let ours = convert("gpu-batch", gates, json!({}));
    assert!(!ours.is_planned() && ours.holding_gates().count() == 2);
}

#[test]
fn pods_of_all_schedulers_have_their_claims_each_once_and_sorted() {
    let claim = |name: &str| json!({"name": "v", "persistentVolumeClaim": {"claimName": name}});
    let volumes = json!([
        claim("p-own"),
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "scratch", "emptyDir": {}},
        claim("data"),
        claim("data"),
        {"name": "none", "persistentVolumeClaim": null, "ephemeral": null},
    ]);
    let pod = json!({"metadata": {"name": "p", "namespace": "vision"},
                     "spec": {"volumes": volumes}});
    let used = |name: &str, is_ephemeral| ClaimUse {
        name: name.into(),
        is_ephemeral,
    };
    let expected = [used("data", false), used("p-own", true)];
    assert_eq!(facts(pod.clone()).unwrap().claims, expected);
    let own = own_facts(pod);
    assert_eq!(own.claims, expected);
    assert!(own.shape.unsupported.is_empty() && own.shape.volumes.is_none());
}

#[test]
fn a_volume_that_names_no_claim_is_a_problem() {
    let field = "spec.volumes[0].persistentVolumeClaim.claimName";
    for claim in [
        json!({}),
        json!({"claimName": "cinder.csi.openstack.org/disk"}),
    ] {
        let own = own_facts(json!({"spec": {"volumes": [{"persistentVolumeClaim": claim}]}}));
        assert_eq!(&*own.problems[0].field, field);
    }
}

#[test]
fn a_disk_that_a_driver_attaches_is_used_like_a_claim() {
    let own = own_facts(json!({"spec": {"volumes": [{"cinder": {"volumeID": "disk"}}]}}));
    let expected = ClaimUse {
        name: "cinder.csi.openstack.org/disk".into(),
        is_ephemeral: false,
    };
    assert_eq!(own.claims, [expected]);
    assert!(own.problems.is_empty() && own.shape.unsupported.is_empty());
}

#[test]
fn the_cards_that_pods_hold_are_read_of_all_and_the_entries_of_ours() {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"});
    let mut pod = json!({
        "metadata": {"annotations": {"hami.io/vgpu-devices-allocated": ";;a,NVIDIA,3000,30:;"}},
        "spec": {"nodeName": "n1", "initContainers": [{"name": "i"}],
                 "containers": [{"name": "b"}, {"name": "c", "resources": {"limits": limits}}]},
    });
    let part = CardPart {
        instances: Vec::new(),
        card: "a".into(),
        slots: 1,
        thousandths: 300,
        memory_mib: 3_000,
    };
    assert_eq!(
        facts(pod.clone()).unwrap().cards,
        std::slice::from_ref(&part)
    );
    let own = own_facts(pod.clone());
    assert_eq!(own.cards, [part]);
    assert_eq!(
        own.card_entries,
        CardEntries {
            between: vec![],
            before: 2,
            after: 0
        }
    );
    pod["spec"]["containers"][1]["securityContext"] = json!({"privileged": true});
    let own = own_facts(pod);
    assert_eq!(own.problems.len(), 1, "{:?}", own.problems);
    let field = "spec.containers[1].securityContext.privileged";
    assert_eq!(&*own.problems[0].field, field);
}
