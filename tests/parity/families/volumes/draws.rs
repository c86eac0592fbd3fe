//! Single objects about volumes.

use serde_json::{Value, json};

use super::super::MIGRATED;
use super::super::draw::Draw;
use super::{BETA, TOPOLOGY};

/// The drivers of CSI that there are.
pub(super) const DRIVERS: &[&str] = &["disk.csi.example", "share.csi.example"];

/// The drivers that have taken over kinds of volumes from before CSI, with the provisioners of
/// these.
const TAKEN_OVER: &[(&str, &str)] = &[
    ("ebs.csi.aws.com", "kubernetes.io/aws-ebs"),
    ("pd.csi.storage.gke.io", "kubernetes.io/gce-pd"),
    ("disk.csi.azure.com", "kubernetes.io/azure-disk"),
    ("cinder.csi.openstack.org", "kubernetes.io/cinder"),
    ("pxd.portworx.com", "kubernetes.io/portworx-volume"),
    ("file.csi.azure.com", "kubernetes.io/azure-file"),
    ("csi.vsphere.vmware.com", "kubernetes.io/vsphere-volume"),
];

/// The classes that there are; claims may name others.
pub(super) const CLASSES: &[&str] = &["disk", "zonal", "local", "now"];

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const ZONES: &[&str] = &["a", "b", "c"];
/// Around what claims ask for: `1Gi` in other words, a byte less, and more.
const SIZES: &[&str] = &["1Gi", "1Gi", "1024Mi", "1073741823", "1025Mi", "5Gi", "10G"];

/// A class, or what would be one if its name were known.
pub(super) struct Class {
    pub(super) name: &'static str,
    /// The class has no provisioner: users make its volumes.
    pub(super) by_hand: bool,
    pub(super) object: Value,
}

impl Class {
    pub(super) fn new(draw: &mut Draw, name: &'static str) -> Self {
        let by_hand = name == "local" || draw.percent(5);
        let provisioner = match by_hand {
            true => "kubernetes.io/no-provisioner",
            false if draw.percent(15) => draw.pick(TAKEN_OVER).1,
            false => draw.pick(DRIVERS),
        };
        let mut object = json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
        });
        match (name, draw.below(40)) {
            ("now", 0..20) | (_, 0) => object["volumeBindingMode"] = json!("Immediate"),
            // Without the field, volumes are made at once.
            ("now", _) => {}
            _ => object["volumeBindingMode"] = json!("WaitForFirstConsumer"),
        }
        if draw.percent(if name == "zonal" { 95 } else { 10 }) {
            let count = draw.below(3);
            let mut terms = draw.several(count, topology_term);
            terms.dedup();
            object["allowedTopologies"] = terms.into();
        }
        Self {
            name,
            by_hand,
            object,
        }
    }
}

/// Where volumes of a class may be made. An empty term is nowhere; the API server lets none in, but
/// schedulers could read it.
fn topology_term(draw: &mut Draw) -> Value {
    if draw.percent(4) {
        return json!({});
    }
    let mut requirements = vec![json!({
        "key": format!("{}/zone", key_prefix(draw)),
        "values": some(draw, ZONES),
    })];
    if draw.percent(15) {
        let key = format!("{TOPOLOGY}/region");
        requirements.push(json!({"key": key, "values": ["r"]}));
    }
    json!({"matchLabelExpressions": requirements})
}

fn key_prefix(draw: &mut Draw) -> &'static str {
    if draw.percent(90) { TOPOLOGY } else { BETA }
}

/// One or two of the choices.
fn some(draw: &mut Draw, choices: &[&str]) -> Value {
    let first = *draw.pick(choices);
    let second = *draw.pick(choices);
    match draw.percent(50) && first != second {
        true => json!([first, second]),
        false => json!([first]),
    }
}

