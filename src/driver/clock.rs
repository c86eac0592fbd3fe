//! The one clock: wall time at the start, monotonic time since.

use gpu_batch_policies::facts::UnixMs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The engine's time: the wall clock when the process started, plus monotonic time since. It never
/// jumps, whatever happens to the wall clock later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started_at_ms: UnixMs,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self {
            started_at_ms: whole_ms(wall),
            started: Instant::now(),
        }
    }

    pub(crate) fn now_ms(&self) -> UnixMs {
        self.started_at_ms
            .saturating_add(whole_ms(self.started.elapsed()))
    }

    /// How long it is until then; zero if it has passed.
    pub(crate) fn until(&self, then_ms: UnixMs) -> Duration {
        Duration::from_millis(then_ms.saturating_sub(self.now_ms()))
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
