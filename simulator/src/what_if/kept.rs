//! What came of the promises of another course of a session.

use super::{Course, Session};
use crate::jobs::summary::quantile;
use gpu_batch_policies::facts::UnixMs;

/// A promise beside what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromiseKept {
    /// The name of the gang, as [`GangDifference::gang`](super::GangDifference) has it.
    pub gang: Box<str>,
    /// When the gang was to start.
    pub promised_ms: UnixMs,
    /// When the gang started; `None`: not before the end.
    pub started_ms: Option<UnixMs>,
}

/// How true promises were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromiseFigures {
    /// The gangs that were promised a start.
    pub promised: u32,
    /// The promised gangs that started when they were promised to, or before.
    pub kept: u32,
    /// The promised gangs that were to start after the end of the session and had not started then.
    pub open: u32,
    /// The median of the promised start minus the real one, in milliseconds, of the gangs that have
    /// started: above 0 it was earlier than promised. `None`: none has started.
    pub error_median_ms: Option<i64>,
    /// The 95th percentile of the promised start minus the real one, in milliseconds.
    pub error_p95_ms: Option<i64>,
    /// The gangs that waited behind promises to others.
    pub behind: u32,
}

impl Session {
    /// What came of the promises of a course, by the names of the gangs; `None`: nobody was to be
    /// promised anything. A promise to a gang that had started before, and waits for members that
    /// it has lost, is left out.
    #[must_use]
    pub fn promises_kept(&self, course: &Course) -> Option<Vec<PromiseKept>> {
        let promised = course.promised.as_ref()?;
        let gangs = self.gangs();
        let kept = promised.starts.iter().filter_map(|(name, promise)| {
            let started_ms = gangs.get(&**name)?.started_ms(course);
            let is_first = started_ms.is_none_or(|at_ms| at_ms >= promise.made_ms);
            is_first.then(|| PromiseKept {
                gang: name.clone(),
                promised_ms: promise.start_ms,
                started_ms,
            })
        });
        Some(kept.collect())
    }

    /// How true the promises of a course were; `None`: nobody was to be promised anything.
    #[must_use]
    pub fn promise_figures(&self, course: &Course) -> Option<PromiseFigures> {
        let kept = self.promises_kept(course)?;
        let errors = kept.iter().filter_map(|it| {
            let started_ms = it.started_ms?;
            Some(signed(it.promised_ms) - signed(started_ms))
        });
        let mut errors_ms: Vec<i64> = errors.collect();
        let in_time = errors_ms.iter().filter(|error_ms| **error_ms >= 0).count();
        let open = kept
            .iter()
            .filter(|it| it.started_ms.is_none() && it.promised_ms > self.end_ms);
        let behind = course.promised.as_ref().map_or(0, |it| it.behind.len());
        Some(PromiseFigures {
            promised: count(kept.len()),
            kept: count(in_time),
            open: count(open.count()),
            error_median_ms: quantile(&mut errors_ms, 50),
            error_p95_ms: quantile(&mut errors_ms, 95),
            behind: count(behind),
        })
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn signed(at_ms: UnixMs) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
}
