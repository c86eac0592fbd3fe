//! How cards can be cut into MIG devices.
//!
//! A device takes some memory slices of its card in a row, and may begin at certain slices only.
//! Two devices are on one card together if they share no slice. A card of seven compute slices has
//! eight memory slices, one of four has four.
//!
//! Sources: `nvidia-smi mig -lgipp` of A30, A100, H100 and H200 cards; for the others NVIDIA's MIG
//! user guide and the configurations of the GPU operator. Profiles with media engines or for
//! graphics, which are variants of these, are left out.

use super::GPU;
use alloc::{format, string::String};

/// What the resources of MIG devices begin with, with the strategy `mixed`; then comes the profile.
const RESOURCE: &str = "nvidia.com/mig-";

/// The value of `nvidia.com/mig.config` with which all cards are whole.
const WHOLE: &str = "all-disabled";

/// The place that devices of a profile take on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Footprint {
    /// How many compute slices a device has.
    compute_slices: u8,
    /// How many memory slices a device takes.
    memory_slices: u8,
    /// The memory slices at which a device may begin, rising.
    starts: &'static [u8],
}

const fn footprint(compute_slices: u8, memory_slices: u8, starts: &'static [u8]) -> Footprint {
    Footprint {
        compute_slices,
        memory_slices,
        starts,
    }
}

/// The profiles of cards of seven compute slices: 1g, 1g with twice the memory, 2g, 3g, 4g, 7g.
const SEVEN: [Footprint; 6] = [
    footprint(1, 1, &[0, 1, 2, 3, 4, 5, 6]),
    footprint(1, 2, &[0, 2, 4, 6]),
    footprint(2, 2, &[0, 2, 4]),
    footprint(3, 4, &[0, 4]),
    footprint(4, 4, &[0]),
    footprint(7, 8, &[0]),
];

/// The profiles of cards of four compute slices: 1g, 2g, 4g.
const FOUR: [Footprint; 3] = [
    footprint(1, 1, &[0, 1, 2, 3]),
    footprint(2, 2, &[0, 2]),
    footprint(4, 4, &[0]),
];

impl Footprint {
    /// How many devices one card can hold if it holds no others.
    fn most(&self) -> u32 {
        let mut end = 0;
        let mut devices = 0;
        for start in self.starts {
            if *start >= end {
                devices += 1;
                end = start + self.memory_slices;
            }
        }
        devices
    }
}

/// GPU models whose profiles have the same names.
struct Models {
    /// The models, as the label `nvidia.com/gpu.product` names them.
    products: &'static [&'static str],
    /// The names of the profiles, in the order of [`SEVEN`] or [`FOUR`].
    profiles: &'static [&'static str],
}

const MODELS: [Models; 12] = [
    Models {
        products: &["NVIDIA-A30"],
        profiles: &["1g.6gb", "2g.12gb", "4g.24gb"],
    },
    Models {
        products: &["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-PCIE-40GB"],
        profiles: &[
            "1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb",
        ],
    },
    Models {
        products: &[
            "NVIDIA-A100-SXM4-80GB",
            "NVIDIA-A100-80GB-PCIe",
            "NVIDIA-H100-80GB-HBM3",
            "NVIDIA-H100-PCIe",
        ],
        profiles: &[
            "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb",
        ],
    },
    Models {
        products: &["NVIDIA-H100-NVL"],
        profiles: &[
            "1g.12gb", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb",
        ],
    },
    Models {
        products: &["NVIDIA-GH200-480GB", "NVIDIA-H20"],
        profiles: &[
            "1g.12gb", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb",
        ],
    },
    Models {
        products: &["NVIDIA-H200", "NVIDIA-H200-NVL"],
        profiles: &[
            "1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb",
        ],
    },
    Models {
        products: &["NVIDIA-GH200-144G-HBM3e"],
        profiles: &[
            "1g.18gb", "1g.36gb", "2g.36gb", "3g.72gb", "4g.72gb", "7g.144gb",
        ],
    },
    Models {
        products: &["NVIDIA-B200"],
        profiles: &[
            "1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb",
        ],
    },
    Models {
        products: &["NVIDIA-GB200"],
        profiles: &[
            "1g.23gb", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb",
        ],
    },
    Models {
        products: &["NVIDIA-B300-SXM6-AC"],
        profiles: &[
            "1g.34gb", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb",
        ],
    },
    Models {
        products: &["NVIDIA-GB300"],
        profiles: &[
            "1g.35gb", "1g.70gb", "2g.70gb", "3g.139gb", "4g.139gb", "7g.278gb",
        ],
    },
    Models {
        products: &["NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"],
        profiles: &["1g.24gb", "2g.48gb", "4g.96gb"],
    },
];

/// The place that devices of a profile take on cards of a model; `None`: the model is not known, or
/// cannot be cut so.
fn footprint_of(product: &str, profile: &str) -> Option<&'static Footprint> {
    let models = MODELS.iter().find(|one| one.products.contains(&product))?;
    let position = models.profiles.iter().position(|name| *name == profile)?;
    match models.profiles.len() {
        3 => FOUR.get(position),
        _ => SEVEN.get(position),
    }
}

