//! Objects of every kind: as users write them, and then changed here and there.

mod storage;

use gpu_batch_policies::event::Kind;
use gpu_batch_policies::facts::StorageKind;
use gpu_batch_simulator::random::Random;
use serde_json::{Value, json};

use crate::nasty;

/// Draws objects whose names come from small sets, so that they refer to each other.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) random: Random,
    /// What every name begins with.
    prefix: &'static str,
}

impl Generator {
    pub(crate) fn new(seed: u64, prefix: &'static str) -> Self {
        let random = Random::new(seed);
        Self { random, prefix }
    }

    pub(crate) fn kind(&mut self) -> Kind {
        use Kind::{
            DisruptionBudget, Job, Namespace, NativePodGroup, Node, Numa, Pod, PodGroup,
            PriorityClass, Queue, Storage, Topology,
        };
        let kinds = [
            Pod,
            Pod,
            Pod,
            Pod,
            Pod,
            Node,
            Node,
            Queue,
            Queue,
            PodGroup,
            PodGroup,
            NativePodGroup,
            Topology,
            PriorityClass,
            Namespace,
            Job,
            DisruptionBudget,
            Storage(StorageKind::Claim),
            Storage(StorageKind::Claim),
            Storage(StorageKind::Volume),
            Storage(StorageKind::Class),
            Storage(StorageKind::CsiNode),
            Storage(StorageKind::CsiDriver),
            Storage(StorageKind::Capacity),
            Numa,
            Storage(StorageKind::Attachment),
        ];
        *self.random.pick(&kinds)
    }

    /// A name of this kind, one of a few.
    fn name(&mut self, kind: &str, count: u64) -> String {
        format!("{}{kind}-{}", self.prefix, self.random.below(count))
    }

    fn namespace(&mut self) -> String {
        self.name("ns", 2)
    }

    /// One of the choices, or nothing.
    fn perhaps(&mut self, percent: u64, value: Value) -> Value {
        if self.random.percent(percent) {
            value
        } else {
            Value::Null
        }
    }

    fn amount(&mut self) -> Value {
        let amounts = [
            json!("1"),
            json!("4"),
            json!("8"),
            json!(2),
            json!("36028797018963967"),
        ];
        let last = if self.random.percent(3) { 5 } else { 4 };
        self.random.pick(&amounts[..last]).clone()
    }

    /// An object that is changed in up to four places.
    pub(crate) fn nonsense(&mut self, kind: Kind) -> Value {
        let mut object = self.sense(kind);
        for _ in 0..self.random.below(5) {
            nasty::change(&mut self.random, &mut object);
        }
        object
    }

