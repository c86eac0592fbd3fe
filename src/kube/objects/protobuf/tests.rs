//! The binary form by hand. That the tables are right, `tests/it/lists.rs` shows.

use super::*;
use crate::kube::objects::{ListOf, Node, Pod};
use serde_json::json;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

fn number(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

/// A field that holds text or the fields of a message.
fn field(field: u64, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [
        varint(field << 3 | 2),
        varint(bytes.len() as u64),
        bytes.to_vec(),
    ]
    .concat()
}

fn entry(key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    [field(1, key), field(2, value)].concat()
}

/// A body with a list of one object.
fn list(object: &[u8]) -> Vec<u8> {
    let metadata = field(1, [field(2, "42"), field(3, "next")].concat());
    let raw = [metadata, field(2, object)].concat();
    let type_meta = field(1, [field(1, "v1"), field(2, "PodList")].concat());
    let ends = [field(3, ""), field(4, "")].concat();
    [MAGIC.to_vec(), type_meta, field(2, raw), ends].concat()
}

fn pod() -> Vec<u8> {
    let quantity = |text: &str| field(1, text);
    let metadata = [
        field(1, "a"),
        field(2, ""),
        field(3, "team"),
        field(8, number(1, 1_763_719_200)),
        field(11, entry("x", "1")),
        field(11, entry("y", "")),
        field(13, [field(1, "Job"), field(3, "j"), number(6, 1)].concat()),
    ];
    let requests = field(2, entry("nvidia.com/gpu", quantity("8")));
    let container = [field(1, "main"), field(2, "an image"), field(8, requests)];
    let in_zone = [
        field(1, "zone"),
        field(2, "In"),
        field(3, ""),
        field(3, "b"),
    ]
    .concat();
    let affinity = field(1, field(1, field(1, field(1, in_zone))));
    let claim = field(2, field(10, field(1, "a claim")));
    let spec = [
        field(1, [field(1, "scratch"), field(2, field(2, ""))].concat()),
        field(1, [field(1, "data"), claim].concat()),
        field(2, container.concat()),
        number(11, 0),
        field(18, affinity),
        field(19, ""),
        number(25, (-5i64).cast_unsigned()),
        number(37, 0),
    ];
    let status = [field(1, "Pending"), field(7, "")];
    [
        field(1, metadata.concat()),
        field(2, spec.concat()),
        field(3, status.concat()),
    ]
    .concat()
}

#[test]
fn a_pod_is_what_it_is_in_json() {
    let page: ListOf<Pod> = from_body(&list(&pod()), POD_FORMS.list).unwrap();
    assert_eq!(&*page.metadata.resource_version, "42");
    assert_eq!(&*page.metadata.continue_token, "next");
    let expected: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "a", "namespace": "team", "creationTimestamp": "2025-11-21T10:00:00Z",
            "labels": {"x": "1", "y": ""},
            "ownerReferences": [{"kind": "Job", "name": "j", "controller": true}],
        },
        "spec": {
            "volumes": [
                {"name": "scratch", "emptyDir": {}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "a claim"}},
            ],
            "containers": [{"name": "main", "image": "an image",
                "resources": {"requests": {"nvidia.com/gpu": "8"}}}],
            "hostNetwork": false,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions":
                    [{"key": "zone", "operator": "In", "values": ["", "b"]}]}]}}},
            "priority": -5,
            "hostUsers": false,
        },
        "status": {"phase": "Pending", "startTime": null},
    }))
    .unwrap();
    let [read] = &page.items[..] else {
        panic!("{page:?}")
    };
    assert_eq!(format!("{read:?}"), format!("{expected:?}"));
}

#[test]
fn the_head_of_a_list_is_read_without_its_objects() {
    let head: ListOf<Pod> = from_body(&list(b"\xff\xff"), &LIST_HEAD).unwrap();
    assert_eq!(&*head.metadata.continue_token, "next");
    assert!(head.items.is_empty());
}

#[test]
fn fields_that_no_table_names_are_skipped_whatever_their_form() {
    let fixed = [
        varint(100 << 3 | 1),
        vec![0; 8],
        varint(101 << 3 | 5),
        vec![0; 4],
    ]
    .concat();
    let strange = [fixed, number(102, u64::MAX), field(103, "x")].concat();
    let page: ListOf<Pod> = from_body(&list(&[strange, pod()].concat()), POD_FORMS.list).unwrap();
    assert_eq!(&*page.items[0].metadata.name, "a");
}

#[test]
fn what_is_not_as_the_tables_say_is_an_error() {
    let cases = [
        (field(1, field(1, b"\xff")), "not UTF-8"),
        (number(1, 7), "something else"),
        (field(1, number(1, 7)), "something else"),
        (field(2, number(7, 7)), "no message"),
        (varint(1 << 3 | 3), "no known form"),
        (vec![0xff; 11], "too long"),
        (varint(u64::MAX), "too large"),
        (
            [varint(1 << 3 | 2), varint(1 << 40)].concat(),
            "ends too early",
        ),
        // A list whose elements do not follow each other.
        (
            field(2, [field(2, ""), number(4, 1), field(2, "")].concat()),
            "duplicate field",
        ),
    ];
    for (object, expected) in cases {
        let error = from_body::<ListOf<Pod>>(&list(&object), POD_FORMS.list).unwrap_err();
        assert!(
            error.to_string().contains(expected),
            "{error}, not {expected}"
        );
    }
    for body in [&b""[..], b"{}", b"k8s\0", b"k8s"] {
        from_body::<ListOf<Node>>(body, NODE_FORMS.list).unwrap_err();
    }
}

#[test]
fn bytes_that_were_cut_or_turned_never_panic() {
    let body = list(&pod());
    for length in 0..body.len() {
        let _ = from_body::<ListOf<Pod>>(&body[..length], POD_FORMS.list);
    }
    for bit in 0..body.len() * 8 {
        let mut turned = body.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        let _ = from_body::<ListOf<Pod>>(&turned, POD_FORMS.list);
    }
}

#[test]
fn an_event_of_a_watch_is_taken_apart() {
    let object = [MAGIC.to_vec(), field(2, pod())].concat();
    let event = [field(1, "MODIFIED"), field(2, field(1, &object))].concat();
    let (change, told) = watch_event(&event).unwrap();
    assert_eq!((change, told), ("MODIFIED", &object[..]));
    let read: Pod = from_body(told, POD_FORMS.object).unwrap();
    assert_eq!(&*read.metadata.name, "a");
    for length in 1..event.len() {
        let _ = watch_event(&event[..length]);
    }
    watch_event(b"{\"type\":\"ADDED\"}\n").unwrap_err();
}
