use super::*;
use crate::plan::source::Source;
use proptest::prelude::*;

/// The objects after one look of the controllers, without those of kinds that are given; refusals;
/// and notes.
fn made(objects: &[Value]) -> (Vec<Value>, Vec<String>, Vec<String>) {
    let source = Source {
        file: "f".into(),
        document: None,
    };
    let mut gathered = Gathered::default();
    for object in objects {
        gathered.add(&source, object.clone(), "default");
    }
    let notes = make_pods(&mut gathered);
    let is_new = |object: &Value| !objects.contains(object) && object["kind"] == "Pod";
    let pods = gathered.objects.into_iter().map(|(_, object)| object);
    let refused = gathered
        .refused
        .iter()
        .map(|(_, refused)| refused.to_string());
    (pods.filter(is_new).collect(), refused.collect(), notes)
}

fn names(objects: &[Value]) -> Vec<String> {
    let (pods, refused, _) = made(objects);
    assert!(refused.is_empty(), "{refused:?}");
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    pods.iter().map(name).collect()
}

fn job(spec: Value, status: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "j", "namespace": "n"},
        "spec": {"template": {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"restartPolicy": "Never", "schedulerName": "gpu-batch"},
        }},
        "status": status,
    });
    let fields = spec.as_object().unwrap().clone();
    job["spec"].as_object_mut().unwrap().extend(fields);
    job
}

fn member(kind: &str, owner: &str, name: &str, phase: &str, index: Option<i64>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "n", "labels": {}, "ownerReferences":
            [{"apiVersion": "x", "kind": kind, "name": owner, "controller": true}]},
        "status": {"phase": phase},
    });
    if let Some(index) = index {
        pod["metadata"]["labels"] = json!({members::COMPLETION_INDEX: index.to_string()});
    }
    pod
}

fn indexed(more: Value) -> Value {
    let mut spec = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 4});
    let fields = more.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(fields);
    spec
}

#[test]
fn a_pod_of_a_job_is_as_its_controller_makes_it() {
    let mut owner = job(indexed(json!({"completions": 1})), json!(null));
    owner["metadata"]["uid"] = json!("u");
    let (pods, refused, notes) = made(&[owner]);
    assert_eq!(
        (refused, notes),
        (
            vec![],
            vec!["made the missing pods: 1 of Job n/j".to_owned()]
        )
    );
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "j-0", "namespace": "n",
            "labels": {
                "a": "b", "job-name": "j", "batch.kubernetes.io/job-name": "j",
                "controller-uid": "u", "batch.kubernetes.io/controller-uid": "u",
                "batch.kubernetes.io/job-completion-index": "0",
            },
            "annotations": {"c": "d", "batch.kubernetes.io/job-completion-index": "0"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u",
                                 "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {"restartPolicy": "Never", "schedulerName": "gpu-batch"},
    });
    assert_eq!(pods, [expected]);
}

#[test]
fn a_job_gets_as_many_pods_as_are_still_wanted() {
    for (spec, status, expected) in [
        (json!({}), json!(null), 1),
        (json!({"parallelism": 3}), json!(null), 3),
        (json!({"completions": 3}), json!(null), 1),
        (json!({"completions": 3, "parallelism": 5}), json!(null), 3),
        (
            json!({"completions": 5, "parallelism": 3}),
            json!({"succeeded": 3}),
            2,
        ),
        (json!({"parallelism": 3}), json!({"succeeded": 1}), 0),
        (json!({"parallelism": 0}), json!(null), 0),
        (json!({"parallelism": 3, "suspend": true}), json!(null), 0),
        (
            json!({"parallelism": 3, "managedBy": "kueue.x-k8s.io/multikueue"}),
            json!(null),
            0,
        ),
        (
            json!({"parallelism": 3}),
            json!({"conditions": [{"type": "Failed", "status": "True"}]}),
            0,
        ),
        (
            json!({"parallelism": 3}),
            json!({"conditions": [{"type": "Suspended", "status": "True"}]}),
            3,
        ),
    ] {
        let told = format!("{spec} {status}");
        assert_eq!(names(&[job(spec, status)]).len(), expected, "{told}");
    }
}

