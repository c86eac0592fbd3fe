//! Requests of kube-scheduler for binds, which wait for their outcomes.
//!
//! An asker is looked after with every turn of the loop, until its pod is bound, or will not be.
//! How many wait is bounded where they come from: each has one of the places that the extender
//! gives out. Those who wait when the engine is replaced are told at once that there is no answer.

use crate::handles::inbox::BindAsker;
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::extender::BindAnswer;

/// The askers, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Binds(Vec<BindAsker>);

impl Binds {
    /// Adds an asker whose event the engine has had.
    pub(super) fn add(&mut self, asker: BindAsker) {
        self.0.push(asker);
    }

    /// Answers all whose pods are bound, or will not be, and forgets who has gone away.
    pub(super) fn answer(&mut self, engine: &mut Engine) {
        for waiting in std::mem::take(&mut self.0) {
            if waiting.asker.is_closed() {
                continue;
            }
            match engine.bind_answer(waiting.pod, &waiting.node) {
                Ok(BindAnswer::UnderWay) => self.0.push(waiting),
                answer => drop(waiting.asker.send(answer)),
            }
        }
    }
}
