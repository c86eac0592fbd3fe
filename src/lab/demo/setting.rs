//! The cluster of the demo: nodes, racks, teams and their queues.

use crate::kube::api::{API_VERSION, crds};
use crate::lab::local::nodes::{GpuNode, H100};
use serde_json::{Value, json};

/// The label that all objects of the demo have, and its value.
pub(super) const PART_OF: (&str, &str) = ("app.kubernetes.io/part-of", "gpu-batch-demo");
/// The label with the name of the gang, on Jobs and pods.
pub(super) const GANG_LABEL: &str = "app.kubernetes.io/instance";
/// On a cluster of the user's: the taint that keeps other pods off the fake nodes, and the label
/// that keeps the demo's pods off all other nodes.
pub(super) const DEMO_ONLY: &str = "gpu-batch.io/demo";
/// The node label of a rack.
pub(super) const RACK_LABEL: &str = "example.com/rack";
/// The node label of a zone.
pub(super) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

const ZONES: [&str; 2] = ["a", "b"];
const RACKS_OF_A_ZONE: u32 = 4;
const NODES_OF_A_RACK: u32 = 8;

/// How many nodes there are.
pub(super) const NODES: u32 = 64;
/// How many GPUs all nodes have.
pub(super) const GPUS: u32 = NODES * H100.gpus;

/// A team: a namespace and a leaf queue.
#[derive(Debug)]
pub(super) struct Team {
    pub(super) namespace: &'static str,
    pub(super) queue: &'static str,
    pub(super) quota: u32,
    pub(super) limit: Option<u32>,
    pub(super) weight: u32,
}

/// The queue above the teams' queues.
pub(super) const PARENT: &str = "research";

/// The guaranteed GPUs sum up to 416 of 512; the rest goes by weight.
pub(super) const TEAMS: [Team; 3] = [
    Team {
        namespace: "demo-language",
        queue: "team-language",
        quota: 192,
        limit: None,
        weight: 2,
    },
    Team {
        namespace: "demo-vision",
        queue: "team-vision",
        quota: 160,
        limit: None,
        weight: 2,
    },
    Team {
        namespace: "demo-robotics",
        queue: "team-robotics",
        quota: 64,
        limit: Some(160),
        weight: 1,
    },
];

/// The labels of everything that the demo creates.
pub(super) fn labels() -> Value {
    json!({PART_OF.0: PART_OF.1})
}

/// The definitions of the custom resources, each with the path of its collection.
pub(super) fn definitions() -> anyhow::Result<Vec<(String, Value)>> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    crds()
        .iter()
        .map(|crd| Ok((path.to_owned(), serde_json::to_value(crd)?)))
        .collect()
}

/// The objects that exist before the first gang, in the order in which they are created, each with
/// the path of its collection. `shared`: the cluster has other users.
pub(super) fn objects(shared: bool) -> anyhow::Result<Vec<(String, Value)>> {
    let custom = |plural: &str| format!("/apis/{API_VERSION}/{plural}");
    let mut objects = vec![(custom("topologies"), topology())];
    objects.push((
        custom("queues"),
        queue(PARENT, None, &[("quota", json!(GPUS.to_string()))]),
    ));
    for team in &TEAMS {
        let mut entries = vec![
            ("quota", json!(team.quota.to_string())),
            ("weight", json!(team.weight)),
        ];
        entries.extend(team.limit.map(|limit| ("limit", json!(limit.to_string()))));
        objects.push((custom("queues"), queue(team.queue, Some(PARENT), &entries)));
    }
    for node in nodes() {
        objects.push(("/api/v1/nodes".into(), node_object(&node, shared)?));
    }
    for team in &TEAMS {
        let metadata = json!({"name": team.namespace, "labels": labels()});
        objects.push((
            "/api/v1/namespaces".into(),
            json!({"apiVersion": "v1",
            "kind": "Namespace", "metadata": metadata}),
        ));
    }
    Ok(objects)
}

