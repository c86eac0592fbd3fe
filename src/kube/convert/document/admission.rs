//! What the API server refuses of a new pod although every field can be read: no cluster lets such
//! a pod in, so a plan with it would tell of something that cannot happen.
//!
//! The trap: a pod that a cluster has may still break a rule here. It may be older than the rule,
//! or was changed since: a deadline of 0 is refused of a new pod alone. So pods with a UID are let
//! in.
//!
//! Looked at is what decides where a pod can run, and what says how long it runs. Not looked at are
//! fields without a part in that: a pod without an image is planned. What the scheduler does not
//! read is looked up in the document itself.
//!
//! Source: `pkg/apis/core/validation/validation.go` of Kubernetes 1.36. `tests/parity` compares
//! both.

mod amounts;
mod names;
mod nodes;
mod ports;

use crate::kube::convert::problems::Problems;
use crate::kube::convert::resources;
use crate::kube::objects::{Pod, Toleration};
use gpu_batch_policies::facts::Problem;
use names::{is_key_of, is_value_of};
use serde_json::Value;
use std::fmt;

/// What the API server refuses of a pod; nothing of one that a cluster has let in. `document` is
/// what the pod was read from.
pub(super) fn refusals(pod: &Pod, document: &Value) -> Vec<Problem> {
    if !pod.metadata.uid.is_empty() {
        return Vec::new();
    }
    let mut problems = Problems::default();
    let spec = &pod.spec;
    names::pairs(&pod.metadata.labels, "metadata.labels", &mut problems);
    names::pairs(&spec.node_selector, "spec.nodeSelector", &mut problems);
    for (field, container) in resources::all_containers(spec) {
        if let Some(resources) = &container.resources {
            amounts::of_container(resources, field, &mut problems);
        }
        let policy = container.restart_policy.as_deref();
        let field = format_args!("{field}.restartPolicy");
        one_of(policy, &RESTART_POLICIES, field, &mut problems);
    }
    amounts::of_pod(spec, &mut problems);
    amounts::of_overhead(&spec.overhead, &mut problems);
    ports::of_pod(spec, &mut problems);
    for (index, toleration) in spec.tolerations.iter().flatten().enumerate() {
        let field = format!("spec.tolerations[{index}]");
        let seconds = &document["spec"]["tolerations"][index]["tolerationSeconds"];
        of_toleration(toleration, !seconds.is_null(), &field, &mut problems);
    }
    nodes::required(spec, &mut problems);
    nodes::preferred(spec, &mut problems);
    let deadline = spec.active_deadline_seconds;
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        let message = format_args!("{seconds} is not from 1 to {}", i32::MAX);
        problems.push("spec.activeDeadlineSeconds", message);
    }
    let policy = spec.preemption_policy.as_deref();
    let policies = ["Never", "PreemptLowerPriority"];
    one_of(policy, &policies, "spec.preemptionPolicy", &mut problems);
    // Of pods, and not of containers, an empty policy stands for the default.
    let policy = document["spec"]["restartPolicy"].as_str();
    let policy = policy.filter(|policy| !policy.is_empty());
    one_of(
        policy,
        &RESTART_POLICIES,
        "spec.restartPolicy",
        &mut problems,
    );
    problems.into_vec()
}

const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];

/// Checks a word, if there is one.
fn one_of(word: Option<&str>, words: &[&str], field: impl fmt::Display, problems: &mut Problems) {
    if let Some(word) = word.filter(|word| !words.contains(word)) {
        let message = format_args!("`{word}` is not one of {}", words.join(", "));
        problems.push(field, message);
    }
}

fn of_toleration(toleration: &Toleration, has_seconds: bool, field: &str, problems: &mut Problems) {
    let key = toleration.key.as_deref().unwrap_or_default();
    let value = toleration.value.as_deref().unwrap_or_default();
    let operator = toleration.operator.as_deref().unwrap_or_default();
    if key.is_empty() && operator != "Exists" {
        let message = "must be Exists where there is no key: such a toleration is for all taints";
        problems.push(format_args!("{field}.operator"), message);
    }
    if !key.is_empty() {
        is_key_of(key, format_args!("{field}.key"), problems);
    }
    if has_seconds && toleration.effect.as_deref() != Some("NoExecute") {
        let message = "must be NoExecute where there are tolerationSeconds";
        problems.push(format_args!("{field}.effect"), message);
    }
    match operator {
        "Exists" if !value.is_empty() => {
            problems.push(format_args!("{field}.value"), "must be empty with Exists");
        }
        "" | "Equal" => is_value_of(value, format_args!("{field}.value"), problems),
        // A cluster has to be told that it should compare numbers.
        "Gt" | "Lt" => {
            let message = format_args!("`{operator}` is not one of Equal, Exists");
            problems.push(format_args!("{field}.operator"), message);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
