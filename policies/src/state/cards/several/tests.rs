//! Compared with a reference that tries all cards for all containers.

use crate::facts::{
    CardFacts, CardMemory, CardNeed, CardPart, CardTerms, ContainerCards, ContainerRole,
};
use crate::state::cards::{Cards, Fitting, Held, MigModels};
use alloc::collections::BTreeMap;
use alloc::{format, vec::Vec};
use proptest::prelude::*;

/// A node, as amounts of each card that are used.
fn cards(sizes: &[(u32, u32)], used: &[(usize, u32, u64)]) -> Cards {
    let sizes: Vec<(u32, u32, u32)> = sizes.iter().map(|size| (size.0, size.1, 0)).collect();
    cards_in_cells(&sizes, used)
}

/// As [`cards`], with the cell of each.
fn cards_in_cells(sizes: &[(u32, u32, u32)], used: &[(usize, u32, u64)]) -> Cards {
    let mut cards = Cards::default();
    let card = |(number, (slots, thousandths, cell)): (usize, &(u32, u32, u32))| CardFacts {
        slots: *slots,
        thousandths: *thousandths,
        numa: *cell,
        ..CardFacts::new(format!("{number}"), 100)
    };
    let facts: Vec<CardFacts> = sizes.iter().enumerate().map(card).collect();
    cards.set(&facts, &[], &mut MigModels::default());
    for (number, thousandths, memory_mib) in used {
        let part = CardPart {
            card: format!("{}", number % sizes.len()).into(),
            slots: 1,
            thousandths: *thousandths,
            memory_mib: *memory_mib,
            instances: Vec::new(),
        };
        cards.take(&Held::new([part].into(), false));
    }
    cards
}

fn terms(containers: &[ContainerCards]) -> CardTerms {
    CardTerms {
        containers: containers.to_vec(),
        ..CardTerms::default()
    }
}

/// Whether some choice serves all containers in their order: HAMi's rules, and sidecars stay.
fn any_choice_fits(cards: &Cards, containers: &[ContainerCards], in_one_cell: bool) -> bool {
    let Some((first, rest)) = containers.split_first() else {
        return true;
    };
    let fitting: Vec<(usize, u32)> = cards
        .fitting(first.need, None)
        .map(|card| (card.position, card.cell))
        .collect();
    let count = usize::from(first.need.count());
    let choices = (0_u32..1 << fitting.len()).filter(|it| it.count_ones() as usize == count);
    let choices = choices.map(|choice| {
        let chosen = fitting.iter().enumerate();
        let chosen = chosen.filter(|(bit, _)| choice & (1 << bit) != 0);
        chosen.map(|(_, card)| *card).collect::<Vec<_>>()
    });
    let is_allowed = |chosen: &Vec<(usize, u32)>| {
        !in_one_cell || chosen.iter().all(|(_, cell)| *cell == chosen[0].1)
    };
    let mut choices = choices.filter(is_allowed);
    if first.role == ContainerRole::Init {
        return choices.next().is_some() && any_choice_fits(cards, rest, in_one_cell);
    }
    let mut with = choices.map(|chosen| {
        let chosen: Vec<usize> = chosen.iter().map(|(position, _)| *position).collect();
        let mut with = cards.clone();
        with.take(&with.parts(&first.need, &chosen));
        with
    });
    with.any(|with| any_choice_fits(&with, rest, in_one_cell))
}

/// What of each card is used at most, from what each container gets.
fn most_at_a_time(
    containers: &[ContainerCards],
    given: &[Vec<CardPart>],
) -> BTreeMap<alloc::boxed::Box<str>, [u64; 3]> {
    let (mut peak, mut together) = (BTreeMap::new(), BTreeMap::<_, [u64; 3]>::new());
    for (container, parts) in containers.iter().zip(given) {
        for part in parts {
            let amounts = [part.slots.into(), part.thousandths.into(), part.memory_mib];
            let before = together.get(&part.card).copied().unwrap_or_default();
            let sum = [0, 1, 2].map(|index| before[index] + amounts[index]);
            if container.role != ContainerRole::Init {
                together.insert(part.card.clone(), sum);
            }
            let peak: &mut [u64; 3] = peak.entry(part.card.clone()).or_default();
            *peak = [0, 1, 2].map(|index| peak[index].max(sum[index]));
        }
    }
    peak
}

fn among(numbers: &'static [u32]) -> impl Strategy<Value = u32> {
    prop::sample::select(numbers)
}

