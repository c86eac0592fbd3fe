//! Small worlds in which gangs elsewhere were evicted wrongly, each with the victims expected:
//! `explain` names exactly these for the first claimant.
//!
//! The worlds are no part of the repository. `GPU_BATCH_CASES` names their directory; without it
//! they are looked for beside the repository.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

mod objects;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file of the worlds.
///
/// # Panics
/// If it is not there.
fn file() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/cases");
    let cases = std::env::var_os("GPU_BATCH_CASES").unwrap_or_else(|| beside.into());
    let path = PathBuf::from(cases).join("victims.yaml");
    assert!(
        path.is_file(),
        "{} is missing; set GPU_BATCH_CASES to the directory of the cases",
        path.display()
    );
    path
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    let mut texts: Vec<String> = list.map(|text| text.as_str().unwrap().to_owned()).collect();
    texts.sort();
    texts
}

/// What `explain` says of evictions for a gang.
fn explained(file: &Path, gang: &str, now: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .args(["explain", "podgroup", gang, "-o", "json", "-f"])
        .arg(file)
        .env("GPU_BATCH_NOW", now)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{gang}: {error}");
    let explanation: Value = serde_json::from_slice(&output.stdout).unwrap();
    explanation["eviction"].clone()
}

#[test]
fn explain_names_the_victims_expected() {
    let text = std::fs::read_to_string(file()).unwrap();
    // In these files `n` and `y` are names.
    let options = serde_saphyr::options! { strict_booleans: true };
    let document: Value = serde_saphyr::from_str_with_options(&text, options).unwrap();
    let now = document["now"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let mut cases = 0;
    for case in document["cases"].as_array().unwrap() {
        if case.get("kind").is_some_and(|kind| kind != "plan") {
            continue;
        }
        cases += 1;
        let id = case["id"].as_str().unwrap();
        let path = folder.path().join(id).with_extension("json");
        let objects = objects::of_case(case, now);
        std::fs::write(&path, objects.to_string()).unwrap();
        let claimant = case["claimants"][0].as_str().unwrap();
        let found = explained(&path, &format!("{}/{claimant}", objects::NAMESPACE), now);
        let action = found["action"].as_str().unwrap_or("None").to_lowercase();
        let pods = found["evict"].as_array().into_iter().flatten();
        let mut evict: Vec<String> = pods
            .map(|one| {
                one["pod"]
                    .as_str()
                    .unwrap()
                    .split_once('/')
                    .unwrap()
                    .1
                    .to_owned()
            })
            .collect();
        evict.sort();
        let expected = &case["expect"]["decisions"][0];
        let all = expected["evict"] == "all";
        let victims = match all {
            true => objects::running(case),
            false => texts(&expected["evict"]),
        };
        if (action.as_str(), &evict) != (expected["action"].as_str().unwrap(), &victims) {
            wrong.push(format!("{id}: {action} {evict:?}, not {expected}: {found}"));
        }
    }
    assert!(cases >= 31, "{cases}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The evictions of a plan of three cycles, by the gang for which they are.
fn planned(file: &Path, now: &str) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .args(["plan", "--cycles", "3", "-o", "json", "-f"])
        .arg(file)
        .env("GPU_BATCH_NOW", now)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", file.display());
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut evictions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let name = |value: &Value| {
        let text = value.as_str().unwrap();
        text.rsplit('/').next().unwrap().to_owned()
    };
    for eviction in plan["evictions"].as_array().unwrap() {
        let pods = evictions.entry(name(&eviction["for"])).or_default();
        pods.push(name(&eviction["pod"]));
    }
    for pods in evictions.values_mut() {
        pods.sort();
    }
    evictions
}

#[test]
fn plan_evicts_exactly_the_victims_expected() {
    let text = std::fs::read_to_string(file()).unwrap();
    let options = serde_saphyr::options! { strict_booleans: true };
    let document: Value = serde_saphyr::from_str_with_options(&text, options).unwrap();
    let now = document["now"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let cases = document["cases"].as_array().unwrap();
    let of_plan = |case: &&Value| case.get("kind").is_none_or(|kind| kind == "plan");
    for case in cases.iter().filter(of_plan) {
        let id = case["id"].as_str().unwrap();
        let path = folder.path().join(id).with_extension("json");
        std::fs::write(&path, objects::of_case(case, now).to_string()).unwrap();
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let decisions = case["expect"]["decisions"].as_array().unwrap();
        for (claimant, decision) in case["claimants"].as_array().unwrap().iter().zip(decisions) {
            let evict = match decision["evict"] == "all" {
                true => objects::running(case),
                false => texts(&decision["evict"]),
            };
            if !evict.is_empty() {
                let pods = expected.entry(claimant.as_str().unwrap().to_owned());
                pods.or_default().extend(evict);
            }
        }
        let found = planned(&path, now);
        if found != expected {
            wrong.push(format!("{id}: {found:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
