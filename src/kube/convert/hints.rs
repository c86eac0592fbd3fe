//! Annotations on pods that do for an implicit gang what the fields of a PodGroup do.

use super::problems::Problems;
use super::{Converter, keys, limits};
use crate::kube::api::{parse_duration_ms, parse_placement, parse_runtime_ms};
use crate::kube::objects::{Pod, Timestamp};
use gpu_batch_policies::facts::{GangHints, Placement, PlacementChoice};

/// Reads the hints of a pod. A bad value is a problem that names the annotation.
pub(super) fn hints(pod: &Pod, converter: &Converter, problems: &mut Problems) -> GangHints {
    let mut reader = Reader { pod, problems };
    let placement = reader.read(keys::PLACEMENT, placement);
    let deadline = pod.spec.active_deadline_seconds;
    let deadline_ms = deadline.and_then(|seconds| u64::try_from(seconds).ok()?.checked_mul(1_000));
    GangHints {
        min_member: reader.read(keys::MIN_MEMBER, min_member),
        // The kubelet ends the pod at its deadline, whatever its owner expects.
        expected_runtime_ms: [reader.read(keys::EXPECTED_RUNTIME, runtime), deadline_ms]
            .into_iter()
            .flatten()
            .min(),
        preemptible: reader.read(keys::PREEMPTIBLE, truth),
        placement: PlacementChoice {
            gpu: placement,
            cpu: placement,
        },
        topology_required: reader.read(keys::TOPOLOGY_REQUIRED, name),
        topology_preferred: reader.read(keys::TOPOLOGY_PREFERRED, name),
        preemption_delay_ms: reader.read(keys::PREEMPTION_DELAY, length),
        last_checkpoint_ms: reader
            .read(keys::LAST_CHECKPOINT, time)
            .map(|time| converter.past(time)),
    }
}

struct Reader<'a> {
    pod: &'a Pod,
    problems: &'a mut Problems,
}

impl Reader<'_> {
    fn read<T>(&mut self, key: &str, parse: fn(&str) -> Result<T, String>) -> Option<T> {
        match parse(self.pod.metadata.annotations.get(key)?) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problems.push(keys::annotation(key), message);
                None
            }
        }
    }
}

fn placement(text: &str) -> Result<Placement, String> {
    parse_placement(text).map_err(|error| error.to_string())
}

fn min_member(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=limits::MEMBERS) => Ok(number),
        _ => Err(format!(
            "`{text}` is not a number from 1 to {}",
            limits::MEMBERS
        )),
    }
}

fn length(text: &str) -> Result<u64, String> {
    parse_duration_ms(text).map_err(|error| error.to_string())
}

fn runtime(text: &str) -> Result<u64, String> {
    parse_runtime_ms(text).map_err(|error| error.to_string())
}

fn truth(text: &str) -> Result<bool, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is neither true nor false"))
}

fn name(text: &str) -> Result<Box<str>, String> {
    match text.len() {
        1..=limits::TEXT => Ok(text.into()),
        length => Err(format!("a name of {length} bytes")),
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text)
        .ok_or_else(|| format!("`{text}` is not a time such as 2026-11-21T10:00:00Z"))
}

#[cfg(test)]
mod tests;
