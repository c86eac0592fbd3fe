//! Placements: how nodes are chosen.

use gpu_batch_policies::facts;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

/// The placements that may be written.
pub(crate) const PLACEMENT_NAMES: [&str; 4] = ["binpack", "spread", "best-fit", "fragmentation"];

/// How nodes are chosen among those that fit. `None`: the object does not say, and a queue above it
/// or the configuration does.
///
/// Written as one name for both, or as `{gpu: binpack, cpu: spread}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// For pods that ask for a GPU.
    pub gpu: Option<String>,
    /// For pods that ask for no GPU.
    pub cpu: Option<String>,
}

/// Text that names no placement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a placement; use binpack, spread, best-fit or fragmentation")]
pub(crate) struct InvalidPlacement(String);

/// Reads one placement.
///
/// # Errors
/// [`InvalidPlacement`] for a name that is not one of [`PLACEMENT_NAMES`].
pub(crate) fn parse_placement(name: &str) -> Result<facts::Placement, InvalidPlacement> {
    match name {
        "binpack" => Ok(facts::Placement::Binpack),
        "spread" => Ok(facts::Placement::Spread),
        "best-fit" => Ok(facts::Placement::BestFit),
        "fragmentation" => Ok(facts::Placement::Fragmentation),
        name => Err(InvalidPlacement(name.to_owned())),
    }
}

impl Serialize for Placement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(name) = &self.gpu
            && self.gpu == self.cpu
        {
            return serializer.serialize_str(name);
        }
        let mut map = serializer.serialize_map(None)?;
        for (key, name) in [("gpu", &self.gpu), ("cpu", &self.cpu)] {
            if let Some(name) = name {
                map.serialize_entry(key, name)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlacementVisitor)
    }
}

struct PlacementVisitor;

impl<'de> Visitor<'de> for PlacementVisitor {
    type Value = Placement;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a placement such as binpack, or {gpu: binpack, cpu: spread}")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Placement, E> {
        Ok(Placement {
            gpu: Some(name.to_owned()),
            cpu: Some(name.to_owned()),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Placement, A::Error> {
        let mut placement = Placement::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "gpu" => placement.gpu = map.next_value()?,
                "cpu" => placement.cpu = map.next_value()?,
                other => return Err(Error::unknown_field(other, &["gpu", "cpu"])),
            }
        }
        Ok(placement)
    }
}

impl JsonSchema for Placement {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Placement".into()
    }

    /// A structural schema has one type for each field, except for integers that may be strings,
    /// and CEL sees no field without a type. What is left is to list every value, which is exact.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = PLACEMENT_NAMES;
        let mut values: Vec<Value> = names.iter().map(|name| json!(name)).collect();
        values.extend(names.iter().map(|gpu| json!({ "gpu": gpu })));
        values.extend(names.iter().map(|cpu| json!({ "cpu": cpu })));
        for gpu in names {
            values.extend(names.iter().map(|cpu| json!({ "gpu": gpu, "cpu": cpu })));
        }
        json_schema!({ "enum": values, "x-kubernetes-preserve-unknown-fields": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_is_read_and_written_in_both_forms() {
        for (written, gpu, cpu) in [
            (json!("spread"), Some("spread"), Some("spread")),
            (json!({"gpu": "binpack"}), Some("binpack"), None),
            (json!({"cpu": "binpack"}), None, Some("binpack")),
            (
                json!({"gpu": "binpack", "cpu": "spread"}),
                Some("binpack"),
                Some("spread"),
            ),
            (json!({}), None, None),
        ] {
            let placement: Placement = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(placement.gpu.as_deref(), gpu, "{written}");
            assert_eq!(placement.cpu.as_deref(), cpu, "{written}");
            assert_eq!(serde_json::to_value(&placement).unwrap(), written);
        }
        assert!(serde_json::from_value::<Placement>(json!({"gpus": "spread"})).is_err());
        assert!(serde_json::from_value::<Placement>(json!(3)).is_err());
    }

    #[test]
    fn every_listed_placement_is_read_and_no_other() {
        for name in PLACEMENT_NAMES {
            assert!(parse_placement(name).is_ok(), "{name}");
        }
        for name in ["tight", "", "Binpack", "random"] {
            assert_eq!(
                parse_placement(name),
                Err(InvalidPlacement(name.to_owned()))
            );
        }
    }
}
