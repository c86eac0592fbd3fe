//! Jobs.

use super::{Converter, identity};
use crate::objects::{Job, Meta, Watched};
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

/// The facts of a Job. Numbers that no Job can have count as the nearest one.
pub(super) fn job(job: Job) -> JobFacts {
    let spec = job.spec;
    let completions = match (spec.completions, spec.parallelism) {
        (None, None) => Some(1),
        (completions, _) => completions,
    };
    let deadline = spec.active_deadline_seconds;
    JobFacts {
        uid: identity::uid("Job", &job.metadata),
        namespace: job.metadata.namespace,
        name: job.metadata.name,
        indexed: spec.completion_mode.as_deref() == Some("Indexed"),
        parallelism: saturated(spec.parallelism.unwrap_or(1)),
        completions: completions.map(saturated),
        active_deadline_ms: deadline
            .and_then(|seconds| u64::try_from(seconds).ok()?.checked_mul(1_000)),
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
    fn a_deadline_is_read_in_milliseconds() {
        for (seconds, expected) in [(90, Some(90_000)), (-1, None), (i64::MAX, None)] {
            let object = json!({"spec": {"activeDeadlineSeconds": seconds}});
            let facts = job(serde_json::from_value(object).unwrap());
            assert_eq!(facts.active_deadline_ms, expected, "{seconds}");
        }
    }
}
