//! Pseudo-random numbers by a fixed algorithm, so that a seed gives the same numbers for ever.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound; 0 if the bound is 0. The bias is below 2^-32 for bounds below
    /// 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True with a chance of so many percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the choices.
    ///
    /// # Panics
    /// If there are no choices.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or(0);
        &choices[index]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut random = Random::new(42);
        let first = [random.next_u64(), random.next_u64()];
        assert_eq!(
            first,
            [13_679_457_532_755_275_413, 2_949_826_092_126_892_291]
        );
    }

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut random = Random::new(1);
        for bound in 1..100 {
            assert!(random.below(bound) < bound);
        }
    }
}
