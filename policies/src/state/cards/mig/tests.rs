//! Compared with plain enumerations.

use super::{Chosen, MigModel};
use crate::facts::{CardMemory, CardNeed, MigProfile};
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use serde_json::Value;

/// A profile of a name, with an instance of so much memory and power at each of the starts.
fn profile(name: &str, gib: u64, thousandths: u32, size: u8, starts: &[u8]) -> MigProfile {
    MigProfile::new(name, gib * 1024, thousandths, size, starts)
}

/// The profiles of an H100 with 80 GB: with twice the memory, and without.
fn h100() -> Vec<MigProfile> {
    vec![
        profile("1g.10gb", 9, 130, 1, &[0, 1, 2, 3, 4, 5, 6]),
        profile("1g.10gb+me", 9, 130, 1, &[0, 1, 2, 3, 4, 5, 6]),
        profile("1g.20gb", 19, 210, 2, &[0, 2, 4, 6]),
        profile("2g.20gb", 19, 250, 2, &[0, 2, 4]),
        profile("3g.40gb", 39, 460, 4, &[0, 4]),
        profile("4g.40gb", 39, 500, 4, &[0]),
        profile("7g.80gb", 79, 1_000, 8, &[0]),
    ]
}

/// The profiles that HAMi's plugin offers unless it is told otherwise.
fn usual() -> Vec<MigProfile> {
    let mut profiles = h100();
    profiles.retain(|profile| !["1g.20gb", "4g.40gb"].contains(&&*profile.name));
    profiles
}

fn a30() -> Vec<MigProfile> {
    vec![
        profile("1g.6gb", 5, 250, 1, &[0, 1, 2, 3]),
        profile("2g.12gb", 11, 500, 2, &[0, 2]),
        profile("4g.24gb", 23, 1_000, 4, &[0]),
    ]
}

fn need(thousandths: u64, memory: CardMemory) -> CardNeed {
    CardNeed::new(1, thousandths, memory).unwrap()
}

fn gib(gib: u64) -> CardNeed {
    need(0, CardMemory::Mib(gib * 1024))
}

/// The name and the start of what a request gets, and the bits that it takes.
fn named(chosen: Option<Chosen<'_>>) -> Option<(&str, u8, u8)> {
    chosen.map(|it| {
        let placement = it.placement;
        (&*it.profile.name, placement.start, placement.mask())
    })
}

/// What requests for so many GiB get, one after the other.
fn one_after_the_other(profiles: &[MigProfile], asked: &[u64]) -> Vec<String> {
    let model = MigModel::new(profiles);
    let mut occupied = 0;
    let get = |asked: &u64| {
        let Some((name, start, mask)) = named(model.choose(occupied, &gib(*asked))) else {
            return "none".into();
        };
        occupied |= mask;
        format!("{name} at {start}")
    };
    asked.iter().map(get).collect()
}

#[test]
fn small_instances_gather_at_the_end_and_the_first_half_stays_whole() {
    assert_eq!(
        one_after_the_other(&h100(), &[9, 9, 9, 9, 9, 9, 9, 9]),
        [6, 5, 4, 3, 2, 1, 0]
            .map(|start| format!("1g.10gb at {start}"))
            .into_iter()
            .chain(["none".into()])
            .collect::<Vec<String>>()
    );
    assert_eq!(
        one_after_the_other(&usual(), &[19, 9, 39, 9, 9]),
        [
            "2g.20gb at 4",
            "1g.10gb at 6",
            "3g.40gb at 0",
            "none",
            "none"
        ]
    );
    assert_eq!(
        one_after_the_other(&usual(), &[39, 39, 1]),
        ["3g.40gb at 4", "3g.40gb at 0", "none"]
    );
    assert_eq!(
        one_after_the_other(&usual(), &[79, 1]),
        ["7g.80gb at 0", "none"]
    );
    assert_eq!(one_after_the_other(&usual(), &[80]), ["none"]);
    assert_eq!(
        one_after_the_other(&a30(), &[5, 11, 5, 5]),
        ["1g.6gb at 3", "2g.12gb at 0", "1g.6gb at 2", "none"]
    );
}

#[test]
fn a_larger_profile_is_taken_where_no_place_of_a_smaller_one_is_left() {
    let model = MigModel::new(&h100());
    // Slices 0 to 5 and 6: only the last one is free, where no profile begins.
    assert!(model.choose(0b0111_1111, &gib(1)).is_none());
    // 1g cannot begin at 7, and 2g not at 6; 1g with twice the memory can.
    assert_eq!(
        named(model.choose(0b0011_1111, &gib(10))),
        Some(("1g.20gb", 6, 0b1100_0000))
    );
    let usual = MigModel::new(&usual());
    assert!(usual.choose(0b0011_1111, &gib(10)).is_none());
    // The places of 1g are those of slices 0 to 6; slice 3 alone serves it.
    assert_eq!(
        named(usual.choose(0b1111_0111, &gib(1))),
        Some(("1g.10gb", 3, 0b1000))
    );
}

