//! The labels of pods, kept so that most pods share one copy.

use super::{Labels, OwnerReference, label};
use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::sync::Arc;

/// The labels of a pod.
///
/// Controllers label each pod with its own name or number and with its owner. Pods of one template
/// would so hardly ever have the same labels, and a large cluster would keep a set for each pod.
/// Where such a label says what the pod's name and owner say already, only its presence is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodLabels {
    /// Which of the labels that controllers write the pod has with the implied value, a bit each.
    pub implied: u16,
    /// All other labels, in one copy for all pods that have the same; `None`: there are none.
    pub stated: Option<Arc<Labels>>,
}

/// What selectors call the UID of the pod's controller. It is no label that a pod could have: a
/// key has no space in it.
pub const CONTROLLER: &str = "controller UID";

/// What a label repeats.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The name of the pod.
    PodName,
    /// The name of the pod after its last hyphen.
    PodNumber,
    /// The number behind the owner's name in the name of the pod, as Indexed Jobs write it.
    CompletionIndex,
    /// The name of the owner.
    OwnerName,
    /// The UID of the owner.
    OwnerUid,
}

impl PodLabels {
    /// Labels that controllers write on every pod, each with its own value.
    const IMPLIED: [(&str, Source); 9] = [
        ("apps.kubernetes.io/pod-index", Source::PodNumber),
        ("batch.kubernetes.io/controller-uid", Source::OwnerUid),
        (
            "batch.kubernetes.io/job-completion-index",
            Source::CompletionIndex,
        ),
        ("batch.kubernetes.io/job-name", Source::OwnerName),
        ("controller-uid", Source::OwnerUid),
        ("job-name", Source::OwnerName),
        (
            "leaderworkerset.sigs.k8s.io/worker-index",
            Source::PodNumber,
        ),
        ("statefulset.kubernetes.io/pod-name", Source::PodName),
        ("training.kubeflow.org/replica-index", Source::PodNumber),
    ];

    /// The labels of a pod with this name and this controlling owner.
    #[must_use]
    pub fn new(labels: &Labels, pod: &str, owner: Option<&OwnerReference>) -> Self {
        let mut implied = 0;
        let mut stated = Labels::new();
        for (key, value) in labels {
            match position(key)
                .filter(|at| implied_value(*at, pod, owner).as_deref() == Some(value))
            {
                Some(at) => implied |= 1 << at,
                None => stated.push((key.clone(), value.clone())),
            }
        }
        stated.shrink_to_fit();
        Self {
            implied,
            stated: (!stated.is_empty()).then(|| Arc::new(stated)),
        }
    }

    /// The value of a label, or the UID under [`CONTROLLER`]; `None` where it is absent. `pod` and
    /// `owner`: the name of the pod and its controlling owner.
    #[must_use]
    pub fn value<'labels>(
        &'labels self,
        key: &str,
        pod: &'labels str,
        owner: Option<&'labels OwnerReference>,
    ) -> Option<Cow<'labels, str>> {
        if key == CONTROLLER {
            return Some(Cow::Owned(owner?.uid.to_string()));
        }
        match position(key).filter(|at| self.implied & (1 << at) != 0) {
            Some(at) => implied_value(at, pod, owner),
            None => label(self.stated.as_deref()?, key).map(Cow::Borrowed),
        }
    }

    /// Whether a label may be kept as implied, so that pods with the same stated labels may differ
    /// in it.
    pub(crate) fn may_be_implied(key: &str) -> bool {
        key == CONTROLLER || position(key).is_some()
    }
}

fn position(key: &str) -> Option<usize> {
    let mut keys = PodLabels::IMPLIED.iter();
    keys.position(|(implied, _)| *implied == key)
}

fn implied_value<'labels>(
    at: usize,
    pod: &'labels str,
    owner: Option<&'labels OwnerReference>,
) -> Option<Cow<'labels, str>> {
    let value = match PodLabels::IMPLIED[at].1 {
        Source::PodName => pod,
        Source::PodNumber => pod.rsplit_once('-')?.1,
        Source::CompletionIndex => {
            let rest = pod.strip_prefix(&*owner?.name)?.strip_prefix('-')?;
            rest.split_once('-').map_or(rest, |(number, _)| number)
        }
        Source::OwnerName => &owner?.name,
        Source::OwnerUid => return Some(Cow::Owned(owner?.uid.to_string())),
    };
    Some(Cow::Borrowed(value))
}

#[cfg(test)]
mod tests {
    use super::PodLabels;
    use crate::facts::{Labels, OwnerReference, Uid};

    const UID: &str = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";

    fn job() -> OwnerReference {
        OwnerReference {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            name: "train".into(),
            uid: Uid::parse(UID).unwrap(),
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let mut labels: Labels = pairs
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect();
        labels.sort();
        labels
    }

    /// Every label reads as it was written, and only so many are kept with the pod.
    fn check(pod: &str, owner: Option<&OwnerReference>, pairs: &[(&str, &str)], stated: usize) {
        let kept = PodLabels::new(&labels(pairs), pod, owner);
        for (key, value) in pairs {
            assert_eq!(
                kept.value(key, pod, owner).as_deref(),
                Some(*value),
                "{key}"
            );
        }
        assert_eq!(
            kept.stated.as_ref().map_or(0, |labels| labels.len()),
            stated
        );
        for absent in ["no", "job-name", "apps.kubernetes.io/pod-index"] {
            if pairs.iter().all(|(key, _)| *key != absent) {
                assert_eq!(kept.value(absent, pod, owner), None, "{absent}");
            }
        }
    }

    #[test]
    fn labels_of_controllers_cost_nothing_where_name_and_owner_say_them() {
        let owner = job();
        let of_job = [
            ("app", "llama"),
            ("batch.kubernetes.io/controller-uid", UID),
            ("batch.kubernetes.io/job-completion-index", "17"),
            ("batch.kubernetes.io/job-name", "train"),
            ("controller-uid", UID),
            ("job-name", "train"),
        ];
        check("train-17-x8k2p", Some(&owner), &of_job, 1);
        let of_set = [
            ("apps.kubernetes.io/pod-index", "3"),
            ("statefulset.kubernetes.io/pod-name", "web-3"),
        ];
        check("web-3", None, &of_set, 0);
    }

    #[test]
    fn a_value_that_is_not_implied_is_kept() {
        let owner = job();
        let others = [
            ("batch.kubernetes.io/job-completion-index", "18"),
            ("controller-uid", "another"),
            ("job-name", "other"),
        ];
        check("train-17-x8k2p", Some(&owner), &others, 3);
        check("nothing", None, &others, 3);
        let odd = [("apps.kubernetes.io/pod-index", ""), ("", "")];
        check("pod", None, &odd, 2);
        check("", None, &[], 0);
    }
}
