//! What can go wrong between the engine and the API server.

use crate::random::Random;

/// Which faults a run has, and how often, in percent of the requests or deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// The request is lost: nothing happens, the outcome is unknown.
    pub request_lost: u64,
    /// The answer is lost: it is done, the outcome is unknown.
    pub response_lost: u64,
    /// Flow control turns the request away.
    pub throttled: u64,
    /// A webhook refuses a binding.
    pub refused: u64,
    /// News of a change arrives late, by up to this many milliseconds.
    pub late_ms: u64,
    /// The engine is thrown away and begins anew from lists.
    pub crash: u64,
    /// A watch is cut: a kind is listed again.
    pub relist: u64,
}

impl Faults {
    /// A random subset of the faults.
    #[must_use]
    pub fn draw(random: &mut Random) -> Self {
        let mut some = |percent| if random.percent(50) { percent } else { 0 };
        Self {
            request_lost: some(10),
            response_lost: some(10),
            throttled: some(10),
            refused: some(5),
            late_ms: some(3_000),
            crash: some(3),
            relist: some(3),
        }
    }
}
