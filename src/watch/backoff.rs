//! How long until the next attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);

/// Waits of 0.2 s, doubling up to 30 s.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    pub(super) fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = LONGEST.min(wait * 2);
        wait
    }

    pub(super) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;

    #[test]
    fn waits_double_up_to_a_limit_and_start_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..10).map(|_| backoff.next().as_millis()).collect();
        let expected = [
            200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000,
        ];
        assert_eq!(waits, expected);
        backoff.reset();
        assert_eq!(backoff.next().as_millis(), 200);
    }
}
