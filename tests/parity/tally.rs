//! How much was compared, by family.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Compared, families};

/// The counts of one family.
#[derive(Debug, Default)]
struct Counts {
    cases: usize,
    refused: usize,
    skipped: usize,
    fits: usize,
    misfits: usize,
    not_ready: usize,
    differences: usize,
}

/// The counts of all families, and of the plugins that refuse nodes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    families: BTreeMap<&'static str, Counts>,
    plugins: BTreeMap<String, usize>,
    scores: BTreeMap<&'static str, usize>,
}

/// The plugins that the families are about.
const PLUGINS: [&str; 11] = [
    "InterPodAffinity",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "TaintToleration",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
];

impl Tally {
    pub(crate) fn add(&mut self, compared: &[Compared]) {
        for Compared { family, found, .. } in compared {
            let counts = self.families.entry(family).or_default();
            counts.cases += 1;
            counts.refused += usize::from(found.refused);
            counts.skipped += usize::from(found.skipped);
            counts.fits += found.fits;
            counts.misfits += found.misfits;
            counts.not_ready += found.not_ready;
            counts.differences += usize::from(found.difference.is_some());
            for (plugin, nodes) in &found.by_plugin {
                *self.plugins.entry(plugin.clone()).or_default() += nodes;
            }
            for (plugin, scores) in &found.scores {
                *self.scores.entry(plugin).or_default() += scores;
            }
        }
    }

    /// No family may be skipped, refused or trivial as a whole, every plugin must have refused
    /// nodes, and those that score must have told some apart.
    pub(crate) fn check(&self) {
        for plugin in PLUGINS {
            assert!(
                self.plugins.contains_key(plugin),
                "{plugin} refuses no node"
            );
        }
        assert!(!self.scores.is_empty(), "no scores are compared");
        for (plugin, scores) in &self.scores {
            assert!(*scores > 0, "{plugin} tells no nodes apart");
        }
        for (name, _) in families::ALL {
            let counts = self
                .families
                .get(name)
                .unwrap_or_else(|| panic!("no case of {name}"));
            let judged = counts.cases - counts.refused - counts.skipped;
            let wrong = name == "mistakes";
            // What pods prefer refuses no node.
            let only_orders = matches!(name, "preferences" | "defaults");
            let most = if wrong { 95 } else { 40 };
            assert!(100 * counts.skipped <= counts.cases, "{name}: {counts:?}");
            assert!(
                100 * counts.refused <= most * counts.cases,
                "{name}: {counts:?}"
            );
            assert!(judged > 0, "{name}: {counts:?}");
            let nodes = counts.fits + counts.misfits;
            let fewer = counts.fits.min(counts.misfits);
            let is_mixed = 10 * fewer >= nodes;
            assert!(wrong || only_orders || is_mixed, "{name}: {counts:?}");
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, counts) in &self.families {
            let Counts {
                cases,
                refused,
                skipped,
                fits,
                misfits,
                not_ready,
                differences,
            } = counts;
            writeln!(
                formatter,
                "{name}: {cases} cases, {refused} refused, {skipped} skipped; nodes: {fits} fit, \
                 {misfits} do not, {not_ready} are not ready and tolerated; {differences} differ"
            )?;
        }
        for (plugin, nodes) in &self.plugins {
            writeln!(formatter, "{plugin} refuses {nodes} nodes")?;
        }
        for (plugin, scores) in &self.scores {
            writeln!(formatter, "{plugin} scores {scores} nodes from 1 to 99")?;
        }
        Ok(())
    }
}
