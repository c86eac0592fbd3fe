//! Compares the engine's state with what the API server lists: no news may ever be lost.
//!
//! A second engine gets the new lists of nodes and pods and nothing else, and both engines say in
//! one form where every pod is and what every node holds. The watches are a little behind a list,
//! and binds are under way; so only a difference that is there in every look is reported. No
//! difference is the good result.

use crate::handles::Handles;
use crate::kube::convert::{Converter, Watched};
use crate::kube::objects::{Node, Pod};
use crate::kube::watch::{Failure, list_all};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::{Event, Listing};
use gpu_batch_policies::report::Inventory;
use gpu_batch_policies::settings::Settings;
use std::collections::BTreeSet;
use std::time::Duration;
use thiserror::Error;

/// How many looks must show a difference.
const LOOKS: usize = 4;
/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Why there is no comparison.
#[derive(Debug, Error)]
pub(crate) enum ComparerError {
    /// The API server does not list nodes or pods.
    #[error("failed to list: {}", .0.message())]
    List(Failure),
    /// The driver is stuck or gone.
    #[error("the loop does not answer")]
    Silent,
}

/// Compares when it is asked to; costs nothing otherwise.
#[derive(Clone)]
pub(crate) struct Comparer {
    pub(crate) handles: Handles,
    pub(crate) client: kube::Client,
    /// Pods with this `schedulerName` are ours.
    pub(crate) scheduler_name: String,
    /// Pods of queues with this one are extended.
    pub(crate) extended: Option<String>,
}

impl Comparer {
    /// What the engine has otherwise than the API server, a sentence each. Takes the memory of a
    /// list of all nodes and pods, and the time of up to four such lists.
    pub(crate) async fn compare(&self) -> Result<Vec<String>, ComparerError> {
        let mut lasting = self.differences().await?;
        for _ in 1..LOOKS {
            if lasting.is_empty() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            let now = self.differences().await?;
            lasting.retain(|difference| now.contains(difference));
        }
        Ok(lasting.into_iter().collect())
    }

    async fn differences(&self) -> Result<BTreeSet<String>, ComparerError> {
        let clock = self.handles.clock;
        let mut converter = Converter::new(&self.scheduler_name, clock.now_ms())
            .with_extended(self.extended.as_deref());
        let nodes = self.listing::<Node>(&mut converter).await?;
        let pods = self.listing::<Pod>(&mut converter).await?;
        let known = self.handles.inventory().await;
        let mut second = Engine::new(Settings::default());
        second.step(clock.now_ms(), vec![nodes, pods]);
        let known = known.ok_or(ComparerError::Silent)?;
        Ok(differences(&known, &second.inventory()))
    }

    async fn listing<T: Watched>(&self, converter: &mut Converter) -> Result<Event, ComparerError> {
        let listed = list_all::<T>(&self.client, converter, self.handles.clock).await;
        let (objects, _) = listed.map_err(ComparerError::List)?;
        let kind = T::KIND;
        Ok(Event::Listed(Listing { kind, objects }))
    }
}

fn differences(known: &Inventory, listed: &Inventory) -> BTreeSet<String> {
    let keys: BTreeSet<&String> = known.keys().chain(listed.keys()).collect();
    let differs = keys
        .into_iter()
        .filter(|key| known.get(*key) != listed.get(*key));
    let said = |inventory: &Inventory, key| {
        let words = inventory.get(key);
        words.map_or_else(|| "unknown".to_owned(), Clone::clone)
    };
    differs
        .map(|key| {
            let (here, there) = (said(known, key), said(listed, key));
            format!("{key}: {here} here, {there} at the API server")
        })
        .collect()
}

#[cfg(test)]
mod tests;
