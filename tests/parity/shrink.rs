//! Makes a case in which the two schedulers differ smaller, as long as they still differ.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compare::{Sort, compare};
use crate::oracle::{Answer, Oracle};
use crate::ours::Files;

/// One step from a value to a part of it.
#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// The smallest case that taking parts away leads to, and how the two differ in it.
pub(crate) fn shrink(
    case: &Value,
    sort: Sort,
    oracle: &mut Oracle,
    files: &Files,
) -> (Value, String) {
    let mut smallest = case.clone();
    let first = oracle.ask(&case.to_string());
    let fields = fields(&first);
    let mut words = String::new();
    while let Some((smaller, said)) = paths(&smallest).into_iter().find_map(|path| {
        let smaller = without(&smallest, &path);
        let answer = oracle.ask(&smaller.to_string());
        // A mistake that was not there before is no part of the difference.
        if !self::fields(&answer).is_subset(&fields) {
            return None;
        }
        let difference = compare(&smaller, &answer, files).difference;
        difference
            .filter(|(now, _)| *now == sort)
            .map(|(_, said)| (smaller, said))
    }) {
        smallest = smaller;
        words = said;
    }
    if words.is_empty() {
        let found = compare(case, &first, files).difference;
        words = found.map(|(_, words)| words).unwrap_or_default();
    }
    (smallest, words)
}

fn fields(answer: &Answer) -> BTreeSet<String> {
    answer.refused.iter().map(|one| one.field.clone()).collect()
}

/// The parts that a case may lose, large ones first; each list of a case stays, and every object
/// keeps its name.
fn paths(case: &Value) -> Vec<Vec<Step>> {
    let mut paths = Vec::new();
    collect(case, &mut Vec::new(), &mut paths);
    paths.retain(|path| match path.as_slice() {
        [] | [_] => false,
        [.., Step::Key(last)] => last != "metadata" && last != "name" && last != "schedulerName",
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
    let mut place = &mut case;
    for (depth, step) in path.iter().enumerate() {
        let last = depth + 1 == path.len();
        match (step, last) {
            (Step::Key(key), true) => drop(place.as_object_mut().unwrap().remove(key)),
            (Step::Index(index), true) => drop(place.as_array_mut().unwrap().remove(*index)),
            (Step::Key(key), false) => place = &mut place[key.as_str()],
            (Step::Index(index), false) => place = &mut place[*index],
        }
        if last {
            break;
        }
    }
    case
}