#[test]
fn pods_that_are_there_are_not_made_twice() {
    let owner = job(json!({"parallelism": 4, "completions": 9}), json!(null));
    let pods = [
        member("Job", "j", "j-1", "Running", None),
        member("Job", "j", "j-abcde", "Pending", None),
        member("Job", "j", "j-x", "Failed", None),
        member("Job", "other", "other-1", "Running", None),
    ];
    assert_eq!(names(&[&[owner], &pods[..]].concat()), ["j-0", "j-2"]);
}

#[test]
fn an_indexed_job_fills_its_lowest_free_indexes() {
    let pods = [
        member("Job", "j", "j-1-x", "Running", Some(1)),
        member("Job", "j", "j-2-x", "Succeeded", Some(2)),
        member("Job", "j", "j-3-x", "Failed", Some(3)),
    ];
    let owner = job(indexed(json!({})), json!(null));
    assert_eq!(names(&[&[owner], &pods[..]].concat()), ["j-0", "j-3"]);

    let done = json!({"succeeded": 3, "completedIndexes": "0,2-3", "failedIndexes": "4"});
    let owner = job(indexed(json!({"completions": 8, "parallelism": 2})), done);
    assert_eq!(names(&[owner]), ["j-1", "j-5"]);
}

#[test]
fn a_leaving_pod_is_replaced_as_the_job_says() {
    let mut leaving = member("Job", "j", "j-0-x", "Running", Some(0));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:00:00Z");
    for (more, expected) in [
        (json!({}), 4),
        (json!({"podReplacementPolicy": "Failed"}), 3),
        (json!({"podFailurePolicy": {"rules": []}}), 3),
    ] {
        let owner = job(indexed(more), json!(null));
        assert_eq!(names(&[owner, leaving.clone()]).len(), expected);
    }
}

#[test]
fn pods_of_an_earlier_job_of_the_name_do_not_count() {
    let mut owner = job(json!({}), json!(null));
    owner["metadata"]["uid"] = json!("new");
    let mut pod = member("Job", "j", "j-0", "Running", None);
    pod["metadata"]["ownerReferences"][0]["uid"] = json!("old");
    assert_eq!(names(&[owner.clone(), pod.clone()]), ["j-1"]);
    pod["metadata"]["ownerReferences"][0]["uid"] = json!("new");
    assert_eq!(names(&[owner, pod]), Vec::<String>::new());
}

fn replicas(kind: &str, count: i64, more: Value) -> Value {
    let mut owner = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": "n"},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {}},
        },
    });
    let fields = more.as_object().unwrap().clone();
    owner["spec"].as_object_mut().unwrap().extend(fields);
    owner
}

#[test]
fn a_deployment_has_a_replica_set_that_its_pods_name() {
    let (pods, _, _) = made(&[replicas("Deployment", 2, json!({}))]);
    let labels = &pods[0]["metadata"]["labels"];
    let hash = labels[members::TEMPLATE_HASH].as_str().unwrap();
    assert_eq!(labels["a"], "b");
    assert_eq!(hash.len(), 10);
    let owner = &pods[1]["metadata"]["ownerReferences"][0];
    assert_eq!(owner["kind"], "ReplicaSet");
    assert_eq!(owner["name"], format!("w-{hash}"));
    assert_eq!(pods[1]["metadata"]["name"], format!("w-{hash}-1"));
    let other = replicas(
        "Deployment",
        1,
        json!({"template": {"metadata": {"labels": {"a": "b"}}}}),
    );
    assert_ne!(names(&[other])[0], format!("w-{hash}-0"));
}