/// Labels a node with a zone and a region; or with neither.
pub(super) fn zones_of_node(draw: &mut Draw, node: &mut Value) {
    let prefixes: &[&str] = match draw.below(10) {
        0 | 1 => &[],
        2 => &[BETA],
        3 => &[BETA, TOPOLOGY],
        _ => &[TOPOLOGY],
    };
    for prefix in prefixes {
        if draw.percent(92) {
            let zone = *draw.pick(&["a", "a", "b", "b", "c", ""]);
            node["metadata"]["labels"][format!("{prefix}/zone")] = json!(zone);
        }
        if draw.percent(60) {
            let region = *draw.pick(&["r", "r", "q"]);
            node["metadata"]["labels"][format!("{prefix}/region")] = json!(region);
        }
    }
    for (driver, _) in &TAKEN_OVER[..4] {
        if draw.percent(50) {
            let zone = *draw.pick(&["a", "a", "b"]);
            node["metadata"]["labels"][zone_label(driver)] = json!(zone);
        }
    }
}

/// The label by which a driver that has taken over a kind of volumes says zones.
fn zone_label(driver: &str) -> String {
    match driver {
        "pd.csi.storage.gke.io" => "topology.gke.io/zone".to_owned(),
        driver => format!("topology.{driver}/zone"),
    }
}

/// A source of a volume from before CSI.
fn in_tree(draw: &mut Draw, name: &str) -> (&'static str, Value) {
    match draw.below(8) {
        0 | 1 => {
            let id = match draw.below(4) {
                0 => name.to_owned(),
                1 => format!("aws://a/vol-{name}"),
                2 => format!("aws:///vol-{name}"),
                _ => format!("aws://a/{name}"),
            };
            ("awsElasticBlockStore", json!({"volumeID": id}))
        }
        2 => {
            let name = if draw.percent(20) { "one" } else { name };
            ("gcePersistentDisk", json!({"pdName": name}))
        }
        3 => {
            let kind = draw.pick(&["Managed", "Managed", "Dedicated"]);
            let uri = format!("/disks/{name}");
            (
                "azureDisk",
                json!({"diskName": name, "diskURI": uri, "kind": kind}),
            )
        }
        4 => ("cinder", json!({"volumeID": name})),
        5 => ("portworxVolume", json!({"volumeID": name})),
        6 => (
            "azureFile",
            json!({"secretName": "secret", "shareName": name}),
        ),
        _ => ("vsphereVolume", json!({"volumePath": name})),
    }
}

/// A disk that a pod names itself and that the CSI driver which has taken its kind over does not
/// understand.
pub(super) fn unreadable_disk(draw: &mut Draw, name: &str) -> Value {
    match draw.percent(50) {
        true => json!({"name": name, "awsElasticBlockStore": {"volumeID": "aws://a/disk"}}),
        false => {
            let disk = json!({"diskName": "one", "diskURI": "/one", "kind": "Dedicated"});
            json!({"name": name, "azureDisk": disk})
        }
    }
}

/// A disk that a pod names itself: one of a few, so that pods have some in common, with each other
/// and with PersistentVolumes.
pub(super) fn disk(draw: &mut Draw, name: &str) -> Value {
    let id = *draw.pick(&["volume-1", "volume-2", "one"]);
    let (kind, mut source) = match draw.below(8) {
        0 | 1 => {
            let id = match draw.below(3) {
                0 => id.to_owned(),
                1 => format!("vol-{id}"),
                _ => format!("aws://a/vol-{id}"),
            };
            ("awsElasticBlockStore", json!({"volumeID": id}))
        }
        2 => ("gcePersistentDisk", json!({"pdName": id})),
        3 => {
            let uri = format!("/subscriptions/{id}");
            let disk = json!({"diskName": id, "diskURI": uri, "kind": "Managed"});
            ("azureDisk", disk)
        }
        4 => ("cinder", json!({"volumeID": id})),
        5 => ("portworxVolume", json!({"volumeID": id})),
        6 => {
            let iqn = format!("iqn.2001-04.com.example:{id}");
            let disk = json!({"targetPortal": "10.0.0.1:3260", "iqn": iqn, "lun": 0});
            ("iscsi", disk)
        }
        _ => {
            let mut disk = json!({"monitors": some(draw, &["m1", "m2", "m3"]), "image": id});
            if draw.percent(50) {
                disk["pool"] = json!(draw.pick(&["rbd", "rbd", "other"]));
            }
            ("rbd", disk)
        }
    };
    if draw.percent(50) {
        source["readOnly"] = json!(draw.percent(80));
    }
    json!({"name": name, kind: source})
}

