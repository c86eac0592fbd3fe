use super::*;
use serde_json::{Value, json};

const UID: &str = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";

fn read<T: Watched>(value: Value) -> (ObjectKey, StorageFacts) {
    let object: T = serde_json::from_value(value).unwrap();
    let key = object.key();
    match object.convert(&mut Converter::new("gpu-batch", 0)) {
        Some(Object::Storage(facts)) => (key, facts),
        other => panic!("{other:?}"),
    }
}

fn claim_of(value: Value) -> ClaimFacts {
    match read::<PersistentVolumeClaim>(value) {
        (_, StorageFacts::Claim(claim)) => claim,
        other => panic!("{other:?}"),
    }
}

fn volume_of(value: Value) -> VolumeFacts {
    match read::<PersistentVolume>(value) {
        (_, StorageFacts::Volume(volume)) => volume,
        other => panic!("{other:?}"),
    }
}

fn class_of(value: Value) -> StorageClassFacts {
    match read::<StorageClass>(value) {
        (_, StorageFacts::Class(class)) => class,
        other => panic!("{other:?}"),
    }
}

fn capacity_of(value: Value) -> CapacityFacts {
    match read::<CsiStorageCapacity>(value) {
        (_, StorageFacts::Capacity(capacity)) => capacity,
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_that_counts_of_a_claim_is_read() {
    let claim = claim_of(json!({
        "metadata": {
            "name": "data", "namespace": "vision", "uid": UID,
            "deletionTimestamp": "2026-11-21T10:00:00Z",
            "annotations": {
                "pv.kubernetes.io/bind-completed": "",
                "volume.kubernetes.io/selected-node": "n1",
                "volume.kubernetes.io/storage-provisioner": "disks",
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": UID, "controller": true},
            ],
        },
        "spec": {
            "storageClassName": "fast", "volumeName": "pv-1", "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
            "accessModes": ["ReadWriteOnce", "ReadWriteMany", "Sometimes"],
            "resources": {"requests": {"storage": "1500m"}},
            "selector": {"matchLabels": {"disk": "ssd"}},
        },
        "status": {"phase": "Lost"},
    }));
    let expected = ClaimFacts {
        namespace: "vision".into(),
        name: "data".into(),
        uid: Uid::parse(UID).unwrap(),
        class: "fast".into(),
        volume: Some("pv-1".into()),
        bind_completed: true,
        is_lost: true,
        is_deleting: true,
        size: Some(2),
        access: AccessModes(AccessModes::ONE_NODE.0 | AccessModes::MANY.0),
        is_block: true,
        selector: Some(LabelSelector {
            match_labels: vec![("disk".into(), "ssd".into())],
            match_expressions: Vec::new(),
        }),
        attributes_class: "gold".into(),
        selected_node: Some("n1".into()),
        pod: Uid::parse(UID),
    };
    assert_eq!(claim, expected);
}

#[test]
fn a_claim_that_says_nothing_has_nothing() {
    for rest in [json!({}), json!({"spec": null, "status": null})] {
        let mut value = rest;
        value["metadata"] = json!({"name": "a", "namespace": "b", "annotations": null});
        let claim = claim_of(value);
        assert_eq!((&*claim.class, claim.volume), ("", None));
        assert!(!claim.bind_completed && !claim.is_lost && !claim.is_deleting);
        assert_eq!((claim.size, claim.selector), (None, None));
        assert_eq!((claim.selected_node, claim.pod), (None, None));
    }
    let empty = json!({"spec": {"volumeName": "", "storageClassName": ""}});
    assert_eq!(claim_of(empty).volume, None);
}

#[test]
fn the_old_annotation_names_the_class_before_the_field() {
    let value = json!({
        "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {"storageClassName": "new"},
    });
    assert_eq!(&*claim_of(value.clone()).class, "old");
    assert_eq!(&*volume_of(value).class, "old");
}

#[test]
fn only_a_pod_that_controls_a_claim_has_it() {
    let pod = |owner: Value| claim_of(json!({"metadata": {"ownerReferences": [owner]}})).pod;
    let owner = |version: &str, kind: &str, controller: Value| {
        json!({"apiVersion": version, "kind": kind, "name": "p", "uid": UID,
               "controller": controller})
    };
    assert_eq!(pod(owner("v1", "Pod", json!(true))), Uid::parse(UID));
    assert_eq!(pod(owner("v1", "Pod", json!(null))), None);
    assert_eq!(pod(owner("apps/v1", "StatefulSet", json!(true))), None);
    assert_eq!(pod(owner("example.com/v1", "Pod", json!(true))), None);
}

#[test]
fn a_size_that_cannot_be_read_is_none_and_one_that_is_too_large_is_the_largest() {
    for (text, expected) in [
        ("1Gi", Some(1 << 30)),
        ("0.1", Some(1)),
        ("much", None),
        ("-1", None),
        ("1E", Some(AMOUNT_MAX)),
    ] {
        let requests = json!({"resources": {"requests": {"storage": text}}});
        assert_eq!(claim_of(json!({"spec": requests})).size, expected, "{text}");
        let spec = json!({"spec": {"capacity": {"storage": text}}});
        assert_eq!(volume_of(spec).size, expected.unwrap_or(0), "{text}");
    }
}

#[test]
fn a_selector_that_is_not_read_in_full_selects_nothing() {
    let selector = |operator: &str| {
        json!({"matchLabels": {"a": "b"},
               "matchExpressions": [{"key": "a", "operator": operator, "values": []}]})
    };
    let label = |key: &str| (key == "a").then_some("b");
    for (operator, selects) in [("Exists", true), ("Near", false), ("Gt", false)] {
        let claim = claim_of(json!({"spec": {"selector": selector(operator)}}));
        let read = claim.selector.unwrap();
        assert_eq!(read.selects(label), selects, "{operator}");
        let capacity = capacity_of(json!({"nodeTopology": selector(operator)}));
        assert_eq!(capacity.nodes.is_some(), selects, "{operator}");
    }
}

#[test]
fn everything_that_counts_of_a_volume_is_read() {
    let volume = volume_of(json!({
        "metadata": {"name": "pv-1", "resourceVersion": "12", "labels": {"topology.kubernetes.io/zone": "a"}},
        "spec": {
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadOnlyMany", "ReadWriteOncePod"],
            "storageClassName": "fast", "volumeAttributesClassName": "gold",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "vision", "name": "data",
                         "uid": UID},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]},
                                      {"key": "size", "operator": "Gt", "values": ["x"]}]},
                {},
            ]}},
            "csi": {"driver": "disks", "volumeHandle": "d-1", "fsType": "ext4"},
        },
        "status": {"phase": "Available"},
    }));
    let requirement = |key: &str, operator, value: &str| MatchRequirement {
        key: key.into(),
        operator,
        values: vec![value.into()],
    };
    let in_zone = NodeSelectorTerm {
        match_expressions: vec![
            requirement("zone", MatchOperator::In, "a"),
            requirement("size", MatchOperator::Gt, "x"),
        ],
        match_fields: Vec::new(),
    };
    let expected = VolumeFacts {
        name: "pv-1".into(),
        version: "12".into(),
        labels: vec![("topology.kubernetes.io/zone".into(), "a".into())],
        affinity: Some(vec![in_zone, NodeSelectorTerm::default()]),
        affinity_once_bound: None,
        claim: Some(ClaimReference {
            namespace: "vision".into(),
            name: "data".into(),
            uid: Uid::parse(UID),
        }),
        class: "fast".into(),
        size: 5 << 30,
        access: AccessModes(AccessModes::READ_ONLY.0 | AccessModes::ONE_POD.0),
        is_block: false,
        attributes_class: "gold".into(),
        is_available: true,
        is_deleting: false,
        csi: Some(("disks".into(), "d-1".into())),
        is_in_tree: false,
    };
    assert_eq!(volume, expected);
}