#[test]
fn power_and_percentages_are_asked_of_a_profile_too() {
    let model = MigModel::new(&h100());
    let name = |need: CardNeed| named(model.choose(0, &need)).map(|(name, ..)| name);
    let percent = |thousandths, percent| need(thousandths, CardMemory::Percent(percent));
    for (asked, expected) in [
        (percent(0, 12), Some("1g.10gb")),
        (percent(0, 13), Some("1g.20gb")),
        (percent(0, 25), Some("1g.20gb")),
        (percent(250, 25), Some("2g.20gb")),
        (percent(300, 25), Some("3g.40gb")),
        (percent(0, 50), Some("3g.40gb")),
        (percent(500, 50), Some("4g.40gb")),
        (percent(0, 51), Some("7g.80gb")),
        (percent(1_000, 100), Some("7g.80gb")),
        (need(0, CardMemory::Any), Some("1g.10gb")),
        (need(0, CardMemory::Mib(79 * 1024 + 1)), None),
    ] {
        assert_eq!(name(asked), expected, "{asked:?}");
    }
    let model = MigModel::new(&a30());
    let half = need(500, CardMemory::Percent(50));
    assert_eq!(named(model.choose(0, &half)), Some(("2g.12gb", 2, 0b1100)));
}

/// The most instances of profiles that have what is asked, by trying all.
fn most(profiles: &[MigProfile], model: &MigModel, occupied: u8, need: &CardNeed) -> u64 {
    let mut best = 0;
    for profile in profiles
        .iter()
        .filter(|it| it.is_plain() && model.is_enough(it, need))
    {
        for placement in &profile.placements {
            if placement.mask() & occupied == 0 {
                let with = most(profiles, model, occupied | placement.mask(), need);
                best = best.max(with + 1);
            }
        }
    }
    best
}

/// How many places of plain profiles are free.
fn free(profiles: &[MigProfile], occupied: u8) -> usize {
    let plain = profiles.iter().filter(|profile| profile.is_plain());
    let all = plain.flat_map(|profile| &profile.placements);
    all.filter(|placement| placement.mask() & occupied == 0)
        .count()
}

