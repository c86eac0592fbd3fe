//! Jobs.

use super::{Converter, Watched, identity, keys};
use crate::kube::objects::{Job, Meta, OnExitCodes, PodFailurePolicy};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::JobFacts;

impl Watched for Job {
    const KIND: Kind = Kind::Job;
    const PATH: &'static str = "/apis/batch/v1/jobs";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::Job(identity::uid("Job", &self.metadata))
    }

    fn convert(self, _converter: &mut Converter) -> Option<Object> {
        Some(Object::Job(job(self)))
    }
}

/// The facts of a Job. A number that no Job can have counts as the nearest number that a Job can
/// have.
pub(super) fn job(job: Job) -> JobFacts {
    let spec = job.spec;
    let completions = match (spec.completions, spec.parallelism) {
        (None, None) => Some(1),
        (completions, _) => completions,
    };
    let deadline = spec.active_deadline_seconds;
    JobFacts {
        uid: identity::uid("Job", &job.metadata),
        unknown_keys: keys::on_owner(&job.metadata, &spec.template.metadata),
        namespace: job.metadata.namespace,
        name: job.metadata.name,
        indexed: spec.completion_mode.as_deref() == Some("Indexed"),
        parallelism: saturated(spec.parallelism.unwrap_or(1)),
        completions: completions.map(saturated),
        succeeded: saturated(job.status.succeeded.unwrap_or(0)),
        active_deadline_ms: deadline
            .and_then(|seconds| u64::try_from(seconds).ok()?.checked_mul(1_000)),
        ignores_evictions: ignores_evictions(&spec.pod_failure_policy.unwrap_or_default()),
    }
}

/// Whether, of the rules that match an evicted pod, the first says that the pod's failure does not
/// count. A rule may match the pod's condition, or the exit code of a container that was stopped.
fn ignores_evictions(policy: &PodFailurePolicy) -> bool {
    let mut rules = policy.rules.iter().flatten();
    let first = rules.find_map(|rule| {
        let ignores = &*rule.action == "Ignore";
        let mut conditions = rule.on_pod_conditions.iter().flatten();
        let evicted = conditions.any(|condition| {
            let status = condition.status.as_deref().unwrap_or("True");
            &*condition.kind == "DisruptionTarget" && status == "True"
        });
        let stopped = rule
            .on_exit_codes
            .as_ref()
            .is_some_and(takes_what_is_stopped);
        // Not every evicted pod ends with such an exit code, so a rule that ignores them is not
        // enough.
        (evicted || (stopped && !ignores)).then_some(ignores)
    });
    first.unwrap_or(false)
}

/// Whether a rule matches the exit code of a container that was stopped by SIGTERM or SIGKILL.
fn takes_what_is_stopped(rule: &OnExitCodes) -> bool {
    const STOPPED: [i64; 2] = [128 + 15, 128 + 9];
    let named = |code: &i64| rule.values.iter().flatten().any(|value| value == code);
    match &*rule.operator {
        "NotIn" => !STOPPED.iter().all(named),
        _ => STOPPED.iter().any(named),
    }
}

fn saturated(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(if number < 0 { 0 } else { u32::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(spec: Value, indexed: bool, parallelism: u32, completions: Option<u32>) {
        let text = spec.to_string();
        let object = json!({"metadata": {"name": "train", "namespace": "vision"}, "spec": spec});
        let facts = job(serde_json::from_value(object).unwrap());
        assert_eq!(facts.indexed, indexed, "{text}");
        assert_eq!(facts.parallelism, parallelism, "{text}");
        assert_eq!(facts.completions, completions, "{text}");
    }

    #[test]
    fn a_job_has_the_api_servers_defaults() {
        check(json!({}), false, 1, Some(1));
        check(json!({"parallelism": 4}), false, 4, None);
        check(json!({"completions": 4}), false, 1, Some(4));
        check(
            json!({"completionMode": "Indexed", "completions": 8, "parallelism": 8}),
            true,
            8,
            Some(8),
        );
        check(
            json!({"parallelism": -1, "completions": i64::MAX}),
            false,
            0,
            Some(u32::MAX),
        );
    }

    #[test]
    fn evictions_are_ignored_by_the_first_rule_that_takes_an_evicted_pod() {
        let ignore = json!({
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        });
        let by_default = json!({
            "action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}],
        });
        let counted = json!({
            "action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        });
        let other = json!({
            "action": "Ignore", "onPodConditions": [{"type": "ConfigIssue", "status": "True"}],
        });
        let codes = |action: &str, operator: &str, values: [i64; 2]| {
            let codes = json!({"containerName": "main", "operator": operator, "values": values});
            json!({"action": action, "onExitCodes": codes})
        };
        let own_error = codes("FailJob", "In", [42, 43]);
        let any_error = codes("FailJob", "NotIn", [0, 42]);
        let killed = codes("FailIndex", "In", [137, 1]);
        let forgiven = codes("Ignore", "In", [137, 143]);
        for (rules, expected) in [
            (json!([]), false),
            (json!([other]), false),
            (json!([ignore]), true),
            (json!([by_default]), true),
            (json!([other, own_error, ignore]), true),
            (json!([any_error, ignore]), false),
            (json!([killed, ignore]), false),
            (json!([ignore, any_error]), true),
            (json!([forgiven]), false),
            (json!([forgiven, ignore]), true),
            (json!([counted, ignore]), false),
        ] {
            let text = rules.to_string();
            let object = json!({"spec": {"podFailurePolicy": {"rules": rules}}});
            let facts = job(serde_json::from_value(object).unwrap());
            assert_eq!(facts.ignores_evictions, expected, "{text}");
        }
        for object in [json!({}), json!({"spec": {"podFailurePolicy": null}})] {
            let facts = job(serde_json::from_value(object).unwrap());
            assert!(!facts.ignores_evictions);
        }
    }

    #[test]
    fn a_deadline_is_read_in_milliseconds() {
        for (seconds, expected) in [(90, Some(90_000)), (-1, None), (i64::MAX, None)] {
            let object = json!({"spec": {"activeDeadlineSeconds": seconds}});
            let facts = job(serde_json::from_value(object).unwrap());
            assert_eq!(facts.active_deadline_ms, expected, "{seconds}");
        }
    }
}