#[test]
fn a_volume_without_required_terms_is_reached_from_everywhere() {
    for (affinity, expected) in [
        (json!(null), None),
        (json!({}), None),
        (json!({"required": null}), None),
        (json!({"required": {}}), Some(0)),
    ] {
        let volume = volume_of(json!({"spec": {"nodeAffinity": affinity}}));
        assert_eq!(volume.affinity.map(|terms| terms.len()), expected);
    }
    let strange = json!({"matchExpressions": [
        {"key": "zone", "operator": "Exists"}, {"key": "zone", "operator": "Near"}]});
    let affinity = json!({"required": {"nodeSelectorTerms": [strange]}});
    let volume = volume_of(json!({"spec": {"nodeAffinity": affinity}}));
    // A term that is not read in full holds nowhere, and not only because it is empty.
    let [term] = volume.affinity.as_deref().unwrap() else {
        panic!("{:?}", volume.affinity);
    };
    let [requirement] = &*term.match_expressions else {
        panic!("{term:?}");
    };
    let nothing = (MatchOperator::In, &[][..]);
    assert_eq!((requirement.operator, &*requirement.values), nothing);
}

#[test]
fn a_reference_to_a_claim_may_leave_the_uid_open() {
    let claim = |reference: Value| volume_of(json!({"spec": {"claimRef": reference}})).claim;
    let named = claim(json!({"namespace": "vision", "name": "data"})).unwrap();
    assert_eq!((&*named.name, named.uid), ("data", None));
    assert_eq!(claim(json!(null)), None);
    assert_eq!(claim(json!({})), None);
}

