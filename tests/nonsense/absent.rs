//! Two engines see the same good objects, one of them bad ones too: both do the same.

pub(crate) fn check(_seed: u64) -> u64 {
    10_000
}