#[test]
fn a_deployment_goes_on_with_the_replica_set_that_it_has() {
    let mut pod = member("ReplicaSet", "w-123", "w-123-abcde", "Running", None);
    pod["metadata"]["labels"] = json!({members::TEMPLATE_HASH: "123"});
    let owner = replicas("Deployment", 3, json!({}));
    assert_eq!(names(&[owner, pod.clone()]), ["w-123-0", "w-123-1"]);
    // Its ReplicaSet is there, too, and makes its own.
    let mut set = replicas("ReplicaSet", 2, json!({}));
    set["metadata"]["name"] = json!("w-123");
    set["spec"]["template"]["metadata"]["labels"][members::TEMPLATE_HASH] = json!("123");
    let owner = replicas("Deployment", 2, json!({}));
    assert_eq!(names(&[owner, set, pod]), ["w-123-0"]);
}

#[test]
fn replica_sets_and_paused_deployments() {
    assert_eq!(
        names(&[replicas("ReplicaSet", 2, json!({}))]),
        ["w-0", "w-1"]
    );
    let paused = replicas("Deployment", 2, json!({"paused": true}));
    let (pods, _, notes) = made(&[paused]);
    assert!(pods.is_empty());
    assert_eq!(
        notes,
        ["Deployment n/w is paused, so no pods are made of it"]
    );
}

#[test]
fn a_stateful_set_starts_one_after_the_other_or_all_at_once() {
    let ordered = replicas("StatefulSet", 3, json!({"ordinals": {"start": 5}}));
    let (pods, _, notes) = made(std::slice::from_ref(&ordered));
    assert_eq!(pods[0]["metadata"]["name"], "w-5");
    assert_eq!(pods.len(), 1);
    assert!(notes[0].contains("not made yet: 2."), "{notes:?}");
    let pod = |phase| member("StatefulSet", "w", "w-5", phase, None);
    assert_eq!(names(&[ordered.clone(), pod("Running")]), ["w-6"]);
    assert_eq!(names(&[ordered, pod("Pending")]), Vec::<String>::new());

    let claims = json!([{"metadata": {"name": "data"}}]);
    let more = json!({"podManagementPolicy": "Parallel", "volumeClaimTemplates": claims});
    let (pods, _, _) = made(&[replicas("StatefulSet", 2, more)]);
    assert_eq!(pods.len(), 2);
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-w-1"}});
    assert_eq!(pods[1]["spec"]["volumes"], json!([volume]));
    assert_eq!(
        pods[1]["metadata"]["labels"]["apps.kubernetes.io/pod-index"],
        "1"
    );
}

#[test]
fn two_owners_never_make_pods_of_one_name() {
    let set = replicas("StatefulSet", 1, json!({}));
    let mut same = job(
        indexed(json!({"completions": 2, "parallelism": 2})),
        json!(null),
    );
    same["metadata"]["name"] = json!("w");
    assert_eq!(names(&[same, set]), ["w-0", "w-0-x", "w-1"]);
}