#[test]
fn a_class_waits_only_if_it_says_so() {
    for (mode, expected) in [
        (json!(null), false),
        (json!("Immediate"), false),
        (json!("WaitForFirstConsumer"), true),
    ] {
        let class = class_of(json!({"metadata": {"name": "fast"}, "provisioner": "disks",
                                    "volumeBindingMode": mode}));
        assert_eq!((&*class.name, &*class.provisioner), ("fast", "disks"));
        assert_eq!(class.waits, expected, "{mode}");
    }
}

#[test]
fn allowed_topologies_become_terms() {
    let topologies = |value: Value| class_of(json!({"allowedTopologies": value})).topologies;
    assert_eq!(topologies(json!(null)), None);
    assert_eq!(topologies(json!([])), None);
    let terms = json!([
        {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}, {"key": "rack"}]},
        {},
    ]);
    let requirement = |key: &str, values: &[&str]| MatchRequirement {
        key: key.into(),
        operator: MatchOperator::In,
        values: values.iter().map(|value| (*value).into()).collect(),
    };
    let first = NodeSelectorTerm {
        match_expressions: vec![requirement("zone", &["a", "b"]), requirement("rack", &[])],
        match_fields: Vec::new(),
    };
    let expected = vec![first, NodeSelectorTerm::default()];
    assert_eq!(topologies(terms), Some(expected));
}

#[test]
fn limits_of_a_csi_node_are_read() {
    let driver = |allocatable: Value| json!({"name": "disks", "allocatable": allocatable});
    let (_, facts) = read::<CsiNode>(json!({"metadata": {"name": "n1"}, "spec": {"drivers": [
        driver(json!({"count": 25})), driver(json!({})), driver(json!(null)),
        driver(json!({"count": -1})), driver(json!({"count": i64::MAX})),
    ]}}));
    let StorageFacts::CsiNode(node) = facts else {
        panic!("{facts:?}");
    };
    let counts: Vec<Option<u32>> = node.drivers.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [Some(25), None, None, Some(0), Some(u32::MAX)]);
    let (_, facts) = read::<CsiNode>(json!({"metadata": {"name": "n1"}, "spec": null}));
    let StorageFacts::CsiNode(node) = facts else {
        panic!("{facts:?}");
    };
    assert_eq!((&*node.name, node.drivers), ("n1", Vec::new()));
}

#[test]
fn only_a_driver_that_says_so_tells_capacity() {
    for (spec, expected) in [
        (json!(null), false),
        (json!({}), false),
        (json!({"storageCapacity": false}), false),
        (json!({"storageCapacity": true}), true),
    ] {
        let (_, facts) = read::<CsiDriver>(json!({"metadata": {"name": "disks"}, "spec": spec}));
        let expected = StorageFacts::CsiDriver(CsiDriverFacts {
            name: "disks".into(),
            tells_capacity: expected,
        });
        assert_eq!(facts, expected);
    }
}

