//! Claims, volumes, and what says where there can be volumes.

use super::Generator;
use gpu_batch_policies::facts::StorageKind;
use serde_json::{Value, json};

impl Generator {
    /// An object about volumes.
    pub(super) fn storage(&mut self, kind: StorageKind) -> Value {
        match kind {
            StorageKind::Claim => self.claim(),
            StorageKind::Volume => self.volume(),
            StorageKind::Class => {
                let in_rack = json!([{"matchLabelExpressions": [
                    {"key": "example.com/rack", "values": [self.name("rack", 2)]}]}]);
                let waits = json!("WaitForFirstConsumer");
                json!({"metadata": {"name": self.name("disks", 3)},
                       "provisioner": self.name("driver", 2),
                       "volumeBindingMode": self.perhaps(80, waits),
                       "allowedTopologies": self.perhaps(20, in_rack)})
            }
            StorageKind::CsiNode => {
                let count = json!({"count": self.random.below(4)});
                json!({"metadata": {"name": self.name("node", 5)}, "spec": {"drivers": [
                    {"name": self.name("driver", 2), "nodeID": "n",
                     "allocatable": self.perhaps(80, count)}]}})
            }
            StorageKind::Attachment => json!({"metadata": {"name": self.name("attachment", 6)},
                "spec": {"attacher": self.name("driver", 2), "nodeName": self.name("node", 5),
                         "source": {"persistentVolumeName": self.name("volume", 4)}}}),
            StorageKind::CsiDriver => json!({"metadata": {"name": self.name("driver", 2)},
                "spec": {"storageCapacity": self.random.percent(50)}}),
            StorageKind::Capacity => {
                let rack = self.name("rack", 2);
                let largest = json!("2Gi");
                json!({"metadata": {"name": self.name("room", 4), "namespace": self.namespace()},
                       "storageClassName": self.name("disks", 3),
                       "nodeTopology": {"matchLabels": {"example.com/rack": rack}},
                       "capacity": "100Gi",
                       "maximumVolumeSize": self.perhaps(50, largest)})
            }
        }
    }

    fn claim(&mut self) -> Value {
        let (namespace, name) = (self.namespace(), self.name("claim", 6));
        let uid = format!("uid-{namespace}-{name}-{}", self.random.below(2));
        let volume = json!(self.name("volume", 4));
        let volume = self.perhaps(50, volume);
        let completed = json!("yes");
        let completed = match volume {
            Value::Null => Value::Null,
            _ => self.perhaps(90, completed),
        };
        let node = json!(self.name("node", 5));
        let modes = ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"];
        json!({
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid,
                "annotations": {
                    "pv.kubernetes.io/bind-completed": completed,
                    "volume.kubernetes.io/selected-node": self.perhaps(10, node),
                },
            },
            "spec": {
                "storageClassName": self.name("disks", 3),
                "volumeName": volume,
                "accessModes": [self.random.pick(&modes)],
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": if self.random.percent(5) { "Lost" } else { "Bound" }},
        })
    }

    fn volume(&mut self) -> Value {
        let in_rack = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "example.com/rack", "operator": "In", "values": [self.name("rack", 2)]}]}]}});
        let claim = json!({"namespace": self.namespace(), "name": self.name("claim", 6)});
        let disk = json!({"driver": self.name("driver", 2), "volumeHandle": self.name("disk", 4)});
        let phases = ["Available", "Bound"];
        json!({
            "metadata": {"name": self.name("volume", 4),
                         "labels": {"topology.kubernetes.io/zone": self.name("zone", 2)}},
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.name("disks", 3),
                "nodeAffinity": self.perhaps(50, in_rack),
                "claimRef": self.perhaps(50, claim),
                "csi": self.perhaps(50, disk),
            },
            "status": {"phase": self.random.pick(&phases)},
        })
    }

    /// The volumes of a pod.
    pub(super) fn volumes(&mut self) -> Value {
        let of_pod = json!({"name": "own", "ephemeral": {}});
        let claim = json!({"name": "data",
                           "persistentVolumeClaim": {"claimName": self.name("claim", 6)}});
        if self.random.percent(10) {
            json!([claim, of_pod])
        } else {
            json!([claim, {"name": "scratch", "emptyDir": {}}])
        }
    }
}