fn needs() -> impl Strategy<Value = Vec<ContainerCards>> {
    let memory = prop_oneof![
        (1..=100u64).prop_map(CardMemory::Mib),
        prop::sample::select(&[25u32, 50, 100][..]).prop_map(CardMemory::Percent),
    ];
    let thousandths = prop::sample::select(&[0u64, 0, 250, 500, 500, 1_000][..]);
    let need = (1..=2u64, thousandths, memory)
        .prop_map(|(count, power, memory)| CardNeed::new(count, power, memory).unwrap());
    let containers = (
        prop::collection::vec((need.clone(), any::<bool>()), 0..3),
        { prop::collection::vec(need, 0..4) },
    );
    containers.prop_map(|(init, main)| {
        let init = init.into_iter().map(|(need, stays)| ContainerCards {
            role: match stays {
                true => ContainerRole::Sidecar,
                false => ContainerRole::Init,
            },
            need,
        });
        let main = main.into_iter().map(|need| ContainerCards {
            role: ContainerRole::Main,
            need,
        });
        init.chain(main).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_pod_gets_cards_if_any_choice_serves_all_containers(
        sizes in prop::collection::vec((1..4u32, among(&[1_000, 1_500]), 0..2u32), 1..5),
        used in prop::collection::vec((0..4usize, among(&[0, 250, 500]), 0..60u64), 0..3),
        containers in needs(),
        by_free in any::<bool>(),
        in_one_cell in any::<bool>(),
    ) {
        prop_assume!(!containers.is_empty());
        let mut cards = cards_in_cells(&sizes, &used);
        let terms = CardTerms { in_one_cell, ..terms(&containers) };
        let need = &containers[0].need;
        let fits = cards.multiplicity(need, Some(&terms), 50);
        prop_assert_eq!(fits > 0, any_choice_fits(&cards, &containers, in_one_cell));
        prop_assert!(cards.multiplicity_empty(need, Some(&terms)) >= fits.min(1));
        if fits == 0 {
            return Ok(());
        }
        let held = cards.hold_several(&terms, |fitting: &mut [Fitting]| {
            for card in fitting {
                card.cost = u64::from(if by_free { card.free } else { u16::MAX - card.free });
            }
        });
        let given = held.by_container();
        prop_assert_eq!(given.len(), containers.len());
        let of_held: BTreeMap<_, _> = held
            .iter()
            .map(|part| (
                part.card.clone(),
                [part.slots.into(), part.thousandths.into(), part.memory_mib],
            ))
            .collect();
        prop_assert_eq!(&of_held, &most_at_a_time(&containers, &given));
        // Each container gets different cards with room beside those that run with it.
        let mut beside = cards.clone();
        for (container, parts) in containers.iter().zip(&given) {
            prop_assert_eq!(parts.len(), usize::from(container.need.count()));
            let fitting: Vec<usize> =
                beside.fitting(container.need, None).map(|card| card.position).collect();
            let own = beside.parts(&container.need, &fitting);
            prop_assert!(parts.iter().all(|part| own.contains(part)), "{:?}", given);
            prop_assert!(parts.is_sorted_by(|one, next| one.card < next.card));
            let cell_of = |part: &CardPart| sizes[part.card.parse::<usize>().unwrap()].2;
            let is_in_one = parts.iter().all(|part| cell_of(part) == cell_of(&parts[0]));
            prop_assert!(!in_one_cell || is_in_one, "{:?}", given);
            if container.role != ContainerRole::Init {
                beside.take(&Held::new(parts.as_slice().into(), false));
            }
        }
        cards.take(&held);
        prop_assert!(!cards.fail(&held));
        prop_assert!(cards.multiplicity(need, Some(&terms), 50) >= fits - 1);
        let before = cards.clone();
        cards.take(&held);
        cards.give_back(&held);
        prop_assert_eq!(cards, before);
    }
}

fn main_container(count: u64, thousandths: u64, mib: u64) -> ContainerCards {
    ContainerCards {
        role: ContainerRole::Main,
        need: CardNeed::new(count, thousandths, CardMemory::Mib(mib)).unwrap(),
    }
}

#[test]
fn a_first_choice_that_leaves_a_later_container_without_cards_is_taken_back() {
    // HAMi puts the first container on the emptier card, where the second one no longer fits.
    let cards = cards(&[(9, 1_000), (9, 1_000)], &[(1, 0, 50)]);
    let pod = terms(&[main_container(1, 0, 50), main_container(1, 0, 100)]);
    let emptier_first = |fitting: &mut [Fitting]| {
        fitting
            .iter_mut()
            .for_each(|card| card.cost = 9 - card.fits.0);
    };
    let held = cards.hold_several(&pod, emptier_first);
    let given: Vec<&str> = held.iter().map(|part| &*part.card).collect();
    assert_eq!(given, ["0", "1"]);
    assert_eq!(&*held.by_container()[0][0].card, "1");
}

#[test]
fn an_init_container_uses_cards_that_the_pod_holds_anyway() {
    let cards = cards(&[(9, 1_000), (9, 1_000), (9, 1_000)], &[]);
    let init = ContainerCards {
        role: ContainerRole::Init,
        ..main_container(1, 300, 80)
    };
    let pod = terms(&[init, main_container(1, 500, 50)]);
    let last_first = |fitting: &mut [Fitting]| {
        fitting
            .iter_mut()
            .for_each(|card| card.cost = 9 - card.position as u64);
    };
    let held = cards.hold_several(&pod, last_first);
    let parts: Vec<_> = held
        .iter()
        .map(|it| (&*it.card, it.slots, it.thousandths))
        .collect();
    assert_eq!(parts, [("2", 1, 500)]);
    assert_eq!(held[0].memory_mib, 80);
}

#[test]
fn a_search_gives_up_and_never_overflows() {
    let many: Vec<(u32, u32)> = (0..256).map(|_| (1_000, 1_000)).collect();
    let used: Vec<(usize, u32, u64)> = (0..256).map(|card| (card, 0, card as u64 % 90)).collect();
    let cards = cards(&many, &used);
    for containers in [
        (0..256)
            .map(|_| main_container(1, 1_000, 1))
            .collect::<Vec<_>>(),
        (0..300).map(|_| main_container(256, 1, 1)).collect(),
        (0..8).map(|_| main_container(30, 0, 60)).collect(),
    ] {
        let terms = terms(&containers);
        assert_eq!(cards.multiplicity(&containers[0].need, Some(&terms), 9), 0);
    }
    let all: Vec<ContainerCards> = (0..256).map(|_| main_container(1, 1_000, 1)).collect();
    let free = super::tests::cards(&many, &[]);
    assert_eq!(free.multiplicity(&all[0].need, Some(&terms(&all)), 9), 1);
}
