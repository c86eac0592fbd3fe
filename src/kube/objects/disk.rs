//! Disks of kinds from before CSI, which pods and PersistentVolumes name.

use serde::Deserialize;

/// A source of a volume from before CSI.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InTreeSource {
    /// `volumeID`, of Azure's `diskURI` and of Google's `pdName`.
    #[serde(alias = "diskURI", alias = "pdName", rename = "volumeID")]
    pub volume_id: Box<str>,
    /// `kind` of Azure's: `Managed`, or one that no CSI driver has taken over.
    pub kind: Option<Box<str>>,
    /// `readOnly`.
    pub read_only: Option<bool>,
    /// `iqn` of a target of iSCSI.
    pub iqn: Box<str>,
    /// `monitors` of Ceph.
    pub monitors: Option<Vec<Box<str>>>,
    /// `pool` of Ceph; absent: `rbd`.
    pub pool: Option<Box<str>>,
    /// `image` of Ceph.
    pub image: Box<str>,
}
