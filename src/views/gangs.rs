//! The list of gangs, as it is drawn and as it is written in JSON.
//!
//! The running scheduler serves the JSON and `gpu-batch gangs` draws it, so page and table agree.

use crate::kube::api::Members;
use crate::kube::format::seconds;
use crate::kube::objects::Timestamp;
use crate::views::table::{self, Entry, Screen, Tone, age};
use gpu_batch_policies::facts::{UnixMs, quantity as quantity_of};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::GangReport;
use gpu_batch_policies::status::Phase;
use serde::{Deserialize, Serialize};

const GPU: &str = "nvidia.com/gpu";

/// The gangs at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gangs {
    /// The moment, as Kubernetes writes times.
    pub at: String,
    /// The gangs, in the order of their names.
    pub gangs: Vec<GangView>,
}

/// One gang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GangView {
    /// `NS/NAME` of a PodGroup; `NS/job/NAME`, `NS/pod/NAME` and the like of an implicit gang.
    pub gang: String,
    /// The queue that the gang names, existing or not.
    pub queue: String,
    /// Pending, Binding, Running, Succeeded or Failed.
    pub phase: String,
    /// The members of the gang, by how far they have come.
    pub members: Members,
    /// The GPUs that the members hold and ask for.
    pub gpus: Gpus,
    /// Whether any member waits, surplus members included.
    pub waits: bool,
    /// Why the gang waits; `null`: its minimum is met, or no member waits.
    pub reason: Option<String>,
    /// The reason as a sentence.
    pub message: String,
    /// When the gang is promised to start; absent: it was promised nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_start: Option<String>,
    /// When the gang's PodGroup, or the oldest of its pods, was created.
    pub created: String,
}

/// GPUs of a gang.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gpus {
    /// The GPUs that the bound members hold.
    pub held: String,
    /// The GPUs that the waiting members ask for.
    pub asked: String,
}

impl Gangs {
    /// The list of gangs that the engine reports.
    #[must_use]
    pub(crate) fn of(reports: &[GangReport], now_ms: UnixMs) -> Self {
        Self {
            at: seconds(now_ms),
            gangs: reports.iter().map(GangView::from).collect(),
        }
    }
}

impl From<&GangReport> for GangView {
    fn from(report: &GangReport) -> Self {
        let status = &report.status;
        let members = &status.members;
        let settled = members.bound + members.succeeded + members.failed;
        let waits = match status.phase {
            Phase::Pending | Phase::Binding => true,
            Phase::Running => settled < members.created,
            Phase::Succeeded | Phase::Failed => false,
        };
        let gpus = |amount| quantity_of(GPU, amount);
        Self {
            gang: report.name.clone(),
            queue: report.queue.to_string(),
            phase: status.phase.as_str().to_owned(),
            members: status.members.into(),
            gpus: Gpus {
                held: gpus(report.gpus_allocated),
                asked: gpus(report.gpus_asked),
            },
            waits,
            reason: status
                .reason
                .map(|reason| Reason::as_str(reason).to_owned()),
            message: status.message.to_string(),
            estimated_start: status.estimated_start_ms.map(seconds),
            created: seconds(report.created_ms),
        }
    }
}

impl GangView {
    /// The namespace of the gang.
    #[must_use]
    pub(crate) fn namespace(&self) -> &str {
        let (namespace, _) = self.gang.split_once('/').unwrap_or_default();
        namespace
    }

    fn tone(&self) -> Tone {
        if self.phase == Phase::Failed.as_str() {
            Tone::Bad
        } else if self.waits {
            Tone::Waiting
        } else {
            Tone::Good
        }
    }
}

/// Draws a row for each gang.
#[must_use]
pub(crate) fn draw(gangs: &Gangs, screen: Screen) -> String {
    let ms = |time| Timestamp::parse(time).map_or(0, |time| time.0);
    let now_ms = ms(&gangs.at);
    let rows = gangs.gangs.iter().map(|gang| {
        let members = &gang.members;
        let met = members.bound + members.succeeded;
        let message = if gang.waits { &*gang.message } else { "" };
        vec![
            gang.gang.as_str().into(),
            gang.queue.as_str().into(),
            Entry::new(&*gang.phase, gang.tone()),
            format!("{met}/{}", members.expected).into(),
            gang.gpus.held.as_str().into(),
            gang.gpus.asked.as_str().into(),
            age(now_ms.saturating_sub(ms(&gang.created))).into(),
            gang.reason.as_deref().unwrap_or_default().into(),
            gang.estimated_start.as_deref().unwrap_or_default().into(),
            message.into(),
        ]
    });
    let headings = [
        "GANG",
        "QUEUE",
        "PHASE",
        "BOUND/MIN",
        "GPUS",
        "ASKED",
        "AGE",
        "REASON",
        "ESTIMATED START",
        "MESSAGE",
    ];
    table::draw(&headings, rows.collect(), screen)
}
