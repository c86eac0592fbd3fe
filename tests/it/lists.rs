//! Lists and watches in the binary form say what they say in JSON.

use gpu_batch::kube::convert::Watched;
use gpu_batch::kube::objects::{ListOf, Node, Pod, protobuf};
use kube::client::Body;
use serde_json::{Value, json};

use crate::cluster::{self, Cluster, until};
use crate::work::ensure;

const JSON: &str = "application/json";

impl Cluster {
    /// What the API server sends in this form, and the form that it says it is.
    async fn body(&self, path: &str, form: &str) -> Result<(String, Vec<u8>), kube::Error> {
        let request = http::Request::get(path)
            .header("accept", form)
            .body(Body::empty())
            .unwrap();
        let (head, body) = self.client().send(request).await?.into_parts();
        let form = head.headers["content-type"].to_str().unwrap().to_owned();
        Ok((form, body.collect_bytes().await?.to_vec()))
    }

    /// Reads a list in both forms until nothing was written in between; they are the same then.
    async fn same_in_both_forms<T: Watched + std::fmt::Debug>(&self, path: &str, count: usize) {
        let table = T::PROTOBUF.unwrap().list;
        until(path, async || {
            let read = async |form| self.body(path, form).await.map_err(|e| e.to_string());
            let (form, text) = read(JSON).await?;
            assert_eq!(form, JSON);
            let text: ListOf<T> = serde_json::from_slice(&text).unwrap();
            let (form, binary) = read(protobuf::CONTENT_TYPE).await?;
            assert_eq!(form, protobuf::CONTENT_TYPE);
            let binary: ListOf<T> = protobuf::from_body(&binary, table).unwrap();
            let version = &text.metadata.resource_version;
            let same = *version == binary.metadata.resource_version;
            ensure(same && text.items.len() == count, version)?;
            for (text, binary) in text.items.iter().zip(&binary.items) {
                assert_eq!(told(binary), told(text));
            }
            Ok(())
        })
        .await;
    }
}

impl Cluster {
    /// Watches what there is in both forms until nothing was written in between.
    async fn watched_in_both_forms<T: Watched + std::fmt::Debug>(&self, path: &str, count: usize) {
        let table = T::PROTOBUF.unwrap().object;
        until(path, async || {
            let read = async |form| self.body(path, form).await.map_err(|e| e.to_string());
            let (_, lines) = read(JSON).await?;
            let lines = lines.split_inclusive(|byte| *byte == b'\n');
            let of_line = |line: &[u8]| {
                let event: Value = serde_json::from_slice(line).unwrap();
                let object: T = serde_json::from_value(event["object"].clone()).unwrap();
                (event["type"].as_str().unwrap().to_owned(), told(&object))
            };
            let mut text: Vec<_> = lines.map(of_line).collect();
            let (form, mut frames) = read(protobuf::WATCH_CONTENT_TYPE).await?;
            assert_eq!(form, protobuf::WATCH_CONTENT_TYPE);
            let mut binary = Vec::new();
            while let Some((length, rest)) = frames.split_first_chunk() {
                let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
                let (change, object) = protobuf::watch_event(frame).unwrap();
                let object: T = protobuf::from_body(object, table).unwrap();
                binary.push((change.to_owned(), told(&object)));
                frames = rest.to_vec();
            }
            // The API server tells what was there before in no certain order.
            text.sort();
            binary.sort();
            ensure(text.len() == count && binary.len() == count, &text)?;
            assert_eq!(binary, text);
            Ok(())
        })
        .await;
    }
}

/// An object, where a number or a flag that Go always has and JSON leaves out is left out.
fn told(object: &impl std::fmt::Debug) -> String {
    format!("{object:?}")
        .replace("host_network: Some(false)", "host_network: None")
        .replace("unschedulable: Some(false)", "unschedulable: None")
        .replace("read_only: Some(false)", "read_only: None")
        .replace("host_port: Some(0)", "host_port: None")
}

/// Every kind of volume of which the scheduler reads more than its name.
fn volumes() -> Value {
    json!([
        {"name": "scratch", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "disk", "gcePersistentDisk": {"pdName": "a"}},
        {"name": "gce", "gcePersistentDisk": {"pdName": "b", "readOnly": true}},
        {"name": "aws", "awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": true}},
        {"name": "cinder", "cinder": {"volumeID": "c", "readOnly": true}},
        {"name": "portworx", "portworxVolume": {"volumeID": "p", "readOnly": true}},
        {"name": "azure", "azureDisk": {
            "diskName": "d", "diskURI": "/subscriptions/d", "kind": "Managed", "readOnly": true,
        }},
        {"name": "iscsi", "iscsi": {
            "targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0,
            "readOnly": true,
        }},
        {"name": "rbd", "rbd": {
            "monitors": ["10.0.0.1:6789", "10.0.0.2:6789"], "image": "i", "pool": "p",
            "readOnly": true,
        }},
    ])
}

