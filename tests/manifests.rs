//! The manifests under `deploy/` and the tables of good and bad objects, as far as no API server is
//! needed. `UPDATE=1 cargo test --test manifests` rewrites what is generated.

use gpu_batch::kube::api;
use gpu_batch::live::config::Configuration;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::QueueFault;
use serde_json::Value;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents(path: &Path) -> Vec<Value> {
    let read = std::fs::read_to_string(path).map_err(anyhow::Error::new);
    read.and_then(|text| Ok(serde_saphyr::from_multiple(&text)?))
        .unwrap_or_else(|error| panic!("{}: {error:#}", path.display()))
}

/// Every value of the field `name` in `value`, at any depth.
fn fields<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get(name));
            object.values().for_each(|value| fields(value, name, found));
        }
        Value::Array(items) => items.iter().for_each(|value| fields(value, name, found)),
        _ => {}
    }
}

#[test]
fn the_definitions_in_deploy_are_fresh() {
    for crd in api::crds() {
        let path = root().join(format!("deploy/crds/{}.yaml", crd.spec.names.plural));
        let fresh = api::manifest(&crd).unwrap();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == fresh,
            "{} is stale; UPDATE=1 rewrites it",
            path.display()
        );
    }
}

#[test]
fn every_field_is_documented() {
    for crd in api::crds() {
        let crd = serde_json::to_value(&crd).unwrap();
        let mut properties = Vec::new();
        fields(
            &crd["spec"]["versions"][0]["schema"],
            "properties",
            &mut properties,
        );
        for (name, field) in properties
            .iter()
            .flat_map(|fields| fields.as_object().unwrap())
        {
            let documented = field["description"]
                .as_str()
                .is_some_and(|text| text.len() > 5);
            assert!(
                documented || name == "metadata",
                "{name} of {}",
                crd["metadata"]["name"]
            );
        }
    }
}

/// Every manifest that users are shown: the examples, and what documents have in their fences.
fn shown_to_users() -> Vec<(String, Value)> {
    let mut texts = Vec::new();
    for folder in ["", "docs", "examples", "deploy/helm/gpu-batch"] {
        for entry in std::fs::read_dir(root().join(folder)).expect(folder) {
            let path = entry.expect("an entry").path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            let read = || std::fs::read_to_string(&path).expect("a text");
            let name = path.display().to_string();
            match extension {
                Some("md") => {
                    let text = read();
                    let fences = text.split("\n```yaml\n").skip(1);
                    let fences = fences.filter_map(|rest| rest.split("\n```").next());
                    texts.extend(fences.map(|fence| (name.clone(), fence.to_owned())));
                }
                Some("yaml") => texts.push((name, read())),
                _ => {}
            }
        }
    }
    let objects = texts.into_iter().flat_map(|(name, text)| {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_default();
        objects
            .into_iter()
            .map(move |object| (name.clone(), object))
    });
    objects.collect()
}

#[test]
fn every_job_that_users_are_shown_survives_evictions() {
    let ignore = serde_json::json!([{
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }]);
    let shown = shown_to_users();
    let jobs: Vec<_> = shown
        .iter()
        .filter(|(_, object)| object["kind"] == "Job")
        .collect();
    assert!(jobs.len() >= 6, "{}", jobs.len());
    for (name, job) in jobs {
        assert_eq!(job["spec"]["podFailurePolicy"]["rules"], ignore, "{name}");
    }
}

#[test]
fn the_definitions_name_every_reason() {
    let [queue, pod_group, _] = api::crds().map(|crd| api::manifest(&crd).unwrap());
    for reason in Reason::ALL {
        assert!(pod_group.contains(reason.as_str()), "{reason}");
    }
    for fault in [
        QueueFault::ParentNotFound,
        QueueFault::Cycle,
        QueueFault::ParentNotReady,
        QueueFault::InvalidResources,
        QueueFault::InvalidSpec,
    ] {
        assert!(queue.contains(fault.as_str()), "{fault:?}");
    }
}

#[test]
fn every_rule_has_an_object_that_breaks_it() {
    let bad = documents(&root().join("tests/data/bad_manifests.yaml"));
    let expected: Vec<(&str, &str)> = bad
        .iter()
        .map(|object| {
            let kind = object["kind"].as_str().unwrap();
            let expect = object["metadata"]["annotations"]["expect"].as_str();
            (
                kind,
                expect.unwrap_or_else(|| panic!("{object}: no annotation `expect`")),
            )
        })
        .collect();
    for crd in api::crds() {
        let kind = crd.spec.names.kind.clone();
        let crd = serde_json::to_value(&crd).unwrap();
        let mut rules = Vec::new();
        fields(&crd, "x-kubernetes-validations", &mut rules);
        for rule in rules.iter().flat_map(|rules| rules.as_array().unwrap()) {
            let message = rule["message"].as_str().unwrap();
            assert!(
                expected
                    .iter()
                    .any(|(of, expect)| *of == kind && expect.contains(message)),
                "{kind}: no object in tests/data/bad_manifests.yaml breaks `{message}`"
            );
        }
    }
}

#[test]
fn good_objects_are_decoded() {
    for object in documents(&root().join("tests/data/good_manifests.yaml")) {
        let result = match object["kind"].as_str().unwrap() {
            "Queue" => serde_json::from_value::<api::Queue>(object.clone()).map(drop),
            "PodGroup" => serde_json::from_value::<api::PodGroup>(object.clone()).map(drop),
            "Topology" => serde_json::from_value::<api::Topology>(object.clone()).map(drop),
            kind => panic!("{kind}"),
        };
        assert!(result.is_ok(), "{object}: {result:?}");
    }
}

