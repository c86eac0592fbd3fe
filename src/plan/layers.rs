//! Files as if they were applied one after the other: the last object of a name counts.

use super::source::{Sourced, some_of};
use crate::kube::convert::{Identity, OF_BINDINGS};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Fields that a cluster has written into an object, and that no file of a user has: they stay when
/// a later file has the object, unless the later object has its own. For pods they say where the
/// pods run; the annotations of their bindings stay as well.
const OF_THE_CLUSTER: [&[&str]; 6] = [
    &["metadata", "uid"],
    &["metadata", "creationTimestamp"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "ownerReferences"],
    &["spec", "nodeName"],
    &["status"],
];

/// The files whose objects replace each other: the later and the earlier one.
type Files = (Arc<str>, Arc<str>);

/// The last object of each kind, namespace and name, with notes about objects that were replaced.
pub(super) fn last_of_each(objects: Vec<Sourced>) -> (Vec<Sourced>, Vec<String>) {
    let mut places = BTreeMap::new();
    let mut last: Vec<Sourced> = Vec::with_capacity(objects.len());
    let mut replaced: BTreeMap<Files, Vec<String>> = BTreeMap::new();
    for (source, mut object) in objects {
        let Some(identity) = Identity::of(&object) else {
            last.push((source, object));
            continue;
        };
        match places.entry(identity) {
            Entry::Vacant(place) => {
                place.insert(last.len());
                last.push((source, object));
            }
            Entry::Occupied(place) => {
                let earlier = &mut last[*place.get()];
                keep(&earlier.1, &mut object);
                let files = (Arc::clone(&source.file), Arc::clone(&earlier.0.file));
                let names = replaced.entry(files).or_default();
                names.push(place.key().to_string());
                *earlier = (source, object);
            }
        }
    }
    let notes = replaced.into_iter();
    let notes = notes.map(|((later, earlier), names)| {
        let (names, one) = (some_of(&names), names.len() == 1);
        match (later == earlier, one) {
            (true, true) => format!("{later}: {names} is there twice; the last one counts"),
            (true, false) => {
                format!("{later}: {names} are there more than once; the last ones count")
            }
            (false, true) => format!("{later}: {names} replaces that of {earlier}"),
            (false, false) => format!("{later}: {names} replace those of {earlier}"),
        }
    });
    (last, notes.collect())
}

fn keep(earlier: &Value, later: &mut Value) {
    let of_bindings = OF_BINDINGS.map(|annotation| ["metadata", "annotations", annotation]);
    let of_bindings = of_bindings.iter().map(<[_; 3]>::as_slice);
    for path in OF_THE_CLUSTER.into_iter().chain(of_bindings) {
        let written = path.iter().try_fold(earlier, |value, key| value.get(key));
        if let Some(written) = written {
            insert(later, path, written);
        }
    }
}

/// Inserts a value where there is none.
fn insert(object: &mut Value, path: &[&str], value: &Value) {
    let (Some((key, below)), true) = (path.split_first(), object.is_object() || object.is_null())
    else {
        return;
    };
    if object.is_null() {
        *object = Map::new().into();
    }
    let entry = &mut object[key];
    match below {
        [] if entry.is_null() => *entry = value.clone(),
        [] => {}
        below => insert(entry, below, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::source::Source;
    use serde_json::json;

    fn of(file: &str, object: Value) -> Sourced {
        let source = Source {
            file: file.into(),
            document: None,
        };
        (source, object)
    }

    #[test]
    fn the_last_object_of_a_name_counts_and_keeps_what_the_cluster_wrote() {
        let captured = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"old": "yes"},
                         "annotations": {"gpu-batch.io/bound-queue": "q"}},
            "spec": {"nodeName": "n1", "priority": 5},
            "status": {"phase": "Running"},
        });
        let new = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"},
            "spec": {}, "status": null,
        });
        let other = json!({"apiVersion": "v1", "kind": "Pod",
                           "metadata": {"name": "a", "namespace": "m"}});
        let objects = vec![of("c", captured), of("c", other.clone()), of("f", new)];
        let (last, notes) = last_of_each(objects);
        assert_eq!(notes, ["f: Pod n/a replaces that of c"]);
        let expected = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "n", "uid": "u",
                         "annotations": {"gpu-batch.io/bound-queue": "q"}},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running"},
        });
        assert_eq!(last, [of("f", expected), of("c", other)]);
    }

    #[test]
    fn what_a_file_says_itself_is_not_kept() {
        let pod = |node: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": node}});
        let (last, notes) = last_of_each(vec![of("f", pod("n1")), of("f", pod("n2"))]);
        assert_eq!(notes, ["f: Pod a is there twice; the last one counts"]);
        assert_eq!(last, [of("f", pod("n2"))]);
    }

    #[test]
    fn a_queue_is_the_same_whatever_namespace_is_written_and_groups_tell_kinds_apart() {
        let named = |api: &str, kind: &str, namespace: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": "a", "namespace": namespace}});
        let (last, _) = last_of_each(vec![
            of("f", named("gpu-batch.io/v1alpha1", "Queue", "x")),
            of("g", named("gpu-batch.io/v1alpha1", "Queue", "")),
            of("g", named("gpu-batch.io/v1alpha1", "PodGroup", "x")),
            of("g", named("scheduling.k8s.io/v1alpha2", "PodGroup", "x")),
        ]);
        assert_eq!(last.len(), 3);
    }

    #[test]
    fn nonsense_is_left_to_those_who_read_it() {
        let nonsense = [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "n"}, "status": 1}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": 5}),
            json!(5),
            json!({"kind": []}),
        ];
        let (last, _) = last_of_each(nonsense.map(|value| of("f", value)).into());
        assert_eq!(last[0].1["spec"], 5);
        assert_eq!(last.len(), 3);
    }
}