/// A volume that is attached to a node.
pub(super) fn attachment(draw: &mut Draw, index: u64, volumes: usize, nodes: &[String]) -> Value {
    let volume = 1 + draw.below(volumes as u64 + 1);
    let mut source = json!({"persistentVolumeName": format!("volume-{volume}")});
    if draw.percent(5) {
        source = json!({"inlineVolumeSpec": {}});
    }
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": format!("attachment-{index}")},
        "spec": {"attacher": draw.pick(DRIVERS), "nodeName": draw.pick(nodes), "source": source},
        "status": {"attached": draw.percent(80)},
    })
}

/// How many volumes of each driver can be attached to a node, and perhaps which kinds from before
/// CSI it leaves to drivers.
pub(super) fn csi_node(draw: &mut Draw, node: &str) -> Value {
    let mut drivers = Vec::new();
    let taken_over = TAKEN_OVER.iter().map(|(driver, _)| driver);
    for driver in DRIVERS.iter().chain(taken_over) {
        if draw.percent(20) {
            continue;
        }
        let mut entry = json!({"name": driver, "nodeID": node, "topologyKeys": []});
        match draw.below(10) {
            0 => {}
            1 => entry["allocatable"] = json!({}),
            _ => entry["allocatable"] = json!({"count": draw.below(4)}),
        }
        drivers.push(entry);
    }
    let mut object = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": drivers},
    });
    if draw.percent(60) {
        let kinds = TAKEN_OVER.iter().filter(|_| draw.percent(85));
        let kinds: Vec<&str> = kinds.map(|(_, kind)| *kind).collect();
        object["metadata"]["annotations"][MIGRATED] = json!(kinds.join(","));
    }
    object
}

/// Room for volumes of a class, which some nodes reach.
pub(super) fn capacity(draw: &mut Draw, index: u64, nodes: &[String]) -> Value {
    let mut capacity = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": format!("capacity-{index}"),
                     "namespace": draw.pick(&["default", "drivers"])},
        "storageClassName": draw.pick(&["disk", "zonal", "local", "gone"]),
    });
    if draw.percent(85) {
        capacity["capacity"] = json!(draw.pick(&["0", "1073741823", "1Gi", "5Gi", "1Ti"]));
    }
    if draw.percent(35) {
        capacity["maximumVolumeSize"] = json!(draw.pick(&["1Gi", "1073741823", "1Ti"]));
    }
    let zone = format!("{TOPOLOGY}/zone");
    let reached = match draw.below(12) {
        0 => return capacity,
        1..4 => json!({}),
        4..7 => json!({"matchLabels": {zone: draw.pick(ZONES)}}),
        7 | 8 => json!({"matchLabels": {"kubernetes.io/hostname": draw.pick(nodes)}}),
        9 => json!({"matchExpressions": [{"key": zone, "operator": "Exists"}]}),
        _ => json!({"matchExpressions": [
            {"key": zone, "operator": draw.pick(&["In", "NotIn"]), "values": some(draw, ZONES)}]}),
    };
    capacity["nodeTopology"] = reached;
    capacity
}

