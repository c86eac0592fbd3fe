//! Volumes of kinds from before CSI, which CSI drivers have taken over.
//!
//! Sources: `csi-translation-lib` (v0.36), as far as the plugins NodeVolumeLimits and VolumeBinding
//! (v1.36) use it. NodeVolumeLimits counts such volumes for their drivers on every node with a
//! CSINode. VolumeBinding looks for a volume that a claim has where its driver would look, on nodes
//! whose CSINode says that the kubelet leaves the kind to the driver.

use crate::kube::objects::{InTreeSource, Meta};
use gpu_batch_policies::facts::{
    Labels, MatchOperator, MatchRequirement, NodeSelectorTerm, label, migrated_label,
};
use std::collections::BTreeSet;

/// On a CSINode: the kinds that the node leaves to CSI drivers, with commas between them.
const MIGRATED: &str = "storage.alpha.kubernetes.io/migrated-plugins";

/// The kinds of which a volume may be elsewhere for its driver: the field, the name that CSINodes
/// have for the kind, and the label by which the driver says zones.
const KINDS: [(&str, &str, Option<&str>); 4] = [
    (
        "awsElasticBlockStore",
        "kubernetes.io/aws-ebs",
        Some("topology.ebs.csi.aws.com/zone"),
    ),
    ("azureDisk", "kubernetes.io/azure-disk", None),
    (
        "cinder",
        "kubernetes.io/cinder",
        Some("topology.cinder.csi.openstack.org/zone"),
    ),
    (
        "gcePersistentDisk",
        "kubernetes.io/gce-pd",
        Some("topology.gke.io/zone"),
    ),
];

/// The labels of zones and regions, today's first.
const PLACES: [(&str, &str); 2] = [
    (
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    ),
];

/// The CSI driver that has taken over a source from before CSI and whose attachments nodes limit,
/// and the handle by which the driver knows the volume; `None`: another source, or one that the
/// driver does not understand. `labels`: those of the PersistentVolume.
pub(in crate::kube::convert) fn by(
    field: &str,
    disk: &InTreeSource,
    labels: &Labels,
) -> Option<(Box<str>, Box<str>)> {
    let id = &disk.volume_id;
    let (driver, handle) = match field {
        "awsElasticBlockStore" => ("ebs.csi.aws.com", elastic_block_store(id)?.into()),
        "azureDisk" => {
            let is_managed = disk.kind.as_deref() == Some("Managed");
            ("disk.csi.azure.com", is_managed.then(|| id.clone())?)
        }
        "cinder" => ("cinder.csi.openstack.org", id.clone()),
        "gcePersistentDisk" => ("pd.csi.storage.gke.io", persistent_disk(id, labels)?),
        "portworxVolume" => ("pxd.portworx.com", id.clone()),
        _ => return None,
    };
    (!handle.is_empty()).then(|| (driver.into(), handle))
}

/// The ID of a disk of AWS, which may stand in a URL with the zone.
fn elastic_block_store(text: &str) -> Option<&str> {
    let Some(rest) = text.strip_prefix("aws://") else {
        return Some(text);
    };
    let (_, path) = rest.split_once('/')?;
    let id = path.trim_matches('/');
    (id.starts_with("vol-") && !id.contains('/')).then_some(id)
}

/// The handle of a disk of Google's, of one zone or of several in one region.
fn persistent_disk(name: &str, labels: &Labels) -> Option<Box<str>> {
    let mut zones = PLACES
        .iter()
        .rev()
        .filter_map(|(zone, _)| label(labels, zone));
    let zones = zones
        .find(|zones| !zones.is_empty())
        .unwrap_or("UNSPECIFIED");
    let place = match zones.split_once("__") {
        None => format!("zones/{zones}"),
        Some(_) => {
            let regions = zones.split("__").map(|zone| {
                let (region, _) = zone.rsplit_once('-')?;
                (region.matches('-').count() == 1).then_some(region)
            });
            let regions: Option<BTreeSet<&str>> = regions.collect();
            let regions = regions.filter(|regions| regions.len() == 1)?;
            format!("regions/{}", regions.first()?)
        }
    };
    Some(format!("projects/UNSPECIFIED/{place}/disks/{name}").into())
}

