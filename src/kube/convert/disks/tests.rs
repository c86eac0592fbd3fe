use super::*;
use serde_json::{Value, json};

fn spec(volumes: Value) -> PodSpec {
    serde_json::from_value(json!({"volumes": volumes})).unwrap()
}

fn names(volumes: Value) -> Vec<(String, bool)> {
    let disks = exclusive(&spec(volumes)).into_iter();
    disks
        .map(|disk| (disk.name.into(), disk.read_only))
        .collect()
}

#[test]
fn disks_of_some_kinds_keep_others_away() {
    let found = names(json!([
        {"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": true}},
        {"gcePersistentDisk": {"pdName": "disk", "readOnly": true}},
        {"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.a", "lun": 0}},
        {"rbd": {"monitors": ["m1", "m2"], "image": "i", "readOnly": true}},
        {"cinder": {"volumeID": "c"}},
        {"azureDisk": {"diskName": "a", "diskURI": "/a", "kind": "Managed"}},
        {"portworxVolume": {"volumeID": "p"}},
    ]));
    let expected = [
        ("awsElasticBlockStore vol-1", false),
        ("gcePersistentDisk disk", true),
        ("iscsi iqn.a", false),
        (r#"rbd "m1" "rbd" "i""#, true),
        (r#"rbd "m2" "rbd" "i""#, true),
    ];
    assert_eq!(
        found,
        expected.map(|(name, reads)| (name.to_owned(), reads))
    );
}

#[test]
fn a_disk_that_a_pod_has_twice_is_only_read_if_both_only_read_it() {
    let disk = |read_only: bool| json!({"iscsi": {"iqn": "a", "readOnly": read_only}});
    let found = |one, other| names(json!([disk(one), disk(other)]));
    assert_eq!(found(true, true), [("iscsi a".to_owned(), true)]);
    assert_eq!(found(true, false), [("iscsi a".to_owned(), false)]);
}

#[test]
fn disks_count_for_the_drivers_that_have_taken_them_over() {
    let check = |volume: Value, used: Option<&str>, refused: Option<&str>| {
        let spec = spec(json!([volume]));
        let volume = &spec.volumes.as_ref().unwrap()[0];
        let claim = attached(volume).map(|claim| String::from(claim.name));
        assert_eq!(claim.as_deref(), used, "{volume:?}");
        assert_eq!(unknown(volume), refused, "{volume:?}");
    };
    let field = "awsElasticBlockStore";
    let ebs = |id: &str| json!({"awsElasticBlockStore": {"volumeID": id}});
    check(ebs("vol-1"), Some("ebs.csi.aws.com/vol-1"), None);
    check(ebs("aws://a/vol-1"), Some("ebs.csi.aws.com/vol-1"), None);
    check(ebs("aws://a/disk"), Some("/"), Some(field));
    let disk = "pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/UNSPECIFIED/disks/a";
    check(
        json!({"gcePersistentDisk": {"pdName": "a"}}),
        Some(disk),
        None,
    );
    let azure = |kind: &str| json!({"azureDisk": {"diskURI": "/a", "kind": kind}});
    check(azure("Managed"), Some("disk.csi.azure.com//a"), None);
    check(azure("Shared"), Some("/"), Some("azureDisk"));
    check(
        json!({"cinder": {"volumeID": "c"}}),
        Some("cinder.csi.openstack.org/c"),
        None,
    );
    check(
        json!({"portworxVolume": {"volumeID": "p"}}),
        Some("pxd.portworx.com/p"),
        None,
    );
    check(json!({"iscsi": {"iqn": "a"}}), None, None);
    check(json!({"rbd": {"monitors": ["m"]}}), None, None);
    check(json!({"emptyDir": {}}), None, None);
}
