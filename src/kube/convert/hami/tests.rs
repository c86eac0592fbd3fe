//! Compared with what HAMi's own code answers. The answers are no part of the repository.
//! `GPU_BATCH_CASES` names their directory; without it they are looked for beside the repository.

mod allocate;
mod allocations;
mod annotations;
mod choices;
mod fit;
mod instances;
mod links;
mod locks;
mod registers;
mod requests;

use crate::kube::convert::problems::Problems;
use crate::kube::objects::Annotations;
use gpu_batch_policies::facts::Problem;
use gpu_batch_simulator::input;
use serde_json::Value;
use std::io::BufRead;
use std::path::PathBuf;

/// The cases of a file that are of a kind; the file `requests` has no kinds.
///
/// # Panics
/// If the file is not there, or holds no such case.
fn cases(file: &str, kind: Option<&str>) -> Vec<Value> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/cases");
    let cases = std::env::var_os("GPU_BATCH_CASES").unwrap_or_else(|| beside.into());
    let path = PathBuf::from(cases).join(format!("hami/{file}.jsonl.gz"));
    let lines = input::open(&path).unwrap_or_else(|error| {
        panic!("{error}; set GPU_BATCH_CASES to the directory of the cases")
    });
    let cases = lines
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let cases: Vec<Value> = cases
        .filter(|case: &Value| case["kind"].as_str() == kind)
        .collect();
    assert!(!cases.is_empty(), "{} has no {kind:?}", path.display());
    cases
}

/// The entries of a list in a case; none if there is no list.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn annotations(value: &Value) -> Annotations {
    serde_json::from_value(value.clone()).unwrap()
}

/// What a conversion made, and the problems that it found.
fn with_problems<T>(convert: impl FnOnce(&mut Problems) -> T) -> (T, Vec<Problem>) {
    let mut problems = Problems::default();
    let converted = convert(&mut problems);
    (converted, problems.into_vec())
}
