//! Disks that pods name themselves, of kinds from before CSI.
//!
//! Such a disk needs no claim. Of some kinds two pods of a node may have one disk only if both read
//! it (VolumeRestrictions); of those that a CSI driver has taken over, a node attaches only so many
//! (NodeVolumeLimits).

use super::limits;
use super::storage::taken_over;
use crate::kube::objects::{InTreeSource, PodSpec, Volume};
use gpu_batch_policies::facts::{ClaimUse, Disk};

/// Ceph's pool where none is named.
const CEPH_POOL: &str = "rbd";

/// The disks of a pod that keep other pods away; sorted, each once.
pub(super) fn exclusive(spec: &PodSpec) -> Vec<Disk> {
    let volumes = spec.volumes.iter().flatten().take(limits::ENTRIES);
    let disks = volumes.filter_map(|volume| volume.disk.as_ref());
    let mut disks: Vec<Disk> = disks.flat_map(|(field, disk)| of(field, disk)).collect();
    disks.sort_unstable();
    // Of a disk that a pod has twice, the use that is not only reading comes first.
    disks.dedup_by(|later, earlier| later.name == earlier.name);
    disks.truncate(limits::ENTRIES);
    disks
}

/// One disk; of Ceph's one for each monitor, as one that two pods have in common makes it the same.
fn of(field: &'static str, disk: &InTreeSource) -> Vec<Disk> {
    let named = |name: String, can_be_shared: bool| Disk {
        name: format!("{field} {name}").into(),
        read_only: can_be_shared && disk.read_only == Some(true),
    };
    match field {
        "awsElasticBlockStore" => vec![named(disk.volume_id.to_string(), false)],
        "gcePersistentDisk" => vec![named(disk.volume_id.to_string(), true)],
        "iscsi" => vec![named(disk.iqn.to_string(), true)],
        "rbd" => {
            let pool = disk.pool.as_deref().filter(|pool| !pool.is_empty());
            let pool = pool.unwrap_or(CEPH_POOL);
            let monitors = disk.monitors.iter().flatten();
            let each = monitors
                .map(|monitor| named(format!("{monitor:?} {pool:?} {:?}", disk.image), true));
            each.collect()
        }
        _ => Vec::new(),
    }
}

/// The disk as the CSI driver attaches it that has taken it over, or as one that the driver does
/// not understand; `None`: none has.
pub(super) fn attached(volume: &Volume) -> Option<ClaimUse> {
    let (field, disk) = volume.disk.as_ref()?;
    if matches!(*field, "iscsi" | "rbd") {
        return None;
    }
    let (driver, handle) = taken_over::by(field, disk, &Vec::new()).unwrap_or_default();
    Some(ClaimUse {
        name: format!("{driver}/{handle}").into(),
        is_ephemeral: false,
    })
}

/// The field of a disk that no CSI driver understands although one has taken its kind over:
/// kube-scheduler fails on nodes with a CSINode.
pub(super) fn unknown(volume: &Volume) -> Option<&'static str> {
    let (field, _) = volume.disk.as_ref()?;
    let is_unreadable = attached(volume)?.is_unreadable();
    is_unreadable.then_some(*field)
}

#[cfg(test)]
mod tests;