/// The first object of that kind in a file of `deploy/`.
fn deployed(file: &str, kind: &str) -> Value {
    documents(&root().join("deploy").join(file))
        .into_iter()
        .find(|object| object["kind"] == kind)
        .unwrap_or_else(|| panic!("{file} has no {kind}"))
}

#[test]
fn everything_in_deploy_is_applied() {
    for folder in ["deploy", "deploy/crds", "deploy/defaults"] {
        let list = documents(&root().join(folder).join("kustomization.yaml")).remove(0);
        let listed = list["resources"].as_array().unwrap();
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let applied = listed.iter().any(|resource| *resource == name.as_str());
            let expected =
                name == "crds" || name.ends_with(".yaml") && name != "kustomization.yaml";
            assert_eq!(applied, expected, "{folder}/{name}");
        }
    }
}

#[test]
fn the_deployed_configuration_agrees_with_the_manifests() {
    let map = deployed("defaults/configmap.yaml", "ConfigMap");
    let pod = deployed("deployment.yaml", "Deployment")["spec"]["template"]["spec"].take();
    let container = &pod["containers"][0];
    let file = container["args"][2].as_str().unwrap();
    let key = Path::new(file).file_name().unwrap().to_str().unwrap();
    let text = map["data"][key].as_str().unwrap();
    let configuration = Configuration::parse(text, file).unwrap();

    let role = deployed("rbac.yaml", "Role");
    let lease = &configuration.lease;
    assert_eq!(role["metadata"]["namespace"], lease.namespace.as_str());
    assert_eq!(role["rules"][1]["resourceNames"][0], lease.name.as_str());
    let flow_schema = deployed("flowschemas.yaml", "FlowSchema");
    let lease_rule = &flow_schema["spec"]["rules"][0]["resourceRules"][0];
    assert_eq!(lease_rule["namespaces"][0], lease.namespace.as_str());

    let port = &container["ports"][0]["containerPort"];
    assert_eq!(*port, configuration.serve_address.port());
    // Without it, a restarted container would wait for its own Lease to run out.
    let name = &container["env"][0];
    assert_eq!(name["name"], "POD_NAME");
    assert_eq!(name["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
    let image = container["image"].as_str().unwrap();
    assert!(
        image.ends_with(concat!(":", env!("CARGO_PKG_VERSION"))),
        "{image}"
    );
}

#[test]
fn the_default_objects_are_decoded() {
    let queue: api::Queue =
        serde_json::from_value(deployed("defaults/queue-default.yaml", "Queue")).unwrap();
    let topology: api::Topology =
        serde_json::from_value(deployed("defaults/topology-default.yaml", "Topology")).unwrap();
    for name in [queue.metadata.name, topology.metadata.name] {
        assert_eq!(name.as_deref(), Some("default"));
    }
    assert_eq!(queue.spec, api::QueueSpec::default());
}

/// The labels of each preset, farthest first, as those who write them document them.
const PRESETS: [(&str, &[&str]); 6] = [
    (
        "eks.yaml",
        &[
            "topology.kubernetes.io/zone",
            "topology.k8s.aws/network-node-layer-1",
            "topology.k8s.aws/network-node-layer-2",
            "topology.k8s.aws/network-node-layer-3",
        ],
    ),
    (
        "gke.yaml",
        &[
            "topology.kubernetes.io/zone",
            "cloud.google.com/gce-topology-block",
            "cloud.google.com/gce-topology-subblock",
            "cloud.google.com/gce-topology-host",
        ],
    ),
    ("nvlink.yaml", &["nvidia.com/gpu.clique"]),
    (
        "oke.yaml",
        &[
            "topology.kubernetes.io/zone",
            "oci.oraclecloud.com/rdma.hpc_island_id",
            "oci.oraclecloud.com/rdma.network_block_id",
            "oci.oraclecloud.com/rdma.local_block_id",
        ],
    ),
    (
        "topograph-0.5.yaml",
        &[
            "network.topology.nvidia.com/core",
            "network.topology.nvidia.com/spine",
            "network.topology.nvidia.com/leaf",
            "network.topology.nvidia.com/accelerator",
        ],
    ),
    (
        "topograph.yaml",
        &[
            "fabric.topograph.run/tier-2",
            "fabric.topograph.run/tier-1",
            "fabric.topograph.run/tier-0",
            "accelerator.topograph.run/domain",
            "accelerator.topograph.run/sub-domain",
        ],
    ),
];

#[test]
fn every_preset_of_a_topology_names_the_labels_of_its_producer() {
    let folder = root().join("deploy/topologies");
    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, PRESETS.map(|(file, _)| file));
    let documented = std::fs::read_to_string(root().join("docs/topologies.md")).unwrap();
    for (file, labels) in PRESETS {
        let preset = deployed(&format!("topologies/{file}"), "Topology");
        let preset: api::Topology = serde_json::from_value(preset).unwrap();
        assert_eq!(preset.metadata.name.as_deref(), Some("default"), "{file}");
        let levels = preset.spec.levels.iter();
        let found: Vec<&str> = levels.map(|level| &*level.node_label).collect();
        assert_eq!(found, labels, "{file}");
        assert!(documented.contains(&format!("| `{file}` |")), "{file}");
    }
}