/// The objects of an empty cluster: those that every installation brings, and nodes in two racks or
/// more. Nodes whose names follow each other are in different racks.
pub(super) fn empty(nodes: u32) -> anyhow::Result<Vec<(String, Value)>> {
    let default = json!({
        "apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": "default"}, "spec": {},
    });
    let mut objects = vec![(format!("/apis/{API_VERSION}/queues"), default)];
    let racks = nodes.div_ceil(NODES_OF_A_RACK).max(2);
    for number in 0..nodes {
        let mut node = GpuNode::new(format!("h100-{number}"), H100);
        node.rack = format!("rack-{}", number % racks);
        objects.push(("/api/v1/nodes".into(), node_object(&node, false)?));
    }
    Ok(objects)
}

fn topology() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Topology",
        "metadata": {"name": "default", "labels": labels()},
        "spec": {"levels": [
            {"name": "zone", "nodeLabel": ZONE_LABEL},
            {"name": "rack", "nodeLabel": RACK_LABEL},
        ]},
    })
}

fn queue(name: &str, parent: Option<&str>, entries: &[(&str, Value)]) -> Value {
    let mut gpus = json!({"name": "nvidia.com/gpu"});
    for (key, value) in entries {
        gpus[key] = value.clone();
    }
    let mut spec = json!({"resources": [gpus]});
    if let Some(parent) = parent {
        spec["parent"] = parent.into();
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "Queue",
        "metadata": {"name": name, "labels": labels()},
        "spec": spec,
    })
}

/// The nodes `a1-1` to `b4-8`: the zone, the rack in the zone, the node in the rack.
fn nodes() -> impl Iterator<Item = GpuNode> {
    let racks = ZONES
        .iter()
        .flat_map(|zone| (1..=RACKS_OF_A_ZONE).map(move |rack| (zone, rack)));
    racks.flat_map(|(zone, rack)| {
        (1..=NODES_OF_A_RACK).map(move |node| {
            let mut gpu_node = GpuNode::new(format!("{zone}{rack}-{node}"), H100);
            gpu_node.zone = format!("zone-{zone}");
            gpu_node.rack = format!("{zone}{rack}");
            let (label, value) = PART_OF;
            gpu_node.labels.insert(label.into(), value.into());
            gpu_node.labels.insert(DEMO_ONLY.into(), "true".into());
            gpu_node
        })
    })
}

fn node_object(node: &GpuNode, shared: bool) -> anyhow::Result<Value> {
    let mut object = node.object();
    if shared {
        object["spec"] = json!({"taints": [{"key": DEMO_ONLY, "effect": "NoSchedule"}]});
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn there_are_64_nodes_of_8_gpus_in_8_racks_of_2_zones() {
        let nodes: Vec<GpuNode> = nodes().collect();
        let racks: BTreeSet<_> = nodes.iter().map(|node| &node.rack).collect();
        let zones: BTreeSet<_> = nodes.iter().map(|node| &node.zone).collect();
        assert_eq!((nodes.len(), racks.len(), zones.len()), (64, 8, 2));
        assert_eq!(nodes.len(), usize::try_from(NODES).unwrap());
    }

    #[test]
    fn an_empty_cluster_has_neighbours_in_different_racks_of_at_most_8_nodes() {
        for (nodes, racks, of_a_rack) in [(1, 1, 1), (2, 2, 1), (4, 2, 2), (17, 3, 6), (64, 8, 8)] {
            let mut found: BTreeMap<String, u32> = BTreeMap::new();
            for (_, object) in empty(nodes).unwrap().split_off(1) {
                let rack = object["metadata"]["labels"][RACK_LABEL].to_string();
                *found.entry(rack).or_default() += 1;
            }
            let fullest = found.values().max().copied();
            assert_eq!((found.len(), fullest), (racks, Some(of_a_rack)), "{nodes}");
        }
    }

    #[test]
    fn on_a_shared_cluster_no_other_work_can_come_to_the_fake_nodes() {
        let tainted = |shared| {
            let objects = objects(shared).unwrap();
            let nodes = objects.iter().filter(|(path, _)| path == "/api/v1/nodes");
            nodes
                .filter(|(_, node)| node["spec"]["taints"][0]["key"] == DEMO_ONLY)
                .count()
        };
        assert_eq!((tainted(false), tainted(true)), (0, 64));
    }

    #[test]
    fn the_quotas_of_the_teams_can_all_be_met() {
        assert!(TEAMS.iter().map(|team| team.quota).sum::<u32>() < GPUS);
    }
}