#[test]
fn for_each_set_of_occupied_slices_the_choice_is_the_best_of_all() {
    for profiles in [h100(), usual(), a30()] {
        let model = MigModel::new(&profiles);
        let of_memory = profiles
            .iter()
            .map(|it| need(0, CardMemory::Mib(it.memory_mib)));
        let of_power = profiles
            .iter()
            .map(|it| need(it.thousandths.into(), CardMemory::Any));
        for need in of_memory.chain(of_power) {
            for occupied in 0..=u8::MAX {
                let most = most(&profiles, &model, occupied, &need);
                assert_eq!(model.count(occupied, &need), most, "{occupied:b} {need:?}");
                let chosen = model.choose(occupied, &need);
                assert_eq!(chosen.is_some(), most > 0, "{occupied:b} {need:?}");
                let Some(chosen) = chosen else { continue };
                let mask = chosen.placement.mask();
                assert_eq!(mask & occupied, 0);
                assert_eq!(model.count(occupied | mask, &need), most - 1);
                let lost = |mask: u8| free(&profiles, occupied) - free(&profiles, occupied | mask);
                assert_eq!(usize::from(chosen.loss), lost(mask));
                // No smaller profile would do, and no other place costs less.
                for profile in profiles.iter().filter(|it| it.is_plain()) {
                    let places = profile.placements.iter();
                    let places = places.filter(|place| place.mask() & occupied == 0);
                    for place in places.filter(|_| model.is_enough(profile, &need)) {
                        let spoils = model.count(occupied | place.mask(), &need) + 1 < most;
                        let is_smaller = profile.memory_mib < chosen.profile.memory_mib;
                        let costs_less =
                            profile == chosen.profile && lost(place.mask()) < lost(mask);
                        assert!(
                            spoils || !is_smaller && !costs_less,
                            "{occupied:b} {need:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_power_that_is_left_is_that_of_the_best_layout() {
    for profiles in [h100(), usual(), a30()] {
        let model = MigModel::new(&profiles);
        for occupied in 0..=u8::MAX {
            let layouts = layouts(&profiles, occupied);
            let power = |layout: &Layout| {
                let instances = layout.iter();
                let power = instances.map(|(profile, _)| profiles[*profile].thousandths);
                power.sum::<u32>()
            };
            let best = layouts.iter().map(power).max().unwrap_or(0);
            assert_eq!(model.power(occupied), best, "{occupied:b}");
        }
        assert_eq!(model.power(u8::MAX), 0);
    }
}

/// Instances, as places of profiles in the list, each with its start.
type Layout = BTreeSet<(usize, u8)>;

/// All layouts of plain profiles beside the occupied slices to which nothing can be added.
fn layouts(profiles: &[MigProfile], occupied: u8) -> BTreeSet<Layout> {
    let mut full = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<(u8, Layout)> = vec![(occupied, Layout::new())];
    while let Some((occupied, layout)) = open.pop() {
        let mut is_full = true;
        for (number, profile) in profiles.iter().enumerate().filter(|it| it.1.is_plain()) {
            for placement in &profile.placements {
                if placement.mask() & occupied == 0 {
                    is_full = false;
                    let mut with = layout.clone();
                    with.insert((number, placement.start));
                    if seen.insert(with.clone()) {
                        open.push((occupied | placement.mask(), with));
                    }
                }
            }
        }
        if is_full {
            full.insert(layout);
        }
    }
    full
}

/// What NVIDIA says of the cards of a GPU model.
struct Card {
    model: String,
    compute_slices: u32,
    memory_slices: u8,
    /// The profiles, with their compute slices as power, and how many instances of each a card
    /// holds.
    profiles: Vec<(MigProfile, u64)>,
}

impl Card {
    /// The plain profiles; those of twice the memory for one compute slice if they are asked for.
    fn plain(&self, with_double: bool) -> Vec<MigProfile> {
        let is_double = |it: &MigProfile| it.thousandths == 1 && it.placements[0].size == 2;
        let profiles = self.profiles.iter().map(|(profile, _)| profile);
        let plain = profiles.filter(|it| it.is_plain() && (with_double || !is_double(it)));
        plain.cloned().collect()
    }
}

/// The GPU models whose profiles are known. `GPU_BATCH_REFERENCE` names the directory of the list;
/// without it, it is looked for beside the repository.
///
/// # Panics
/// If the list is not there.
fn cards() -> Vec<Card> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference");
    let directory = std::env::var("GPU_BATCH_REFERENCE").unwrap_or_else(|_| beside.into());
    let path = format!("{directory}/mig-profiles.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("cannot read {path}: {error}; set GPU_BATCH_REFERENCE to its directory")
    });
    let listed: Value = serde_json::from_str(&text).unwrap();
    let models = listed["models"].as_array().unwrap().iter();
    models.map(card).collect()
}

fn card(model: &Value) -> Card {
    let number = |of: &Value, key: &str| of[key].as_u64().unwrap();
    let profile = |of: &Value| {
        let starts = of["allowed_starts"].as_array().unwrap().iter();
        let starts: Vec<u8> = starts
            .map(|start| start.as_u64().unwrap().try_into().unwrap())
            .collect();
        let size = number(of, "placement_size");
        let compute = number(of, "compute_slices").try_into().unwrap();
        let name = of["profile"].as_str().unwrap();
        let profile = MigProfile::new(name, size, compute, size.try_into().unwrap(), &starts);
        (profile, number(of, "max_instances"))
    };
    let profiles = model["profiles"].as_array().unwrap().iter();
    Card {
        model: model["model"].as_str().unwrap().into(),
        compute_slices: number(model, "compute_slices").try_into().unwrap(),
        memory_slices: number(model, "memory_slices").try_into().unwrap(),
        profiles: profiles.map(profile).collect(),
    }
}

#[test]
fn each_model_has_19_or_5_full_layouts_and_none_has_more_compute_than_the_card() {
    let (mut with_seven, mut with_four) = (0, 0);
    for card in cards() {
        let plain = card.plain(false);
        let full = layouts(&plain, 0);
        let expected = match card.compute_slices {
            7 => {
                with_seven += 1;
                19
            }
            4 => {
                with_four += 1;
                5
            }
            other => panic!("{}: {other} compute slices", card.model),
        };
        assert_eq!(full.len(), expected, "{}", card.model);
        let all = card.plain(true);
        for layout in layouts(&all, 0) {
            let used: u32 = layout.iter().map(|(it, _)| all[*it].thousandths).sum();
            assert!(used <= card.compute_slices, "{}: {layout:?}", card.model);
        }
        // Early drivers are said to have refused 4g beside 3g, which would leave 18.
        let is_one = |(number, _): &(usize, u8), compute| plain[*number].thousandths == compute;
        let both = full.iter().filter(|layout| {
            let has = |compute| layout.iter().any(|it| is_one(it, compute));
            has(3) && has(4)
        });
        assert_eq!(both.count(), usize::from(card.compute_slices == 7));
    }
    assert!(with_seven >= 11 && with_four >= 2);
}

#[test]
fn a_card_holds_as_many_instances_of_a_profile_as_nvidia_says() {
    let mut compared = 0;
    for card in cards() {
        for (profile, most) in card.profiles.iter().filter(|(it, _)| it.is_plain()) {
            let of_all = need(
                profile.thousandths.into(),
                CardMemory::Mib(profile.memory_mib),
            );
            let alone = MigModel::new(core::slice::from_ref(profile));
            let held = alone.count(0, &of_all);
            assert_eq!(held, *most, "{}: {}", card.model, profile.name);
            compared += 1;
        }
    }
    assert!(compared > 70, "{compared}");
}

#[test]
fn a_percentage_is_one_of_the_memory_slices_of_the_model() {
    for card in cards() {
        let model = MigModel::new(&card.plain(true));
        assert_eq!(model.slices, card.memory_slices, "{}", card.model);
        let slices = u32::from(card.memory_slices);
        for asked in 1..=slices {
            let percent = need(0, CardMemory::Percent(100 * asked / slices));
            let chosen = model.choose(0, &percent).unwrap();
            let size = u32::from(chosen.placement.size);
            assert_eq!(size, asked.next_power_of_two(), "{}: {asked}", card.model);
        }
    }
}

#[test]
fn two_instances_are_beside_each_other_if_their_slices_are_apart() {
    for card in cards() {
        let plain = card.plain(true);
        for (profile, other) in plain
            .iter()
            .flat_map(|it| plain.iter().map(move |by| (it, by)))
        {
            let alone = MigModel::new(core::slice::from_ref(other));
            let any = need(0, CardMemory::Any);
            for place in &profile.placements {
                let ends = place.start + place.size;
                let beside = other.placements.iter();
                let mut beside =
                    beside.filter(|it| it.start >= ends || it.start + it.size <= place.start);
                let is_free = alone.choose(place.mask(), &any).is_some();
                assert_eq!(is_free, beside.next().is_some(), "{}", card.model);
            }
        }
    }
}

/// Whatever is asked for in whatever order, a card ends up in a full layout.
#[test]
fn each_order_of_requests_ends_in_a_full_layout() {
    for card in cards() {
        let profiles = card.plain(false);
        let (model, full) = (MigModel::new(&profiles), layouts(&profiles, 0));
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..500 {
            let (mut occupied, mut layout) = (0, Layout::new());
            for _ in 0..100 {
                let asked = &profiles[random.usize(..profiles.len())];
                let need = need(asked.thousandths.into(), CardMemory::Mib(asked.memory_mib));
                if let Some(chosen) = model.choose(occupied, &need) {
                    let number = profiles.iter().position(|it| it == chosen.profile).unwrap();
                    layout.insert((number, chosen.placement.start));
                    occupied |= chosen.placement.mask();
                }
            }
            assert!(full.contains(&layout), "{layout:?}");
        }
    }
}

#[test]
fn each_rule_of_fragmentation_holds() {
    let model = MigModel::new(&h100());
    let count = |occupied: u8, asked: u64| model.count(occupied, &gib(asked));
    // Two 3g fill the memory slices; seven 1g leave the last one.
    assert_eq!((count(0, 39), count(0b1111_1111, 1)), (2, 0));
    assert_eq!((count(0, 1), count(0b0111_1111, 1)), (7, 0));
    // One 1g in the first half takes 4g, and one of two 3g.
    let half = need(500, CardMemory::Any);
    for start in 0..4 {
        assert_eq!(
            (count(1 << start, 39), model.count(1 << start, &half)),
            (1, 0)
        );
    }
    assert_eq!(model.count(0b0001_0000, &half), 1);
    // 2g cannot begin at 6.
    let two = need(250, CardMemory::Mib(19 * 1024));
    assert!(model.choose(0b0011_1111, &two).is_none());
    // 4g beside 3g.
    assert_eq!(
        named(model.choose(0b1111_0000, &half)),
        Some(("4g.40gb", 0, 0b1111))
    );
    // Media engines are never chosen, though a profile with them stands beside.
    let only = [profile("1g.10gb+me", 9, 130, 1, &[0, 1])];
    assert_eq!(MigModel::new(&only).count(0, &gib(1)), 0);
}
