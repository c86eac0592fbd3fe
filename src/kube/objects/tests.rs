use super::*;
use serde_json::json;

#[test]
fn a_page_of_a_list_knows_where_it_ends() {
    let page = r#"{"kind":"PodList","apiVersion":"v1",
        "metadata":{"resourceVersion":"42","continue":"next","remainingItemCount":7},
        "items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
    let page: ListOf<Pod> = serde_json::from_str(page).unwrap();
    assert_eq!(&*page.metadata.resource_version, "42");
    assert_eq!(&*page.metadata.continue_token, "next");
    assert_eq!(page.items.len(), 2);
    let empty: ListOf<Pod> = serde_json::from_str(r#"{"metadata":{},"items":null}"#).unwrap();
    assert!(empty.items.is_empty());
}

#[test]
fn a_bookmark_is_an_object_with_a_version_alone() {
    let bookmark = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"42",
        "creationTimestamp":null},"spec":{"containers":null},"status":{}}"#;
    let pod: Pod = serde_json::from_str(bookmark).unwrap();
    assert_eq!(&*pod.metadata.resource_version, "42");
    assert!(pod.metadata.name.is_empty());
}

#[test]
fn escaped_text_is_read_as_any_other() {
    let pod: Pod = serde_json::from_str(
        r#"{"metadata":{"labels":{"a\u0062":"\"c\""},"annotations":{"gpu-batch.io\/x":"\n"}}}"#,
    )
    .unwrap();
    assert_eq!(
        pod.metadata.labels.get("ab").map(AsRef::as_ref),
        Some("\"c\"")
    );
    assert_eq!(pod.metadata.annotations.get("gpu-batch.io/x"), Some("\n"));
}

#[test]
fn pairs_are_sorted_and_the_last_of_a_key_wins() {
    let pairs: Pairs<u32> = serde_json::from_str(r#"{"b":1,"a":2,"b":3,"a":4,"c":5}"#).unwrap();
    let pairs: Vec<(&str, &u32)> = pairs.iter().collect();
    assert_eq!(pairs, [("a", &4), ("b", &3), ("c", &5)]);
}

#[test]
fn only_annotations_that_somebody_reads_are_kept() {
    let annotations: Annotations = serde_json::from_value(json!({
        "gpu-batch.io/min-member": "8",
        "gpu-fraction": "0.5",
        "hami.io/vgpu-node": "n",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "nvidia.com/x": "y",
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "volume.kubernetes.io/selected-node": "n",
    }))
    .unwrap();
    let keys: Vec<&str> = annotations.0.iter().map(|(key, _)| key).collect();
    assert_eq!(
        keys,
        [
            "gpu-batch.io/min-member",
            "gpu-fraction",
            "hami.io/vgpu-node",
            "nvidia.com/x",
            "pv.kubernetes.io/bind-completed",
            "volume.kubernetes.io/selected-node",
        ]
    );
}

#[test]
fn times_are_read_in_milliseconds_and_never_before_1970() {
    for (text, expected) in [
        ("1970-01-01T00:00:01Z", Some(1_000)),
        ("1970-01-01T01:00:00.25+01:00", Some(250)),
        ("0001-01-01T00:00:00Z", Some(0)),
        ("9999-12-31T23:59:59Z", Some(253_402_207_200_999)),
        ("2026-11-21", None),
        ("9999-12-31", None),
        ("", None),
        ("99999-01-01T00:00:00Z", None),
    ] {
        assert_eq!(Timestamp::parse(text), expected.map(Timestamp), "{text}");
    }
}

/// A template that leaves a number out makes such texts, and the API server takes them.
#[test]
fn quantities_are_read_as_the_api_server_reads_them() {
    let read = |quantity: serde_json::Value| {
        let Quantity(text) = serde_json::from_value(quantity).unwrap();
        text.into_string()
    };
    for none in ["Gi", "m", "-", "+.", ".5e"] {
        let expected = if none == ".5e" { none } else { "0" };
        assert_eq!(read(json!(none)), expected, "{none}");
    }
    assert_eq!(read(json!(null)), "0");
    assert_eq!(read(json!(" 1Gi ")), "1Gi");
    for (wrong, kept) in [
        ("", ""),
        (" ", ""),
        ("Ei", "Ei"),
        ("x", "x"),
        ("1 Gi", "1 Gi"),
    ] {
        assert_eq!(read(json!(wrong)), kept);
    }
}