/// Every field of a spec that the scheduler reads.
fn spec() -> Value {
    let expression = |key: &str| json!({"key": key, "operator": "In", "values": ["", "b"]});
    let near = json!({"requiredDuringSchedulingIgnoredDuringExecution":
        [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}]});
    let resources = json!({
        "requests": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"},
        "limits": {"memory": "2Gi", "nvidia.com/gpu": "2"},
        "claims": [{"name": "card"}],
    });
    json!({
        "schedulerName": "somebody-else",
        "priorityClassName": "system-node-critical",
        "preemptionPolicy": "PreemptLowerPriority",
        "schedulingGates": [{"name": "example.com/later"}],
        "containers": [
            {
                "name": "main", "image": "x", "resources": resources,
                "ports": [
                    {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"},
                    {"containerPort": 81},
                ],
            },
            {"name": "second", "image": "x"},
        ],
        "initContainers": [
            {"name": "sidecar", "image": "x", "restartPolicy": "Always"},
            {"name": "before", "image": "x", "resources": {"requests": {"cpu": "2"}}},
        ],
        "resourceClaims": [{"name": "card", "resourceClaimName": "card"}],
        "nodeSelector": {"zone": "a", "empty": ""},
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [expression("zone"), expression("rack")]},
                    {"matchFields":
                        [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                ],
            }},
            "podAffinity": near,
            "podAntiAffinity": near,
        },
        "tolerations": [
            {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
            {"operator": "Exists"},
        ],
        "hostUsers": false,
        "volumes": volumes(),
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }],
        "activeDeadlineSeconds": 600,
    })
}

fn status() -> Value {
    json!({
        "phase": "Running",
        "nominatedNodeName": "lists-1",
        "startTime": "2026-01-02T03:04:05Z",
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Because", "message": "it is so",
            "lastTransitionTime": "2026-01-02T03:04:06Z",
        }],
        "containerStatuses": [{
            "name": "main", "ready": true, "restartCount": 0, "image": "x", "imageID": "y",
            "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}},
        }],
        "initContainerStatuses": [
            {"name": "sidecar", "ready": true, "restartCount": 1, "image": "x", "imageID": "y"},
        ],
    })
}

#[tokio::test]
async fn lists_and_watches_say_the_same_in_both_forms() {
    let Some(cluster) = cluster::shared("lists").await else {
        return;
    };
    let metadata = json!({
        "labels": {"a": "b", "gpu-batch.io/queue": ""},
        "annotations": {"gpu-batch.io/min-member": "2", "somebody.else/x": "y"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "o", "uid": "1", "controller": true},
            {"apiVersion": "v1", "kind": "Node", "name": "p", "uid": "2"},
        ],
    });
    let mut pods = vec![
        ("whole", json!({"metadata": metadata, "spec": spec()})),
        (
            "bare",
            json!({"spec": {"containers": [{"name": "main", "image": "x"}]}}),
        ),
        (
            "net",
            json!({"spec": {"hostNetwork": true,
            "containers": [{"name": "main", "image": "x", "ports": [{"containerPort": 80}]}],
            "resources": {"requests": {"cpu": "3"}}}}),
        ),
    ];
    for (name, pod) in &mut pods {
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(*name);
        pod["metadata"]["namespace"] = json!(cluster.namespace);
        pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
        cluster.create(pod).await;
    }
    let whole = cluster.pod_path("whole");
    cluster
        .merge(&format!("{whole}/status"), &json!({"status": status()}))
        .await;
    cluster.delete(&whole).await;
    let path = format!("/api/v1/namespaces/{}/pods", cluster.namespace);
    cluster.same_in_both_forms::<Pod>(&path, 3).await;
    let watch = format!("{path}?watch=true&resourceVersion=0&timeoutSeconds=1");
    cluster.watched_in_both_forms::<Pod>(&watch, 3).await;
    cluster
        .merge(&whole, &json!({"metadata": {"finalizers": null}}))
        .await;

    for (name, cordoned) in [("lists-1", true), ("lists-2", false)] {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"lists": "yes", "empty": ""}},
            "spec": {"unschedulable": cordoned,
                "taints": [{"key": "lists", "value": "v", "effect": "NoSchedule"}]},
        });
        cluster.create(&node).await;
        let status = json!({"status": {
            "capacity": {"cpu": "8", "nvidia.com/gpu": "4"},
            "allocatable": {"cpu": "7500m", "nvidia.com/gpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        cluster
            .merge(&format!("/api/v1/nodes/{name}/status"), &status)
            .await;
    }
    let path = "/api/v1/nodes?labelSelector=lists%3Dyes";
    cluster.same_in_both_forms::<Node>(path, 2).await;
    let watch = format!("{path}&watch=true&resourceVersion=0&timeoutSeconds=1");
    cluster.watched_in_both_forms::<Node>(&watch, 2).await;
}