/// A claim without a volume.
pub(super) fn claim(draw: &mut Draw, namespace: &str, name: &str, modes: &str) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"),
                     "annotations": {}},
        "spec": {
            "accessModes": [modes],
            "resources": {"requests": {"storage": draw.pick(SIZES)}},
        },
        "status": {"phase": "Pending"},
    });
    if modes == "ReadWriteOnce" && draw.percent(15) {
        claim["spec"]["accessModes"] = json!(["ReadWriteOnce", "ReadOnlyMany"]);
    }
    match draw.below(20) {
        0 => claim["spec"]["volumeMode"] = json!("Block"),
        1 => claim["spec"]["volumeMode"] = json!("Filesystem"),
        _ => {}
    }
    if draw.percent(5) {
        claim["spec"]["volumeAttributesClassName"] = json!("gold");
    }
    if draw.percent(15) {
        claim["spec"]["selector"] = match draw.below(4) {
            0 => json!({}),
            1 => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
            2 => json!({"matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["x"]}]}),
            _ => json!({"matchLabels": {"tier": "x"}}),
        };
    }
    claim
}

/// Lets a claim ask for nothing but a size and pods of one node.
pub(super) fn plain(claim: &mut Value) {
    claim["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
    for key in ["selector", "volumeMode", "volumeAttributesClassName"] {
        claim["spec"].as_object_mut().unwrap().remove(key);
    }
}

/// Gives a claim its class, and says which; `None`: none that there is.
pub(super) fn class_of_claim(draw: &mut Draw, claim: &mut Value) -> Option<&'static str> {
    let known = match draw.below(60) {
        0 => None,
        1 => {
            claim["spec"]["storageClassName"] = json!("");
            None
        }
        2 => {
            claim["spec"]["storageClassName"] = json!("gone");
            None
        }
        3 => Some("now"),
        4..24 => Some("local"),
        24..42 => Some("zonal"),
        _ => Some("disk"),
    };
    if let Some(class) = known {
        claim["spec"]["storageClassName"] = json!(class);
        if draw.percent(4) {
            // The annotation stands above the field.
            claim["spec"]["storageClassName"] = json!("gone");
            claim["metadata"]["annotations"][CLASS_ANNOTATION] = json!(class);
        }
    }
    known
}

/// `claimRef` of a volume that a claim has, or is to get.
pub(super) fn reference(claim: &Value, with_uid: bool) -> Value {
    let meta = &claim["metadata"];
    let mut reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": meta["namespace"], "name": meta["name"],
    });
    if with_uid {
        reference["uid"] = meta["uid"].clone();
    }
    reference
}

/// A volume as a claim asks for.
pub(super) fn volume(draw: &mut Draw, name: &str, claim: &Value, nodes: &[String]) -> Value {
    let asked = &claim["spec"];
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"tier": "x"}},
        "spec": {
            "capacity": asked["resources"]["requests"].clone(),
            "accessModes": asked["accessModes"].clone(),
        },
        "status": {"phase": "Available"},
    });
    let by_annotation = claim["metadata"]["annotations"].get(CLASS_ANNOTATION);
    let class = by_annotation.or_else(|| asked.get("storageClassName"));
    if let Some(class) = class {
        volume["spec"]["storageClassName"] = class.clone();
    }
    if let Some(mode) = asked.get("volumeMode") {
        volume["spec"]["volumeMode"] = mode.clone();
    }
    let path = json!({"path": format!("/disks/{name}")});
    let mut at_node = draw.percent(45);
    match draw.below(12) {
        3 | 4 => {
            let (field, source) = in_tree(draw, name);
            volume["spec"][field] = source;
        }
        0 => {
            // A volume of a node's own disk is on some node.
            volume["spec"]["local"] = path;
            at_node = true;
        }
        1 => volume["spec"]["hostPath"] = path,
        2 => volume["spec"]["nfs"] = json!({"server": "nfs.example", "path": "/"}),
        _ => {
            let driver = *draw.pick(DRIVERS);
            // Several PersistentVolumes may stand for one volume.
            let handle = if draw.percent(15) { "one" } else { name };
            volume["spec"]["csi"] = json!({"driver": driver, "volumeHandle": handle});
            // Other sources have no such class.
            if let Some(class) = asked.get("volumeAttributesClassName") {
                volume["spec"]["volumeAttributesClassName"] = class.clone();
            }
        }
    }
    if at_node {
        let count = 1 + draw.below(2);
        let terms = draw.several(count, |draw| affinity_term(draw, nodes));
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    if draw.percent(30) {
        zone_labels(draw, &mut volume);
    }
    volume
}

