//! Volumes, as far as they restrict nodes.

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A volume, of which only matters whether it restricts where the pod can run.
#[derive(Debug, Clone, Default)]
pub struct Volume {
    /// The field that holds the restricting source, e.g. `persistentVolumeClaim`.
    pub restricting: Option<&'static str>,
}

impl Volume {
    /// Sources that kube-scheduler judges: those that are claims, those that only one pod or node
    /// may use at a time, and those of which a node attaches only so many.
    const RESTRICTING: [&'static str; 10] = [
        "persistentVolumeClaim",
        "ephemeral",
        "awsElasticBlockStore",
        "azureDisk",
        "cinder",
        "gcePersistentDisk",
        "iscsi",
        "portworxVolume",
        "rbd",
        "vsphereVolume",
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
        while let Some(source) = map.next_key::<VolumeField>()? {
            let present = map.next_value::<Option<IgnoredAny>>()?.is_some();
            if present && source.0.is_some() {
                volume.restricting = source.0;
            }
        }
        Ok(volume)
    }
}

/// The name of a volume's field, if it is one of [`Volume::RESTRICTING`].
struct VolumeField(Option<&'static str>);

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
        let known = Volume::RESTRICTING.into_iter();
        Ok(VolumeField(
            known.into_iter().find(|source| *source == name),
        ))
    }
}
