//! Makes a case in which the two schedulers differ smaller, as long as they still differ.

use serde_json::Value;

/// One step from a value to a part of it.
#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// The fields without which an object is none.
const KEPT: [&str; 5] = ["apiVersion", "kind", "metadata", "name", "schedulerName"];

/// The smallest case that is found, and the words for its difference: a part less, and the two
/// schedulers would agree. `differs` gives the words, as long as there is a difference.
pub(crate) fn shrink(
    case: &Value,
    mut differs: impl FnMut(&Value) -> Option<String>,
) -> (Value, String) {
    let mut smallest = case.clone();
    let mut words = differs(case).unwrap_or_default();
    let mut smaller = |case: &Value| {
        paths(case).into_iter().find_map(|path| {
            let smaller = without(case, &path);
            differs(&smaller).map(|words| (smaller, words))
        })
    };
    while let Some((case, said)) = smaller(&smallest) {
        smallest = case;
        words = said;
    }
    (smallest, words)
}

/// The parts that a case may lose, large ones first; each list of a case stays, and every object
/// keeps its name.
fn paths(case: &Value) -> Vec<Vec<Step>> {
    let mut paths = Vec::new();
    collect(case, &mut Vec::new(), &mut paths);
    paths.retain(|path| match path.as_slice() {
        [] | [_] => false,
        [.., Step::Key(last)] => !KEPT.contains(&&**last),
        _ => true,
    });
    paths.sort_by_key(Vec::len);
    paths
}

fn collect(value: &Value, path: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
    paths.push(path.clone());
    let mut inner = |step: Step, value: &Value| {
        path.push(step);
        collect(value, path, paths);
        path.pop();
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                inner(Step::Key(key.clone()), value);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                inner(Step::Index(index), value);
            }
        }
        _ => {}
    }
}

fn without(case: &Value, path: &[Step]) -> Value {
    let mut case = case.clone();
    let (last, way) = path.split_last().unwrap();
    let place = way.iter().fold(&mut case, |place, step| match step {
        Step::Key(key) => &mut place[key.as_str()],
        Step::Index(index) => &mut place[*index],
    });
    match last {
        Step::Key(key) => drop(place.as_object_mut().unwrap().remove(key)),
        Step::Index(index) => drop(place.as_array_mut().unwrap().remove(*index)),
    }
    case
}

#[test]
fn all_is_taken_away_that_the_difference_does_not_need() {
    let case = serde_json::json!({
        "nodes": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b", "labels": {"c": "d"}}}],
        "pods": [{"spec": {}}],
        "pod": {"spec": {"schedulerName": "e", "containers": [{"f": 1, "g": [1, 2, 3]}]}},
    });
    let differs = |case: &Value| {
        let named = case["nodes"].as_array()?.iter();
        let mut named = named.filter(|node| node["metadata"]["name"] == "b");
        let listed = case["pod"]["spec"]["containers"][0]["g"].as_array()?;
        let both = named.next().is_some() && listed.contains(&2.into());
        both.then(|| listed.len().to_string())
    };
    let (smallest, words) = shrink(&case, differs);
    let expected = serde_json::json!({
        "nodes": [{"metadata": {"name": "b"}}],
        "pods": [],
        "pod": {"spec": {"schedulerName": "e", "containers": [{"g": [2]}]}},
    });
    assert_eq!((smallest, words), (expected, "1".to_owned()));
}
