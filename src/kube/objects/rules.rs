//! What a pod asks of the node and of other pods, and the volumes that restrict where it can run.

use super::disk::InTreeSource;
use super::values::Pairs;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// `spec.affinity`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    /// `nodeAffinity`.
    pub node_affinity: Option<NodeAffinity>,
    /// `podAffinity`.
    pub pod_affinity: Option<PodAffinity>,
    /// `podAntiAffinity`.
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// `nodeAffinity`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct NodeAffinity {
    /// `requiredDuringSchedulingIgnoredDuringExecution`.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// `preferredDuringSchedulingIgnoredDuringExecution`.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Option<Vec<PreferredNodeTerm>>,
}

/// A preferred term of `nodeAffinity`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PreferredNodeTerm {
    /// `weight`, from 1 to 100.
    pub weight: i64,
    /// `preference`.
    pub preference: NodeSelectorTerm,
}

/// A node selector: one of the terms must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// `nodeSelectorTerms`.
    pub node_selector_terms: Option<Vec<NodeSelectorTerm>>,
}

/// A term: all requirements must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// `matchExpressions`: on labels.
    pub match_expressions: Option<Vec<Requirement>>,
    /// `matchFields`: on fields.
    pub match_fields: Option<Vec<Requirement>>,
}

/// `key operator values`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// `key`.
    pub key: Box<str>,
    /// `operator`.
    pub operator: Box<str>,
    /// `values`.
    pub values: Option<Vec<Box<str>>>,
}

/// A selector over labels.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// `matchLabels`.
    #[serde(default)]
    pub match_labels: Pairs<Box<str>>,
    /// `matchExpressions`.
    pub match_expressions: Option<Vec<Requirement>>,
}

/// `podAffinity` or `podAntiAffinity`.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PodAffinity {
    /// `requiredDuringSchedulingIgnoredDuringExecution`.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<Vec<PodAffinityTerm>>,
    /// `preferredDuringSchedulingIgnoredDuringExecution`.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Option<Vec<WeightedPodAffinityTerm>>,
}

/// A preferred term of `podAffinity` or `podAntiAffinity`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightedPodAffinityTerm {
    /// `weight`, from 1 to 100.
    pub weight: i64,
    /// `podAffinityTerm`.
    pub pod_affinity_term: PodAffinityTerm,
}

/// A term: a pod that it selects, in the domain of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodAffinityTerm {
    /// `labelSelector`.
    pub label_selector: Option<LabelSelector>,
    /// `namespaces`.
    pub namespaces: Option<Vec<Box<str>>>,
    /// `topologyKey`.
    pub topology_key: Option<Box<str>>,
    /// `namespaceSelector`.
    pub namespace_selector: Option<LabelSelector>,
    /// `matchLabelKeys`.
    pub match_label_keys: Option<Vec<Box<str>>>,
    /// `mismatchLabelKeys`.
    pub mismatch_label_keys: Option<Vec<Box<str>>>,
}

/// A toleration.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Toleration {
    /// `key`.
    pub key: Option<Box<str>>,
    /// `operator`.
    pub operator: Option<Box<str>>,
    /// `value`.
    pub value: Option<Box<str>>,
    /// `effect`.
    pub effect: Option<Box<str>>,
}

/// One of `topologySpreadConstraints`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpreadConstraint {
    /// `whenUnsatisfiable`: `DoNotSchedule` is a rule, `ScheduleAnyway` a preference.
    pub when_unsatisfiable: Option<Box<str>>,
    /// `maxSkew`.
    pub max_skew: Option<i64>,
    /// `topologyKey`.
    pub topology_key: Option<Box<str>>,
    /// `labelSelector`.
    pub label_selector: Option<LabelSelector>,
    /// `minDomains`.
    pub min_domains: Option<i64>,
    /// `nodeAffinityPolicy`: `Honor`, the default, or `Ignore`.
    pub node_affinity_policy: Option<Box<str>>,
    /// `nodeTaintsPolicy`: `Honor`, or `Ignore`, the default.
    pub node_taints_policy: Option<Box<str>>,
    /// `matchLabelKeys`.
    pub match_label_keys: Option<Vec<Box<str>>>,
}

/// A volume: the claim that it is, or the source by which it restricts where the pod can run.
#[derive(Debug, Clone, Default)]
pub struct Volume {
    /// `name`.
    pub name: Box<str>,
    /// `persistentVolumeClaim`.
    pub claim: Option<ClaimSource>,
    /// `ephemeral`: a claim that is made for the pod.
    pub is_ephemeral: bool,
    /// `image`: what is in a container image.
    pub image: Option<ImageSource>,
    /// Another source by which it restricts nodes, and its field, e.g. `iscsi`.
    pub disk: Option<(&'static str, InTreeSource)>,
}

/// `image` of a volume.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ImageSource {
    /// `reference`.
    pub reference: Option<Box<str>>,
}

/// `persistentVolumeClaim` of a volume.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    /// `claimName`.
    #[serde(default)]
    pub claim_name: Box<str>,
}

impl Volume {
    /// Sources beside claims that kube-scheduler judges: disks that only one pod or node may use at
    /// a time, and disks of which a node attaches only so many.
    const DISKS: [&'static str; 7] = [
        "awsElasticBlockStore",
        "azureDisk",
        "cinder",
        "gcePersistentDisk",
        "iscsi",
        "portworxVolume",
        "rbd",
    ];
}

impl<'de> Deserialize<'de> for Volume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(VolumeVisitor)
    }
}

struct VolumeVisitor;

impl<'de> Visitor<'de> for VolumeVisitor {
    type Value = Volume;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a volume")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Volume, A::Error> {
        let mut volume = Volume::default();
        while let Some(field) = map.next_key::<VolumeField>()? {
            if let VolumeField::Name = field {
                volume.name = map.next_value::<Option<_>>()?.unwrap_or_default();
                continue;
            }
            if let VolumeField::Claim = field {
                volume.claim = map.next_value()?;
                continue;
            }
            if let VolumeField::Image = field {
                volume.image = map.next_value()?;
                continue;
            }
            if let VolumeField::Disk(source) = field {
                let disk = map.next_value::<Option<_>>()?;
                volume.disk = disk.map(|disk| (source, disk)).or(volume.disk);
                continue;
            }
            let present = map.next_value::<Option<IgnoredAny>>()?.is_some();
            if let VolumeField::Ephemeral = field {
                volume.is_ephemeral = present;
            }
        }
        Ok(volume)
    }
}

/// A field of a volume.
enum VolumeField {
    Name,
    Claim,
    Ephemeral,
    Image,
    /// One of [`Volume::DISKS`].
    Disk(&'static str),
    Other,
}

impl<'de> Deserialize<'de> for VolumeField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(VolumeFieldVisitor)
    }
}

struct VolumeFieldVisitor;

impl Visitor<'_> for VolumeFieldVisitor {
    type Value = VolumeField;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a volume's field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<VolumeField, E> {
        let mut disks = Volume::DISKS.into_iter();
        Ok(match name {
            "name" => VolumeField::Name,
            "persistentVolumeClaim" => VolumeField::Claim,
            "ephemeral" => VolumeField::Ephemeral,
            "image" => VolumeField::Image,
            _ => match disks.find(|source| *source == name) {
                Some(source) => VolumeField::Disk(source),
                None => VolumeField::Other,
            },
        })
    }
}
