//! What the parts of a running scheduler share: clock, inbox, health and metrics.
//!
//! The watches and the requests write to these handles, the loop takes from them, the pages show
//! them, and so none of these parts has to know another.

pub(crate) mod connections;
pub(crate) mod health;
pub(crate) mod inbox;
pub(crate) mod loopback;
pub(crate) mod metrics;

use gpu_batch_policies::extender::{BindAnswer, NodeAnswer};
use gpu_batch_policies::facts::{Uid, UnixMs};
use gpu_batch_policies::report::Inventory;
use health::Health;
use inbox::{Answer, Asked, BindAsker, Explained, Inbox, OfNodes, OfVictims, Question, Reports};
use metrics::Metrics;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// How long the loop may take to answer a question.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// All handles of one scheduler.
#[derive(Debug, Clone)]
pub(crate) struct Handles {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Clock,
}

impl Handles {
    /// The handles of a scheduler that begins now, for the API server at this address.
    pub(crate) fn new(server: String) -> Self {
        let clock = Clock::start();
        Self {
            inbox: Arc::new(Inbox::default()),
            health: Arc::new(Health::new(clock.now_ms()).with_server(server)),
            metrics: Arc::new(Metrics::new()),
            clock,
        }
    }

    /// Reports that are at most a second old; `None` if the loop does not answer.
    pub(crate) async fn reports(&self) -> Option<Arc<Reports>> {
        self.ask(Question::Reports).await
    }

    /// Every violated invariant; `None` if the loop does not answer.
    pub(crate) async fn audit(&self) -> Option<Vec<String>> {
        self.ask(Question::Audit).await
    }

    /// Where every pod is and what every node holds; `None` if the loop does not answer.
    pub(crate) async fn inventory(&self) -> Option<Inventory> {
        self.ask(Question::Inventory).await
    }

    /// Why a gang waits; `None` if the loop does not answer.
    pub(crate) async fn explain(&self, asked: Asked) -> Option<Explained> {
        self.ask(|asker| Question::Explain(asked, asker)).await
    }

    /// What each of these nodes is for a pod of kube-scheduler; `None` if the loop does not answer.
    pub(crate) async fn filter(&self, asked: OfNodes) -> Option<Answer<Vec<NodeAnswer>>> {
        self.ask(|asker| Question::Filter(asked, asker)).await
    }

    /// The scores of these nodes for a pod of kube-scheduler; `None` if the loop does not answer.
    pub(crate) async fn score(&self, asked: OfNodes) -> Option<Answer<Vec<u8>>> {
        self.ask(|asker| Question::Score(asked, asker)).await
    }

    /// Which of these groups kube-scheduler may evict; `None` if the loop does not answer.
    pub(crate) async fn victims(&self, asked: OfVictims) -> Option<Answer<Vec<bool>>> {
        self.ask(|asker| Question::Victims(asked, asker)).await
    }

    /// Has a pod bound as kube-scheduler asks, and waits for what becomes of it; `None` if the loop
    /// began anew, or ended.
    pub(crate) async fn bind(
        &self,
        pod: Uid,
        node: Box<str>,
        place: OwnedSemaphorePermit,
    ) -> Option<Answer<BindAnswer>> {
        let (asker, receiver) = oneshot::channel();
        self.inbox.bind(BindAsker {
            pod,
            node,
            asker,
            _place: place,
        });
        receiver.await.ok()
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        self.inbox.ask(question(sender));
        tokio::time::timeout(ANSWER_TIMEOUT, receiver)
            .await
            .ok()?
            .ok()
    }
}

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

    /// How long it is from now until a time; zero if the time has passed.
    pub(crate) fn until(&self, then_ms: UnixMs) -> Duration {
        Duration::from_millis(then_ms.saturating_sub(self.now_ms()))
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
