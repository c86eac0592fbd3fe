//! `health` and `timeSlicing`: what nodes say of their GPUs.

use super::duration;
use crate::kube::api::Duration;
use gpu_batch_policies::settings::{Health, HealthRule, Sign};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthFile {
    /// How long a node must show none of the signs below before it counts as well again, so that a
    /// condition that flaps closes its node once and not each time; a duration.
    pub recovery_period: Duration,
    /// What says that the GPUs of a node have failed: a condition (its status, True if left out, is
    /// the bad one) or a taint (a key, whatever its value and effect). action: noNewWork closes the
    /// node to new pods that ask for GPUs, also to those that tolerate the taint; evict does, too,
    /// and once the sign is there for as long as after says, evicts the gangs that have GPUs on the
    /// node as a whole; ignore takes one of these defaults away. Rules of the file come before the
    /// defaults below, which go on for all conditions and taints that the file does not name. After
    /// a change the scheduler begins anew.
    #[schemars(length(max = 1_000))]
    pub rules: Vec<HealthRuleFile>,
}

/// One of `health.rules`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthRuleFile {
    /// The type of a condition of nodes; either this or `taint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The status of the condition that is bad: True, False or Unknown. Left out: True.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The key of a taint of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taint: Option<String>,
    /// What follows: noNewWork, evict or ignore.
    pub action: String,
    /// How long the sign must be there before gangs are evicted; a duration, with `action: evict`
    /// alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
}

/// `timeSlicing`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TimeSlicingFile {
    /// true: a container that asks for more than one share of a GPU that is shared by time-slicing
    /// goes to no such node. Set it where the device plugin's setting of this name is true: the
    /// kubelet then fails such pods. With MPS it is always so.
    pub fail_requests_greater_than_one: bool,
}

impl HealthRuleFile {
    /// A rule with every key, for messages about keys.
    pub(in crate::live::config) fn with_every_key() -> Self {
        Self {
            condition: Some(String::new()),
            status: Some(String::new()),
            taint: Some(String::new()),
            action: String::new(),
            after: Some(duration(600_000)),
        }
    }

    /// A rule as it is written in a file.
    fn written(rule: &HealthRule) -> Self {
        let (condition, status, taint) = match &rule.sign {
            Sign::Condition { kind, status } => (
                Some(kind.to_string()),
                Some(status.as_str().to_owned()),
                None,
            ),
            Sign::Taint { key } => (None, None, Some(key.to_string())),
        };
        let action = match rule.evict_after_ms {
            Some(_) => "evict",
            None => "noNewWork",
        };
        Self {
            condition,
            status,
            taint,
            action: action.to_owned(),
            after: rule.evict_after_ms.map(duration),
        }
    }
}

impl Default for HealthFile {
    fn default() -> Self {
        let health = Health::default();
        Self {
            recovery_period: duration(health.recovery_ms),
            rules: health.rules.iter().map(HealthRuleFile::written).collect(),
        }
    }
}