    /// An object as users write it.
    pub(crate) fn sense(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Node => self.node(),
            Kind::Pod => self.pod(),
            Kind::Queue => self.queue(),
            Kind::PodGroup => self.pod_group(),
            Kind::NativePodGroup => {
                let (name, namespace) = (self.name("group", 4), self.namespace());
                let gang = json!({"gang": {"minCount": self.random.below(4)}});
                let policy = self.perhaps(80, gang);
                let topology = json!({"topology": [{"key": "example.com/rack"}]});
                let constraints = self.perhaps(20, topology);
                json!({"metadata": {"name": name, "namespace": namespace, "labels": {}},
                       "spec": {"schedulingPolicy": policy, "schedulingConstraints": constraints}})
            }
            Kind::Topology => json!({"metadata": {"name": self.name("topology", 2)}, "spec": {
                "levels": [{"name": "rack", "nodeLabel": "example.com/rack"},
                           {"name": "clique", "nodeLabel": "nvidia.com/gpu.clique"}]}}),
            Kind::PriorityClass => json!({"metadata": {"name": self.name("class", 2)},
                "value": self.random.below(1_000), "preemptionPolicy": "Never"}),
            Kind::Namespace => json!({"metadata": {"name": self.namespace(),
                "labels": {"team": self.name("team", 2)}}}),
            Kind::Job => json!({"metadata": {"name": self.name("job", 3),
                "namespace": self.namespace(), "uid": self.name("uid-job", 3)},
                "spec": {"completionMode": "Indexed", "parallelism": self.random.below(5),
                         "completions": self.random.below(5), "activeDeadlineSeconds": 60}}),
            Kind::DisruptionBudget => self.budget(),
            Kind::Numa => self.numa(),
            Kind::Storage(kind) => self.storage(kind),
        }
    }

    /// What an exporter says of a node; names of nodes are few, so that most are of one that is
    /// there.
    fn numa(&mut self) -> Value {
        let policies = ["single-numa-node", "restricted", "best-effort", "none"];
        let scopes = ["container", "pod"];
        let zone = |name: &str, gpus: Value| {
            json!({"name": name, "type": "Node", "resources": [
                {"name": "nvidia.com/gpu", "capacity": "4", "allocatable": "4", "available": gpus},
                {"name": "cpu", "capacity": 8, "allocatable": "8", "available": "6"}]})
        };
        let zones = [zone("node-0", self.amount()), zone("node-1", self.amount())];
        json!({
            "metadata": {"name": self.name("node", 5)},
            "topologyPolicies": ["SingleNUMANodePodLevel"],
            "attributes": [
                {"name": "topologyManagerPolicy", "value": self.random.pick(&policies)},
                {"name": "topologyManagerScope", "value": self.random.pick(&scopes)}],
            "zones": zones,
        })
    }

    fn budget(&mut self) -> Value {
        let group = self.name("group", 4);
        let selectors = [
            json!({"matchLabels": {"gpu-batch.io/pod-group": group}}),
            json!({"matchExpressions": [
                {"key": "job-name", "operator": "NotIn", "values": ["j"]}]}),
            json!({}),
            Value::Null,
        ];
        let generation = self.random.below(3);
        json!({
            "metadata": {"name": self.name("budget", 3), "namespace": self.namespace(),
                         "generation": generation},
            "spec": {"minAvailable": 1, "selector": self.random.pick(&selectors)},
            "status": {"observedGeneration": generation,
                       "disruptionsAllowed": self.random.below(3)},
        })
    }

    fn node(&mut self) -> Value {
        let name = self.name("node", 5);
        let ready = if self.random.percent(90) {
            "True"
        } else {
            "False"
        };
        let taints = json!([{"key": "a", "value": "b", "effect": "NoSchedule"}]);
        json!({
            "metadata": {
                "name": name,
                "uid": self.name("uid-node", 8),
                "labels": {
                    "kubernetes.io/hostname": name,
                    "example.com/rack": self.name("rack", 2),
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                },
            },
            "spec": {"taints": self.perhaps(10, taints)},
            "status": {
                "allocatable": {"nvidia.com/gpu": self.amount(), "cpu": "64",
                                "memory": self.amount(), "pods": "110"},
                "capacity": {"nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        })
    }

    fn queue(&mut self) -> Value {
        let parent = json!(self.name("queue", 6));
        let product = json!("NVIDIA-H100-80GB-HBM3");
        let limit = self.amount();
        let selector = json!({"matchLabels": {"team": self.name("team", 2)}});
        let weight = *self.random.pick(&[0, 1, 2, 65_535]);
        let mut resources = vec![
            json!({"name": "nvidia.com/gpu", "quota": self.random.below(9), "weight": weight}),
            json!({"name": "memory", "limit": self.perhaps(30, limit), "weight": 1}),
            json!({"name": "nvidia.com/gpu", "product": product, "limit": "64"}),
        ];
        // No node has TPUs, or GPUs of the model Z9000.
        if self.random.percent(10) {
            resources.push(json!({"name": "example.com/tpu", "quota": 4, "limit": 8}));
        }
        if self.random.percent(10) {
            let product = "NVIDIA-Z9000";
            resources.push(json!({"name": "nvidia.com/gpu", "product": product, "quota": 2}));
        }
        json!({
            "metadata": {"name": self.name("queue", 6)},
            "spec": {
                "parent": self.perhaps(50, parent),
                "priority": self.random.below(3),
                "resources": resources,
                "namespaceSelector": self.perhaps(10, selector),
                "preemptMinRuntime": "10m",
                "placement": "binpack",
                "closed": self.random.percent(5),
            },
        })
    }

    fn pod_group(&mut self) -> Value {
        let topology = json!({"name": self.name("topology", 3), "required": "rack"});
        let class = json!(self.name("class", 3));
        let sub_groups = if self.random.percent(12) {
            self.sub_groups()
        } else {
            Value::Null
        };
        let whole = sub_groups.is_null();
        let minimum = json!(self.random.between(1, 4));
        let runtime = json!(*self.random.pick(&["2h", "0s", "8766000h", "90m"]));
        let queue = json!(self.name("queue", 7));
        json!({
            "metadata": {"name": self.name("group", 4), "namespace": self.namespace(),
                         "generation": self.random.below(9)},
            "spec": {
                "queue": self.perhaps(80, queue),
                "minMember": if whole { minimum } else { Value::Null },
                "topology": self.perhaps(20, topology),
                "priorityClassName": self.perhaps(10, class),
                "subGroups": sub_groups,
                "expectedRuntime": self.perhaps(10, runtime),
                "stalenessGracePeriod": "60s",
                "preemptible": true,
            },
        })
    }

    /// A tree of sub-groups; one in three contradicts itself.
    fn sub_groups(&mut self) -> Value {
        let topology = self.name("topology", 2);
        let required = |level| json!({"name": topology, "required": level});
        let (rack, clique) = (required("rack"), required("clique"));
        let mut groups = vec![
            json!({"name": "a", "minMember": self.random.between(1, 2)}),
            json!({"name": "b", "minSubGroups": 1, "topology": rack}),
            json!({"name": "c", "parent": "b"}),
            json!({"name": "d", "parent": "b", "minMember": 2, "topology": clique}),
        ];
        match self.random.below(18) {
            0 => groups[1]["parent"] = json!("d"),
            1 => groups[2]["parent"] = json!("nobody"),
            2 => groups[1]["minSubGroups"] = json!(3),
            3 => {
                groups[1]["topology"]["required"] = json!("clique");
                groups[3]["topology"]["required"] = json!("rack");
            }
            4 => groups[3]["name"] = json!("c"),
            5 => groups[1]["minMember"] = json!(1),
            6..12 => groups.truncate(1),
            _ => {}
        }
        Value::Array(groups)
    }

    fn pod(&mut self) -> Value {
        let (namespace, name) = (self.namespace(), self.name("pod", 12));
        let uid = format!("uid-{namespace}-{name}-{}", self.random.below(2));
        let group = json!(self.name("group", 4));
        let native = json!({"podGroupName": self.name("group", 4)});
        let queue = json!(self.name("queue", 7));
        let leaf = json!(*self.random.pick(&["a", "a", "c", "d", "b", "nobody"]));
        let runtime = json!(*self.random.pick(&["2h", "0s", "8766000h"]));
        let selector = json!({"nvidia.com/gpu.product": "NVIDIA-Z9000"});
        let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j",
                            "uid": self.name("uid-job", 3), "controller": true}]);
        let node = json!(self.name("node", 6));
        let node = self.perhaps(15, node);
        let min_member = json!("2");
        let fraction = json!("0.5");
        let volumes = self.volumes();
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [
                {"key": "example.com/rack", "operator": "Exists", "values": []}]}]}}});
        let scheduler = if self.random.percent(90) {
            "gpu-batch"
        } else {
            "other"
        };
        let phases = ["Pending", "Running", "Succeeded", "Failed"];
        let phase = if node.is_null() {
            "Pending"
        } else {
            *self.random.pick(&phases)
        };
        json!({
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid,
                "labels": {
                    "gpu-batch.io/pod-group": self.perhaps(50, group),
                    "gpu-batch.io/queue": self.perhaps(30, queue),
                    "gpu-batch.io/subgroup": self.perhaps(15, leaf),
                    "job-name": "j",
                },
                "annotations": {"gpu-batch.io/min-member": self.perhaps(10, min_member),
                                "gpu-batch.io/gpu-fraction": self.perhaps(3, fraction),
                                "gpu-batch.io/expected-runtime": self.perhaps(5, runtime)},
                "ownerReferences": self.perhaps(30, owner),
                "creationTimestamp": "2026-11-21T10:00:00Z",
            },
            "spec": {
                "schedulerName": scheduler,
                "nodeName": node,
                "priority": self.random.below(3),
                "schedulingGroup": self.perhaps(10, native),
                "affinity": self.perhaps(10, affinity),
                "nodeSelector": self.perhaps(3, selector),
                "volumes": self.perhaps(20, volumes),
                "containers": [{"name": "c", "resources": {
                    "requests": {"memory": self.amount()},
                    "limits": {"nvidia.com/gpu": self.amount()},
                }}],
            },
            "status": {"phase": phase},
        })
    }
}

/// Drops the fields without a value, which users do not write.
pub(crate) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
