//! The cells of one node, by themselves.

use super::cells::Cells;
use crate::facts::{
    AlignedContainer, AlignmentPolicy, AlignmentScope, CellResource, ContainerRole, NumaCell,
    NumaFacts, PodShape, Uid,
};
use alloc::{vec, vec::Vec};

/// GPUs of each cell, with those in use.
fn cells(policy: AlignmentPolicy, gpus: &[(u64, u64)]) -> Cells {
    let gpus = gpus.iter().map(|(has, used)| [*has, *has, has - used]);
    of_amounts(policy, gpus)
}

/// Cells whose GPUs are all kept for something else.
fn reserved(gpus: &[u64]) -> Cells {
    of_amounts(
        AlignmentPolicy::SingleCell,
        gpus.iter().map(|has| [*has, 0, 0]),
    )
}

/// Capacity, allocatable and available GPUs of each cell.
fn of_amounts(policy: AlignmentPolicy, gpus: impl Iterator<Item = [u64; 3]>) -> Cells {
    let cell = |(number, [capacity, allocatable, available]): (u16, [u64; 3])| NumaCell {
        number,
        resources: vec![CellResource {
            name: "gpu".into(),
            capacity,
            allocatable,
            available,
        }],
    };
    Cells::new(&NumaFacts {
        name: "n".into(),
        uid: Uid(1),
        policy,
        scope: AlignmentScope::Container,
        cells: (0..).zip(gpus).map(cell).collect(),
        problems: Vec::new(),
    })
}

fn shape(gpus: u64) -> PodShape {
    PodShape {
        aligned: vec![AlignedContainer {
            role: ContainerRole::Main,
            amounts: vec![("gpu".into(), gpus)],
        }],
        ..PodShape::default()
    }
}

#[test]
fn as_many_fit_as_can_be_taken_one_after_the_other() {
    for policy in [AlignmentPolicy::SingleCell, AlignmentPolicy::Restricted] {
        for used in 0..16u64 {
            let gpus = [(4, used % 4), (4, used / 4)];
            for size in 1..=8 {
                let (mut cells, shape) = (cells(policy, &gpus), shape(size));
                let fits = cells.multiplicity(&shape, 100, false);
                let mut taken = 0;
                while cells.multiplicity(&shape, 1, false) > 0 {
                    let shares = cells.foreseen(&shape);
                    cells.take(&shares);
                    taken += 1;
                }
                assert_eq!(taken, fits, "{policy:?} {gpus:?} {size}");
            }
        }
    }
}

#[test]
fn what_no_cell_gives_out_is_not_aligned() {
    let mut all = cells(AlignmentPolicy::SingleCell, &[(4, 0), (4, 0)]);
    assert_eq!(all.multiplicity(&shape(5), 1, true), 0);
    all = reserved(&[4, 4]);
    assert_eq!(all.multiplicity(&shape(5), 1, true), 1);
}

/// On the empty node both containers would begin with the first cell, which has too few GPUs for
/// the two.
#[test]
fn a_pod_that_fits_beside_others_alone_is_not_kept_out() {
    let role = |role, gpus| AlignedContainer {
        role,
        amounts: vec![("gpu".into(), gpus)],
    };
    let shape = PodShape {
        aligned: vec![role(ContainerRole::Init, 1), role(ContainerRole::Main, 4)],
        ..PodShape::default()
    };
    let empty = cells(AlignmentPolicy::SingleCell, &[(2, 0), (4, 0)]);
    assert_eq!(empty.multiplicity(&shape, 1, false), 0);
    assert_eq!(empty.verdict(&shape), Ok(()));
    let used = cells(AlignmentPolicy::SingleCell, &[(2, 2), (4, 0)]);
    assert_eq!(used.multiplicity(&shape, 1, false), 1);
    // No cell has as many for one container.
    assert!(used.verdict(&self::shape(5)).is_err());
}

#[test]
fn what_is_given_back_is_free_again() {
    let mut cells = cells(AlignmentPolicy::Restricted, &[(4, 1), (4, 0)]);
    let before = cells.clone();
    let shares: Vec<_> = [3, 4]
        .map(|size| {
            let shares = cells.foreseen(&shape(size));
            cells.take(&shares);
            shares
        })
        .into();
    assert_eq!(cells.free_now(), [0, 0]);
    for shares in shares {
        cells.give_back(&shares);
    }
    assert_eq!(cells, before);
}

#[test]
fn the_oldest_pods_explain_what_is_in_use() {
    let mut all = cells(AlignmentPolicy::SingleCell, &[(4, 4), (4, 2)]);
    let sizes = [2, 4, 1].map(shape);
    let pods: Vec<&PodShape> = sizes.iter().collect();
    let shares = all.explain_all(&pods);
    // The pod of one came after the exporter looked: the kubelet has given it what was left.
    assert_eq!(all.free_now(), [0, 1]);
    for shares in &shares[..2] {
        all.give_back(shares);
    }
    assert_eq!(all.free_now(), [4, 3]);
}