/// A term of where a volume is; an empty one is nowhere.
fn affinity_term(draw: &mut Draw, nodes: &[String]) -> Value {
    let zone = format!("{}/zone", key_prefix(draw));
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    match draw.below(16) {
        0 => json!({}),
        1 => json!({"matchExpressions": [{"key": zone, "operator": "Exists"}]}),
        2 => json!({"matchExpressions": [{"key": zone, "operator": "DoesNotExist"}]}),
        3 => json!({"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": some(draw, &names)}]}),
        4 => json!({"matchExpressions": [
            {"key": zone, "operator": "In", "values": some(draw, ZONES)},
            {"key": format!("{TOPOLOGY}/region"), "operator": "In", "values": ["r"]}]}),
        5 => json!({"matchFields": [{"key": "metadata.name",
            "operator": draw.pick(&["In", "NotIn"]), "values": [draw.pick(&names)]}]}),
        6..11 => json!({"matchExpressions": [
            {"key": zone, "operator": "In", "values": some(draw, ZONES)}]}),
        _ => json!({"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": some(draw, &names)}]}),
    }
}

/// Labels a volume with zones and regions, in one of the forms that they may have.
fn zone_labels(draw: &mut Draw, volume: &mut Value) {
    let prefix = if draw.percent(70) { TOPOLOGY } else { BETA };
    if draw.percent(90) {
        let zone = *draw.pick(&["a", "b", "a", "b", "a__b", "b__c", "a____b", ""]);
        volume["metadata"]["labels"][format!("{prefix}/zone")] = json!(zone);
    }
    if draw.percent(40) {
        let region = *draw.pick(&["r", "r", "q", "q__r"]);
        volume["metadata"]["labels"][format!("{prefix}/region")] = json!(region);
    }
}

/// Makes a volume that is kept for a claim perhaps one that the claim does not get.
pub(super) fn change(draw: &mut Draw, volume: &mut Value) {
    let spec = &mut volume["spec"];
    match draw.below(24) {
        0 | 1 => spec["capacity"]["storage"] = json!(draw.pick(SIZES)),
        2 => spec["accessModes"] = json!(["ReadWriteMany"]),
        3 => spec["volumeMode"] = json!(draw.pick(&["Block", "Filesystem"])),
        4 => spec["storageClassName"] = json!(draw.pick(&["now", "gone", "disk"])),
        5 if spec.get("csi").is_some() => spec["volumeAttributesClassName"] = json!("gold"),
        6 => volume["metadata"]["labels"]["tier"] = json!("y"),
        7 => delete(volume),
        8..12 => {
            let phases = ["Pending", "Bound", "Released", "Failed"];
            volume["status"]["phase"] = json!(draw.pick(&phases));
        }
        _ => {}
    }
}

/// Makes a volume one that a claim does not get, by one of the reasons.
pub(super) fn spoil(draw: &mut Draw, volume: &mut Value, claim: &Value) {
    let spec = &mut volume["spec"];
    let mut other = claim.clone();
    match draw.below(8) {
        0 => spec["capacity"]["storage"] = json!("1Mi"),
        1 => {
            let one_pod = asks_for_one_pod(claim);
            let mode = if one_pod {
                "ReadWriteMany"
            } else {
                "ReadWriteOncePod"
            };
            spec["accessModes"] = json!([mode]);
        }
        2 => spec["storageClassName"] = json!("another"),
        3 => delete(volume),
        4 => {
            let phases = ["Pending", "Bound", "Released", "Failed"];
            volume["status"]["phase"] = json!(draw.pick(&phases));
        }
        5 => {
            other["metadata"]["uid"] = json!("uid-before");
            spec["claimRef"] = reference(&other, true);
        }
        6 => {
            other["metadata"]["name"] = json!("claim-of-another");
            spec["claimRef"] = reference(&other, false);
        }
        _ => {
            other["metadata"]["namespace"] = json!("others");
            spec["claimRef"] = reference(&other, false);
        }
    }
}

fn asks_for_one_pod(claim: &Value) -> bool {
    claim["spec"]["accessModes"][0] == "ReadWriteOncePod"
}

/// Lets a volume be deleted, which goes on as long as something holds it.
fn delete(volume: &mut Value) {
    volume["metadata"]["deletionTimestamp"] = json!("2026-11-01T10:00:00Z");
    volume["metadata"]["finalizers"] = json!(["kubernetes.io/pv-protection"]);
}
