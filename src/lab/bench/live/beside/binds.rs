//! When pods are bound, as a watch tells it: so all that bind are measured alike.

use super::super::bound::each_bound;
use super::shapes;
use crate::kube::connection;
use crate::lab::bench::as_f64;
use anyhow::Context;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;

/// How long all binds may take, from the start of a scheduler.
const PATIENCE: Duration = Duration::from_secs(600);

/// A watch of the pods that wait, which notes when each gets a node.
pub(super) struct Binds {
    times: UnboundedReceiver<Instant>,
    watching: JoinHandle<anyhow::Result<()>>,
}

impl Binds {
    /// Begins the watch.
    pub(super) fn watch(config: &kube::Config) -> anyhow::Result<Self> {
        let client = connection::client(config)?;
        let (sender, times) = unbounded_channel();
        let note = move |_| Ok(sender.send(Instant::now())?);
        let watching = tokio::spawn(each_bound(client, shapes::SELECTOR, note));
        Ok(Self { times, watching })
    }

    /// Pods a second from the first bind to the last of so many.
    ///
    /// # Errors
    /// If the watch ends before, or the binds take too long.
    pub(super) async fn rate(mut self, pods: usize) -> anyhow::Result<f64> {
        let mut bound = 0;
        let mut first = None;
        let all = async {
            loop {
                let at = self.times.recv().await?;
                bound += 1;
                let since = *first.get_or_insert(at);
                if bound == pods {
                    return Some(at.duration_since(since).as_secs_f64());
                }
            }
        };
        let took = tokio::time::timeout(PATIENCE, all).await;
        self.watching.abort();
        let took = took.with_context(|| format!("{bound} of {pods} pods are bound"))?;
        let took = took.context("the watch of pods has ended")?;
        Ok(as_f64(pods.saturating_sub(1)) / took)
    }
}
