//! Why no GPU of a node is to be used now.

use super::{PRODUCT_LABEL, split_product};
use crate::facts::{NodeFacts, label};
use crate::settings::Sign;
use core::fmt;

/// The profile in the product label of cards that cannot be offered.
pub(super) const INVALID_PROFILE: &str = "INVALID";

/// Why a node takes no pods that ask for GPUs, although its GPUs may be free.
///
/// The GPU operator sets no taint, and it cordons a node only some time after it has announced what
/// it is going to do. A pod that comes in between fails there or delays the work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GpuRefusal {
    /// The driver is being replaced. The string is the value of the label
    /// `nvidia.com/gpu-driver-upgrade-state`, which says how far the upgrade has come.
    DriverUpgrade(&'static str),
    /// The driver waits for the node to be empty before it loads.
    DriverLoad,
    /// The MIG layout is being changed, or the change went wrong.
    MigChange(MigState),
    /// The operator has stopped the device plugin for a while.
    PluginPaused,
    /// The GPUs are for virtual machines.
    NotForContainers,
    /// The MIG layout is none that can be offered.
    MigInvalid,
    /// HAMi offers slots on the cards, for pods that ask for parts of cards.
    Slots,
    /// The node says that GPUs have failed.
    Failed(Sign),
}

/// The value of `nvidia.com/mig.config.state` while a new layout is not in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MigState {
    /// The new layout is being applied.
    Pending,
    /// The node restarts to apply the new layout.
    Rebooting,
    /// The new layout could not be applied.
    Failed,
}

/// The label that says how far the upgrade of the driver has come.
const UPGRADE_STATE: &str = "nvidia.com/gpu-driver-upgrade-state";

/// Values of `nvidia.com/gpu-driver-upgrade-state` with which a node takes no GPU pods. A node
/// without a value, with `upgrade-done`, or with `upgrade-required` takes them: see
/// [`awaits_upgrade`] for the last.
pub(super) const UPGRADING: [&str; 10] = [
    "cordon-required",
    "wait-for-jobs-required",
    "pod-deletion-required",
    "drain-required",
    "node-maintenance-required",
    "post-maintenance-required",
    "pod-restart-required",
    "validation-required",
    "uncordon-required",
    "upgrade-failed",
];

impl fmt::Display for GpuRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DriverUpgrade(state) => {
                write!(formatter, "had a driver upgrade under way ({state})")
            }
            Self::DriverLoad => formatter.write_str("waited to be empty to load the GPU driver"),
            Self::MigChange(MigState::Pending) => {
                formatter.write_str("had their MIG layout changed")
            }
            Self::MigChange(MigState::Rebooting) => {
                formatter.write_str("were restarting to change their MIG layout")
            }
            Self::MigChange(MigState::Failed) => {
                formatter.write_str("had failed to change their MIG layout")
            }
            Self::PluginPaused => {
                formatter.write_str("had their device plugin paused by the GPU operator")
            }
            Self::NotForContainers => formatter.write_str("kept their GPUs for virtual machines"),
            Self::MigInvalid => formatter.write_str("had a MIG layout that cannot be offered"),
            Self::Slots => {
                formatter.write_str("offered slots of HAMi, for pods that ask for parts of cards")
            }
            Self::Failed(sign) => write!(formatter, "had {sign}"),
        }
    }
}

/// The first reason that keeps all pods off the node's GPUs; `None`: there is none.
pub(super) fn read(node: &NodeFacts) -> Option<GpuRefusal> {
    driver(node)
        .or_else(|| mig(node))
        .or_else(|| operator(node))
}

/// Whether the node works and waits for its turn to have its GPU driver upgraded: it will be
/// drained.
pub(crate) fn awaits_upgrade(node: &NodeFacts) -> bool {
    label(&node.labels, UPGRADE_STATE) == Some("upgrade-required")
}

fn driver(node: &NodeFacts) -> Option<GpuRefusal> {
    let state = label(&node.labels, UPGRADE_STATE);
    let upgrading = UPGRADING.into_iter().find(|known| state == Some(*known));
    let waits = label(
        &node.annotations,
        "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load",
    );
    let waits = waits.is_some_and(|value| !value.is_empty());
    upgrading
        .map(GpuRefusal::DriverUpgrade)
        .or(waits.then_some(GpuRefusal::DriverLoad))
}

fn mig(node: &NodeFacts) -> Option<GpuRefusal> {
    match label(&node.labels, "nvidia.com/mig.config.state") {
        Some("pending") => return Some(GpuRefusal::MigChange(MigState::Pending)),
        Some("rebooting") => return Some(GpuRefusal::MigChange(MigState::Rebooting)),
        Some("failed") => return Some(GpuRefusal::MigChange(MigState::Failed)),
        _ => {}
    }
    let profile = label(&node.labels, PRODUCT_LABEL).and_then(|product| split_product(product).1);
    (profile == Some(INVALID_PROFILE)).then_some(GpuRefusal::MigInvalid)
}

fn operator(node: &NodeFacts) -> Option<GpuRefusal> {
    let plugin = label(&node.labels, "nvidia.com/gpu.deploy.device-plugin").unwrap_or_default();
    let workload = label(&node.labels, "nvidia.com/gpu.workload.config").unwrap_or_default();
    match workload {
        _ if plugin.starts_with("paused-for-") => Some(GpuRefusal::PluginPaused),
        "" | "container" => None,
        _ => Some(GpuRefusal::NotForContainers),
    }
}
