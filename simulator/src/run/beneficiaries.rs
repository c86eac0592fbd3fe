//! I10: every gang for which others were evicted starts, or it is recorded that its plan has come
//! to nothing: by an event, or because its nominations are taken back.

use super::Run;
use crate::rest;
use gpu_batch_policies::command::{Action, StatusPatch};
use gpu_batch_policies::facts::Uid;
use std::collections::{BTreeMap, BTreeSet};

/// The gangs, by name, for which a process has evicted others, while nothing has come of it.
#[derive(Debug, Default)]
pub(super) struct Beneficiaries(BTreeMap<String, Claim>);

#[derive(Debug)]
struct Claim {
    /// The slot of the process that evicts.
    slot: usize,
    /// The members that waited then, nominated: not those that have come in their places, of which
    /// the process had not heard.
    waiting: BTreeSet<Uid>,
}

impl Run<'_> {
    /// Notes for whom a process evicts others, and what it tells of plans that came to nothing.
    pub(super) fn note_beneficiary(&mut self, slot: usize, action: &Action) {
        match action {
            Action::Evict(evict) => {
                let Some(beneficiary) = &evict.beneficiary else {
                    return;
                };
                let mut waiting = rest::waiting_members(&self.cluster, &beneficiary.gang);
                let pods = self.cluster.api.pods();
                let nominated = pods.filter(|facts| facts.nominated.is_some());
                let nominated: BTreeSet<Uid> = nominated.map(|facts| facts.uid).collect();
                waiting.retain(|uid| nominated.contains(uid));
                let claim = Claim { slot, waiting };
                let claims = &mut self.beneficiaries.0;
                claims.insert(beneficiary.gang.as_ref().to_owned(), claim);
            }
            Action::Publish(event) if event.reason == "EvictionPlanFailed" => {
                // The object of a gang is its PodGroup, its owner or its only pod.
                let name = |gang: &str| gang.rsplit('/').next().unwrap_or_default().to_owned();
                let claims = &mut self.beneficiaries.0;
                claims.retain(|gang, _| !event.regarding.name.starts_with(&name(gang)));
            }
            Action::PatchStatus(StatusPatch::Nominated { pod, node: None }) => {
                let claims = &mut self.beneficiaries.0;
                claims.retain(|_, claim| !claim.waiting.contains(&pod.uid));
            }
            _ => {}
        }
    }

    /// Forgets what a process had begun that does not lead any more: its successor goes on as far
    /// as nominations tell it.
    pub(super) fn forget_claims_of_followers(&mut self, slot: usize) {
        let process = self.shells[slot].process();
        if !process.is_some_and(|process| process.engine.is_leader()) {
            self.beneficiaries.0.retain(|_, claim| claim.slot != slot);
        }
    }

    /// What does not hold at rest: a gang still waits with the members for which others were
    /// evicted, and nothing says that they were evicted in vain.
    pub(super) fn judge_beneficiaries(&self, violations: &mut Vec<String>) {
        for (gang, claim) in &self.beneficiaries.0 {
            let waiting = rest::waiting_members(&self.cluster, gang);
            if !claim.waiting.is_empty() && claim.waiting.is_subset(&waiting) {
                violations.push(format!(
                    "I10: others were evicted for gang {gang}, which waits, and nothing says why"
                ));
            }
        }
    }
}
