//! Promised starts (R16): a gang with a promise is told the promised start, and only as long as it
//! waits; where the order of gangs is fixed, all ends are expected and nothing fails, the gang
//! starts by then.
//!
//! A gang that is backfilled and delays another is not looked for: the promise to the other gang
//! moves back then, or its time passes, and both are noticed. Nor are promises judged that a gang
//! makes void that came later and comes first in the order.
//!
//! Where nothing fails, promises that move are judged exactly, in the whole seconds that are told.
//! A start is judged by binds that the API server has accepted, which come a while after the
//! decision, so a start that is late by less than that while is not noticed.

use super::{Run, is_orderly, reserves};
use crate::rest;
use crate::scenario::order_of;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{PodGroupFacts, UnixMs};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::GangReport;
use gpu_batch_policies::status::{Phase, PodGroupStatus};
use std::collections::{BTreeMap, BTreeSet};

/// How long after the second that was told the first member of a gang is bound, at most: the second
/// has passed, and binds wait for others and take their way.
const BOUND_AFTER_MS: u64 = 3_000;

/// What gangs were promised, as far as it is judged.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// How many promises were made to gangs that had none.
    pub(super) made: u32,
    /// The gangs that had a promise at the last step of a leader.
    had: BTreeSet<String>,
    /// Where promises must be kept: the times of those that still hold, in whole seconds, by gang.
    kept_ms: BTreeMap<String, UnixMs>,
    /// The gangs that have been tried, or run.
    come: BTreeSet<String>,
}

impl Run<'_> {
    /// Judges promises after a step of the process in a slot.
    pub(super) fn judge_promises(&mut self, slot: usize, violations: &mut Vec<String>) {
        if !reserves(self.seed) {
            return;
        }
        let process = self.shells[slot].process();
        let Some(leader) = process.filter(|process| process.engine.is_leader()) else {
            return;
        };
        let reports = leader.engine.gang_reports();
        let promised: BTreeSet<&str> = leader.engine.promised_starts().map(|it| it.0).collect();
        let reservations = self.settings.reservations as usize;
        if promised.len() > reservations {
            let count = promised.len();
            violations.push(format!("{count} promises with {reservations} reservations"));
        }
        // A gang whose minimum was raised while members were being bound waits for the others.
        let waits = |report: &&GangReport| {
            let PodGroupStatus { phase, members, .. } = &report.status;
            let lacks = members.bound < members.expected && report.status.reason.is_some();
            *phase == Phase::Pending || (*phase == Phase::Binding && lacks)
        };
        for report in reports.iter().filter(|report| !waits(report)) {
            let told = report.status.estimated_start_ms;
            if promised.contains(&*report.name) || told.is_some() {
                let (name, phase) = (&report.name, report.status.phase);
                violations.push(format!(
                    "R16: gang {name} is {phase:?} and promised a start"
                ));
            }
        }
        let told = reports
            .iter()
            .filter(|it| it.status.estimated_start_ms.is_some());
        let has: BTreeSet<String> = told.map(|report| report.name.clone()).collect();
        let new = has.difference(&self.promises.had).count();
        self.promises.made += u32::try_from(new).unwrap_or(0);
        self.promises.had = has;
        if is_orderly(self.seed) && !self.with_faults {
            self.hold_to_promises(&reports, violations);
        }
    }

    /// Holds what is told now, and what has started, against what was promised before.
    fn hold_to_promises(&mut self, reports: &[GangReport], violations: &mut Vec<String>) {
        let groups: BTreeMap<String, PodGroupFacts> = self.groups();
        let mut come: Vec<&PodGroupFacts> = Vec::new();
        for report in reports.iter().filter(|report| is_there(report)) {
            if self.promises.come.insert(report.name.clone()) {
                come.extend(groups.get(&report.name));
            }
        }
        let started = self.started();
        let now_ms = self.now_ms;
        let kept_ms = &mut self.promises.kept_ms;
        kept_ms.retain(|name, promised_ms| {
            let Some(group) = groups.get(name) else {
                return false;
            };
            let is_late = now_ms > *promised_ms + BOUND_AFTER_MS;
            let is_made_anew = come.iter().any(|other| order_of(other) < order_of(group));
            if is_late && !is_made_anew {
                let late_ms = now_ms - *promised_ms;
                violations.push(format!(
                    "R16: gang {name} was to start {late_ms} ms ago at the latest"
                ));
            }
            !is_made_anew && !started.contains(&*group.name)
        });
        for report in reports {
            let Some(told_ms) = report.status.estimated_start_ms else {
                continue;
            };
            let known_ms = kept_ms.entry(report.name.clone()).or_insert(told_ms);
            if told_ms > *known_ms {
                let (name, later_ms) = (&report.name, told_ms - *known_ms);
                violations.push(format!(
                    "R16: the promise to gang {name} has moved back by {later_ms} ms"
                ));
            }
            *known_ms = told_ms;
        }
    }

    /// The PodGroups of the world, by the names of their gangs.
    fn groups(&self) -> BTreeMap<String, PodGroupFacts> {
        let groups = self.cluster.api.objects(Kind::PodGroup);
        let groups = groups.filter_map(|stored| match &stored.object {
            Object::PodGroup(facts) => {
                let name = format!("{}/{}", facts.namespace, facts.name);
                Some((name, facts.clone()))
            }
            _ => None,
        });
        groups.collect()
    }

    /// The PodGroups of which a member is bound, or has been.
    fn started(&self) -> BTreeSet<Box<str>> {
        let pods = self.cluster.api.pods().chain(&self.cluster.done);
        let bound = pods.filter(|pod| pod.node.is_some());
        bound.filter_map(|pod| pod.pod_group.clone()).collect()
    }

    /// What does not hold at rest: a gang with a promise does not wait, or was to have started by
    /// now; or a gang waits behind promises, and there are none.
    pub(super) fn judge_promises_at_rest(&self, violations: &mut Vec<String>) {
        let Some(leader) = self.leader().filter(|_| reserves(self.seed)) else {
            return;
        };
        let clock_ms = leader.clock_ms(self.now_ms);
        for (gang, at_ms) in leader.engine.promised_starts() {
            if at_ms < clock_ms {
                let late_ms = clock_ms - at_ms;
                violations.push(format!("R16: gang {gang} was to start {late_ms} ms ago"));
            }
            if rest::waiting_members(&self.cluster, gang).is_empty() {
                violations.push(format!(
                    "R16: no member of gang {gang} waits, and it is promised a start"
                ));
            }
        }
        if leader.engine.promised_starts().next().is_none() {
            let mut reports = leader.engine.gang_reports();
            reports.retain(|report| rest::is_behind_promises(&report.status));
            for GangReport { name, .. } in reports {
                violations.push(format!(
                    "R16: gang {name} waits behind promises, and there are none"
                ));
            }
        }
    }
}

/// Whether a gang has been tried, or runs.
fn is_there(report: &GangReport) -> bool {
    let reason = report.status.reason;
    report.status.phase != Phase::Pending
        || matches!(
            reason,
            Some(Reason::DoesNotFit | Reason::NotFoundWithinBound | Reason::Reserved)
        )
}