/// A way to cut all cards of a node alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The value of the label `nvidia.com/mig.config` that asks the GPU operator for it, by the
    /// names of the operator's own configuration.
    pub(crate) config: String,
    /// How many devices, or whole cards, one card becomes.
    pub(crate) devices_per_card: u32,
}

/// The layout with most of a resource for cards of a model; `None`: no layout has it.
pub(crate) fn layout_with(resource: &str, product: &str) -> Option<Layout> {
    if resource == GPU {
        return Some(Layout {
            config: WHOLE.into(),
            devices_per_card: 1,
        });
    }
    let profile = resource.strip_prefix(RESOURCE)?;
    Some(Layout {
        config: format!("all-{profile}"),
        devices_per_card: footprint_of(product, profile)?.most(),
    })
}

#[cfg(test)]
mod tests {
    use super::{FOUR, Footprint, MODELS, SEVEN, footprint_of, layout_with};
    use alloc::{collections::BTreeSet, vec::Vec};

    /// The most that may be on one card of each profile, by its own place alone.
    #[test]
    fn a_card_holds_as_many_devices_as_nvidia_says() {
        let most = |footprints: &[Footprint]| -> Vec<u32> {
            footprints.iter().map(Footprint::most).collect()
        };
        assert_eq!(most(&SEVEN), [7, 4, 3, 2, 1, 1]);
        assert_eq!(most(&FOUR), [4, 2, 1]);
    }

    /// All layouts to which no device can be added, each with its compute slices.
    fn full_layouts(profiles: &[Footprint]) -> BTreeSet<Vec<(usize, u8)>> {
        let places: Vec<(usize, u8)> = (profiles.iter().enumerate())
            .flat_map(|(index, one)| one.starts.iter().map(move |start| (index, *start)))
            .collect();
        let slices = |(profile, start): &(usize, u8)| {
            let size = profiles[*profile].memory_slices;
            ((1_u32 << size) - 1) << start
        };
        let mut found = BTreeSet::new();
        let mut open = Vec::from([(0_u32, Vec::new())]);
        while let Some((taken, layout)) = open.pop() {
            let fitting = places.iter().filter(|place| taken & slices(place) == 0);
            let mut is_full = true;
            for place in fitting {
                is_full = false;
                // Each layout is reached in the order of its places alone.
                if layout.last().is_none_or(|last| *last < *place) {
                    let mut more = layout.clone();
                    more.push(*place);
                    open.push((taken | slices(place), more));
                }
            }
            if is_full {
                found.insert(layout);
            }
        }
        found
    }

    #[test]
    fn there_are_19_full_layouts_of_seven_slices_and_5_of_four() {
        // 1g with twice the memory is left out: with it, there are more.
        let seven: Vec<Footprint> = [0, 2, 3, 4, 5].map(|index| SEVEN[index]).into();
        for (profiles, layouts, slices) in [(seven, 19, 7), (FOUR.into(), 5, 4)] {
            let found = full_layouts(&profiles);
            assert_eq!(found.len(), layouts);
            let compute = |layout: &Vec<(usize, u8)>| -> u8 {
                layout
                    .iter()
                    .map(|(of, _)| profiles[*of].compute_slices)
                    .sum()
            };
            assert!(found.iter().all(|layout| compute(layout) <= slices));
        }
    }

    #[test]
    fn one_name_is_another_device_on_another_model() {
        let most = |product, profile| footprint_of(product, profile).map(Footprint::most);
        assert_eq!(most("NVIDIA-A100-SXM4-40GB", "1g.10gb"), Some(4));
        assert_eq!(most("NVIDIA-H100-80GB-HBM3", "1g.10gb"), Some(7));
        assert_eq!(most("NVIDIA-H200", "1g.35gb"), Some(4));
        assert_eq!(most("NVIDIA-GB300", "1g.35gb"), Some(7));
        assert_eq!(most("NVIDIA-A100-SXM4-40GB", "3g.40gb"), None);
        assert_eq!(most("NVIDIA-L40S", "1g.10gb"), None);
    }

    #[test]
    fn each_model_names_each_of_its_profiles_once() {
        for models in MODELS {
            let names: BTreeSet<&str> = models.profiles.iter().copied().collect();
            assert_eq!(names.len(), models.profiles.len());
            assert!([FOUR.len(), SEVEN.len()].contains(&names.len()));
        }
    }

    #[test]
    fn the_layout_with_most_of_a_resource_is_named_as_the_operator_names_it() {
        let config = |resource| {
            let layout = layout_with(resource, "NVIDIA-H100-80GB-HBM3")?;
            Some((layout.config, layout.devices_per_card))
        };
        assert_eq!(
            config("nvidia.com/mig-3g.40gb"),
            Some(("all-3g.40gb".into(), 2))
        );
        assert_eq!(config("nvidia.com/gpu"), Some(("all-disabled".into(), 1)));
        assert_eq!(config("nvidia.com/mig-1g.5gb"), None);
        assert_eq!(config("amd.com/gpu"), None);
    }
}
