//! How long pods wait until they are bound.

use gpu_batch_policies::event::{Event, Object, ObjectKey};
use gpu_batch_policies::facts::{PodFacts, Uid, UnixMs};
use prometheus_client::metrics::histogram::Histogram;
use std::collections::HashMap;

/// Measures how long pods of ours wait: from the moment in which this process first sees a pod (for
/// pods that exist when it starts: from their creation) until it sees the pod bound.
///
/// The creation time alone would not do: the API server cuts it to whole seconds.
#[derive(Debug, Default)]
pub(super) struct Latency {
    waiting: HashMap<Uid, UnixMs>,
}

impl Latency {
    pub(super) fn observe(&mut self, events: &[Event], now_ms: UnixMs, histogram: &Histogram) {
        for event in events {
            match event {
                Event::Applied(object) => {
                    if let Object::Pod(pod) = object.as_ref() {
                        self.seen(pod, now_ms, now_ms, histogram);
                    }
                }
                Event::Listed(listing) => {
                    for object in &listing.objects {
                        if let Object::Pod(pod) = object {
                            self.seen(pod, pod.created_ms.min(now_ms), now_ms, histogram);
                        }
                    }
                }
                Event::Deleted(ObjectKey::Pod(uid)) => {
                    self.waiting.remove(uid);
                }
                Event::Deleted(_)
                | Event::Outcome(..)
                | Event::Configured(_)
                | Event::BindAsked { .. }
                | Event::Continue => {}
            }
        }
    }

    fn seen(&mut self, pod: &PodFacts, since_ms: UnixMs, now_ms: UnixMs, histogram: &Histogram) {
        if !pod.ours {
            return;
        }
        if pod.node.is_none() && !pod.phase.ended() {
            self.waiting.entry(pod.uid).or_insert(since_ms);
        } else if let Some(since_ms) = self.waiting.remove(&pod.uid) {
            histogram.observe(seconds(now_ms.saturating_sub(since_ms)));
        }
    }
}

/// Milliseconds as seconds, for a histogram.
fn seconds(milliseconds: u64) -> f64 {
    std::time::Duration::from_millis(milliseconds).as_secs_f64()
}