#[test]
fn what_no_api_server_takes_is_refused_with_its_field() {
    let always = json!({"template": {"spec": {"restartPolicy": "Always"}}});
    for (owner, expected) in [
        (
            job(json!({"parallelism": -1}), json!(null)),
            "Job n/j: spec.parallelism: must be between 0",
        ),
        (
            job(json!({"parallelism": "2"}), json!(null)),
            "Job n/j: spec.parallelism: must be a whole",
        ),
        (
            job(json!({"completionMode": "Indexed"}), json!(null)),
            "Job n/j: spec.completions: is missing",
        ),
        (
            job(json!({"completionMode": "indexed"}), json!(null)),
            "Job n/j: spec.completionMode: must be NonIndexed or Indexed, not indexed",
        ),
        (
            job(always, json!(null)),
            "Job n/j: spec.template.spec.restartPolicy: must be Never or On",
        ),
        (
            replicas("StatefulSet", 1, json!({"podManagementPolicy": "parallel"})),
            "StatefulSet n/w: spec.podManagementPolicy: must be OrderedReady or P",
        ),
        (
            job(json!({"parallelism": 100_001}), json!(null)),
            "Job n/j: spec.parallelism: asks for 100001 more pods",
        ),
        (
            replicas(
                "Deployment",
                1,
                json!({"selector": {"matchLabels": {"a": "c"}}}),
            ),
            "Deployment n/w: spec.selector: wants the label a=c",
        ),
        (
            replicas("ReplicaSet", 1, json!({"selector": null})),
            "ReplicaSet n/w: spec.selector: is m",
        ),
        (
            replicas(
                "StatefulSet",
                1,
                json!({"template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"restartPolicy": "Never"}}}),
            ),
            "StatefulSet n/w: spec.template.spec.restartPolicy: must be Always",
        ),
    ] {
        let (pods, refused, _) = made(&[owner]);
        assert!(pods.is_empty(), "{expected}");
        assert!(refused[0].starts_with(expected), "{refused:?}");
    }
}

#[test]
fn an_owner_without_a_template_is_told() {
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}});
    let (pods, refused, notes) = made(&[owner]);
    assert!(pods.is_empty() && refused.is_empty());
    assert_eq!(
        notes,
        ["Job default/j has no spec.template to make pods of"]
    );
}

fn anything() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "metadata",
        "labels",
        "annotations",
        "spec",
        "status",
        "template",
        "replicas",
        "selector",
        "matchLabels",
        "parallelism",
        "completions",
        "ownerReferences",
        "volumes",
        "ordinals",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..40_i64).prop_map(Value::from),
        prop::sample::select(vec!["a", "Indexed", "Never", "0-5,7", "Parallel"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let map =
            prop::collection::btree_map(words.clone().prop_map(str::to_owned), inner.clone(), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            map.prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_owner_panics(kind in 0..4_usize, spec in anything(), status in anything(), meta in anything()) {
        let (api_version, kind) = [
            ("batch/v1", "Job"), ("apps/v1", "Deployment"),
            ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"),
        ][kind];
        let mut metadata = meta.as_object().cloned().unwrap_or_default();
        metadata.insert("name".into(), "x".into());
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata,
                            "spec": spec, "status": status});
        made(&[object]);
    }
}

#[test]
fn claims_are_made_with_the_pods_that_use_them_unless_they_are_there() {
    let template = json!({"metadata": {"name": "data", "labels": {"a": "b"}},
                          "spec": {"storageClassName": "fast"}});
    let more = json!({"podManagementPolicy": "Parallel", "volumeClaimTemplates": [template]});
    let set = replicas("StatefulSet", 2, more);
    let there = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                       "metadata": {"name": "data-w-0", "namespace": "n"}});
    let volumes = json!([
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Block"}}}},
        {"name": "scratch", "emptyDir": {}},
    ]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"volumes": volumes},
                     "metadata": {"name": "p", "namespace": "n", "uid": "u"}});
    let source = Source {
        file: "f".into(),
        document: None,
    };
    let mut gathered = Gathered::default();
    for object in [set, there.clone(), pod] {
        gathered.add(&source, object, "default");
    }
    let notes = make_pods(&mut gathered);
    let told = notes
        .iter()
        .any(|note| note == "made the missing claims: n/data-w-1 and n/p-own");
    assert!(told, "{notes:?}");
    let objects = gathered.objects.into_iter().map(|(_, object)| object);
    let claims: Vec<Value> = objects
        .filter(|object| object["kind"] == "PersistentVolumeClaim")
        .collect();
    let [first, second, third] = &claims[..] else {
        panic!("{claims:?}");
    };
    assert_eq!(*first, there);
    assert_eq!(second["metadata"]["name"], "data-w-1");
    assert_eq!(second["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(second["spec"], json!({"storageClassName": "fast"}));
    assert_eq!(third["metadata"]["name"], "p-own");
    assert_eq!(third["spec"], json!({"volumeMode": "Block"}));
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u",
                        "controller": true}]);
    assert_eq!(third["metadata"]["ownerReferences"], owner);
}
