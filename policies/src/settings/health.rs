//! Which conditions and taints say that the GPUs of a node have failed, and what follows.

use crate::facts::{ConditionStatus, NodeFacts, UnixMs};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// What nodes say of failed GPUs, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The signs of failed GPUs, each with what follows from it. No sign has two rules.
    pub rules: Vec<HealthRule>,
    /// How long a node must show no sign before it counts as well again, so that a condition that
    /// flaps does not open and close its node each time.
    pub recovery_ms: u64,
}

/// What follows where a node shows a sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthRule {
    /// What the node shows.
    pub sign: Sign,
    /// What follows beside that the node gets no new pods that ask for GPUs: after so many
    /// milliseconds gangs with GPUs there are evicted as a whole. `None`: they stay.
    pub evict_after_ms: Option<u64>,
}

/// What a node shows that says of its GPUs that they have failed.
///
/// [`fmt::Display`] gives words that follow *had* or *has*: `the condition GpuMemWatch`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sign {
    /// A condition of this type with this status.
    Condition {
        /// `type`.
        kind: Box<str>,
        /// The status that is bad; of most conditions it is `True`.
        status: ConditionStatus,
    },
    /// A taint with this key, whatever its value and its effect.
    Taint {
        /// The taint's key.
        key: Box<str>,
    },
}

impl Health {
    /// The conditions of nodes that are bad, each with its bad status.
    #[must_use]
    pub fn conditions(&self) -> Vec<(Box<str>, ConditionStatus)> {
        let conditions = self.rules.iter().filter_map(|rule| match &rule.sign {
            Sign::Condition { kind, status } => Some((kind.clone(), *status)),
            Sign::Taint { .. } => None,
        });
        conditions.collect()
    }
}

impl Sign {
    /// The time since when a node shows the sign: `now_ms` where the node does not say it, as with
    /// taints. `None`: the node does not show the sign.
    pub(crate) fn shown_since(&self, node: &NodeFacts, now_ms: UnixMs) -> Option<UnixMs> {
        match self {
            Self::Condition { kind, status } => {
                let mut conditions = node.conditions.iter();
                let shown = conditions.find(|one| one.kind == *kind && one.status == *status)?;
                Some(shown.since_ms.unwrap_or(now_ms).min(now_ms))
            }
            Self::Taint { key } => {
                let mut taints = node.taints.iter();
                taints.any(|taint| taint.key == *key).then_some(now_ms)
            }
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition { kind, status } => match status {
                ConditionStatus::True => write!(formatter, "the condition {kind}"),
                other => write!(formatter, "the condition {kind}={}", other.as_str()),
            },
            Self::Taint { key } => write!(formatter, "the taint {key}"),
        }
    }
}

/// Conditions that are bad when they are `True`: of NVSentinel, of the node problem detector of
/// AKS, and of Nebius.
const BAD_WHEN_TRUE: [&str; 22] = [
    "GpuMemWatch",
    "GpuThermalWatch",
    "GpuPcieWatch",
    "GpuPowerWatch",
    "GpuInforomWatch",
    "GpuSmWatch",
    "GpuNvlinkWatch",
    "GpuMcuWatch",
    "GpuPmuWatch",
    "GpuDriverWatch",
    "GpuCpusetWatch",
    "SysLogsXIDError",
    "SysLogsSXIDError",
    "SysLogsGPUFallenOff",
    "NVSwitchFatalError",
    "NVSwitchDown",
    "NVSwitchNonFatalError",
    "DCGMError",
    "CSPMaintenance",
    "SyslogError",
    "GPUMissing",
    "NebiusGPUError",
];

/// Conditions that are bad when they are `False`: of the monitoring agent of EKS.
const BAD_WHEN_FALSE: [&str; 1] = ["AcceleratedHardwareReady"];

/// Taints that NVSentinel is configured to set.
const TAINTS: [&str; 3] = [
    "nvidia.com/gpu-error",
    "nvidia.com/gpu-nvlink-error",
    "nvidia.com/gpu-xid-error",
];

impl Default for Health {
    /// All signs that are known of monitoring software; none of them evicts.
    fn default() -> Self {
        let condition = |status| {
            move |kind: &str| Sign::Condition {
                kind: kind.into(),
                status,
            }
        };
        let bad = BAD_WHEN_TRUE
            .into_iter()
            .map(condition(ConditionStatus::True));
        let not_good = BAD_WHEN_FALSE
            .into_iter()
            .map(condition(ConditionStatus::False));
        let taints = TAINTS
            .into_iter()
            .map(|key| Sign::Taint { key: key.into() });
        let rule = |sign| HealthRule {
            sign,
            evict_after_ms: None,
        };
        Self {
            rules: bad.chain(not_good).chain(taints).map(rule).collect(),
            recovery_ms: 60_000,
        }
    }
}