/// The kinds that a node leaves to CSI drivers, as far as that says where volumes are; sorted.
pub(super) fn migrated(csi_node: &Meta) -> Vec<Box<str>> {
    let named = csi_node.annotations.get(MIGRATED).unwrap_or_default();
    let named: Vec<&str> = named.split(',').collect();
    let kinds = KINDS.iter().map(|(_, kind, _)| *kind);
    let kinds = kinds.filter(|kind| named.contains(kind));
    kinds.map(Into::into).collect()
}

/// Where a volume is once a claim has it: on nodes that leave its kind to the driver where the
/// driver would look, else where its own terms say. `None`: there is no difference.
///
/// `is_understood`: the driver knows the volume; else it is on no such node. `terms`: those of the
/// volume, `None` if it is everywhere.
pub(super) fn affinity_once_bound(
    field: &str,
    is_understood: bool,
    labels: &Labels,
    terms: Option<&[NodeSelectorTerm]>,
) -> Option<Vec<NodeSelectorTerm>> {
    let (_, kind, zone) = KINDS.iter().find(|(known, _, _)| *known == field)?;
    let empty = [NodeSelectorTerm::default()];
    let before = terms.unwrap_or(&empty);
    let now = match (is_understood, zone) {
        (false, _) => Vec::new(),
        (true, None) => return None,
        (true, Some(zone)) => translated(before, labels, zone),
    };
    if now == before {
        return None;
    }
    let when = |operator, of: Vec<NodeSelectorTerm>| {
        // An empty term holds nowhere, but a volume without terms is everywhere.
        let holds = |term: &NodeSelectorTerm| terms.is_none() || *term != empty[0];
        let of = of.into_iter().filter(holds);
        let of = of.map(|mut term| {
            term.match_expressions.push(MatchRequirement {
                key: migrated_label(kind),
                operator,
                values: Vec::new(),
            });
            term
        });
        of.collect::<Vec<_>>()
    };
    let mut both = when(MatchOperator::DoesNotExist, before.to_vec());
    both.extend(when(MatchOperator::Exists, now));
    Some(both)
}

/// The terms of a volume as its driver has them: zones by its own label, from the terms or else
/// from the labels of the volume, and regions by today's.
fn translated(terms: &[NodeSelectorTerm], labels: &Labels, driver: &str) -> Vec<NodeSelectorTerm> {
    let requirements = || terms.iter().flat_map(|term| &term.match_expressions);
    let is_named = |key: &str| requirements().any(|it| *it.key == *key);
    let has_values = |key: &str| requirements().any(|it| *it.key == *key && !it.values.is_empty());
    let by_terms = PLACES.into_iter().find(|(zone, _)| is_named(zone));
    let by_labels = || {
        PLACES
            .into_iter()
            .find(|(zone, _)| label(labels, zone).is_some())
    };
    let (zone, region) = by_terms.or_else(by_labels).unwrap_or(PLACES[0]);
    let mut now = terms.to_vec();
    if has_values(zone) {
        rename(&mut now, zone, driver);
    } else if let Some(zones) = label(labels, zone) {
        let zones = zones.split("__").map(str::trim);
        let zones: BTreeSet<&str> = zones.filter(|zone| !zone.is_empty()).collect();
        for term in now.iter_mut().filter(|_| !zones.is_empty()) {
            term.match_expressions.push(MatchRequirement {
                key: driver.into(),
                operator: MatchOperator::In,
                values: zones.iter().map(|zone| (*zone).into()).collect(),
            });
        }
    }
    if has_values(region) {
        rename(&mut now, region, PLACES[0].1);
    }
    now
}

fn rename(terms: &mut [NodeSelectorTerm], from: &str, to: &str) {
    let requirements = terms.iter_mut().flat_map(|it| &mut it.match_expressions);
    for requirement in requirements.filter(|it| *it.key == *from) {
        requirement.key = to.into();
    }
}
