//! Claims, volumes, and what says where there can be volumes.

use super::disk::InTreeSource;
use super::{LabelSelector, Meta, NodeSelector, Pairs, Quantity, null_is_default};
use serde::Deserialize;

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PersistentVolumeClaim {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: ClaimSpec,
    /// `status`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: VolumePhase,
}

/// `spec` of a PersistentVolumeClaim.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSpec {
    /// `storageClassName`.
    pub storage_class_name: Option<Box<str>>,
    /// `volumeName`.
    pub volume_name: Option<Box<str>>,
    /// `resources`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub resources: ClaimResources,
    /// `accessModes`.
    pub access_modes: Option<Vec<Box<str>>>,
    /// `volumeMode`: `Filesystem`, the default, or `Block`.
    pub volume_mode: Option<Box<str>>,
    /// `selector`.
    pub selector: Option<LabelSelector>,
    /// `volumeAttributesClassName`.
    pub volume_attributes_class_name: Option<Box<str>>,
}

/// `resources` of a claim.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ClaimResources {
    /// `requests`.
    #[serde(default)]
    pub requests: Pairs<Quantity>,
}

/// `status` of a claim or a volume.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct VolumePhase {
    /// `phase`.
    pub phase: Option<Box<str>>,
}

/// A PersistentVolume.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PersistentVolume {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: VolumeSpec,
    /// `status`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub status: VolumePhase,
}

/// `spec` of a PersistentVolume.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSpec {
    /// `capacity`.
    #[serde(default)]
    pub capacity: Pairs<Quantity>,
    /// `accessModes`.
    pub access_modes: Option<Vec<Box<str>>>,
    /// `volumeMode`: `Filesystem`, the default, or `Block`.
    pub volume_mode: Option<Box<str>>,
    /// `storageClassName`.
    pub storage_class_name: Option<Box<str>>,
    /// `volumeAttributesClassName`.
    pub volume_attributes_class_name: Option<Box<str>>,
    /// `claimRef`.
    pub claim_ref: Option<ClaimRef>,
    /// `nodeAffinity`.
    pub node_affinity: Option<VolumeNodeAffinity>,
    /// `csi`.
    pub csi: Option<CsiSource>,
    /// `awsElasticBlockStore`.
    pub aws_elastic_block_store: Option<InTreeSource>,
    /// `azureDisk`.
    pub azure_disk: Option<InTreeSource>,
    /// `cinder`.
    pub cinder: Option<InTreeSource>,
    /// `gcePersistentDisk`.
    pub gce_persistent_disk: Option<InTreeSource>,
    /// `portworxVolume`.
    pub portworx_volume: Option<InTreeSource>,
}

impl VolumeSpec {
    /// The source from before CSI, with its field; `None`: another source.
    #[must_use]
    pub fn in_tree(&self) -> Option<(&'static str, &InTreeSource)> {
        let sources = [
            ("awsElasticBlockStore", &self.aws_elastic_block_store),
            ("azureDisk", &self.azure_disk),
            ("cinder", &self.cinder),
            ("gcePersistentDisk", &self.gce_persistent_disk),
            ("portworxVolume", &self.portworx_volume),
        ];
        let mut sources = sources.into_iter();
        sources.find_map(|(field, source)| Some((field, source.as_ref()?)))
    }
}

/// `claimRef` of a volume.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ClaimRef {
    /// `namespace`.
    pub namespace: Box<str>,
    /// `name`.
    pub name: Box<str>,
    /// `uid`; empty: any claim of the name.
    pub uid: Box<str>,
}

/// `nodeAffinity` of a volume.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct VolumeNodeAffinity {
    /// `required`.
    pub required: Option<NodeSelector>,
}

/// `csi` of a volume.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiSource {
    /// `driver`.
    pub driver: Box<str>,
    /// `volumeHandle`.
    pub volume_handle: Box<str>,
}

/// A StorageClass.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    /// `metadata`.
    pub metadata: Meta,
    /// `provisioner`.
    pub provisioner: Box<str>,
    /// `volumeBindingMode`: `Immediate`, the default, or `WaitForFirstConsumer`.
    pub volume_binding_mode: Option<Box<str>>,
    /// `allowedTopologies`.
    pub allowed_topologies: Option<Vec<TopologyTerm>>,
}

/// One of the `allowedTopologies` of a class.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyTerm {
    /// `matchLabelExpressions`.
    pub match_label_expressions: Option<Vec<TopologyRequirement>>,
}

/// A label with the values that it may have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TopologyRequirement {
    /// `key`.
    pub key: Box<str>,
    /// `values`.
    pub values: Option<Vec<Box<str>>>,
}

/// A CSINode.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CsiNode {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: CsiNodeSpec,
}

/// `spec` of a CSINode.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CsiNodeSpec {
    /// `drivers`.
    pub drivers: Option<Vec<CsiNodeDriver>>,
}

/// A driver on a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CsiNodeDriver {
    /// `name`.
    pub name: Box<str>,
    /// `allocatable`.
    pub allocatable: Option<VolumeCount>,
}

/// How many volumes of a driver a node attaches.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct VolumeCount {
    /// `count`; absent: no limit.
    pub count: Option<i64>,
}

/// A VolumeAttachment.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct VolumeAttachment {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: AttachmentSpec,
}

/// `spec` of a VolumeAttachment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSpec {
    /// `attacher`: the CSI driver.
    pub attacher: Box<str>,
    /// `nodeName`.
    pub node_name: Box<str>,
    /// `source`.
    #[serde(deserialize_with = "null_is_default")]
    pub source: AttachedSource,
}

/// `source` of a VolumeAttachment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachedSource {
    /// `persistentVolumeName`.
    pub persistent_volume_name: Option<Box<str>>,
}

/// A CSIDriver.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct CsiDriver {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `spec`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: CsiDriverSpec,
}

/// `spec` of a CSIDriver.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CsiDriverSpec {
    /// `storageCapacity`: the driver tells where it has room.
    pub storage_capacity: Option<bool>,
}

/// A CSIStorageCapacity.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CsiStorageCapacity {
    /// `metadata`.
    #[serde(default)]
    pub metadata: Meta,
    /// `storageClassName`.
    #[serde(default)]
    pub storage_class_name: Box<str>,
    /// `nodeTopology`.
    pub node_topology: Option<LabelSelector>,
    /// `capacity`: all room that is left.
    pub capacity: Option<Quantity>,
    /// `maximumVolumeSize`: the largest volume that can be made.
    pub maximum_volume_size: Option<Quantity>,
}