#[test]
fn the_largest_volume_counts_before_the_room() {
    for (sizes, expected) in [
        (json!({}), None),
        (json!({"capacity": "10"}), Some(10)),
        (json!({"capacity": "10", "maximumVolumeSize": "2"}), Some(2)),
        (json!({"maximumVolumeSize": "x", "capacity": null}), None),
    ] {
        let mut value = sizes;
        value["metadata"] = json!({"name": "room", "namespace": "system"});
        value["storageClassName"] = json!("fast");
        let capacity = capacity_of(value);
        assert_eq!((&*capacity.namespace, &*capacity.class), ("system", "fast"));
        assert_eq!((capacity.largest, capacity.nodes), (expected, None));
    }
    let everywhere = capacity_of(json!({"nodeTopology": {}}));
    assert_eq!(everywhere.nodes, Some(LabelSelector::default()));
}

#[test]
fn a_key_is_that_of_the_facts() {
    let meta = json!({"metadata": {"name": "a", "namespace": "b"}});
    let cluster_wide = json!({"metadata": {"name": "a"}});
    let keys = [
        read::<PersistentVolumeClaim>(meta.clone()),
        read::<CsiStorageCapacity>(meta),
        read::<PersistentVolume>(cluster_wide.clone()),
        read::<StorageClass>(cluster_wide.clone()),
        read::<CsiNode>(cluster_wide.clone()),
        read::<CsiDriver>(cluster_wide),
    ];
    for (key, facts) in keys {
        assert_eq!(key, Object::Storage(facts).key());
    }
}

#[test]
fn volumes_from_before_csi_are_those_of_the_drivers_that_have_taken_them_over() {
    let csi = |labels: Value, field: &str, source: Value| {
        let volume = json!({"metadata": {"name": "v", "labels": labels}, "spec": {field: source}});
        let (_, StorageFacts::Volume(facts)) = read::<PersistentVolume>(volume) else {
            panic!("no volume");
        };
        assert_eq!(facts.is_in_tree, facts.csi.is_some());
        facts
            .csi
            .map(|(driver, handle)| format!("{driver} {handle}"))
    };
    let ebs = |id: &str| csi(json!({}), "awsElasticBlockStore", json!({"volumeID": id}));
    assert_eq!(ebs("vol-1").as_deref(), Some("ebs.csi.aws.com vol-1"));
    assert_eq!(
        ebs("aws://z/vol-1").as_deref(),
        Some("ebs.csi.aws.com vol-1")
    );
    assert_eq!(
        ebs("aws:///vol-1/").as_deref(),
        Some("ebs.csi.aws.com vol-1")
    );
    for wrong in ["aws://z/disk-1", "aws://vol-1", "aws://z/vol-1/x", ""] {
        assert_eq!(ebs(wrong), None, "{wrong}");
    }
    let gce = |zone: &str| {
        let labels = json!({"topology.kubernetes.io/zone": zone});
        csi(labels, "gcePersistentDisk", json!({"pdName": "d"}))
    };
    let handle = |place: &str| {
        Some(format!(
            "pd.csi.storage.gke.io projects/UNSPECIFIED/{place}/disks/d"
        ))
    };
    assert_eq!(gce("us-east1-b"), handle("zones/us-east1-b"));
    assert_eq!(gce(""), handle("zones/UNSPECIFIED"));
    assert_eq!(gce("us-east1-b__us-east1-c"), handle("regions/us-east1"));
    assert_eq!(gce("us-east1-b__us-west1-c"), None);
    let azure = |kind: &str| {
        let source = json!({"diskName": "d", "diskURI": "/d", "kind": kind});
        csi(json!({}), "azureDisk", source)
    };
    assert_eq!(azure("Managed").as_deref(), Some("disk.csi.azure.com /d"));
    assert_eq!(azure("Shared"), None);
    let plain = |field: &str| csi(json!({}), field, json!({"volumeID": "d"}));
    assert_eq!(
        plain("cinder").as_deref(),
        Some("cinder.csi.openstack.org d")
    );
    assert_eq!(
        plain("portworxVolume").as_deref(),
        Some("pxd.portworx.com d")
    );
    assert_eq!(plain("azureFile"), None);
}

