//! The Job controller.

use super::members::{COMPLETION_INDEX, Member, State};
use super::{Birth, Made, Names, Owner, Result};
use crate::kube::convert::part_of;
use crate::kube::objects::{Condition, null_is_default};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The controller that acts where a Job names none.
const CONTROLLER: &str = "kubernetes.io/job-controller";
/// Conditions after which a Job gets no more pods.
const ENDED: [&str; 4] = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Job {
    #[serde(deserialize_with = "null_is_default")]
    spec: Spec,
    #[serde(deserialize_with = "null_is_default")]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    parallelism: Option<i64>,
    completions: Option<i64>,
    completion_mode: Option<String>,
    suspend: Option<bool>,
    managed_by: Option<String>,
    pod_replacement_policy: Option<String>,
    pod_failure_policy: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    succeeded: Option<i64>,
    completed_indexes: Option<String>,
    failed_indexes: Option<String>,
    conditions: Option<Vec<Condition>>,
}

/// The missing pods of a Job.
pub(super) fn pods(owner: &Owner<'_>, members: &[&Member], names: &mut Names<'_>) -> Result<Made> {
    let job: Job = part_of(owner.object)?;
    let spec = &job.spec;
    let (mode, policy) = (&spec.completion_mode, &spec.pod_replacement_policy);
    let modes = ["NonIndexed", "Indexed"];
    owner.check_word("spec.completionMode", mode.as_deref(), &modes)?;
    let policies = ["TerminatingOrFailed", "Failed"];
    owner.check_word("spec.podReplacementPolicy", policy.as_deref(), &policies)?;
    let parallelism = owner.count("spec.parallelism", spec.parallelism, 1)?;
    let completions = match (spec.completions, spec.parallelism) {
        (None, Some(_)) => None,
        (completions, _) => Some(owner.count("spec.completions", completions, 1)?),
    };
    if job.is_indexed() && spec.completions.is_none() {
        return Err(owner.refused("spec.completions", "is missing; an Indexed Job needs it"));
    }
    if job.has_ended() {
        return Ok(Made::default());
    }
    if let Some(reason) = job.held() {
        let note = format!("{} {reason}, so no pods are made of it", owner.identity);
        return Ok(Made {
            note: members.is_empty().then_some(note),
            ..Made::default()
        });
    }
    let active = job.active(members);
    let wanted = job.wanted(parallelism, completions, members);
    let missing = owner.to_make(wanted - length(&active), "spec.parallelism")?;
    if missing > 0 && !owner.template.is_null() {
        owner.check_restarts(&["Never", "OnFailure"])?;
    }
    let name = &*owner.identity.name;
    let pods = match completions.filter(|_| job.is_indexed()) {
        None => {
            let names = names.take_numbered(name, missing).into_iter();
            names.map(|name| birth(owner, name, None)).collect()
        }
        Some(completions) => {
            let indexes = job.free_indexes(completions, missing, &active, members);
            let pod = |index: i64| {
                let name = names.take_like(format!("{name}-{index}"));
                birth(owner, name, Some(index))
            };
            indexes.into_iter().map(pod).collect()
        }
    };
    Ok(Made {
        owner: owner.reference(),
        pods,
        note: None,
    })
}

impl Job {
    fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    fn has_ended(&self) -> bool {
        let mut conditions = self.status.conditions.iter().flatten();
        conditions
            .any(|condition| ENDED.contains(&&*condition.kind) && &*condition.status == "True")
    }

    /// Why the Job controller makes no pods of the Job for now.
    fn held(&self) -> Option<String> {
        if self.spec.suspend == Some(true) {
            return Some("is suspended".to_owned());
        }
        let by = self.spec.managed_by.as_deref()?;
        (by != CONTROLLER).then(|| format!("is managed by {by}"))
    }

    /// The pods that the Job controller does not replace by others.
    fn active<'a>(&self, members: &[&'a Member]) -> Vec<&'a Member> {
        // A Job with a policy for failures waits until it is known how a pod has ended.
        let replaces_leaving = match self.spec.pod_replacement_policy.as_deref() {
            Some(policy) => policy != "Failed",
            None => self.spec.pod_failure_policy.is_none(),
        };
        let holds = |member: &Member| {
            member.state.is_active() || member.state == State::Leaving && !replaces_leaving
        };
        members
            .iter()
            .copied()
            .filter(|member| holds(member))
            .collect()
    }

    /// How many pods should be active.
    fn wanted(&self, parallelism: i64, completions: Option<i64>, members: &[&Member]) -> i64 {
        let ended_well = members
            .iter()
            .filter(|member| member.state == State::Succeeded);
        let ended_well: Vec<_> = ended_well.collect();
        let succeeded = length(&ended_well).max(self.status.succeeded.unwrap_or(0));
        match completions {
            Some(completions) => parallelism.min(completions.saturating_sub(succeeded)),
            // A Job without a count of completions ends with its first success: other pods only run
            // out.
            None if succeeded > 0 => 0,
            None => parallelism,
        }
    }

    /// The lowest indexes that no active pod has and that are not done.
    fn free_indexes(
        &self,
        completions: i64,
        missing: usize,
        active: &[&Member],
        members: &[&Member],
    ) -> Vec<i64> {
        let succeeded = members
            .iter()
            .filter(|member| member.state == State::Succeeded);
        let taken = active
            .iter()
            .chain(succeeded)
            .filter_map(|member| member.index);
        let mut ranges: Vec<(i64, i64)> = taken.map(|index| (index, index)).collect();
        ranges.extend(ranges_of(self.status.completed_indexes.as_deref()));
        ranges.extend(ranges_of(self.status.failed_indexes.as_deref()));
        ranges.sort_unstable();
        ranges.push((completions, completions));
        let mut free = Vec::new();
        let mut next = 0;
        for (first, last) in ranges {
            let room = missing - free.len();
            free.extend((next..first.min(completions)).take(room));
            next = next.max(last.saturating_add(1));
        }
        free
    }
}

fn birth(owner: &Owner<'_>, name: String, index: Option<i64>) -> Birth {
    let job = &*owner.identity.name;
    let mut labels = vec![
        ("batch.kubernetes.io/job-name", job.to_owned()),
        ("job-name", job.to_owned()),
    ];
    if let Some(uid) = owner.uid() {
        labels.push(("batch.kubernetes.io/controller-uid", uid.to_owned()));
        labels.push(("controller-uid", uid.to_owned()));
    }
    let index = index.map(|index| (COMPLETION_INDEX, index.to_string()));
    labels.extend(index.clone());
    Birth {
        name,
        labels,
        annotations: index.into_iter().collect(),
        volumes: Vec::new(),
        claims: Vec::new(),
    }
}

fn length<T>(of: &[T]) -> i64 {
    i64::try_from(of.len()).unwrap_or(i64::MAX)
}

/// `0,2-5,7` as pairs of first and last. Pieces that are no numbers are left out.
fn ranges_of(text: Option<&str>) -> Vec<(i64, i64)> {
    let range = |piece: &str| {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    text.into_iter()
        .flat_map(|text| text.split(',').filter_map(range))
        .collect()
}
