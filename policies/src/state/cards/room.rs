//! For how many parts cards have room, and for how many further pods beside one that chooses.

use super::Fitting;
use smallvec::SmallVec;

/// For how many parts a card has room, and whether a container may have several of them.
pub(super) type Fits = (u64, bool);

/// How many pods fit that take `count` parts each, where the cards have room for `fits` parts: the
/// largest number whose parts find enough cards if no card takes two parts of one pod, except cards
/// of which a container may have several.
pub(super) fn pods_that_fit(fits: impl Iterator<Item = Fits>, count: u16) -> u64 {
    if count == 1 {
        return fits.map(|(fits, _)| fits).sum();
    }
    let fits: SmallVec<[Fits; 8]> = fits.collect();
    let count = u64::from(count);
    let mut pods = fits.iter().map(|(fits, _)| fits).sum::<u64>() / count;
    loop {
        let usable: u64 = fits.iter().map(|fits| usable(*fits, pods)).sum();
        if usable / count >= pods {
            return pods;
        }
        pods = usable / count;
    }
}

/// How many parts of a card so many pods can use.
fn usable((fits, several): Fits, pods: u64) -> u64 {
    if several { fits } else { fits.min(pods) }
}

/// Positions of cards among those that a node names. A card of which a container gets several parts
/// is there as often.
pub(super) type Positions = SmallVec<[usize; 8]>;

impl Fitting {
    /// How many parts one container can have of the card.
    pub(super) fn parts(&self) -> u64 {
        usable(self.fits, 1)
    }
}

/// How many parts one container can have of these cards.
pub(super) fn parts_of_one(cards: &[Fitting]) -> u64 {
    cards.iter().map(Fitting::parts).sum()
}

/// The further pods for which there is room beside one that chooses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Further {
    pods: u64,
    /// How many of the parts that they can use they can do without.
    pub(super) spare: u64,
}

impl Further {
    /// Those that take `count` parts each of these cards.
    pub(super) fn of(cards: &[Fitting], count: u16) -> Self {
        let pods = pods_that_fit(cards.iter().map(|card| card.fits), count);
        let pods = pods.saturating_sub(1);
        let room: u64 = cards.iter().map(|card| usable(card.fits, pods)).sum();
        let spare = room.saturating_sub(u64::from(count) * pods);
        Self { pods, spare }
    }

    /// Whether they can use every part of a card.
    pub(super) fn need(&self, card: &Fitting) -> bool {
        let (fits, several) = card.fits;
        several || fits <= self.pods
    }
}