/// The terms of a volume of AWS once it is bound: each with its keys, and whether a node is meant
/// that leaves such volumes to the driver.
fn once_bound(id: &str, labels: Value, terms: Value) -> Option<Vec<(bool, Vec<String>)>> {
    let affinity = json!({"required": {"nodeSelectorTerms": terms}});
    let affinity = if terms.is_null() { terms } else { affinity };
    let source = json!({"volumeID": id});
    let spec = json!({"awsElasticBlockStore": source, "nodeAffinity": affinity});
    let volume = json!({"metadata": {"name": "v", "labels": labels}, "spec": spec});
    let terms = volume_of(volume).affinity_once_bound?.into_iter();
    let kind = gpu_batch_policies::facts::migrated_label("kubernetes.io/aws-ebs");
    let terms = terms.map(|mut term| {
        let last = term.match_expressions.pop().unwrap();
        assert_eq!(last.key, kind);
        let keys = term.match_expressions.iter();
        let keys = keys.map(|it| format!("{} {}", it.key, it.values.join(",")));
        (last.operator == MatchOperator::Exists, keys.collect())
    });
    Some(terms.collect())
}

#[test]
fn bound_volumes_from_before_csi_are_where_their_drivers_look() {
    const DRIVER: &str = "topology.ebs.csi.aws.com/zone";
    let zone = "topology.kubernetes.io/zone";
    let beta = |name: &str| format!("failure-domain.beta.kubernetes.io/{name}");
    let is_in = |key: &str| json!({"key": key, "operator": "In", "values": ["a"]});
    let term = |keys: &[&str]| {
        let keys: Vec<Value> = keys.iter().map(|key| is_in(key)).collect();
        json!({"matchExpressions": keys})
    };
    let plain = |keys: &[&str]| {
        keys.iter()
            .map(|key| format!("{key} a"))
            .collect::<Vec<_>>()
    };
    let both =
        |before: &[&str], now: &[&str]| Some(vec![(false, plain(before)), (true, plain(now))]);

    assert_eq!(once_bound("v", json!({}), json!(null)), None);
    assert_eq!(once_bound("v", json!({}), json!([term(&["rack"])])), None);
    let found = once_bound("v", json!({}), json!([term(&[zone])]));
    assert_eq!(found, both(&[zone], &[DRIVER]));
    // Without a zone among the terms, those of the labels count.
    let labels = json!({zone: "a__ "});
    let found = once_bound("v", labels.clone(), json!([term(&["rack"])]));
    assert_eq!(found, both(&["rack"], &["rack", DRIVER]));
    assert_eq!(once_bound("v", labels, json!(null)), both(&[], &[DRIVER]));
    // An empty term holds nowhere, but one with a zone does.
    let found = once_bound("v", json!({zone: "a"}), json!([{}]));
    assert_eq!(found, Some(vec![(true, plain(&[DRIVER]))]));
    // The labels of before have the names of today for a driver.
    let (old_zone, old_region) = (beta("zone"), beta("region"));
    let old: [&str; 2] = [&old_zone, &old_region];
    let found = once_bound("v", json!({}), json!([term(&old)]));
    assert_eq!(
        found,
        both(&old, &[DRIVER, "topology.kubernetes.io/region"])
    );
    // A driver that does not understand the volume finds it nowhere.
    let found = once_bound("aws://a/disk", json!({}), json!([term(&["rack"])]));
    assert_eq!(found, Some(vec![(false, plain(&["rack"]))]));
}

#[test]
fn a_node_says_which_kinds_it_leaves_to_drivers() {
    let kinds = "kubernetes.io/gce-pd,kubernetes.io/aws-ebs,kubernetes.io/azure-file, x";
    let annotations = json!({"storage.alpha.kubernetes.io/migrated-plugins": kinds});
    let node = json!({"metadata": {"name": "n", "annotations": annotations}});
    let (_, StorageFacts::CsiNode(facts)) = read::<CsiNode>(node) else {
        panic!("no CSINode");
    };
    assert_eq!(
        *facts.migrated,
        [
            "kubernetes.io/aws-ebs".into(),
            "kubernetes.io/gce-pd".into()
        ]
    );
}

#[test]
fn an_attachment_is_read() {
    let value = json!({
        "metadata": {"name": "a"},
        "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    });
    let (_, StorageFacts::Attachment(facts)) = read::<VolumeAttachment>(value) else {
        panic!("no attachment");
    };
    let expected = ("d", "n", Some("v"));
    assert_eq!(
        (&*facts.driver, &*facts.node, facts.volume.as_deref()),
        expected
    );
}
