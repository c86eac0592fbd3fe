//! Everything that is measured; `docs/metrics.md` says what each metric means.

use crate::handles::inbox::Reports;
use gpu_batch_policies::command::{ClaimKind, Evict, EvictionCause};
use gpu_batch_policies::event::Kind;
use gpu_batch_policies::facts::{Amount, queue_unit};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::{Forecast, GpuReport};
use gpu_batch_policies::status::GovernedAmounts;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

/// The bounds of the buckets of errors of promised starts, in seconds.
const START_ERRORS_S: [f64; 14] = [
    -604_800.0, -86_400.0, -14_400.0, -3_600.0, -600.0, -60.0, -10.0, 0.0, 10.0, 60.0, 600.0,
    3_600.0, 14_400.0, 86_400.0,
];
/// The bounds of the buckets of runtimes, as parts of what was expected.
const RUNTIME_RATIOS: [f64; 10] = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 2.0, 10.0];

type FloatGauge = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommandLabels {
    action: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EvictionLabels {
    cause: &'static str,
    claim: &'static str,
    verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchLabels {
    kind: String,
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GangLabels {
    phase: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    queue: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueResourceLabels {
    queue: String,
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GpuLabels {
    model: String,
    resource: String,
    state: &'static str,
}

/// All metrics of the process. Labels are bounded by the configuration, the number of queues and
/// that of GPU models; no gang, pod or node is ever a label.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) step_seconds: Histogram,
    pub(crate) step_events: Histogram,
    pub(crate) bind_seconds: Histogram,
    pub(crate) pod_scheduling_seconds: Histogram,
    pub(crate) panics: Counter,
    /// Pods that kubelets have rejected although they were to be aligned on NUMA nodes.
    numa_mispredictions: Counter,
    pub(crate) in_flight: Gauge,
    pub(crate) recording: Gauge,
    pub(crate) recorded_bytes: Counter,
    pub(crate) recordings_stopped: Counter,
    /// 1 while the configuration file is refused, so that older settings are in force.
    pub(crate) configuration_refused: Gauge,
    configuration_changes: Family<ResultLabels, Counter>,
    commands: Family<CommandLabels, Counter>,
    evictions: Family<EvictionLabels, Counter>,
    watch_restarts: Family<WatchLabels, Counter>,
    leader: Gauge,
    gangs: Family<GangLabels, Gauge>,
    queue_allocated: Family<QueueResourceLabels, FloatGauge>,
    queue_requested: Family<QueueResourceLabels, FloatGauge>,
    queue_fair_share: Family<QueueResourceLabels, FloatGauge>,
    queue_dominant_share: Family<QueueLabels, FloatGauge>,
    gpus: Family<GpuLabels, FloatGauge>,
    /// How much later than first promised gangs have started, in seconds; negative: earlier.
    start_error_seconds: Histogram,
    /// How long gangs ran, as a part of what was expected.
    runtime_ratio: Family<SourceLabels, Histogram>,
    resident_memory: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            step_seconds: Histogram::new(exponential_buckets(0.000_01, 2.0, 18)),
            step_events: Histogram::new(exponential_buckets(1.0, 4.0, 10)),
            bind_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            pod_scheduling_seconds: Histogram::new(exponential_buckets(0.005, 2.0, 20)),
            panics: Counter::default(),
            numa_mispredictions: Counter::default(),
            in_flight: Gauge::default(),
            recording: Gauge::default(),
            recorded_bytes: Counter::default(),
            recordings_stopped: Counter::default(),
            configuration_refused: Gauge::default(),
            configuration_changes: Family::default(),
            commands: Family::default(),
            evictions: Family::default(),
            watch_restarts: Family::default(),
            leader: Gauge::default(),
            gangs: Family::default(),
            queue_allocated: Family::default(),
            queue_requested: Family::default(),
            queue_fair_share: Family::default(),
            queue_dominant_share: Family::default(),
            gpus: Family::default(),
            start_error_seconds: Histogram::new(START_ERRORS_S),
            runtime_ratio: Family::new_with_constructor(|| Histogram::new(RUNTIME_RATIOS)),
            resident_memory: Gauge::default(),
        };
        metrics.register_loop();
        metrics.register_journal();
        metrics.register_configuration();
        metrics.register_state();
        metrics
    }

    fn register_loop(&mut self) {
        let ours = self.registry.sub_registry_with_prefix("gpu_batch");
        ours.register(
            "step_duration_seconds",
            "Time of one step of the engine",
            self.step_seconds.clone(),
        );
        ours.register(
            "step_events",
            "Events that one step took in",
            self.step_events.clone(),
        );
        ours.register(
            "bind_duration_seconds",
            "Time of one binding request",
            self.bind_seconds.clone(),
        );
        ours.register(
            "pod_scheduling_duration_seconds",
            "Time from a pod's first sight (at start: its creation) until it is seen bound",
            self.pod_scheduling_seconds.clone(),
        );
        ours.register(
            "commands",
            "Requests to the API server by action and outcome",
            self.commands.clone(),
        );
        ours.register(
            "commands_in_flight",
            "Requests without an outcome yet",
            self.in_flight.clone(),
        );
        ours.register(
            "evictions",
            "Pods evicted, by cause, claim and verdict",
            self.evictions.clone(),
        );
        ours.register(
            "watch_restarts",
            "Watches and lists begun again, by kind and cause",
            self.watch_restarts.clone(),
        );
        ours.register(
            "panics",
            "Panics of the engine; each rebuilds it from a new list of everything",
            self.panics.clone(),
        );
    }

    fn register_journal(&mut self) {
        let ours = self.registry.sub_registry_with_prefix("gpu_batch");
        ours.register(
            "recording",
            "1 while a journal is written",
            self.recording.clone(),
        );
        ours.register(
            "recorded_bytes",
            "Bytes written into journals",
            self.recorded_bytes.clone(),
        );
        ours.register(
            "recordings_stopped",
            "Recordings that ended early, because the disk was slow or full",
            self.recordings_stopped.clone(),
        );
    }

    fn register_configuration(&mut self) {
        let ours = self.registry.sub_registry_with_prefix("gpu_batch");
        ours.register(
            "configuration_changes",
            "Changes of the configuration file, applied or refused",
            self.configuration_changes.clone(),
        );
        ours.register(
            "configuration_refused",
            "1 while the configuration file is not what is in force",
            self.configuration_refused.clone(),
        );
    }

    fn register_state(&mut self) {
        let ours = self.registry.sub_registry_with_prefix("gpu_batch");
        ours.register("leader", "1 if this process may act", self.leader.clone());
        ours.register(
            "gangs",
            "Gangs by phase and by the reason why they wait (empty: they do not)",
            self.gangs.clone(),
        );
        ours.register(
            "queue_allocated",
            "What the gangs of a queue hold, in cores, bytes or pieces",
            self.queue_allocated.clone(),
        );
        ours.register(
            "queue_requested",
            "What the gangs of a queue hold and ask for",
            self.queue_requested.clone(),
        );
        ours.register(
            "queue_fair_share",
            "What fairness would give to a queue now",
            self.queue_fair_share.clone(),
        );
        ours.register(
            "queue_dominant_share_ratio",
            "The dominant share of a queue in the cluster",
            self.queue_dominant_share.clone(),
        );
        ours.register(
            "gpus",
            "GPUs, MIG devices and shares of GPUs, by model, resource and what they are used for",
            self.gpus.clone(),
        );
        ours.register(
            "start_error_seconds",
            "The first promised start of gangs minus the real one; negative: they started later",
            self.start_error_seconds.clone(),
        );
        ours.register(
            "runtime_ratio",
            "How long gangs ran as a part of what was expected, by where that came from",
            self.runtime_ratio.clone(),
        );
        ours.register(
            "numa_mispredictions",
            "Pods bound that their kubelets could not align on NUMA nodes",
            self.numa_mispredictions.clone(),
        );
        self.registry.register(
            "process_resident_memory_bytes",
            "Resident memory of this process",
            self.resident_memory.clone(),
        );
    }

    pub(crate) fn command_ended(&self, action: &'static str, outcome: &'static str) {
        self.commands
            .get_or_create(&CommandLabels { action, outcome })
            .inc();
    }

    /// A change of the configuration file was `applied` or `refused`.
    pub(crate) fn configuration_changed(&self, result: &'static str) {
        let labels = ResultLabels { result };
        self.configuration_changes.get_or_create(&labels).inc();
    }

    /// How many binds the API server has done since the start.
    pub(crate) fn binds(&self) -> u64 {
        let labels = CommandLabels {
            action: "bind",
            outcome: "done",
        };
        self.commands.get_or_create(&labels).get()
    }

    pub(crate) fn evicted(&self, evict: &Evict) {
        let cause = match evict.cause {
            EvictionCause::Stale => "stale",
            EvictionCause::Unwind => "unwind",
            EvictionCause::Reclaim => "reclaim",
            EvictionCause::Preempt => "preempt",
            EvictionCause::Consolidate => "consolidate",
            EvictionCause::CardFailed => "card-failed",
        };
        let beneficiary = evict.beneficiary.as_ref();
        let labels = EvictionLabels {
            cause,
            claim: match beneficiary.and_then(|of| of.claim) {
                Some(ClaimKind::Quota) => "quota",
                Some(ClaimKind::FairShare) => "fair-share",
                None => "",
            },
            verdict: match beneficiary.map(|of| of.is_optimal) {
                Some(true) => "optimal",
                Some(false) => "feasible",
                None => "",
            },
        };
        self.evictions.get_or_create(&labels).inc();
    }

    /// Something that was foreseen has happened.
    pub(crate) fn foreseen(&self, forecast: Forecast) {
        match forecast {
            Forecast::Start {
                promised_ms,
                started_ms,
            } => {
                let error_ms = promised_ms.cast_signed() - started_ms.cast_signed();
                self.start_error_seconds.observe(error_ms as f64 / 1_000.0);
            }
            Forecast::Misaligned => drop(self.numa_mispredictions.inc()),
            Forecast::Runtime {
                source,
                expected_ms,
                real_ms,
            } => {
                let source = source.label();
                let ratio = real_ms as f64 / expected_ms.max(1) as f64;
                let labels = SourceLabels { source };
                self.runtime_ratio.get_or_create(&labels).observe(ratio);
            }
        }
    }

    pub(crate) fn watch_restarted(&self, kind: Kind, cause: &'static str) {
        let kind = format!("{kind:?}");
        self.watch_restarts
            .get_or_create(&WatchLabels { kind, cause })
            .inc();
    }

    /// All metrics as OpenMetrics text, with the state as in these reports.
    pub(crate) fn encode(&self, reports: &Reports) -> Result<String, std::fmt::Error> {
        self.take_in(reports);
        self.resident_memory
            .set(resident_memory_bytes().unwrap_or(0));
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn take_in(&self, reports: &Reports) {
        self.take_in_gpus(&reports.gpus);
        self.leader.set(i64::from(reports.is_leader));
        self.gangs.clear();
        for gang in &reports.gangs {
            let labels = GangLabels {
                phase: gang.status.phase.as_str(),
                reason: gang.status.reason.map_or("", Reason::as_str),
            };
            self.gangs.get_or_create(&labels).inc();
        }
        self.queue_dominant_share.clear();
        for family in [
            &self.queue_allocated,
            &self.queue_requested,
            &self.queue_fair_share,
        ] {
            family.clear();
        }
        for queue in &reports.queues {
            let name = &*queue.name;
            set(&self.queue_allocated, name, &queue.status.allocated);
            set(&self.queue_requested, name, &queue.status.requested);
            set(&self.queue_fair_share, name, &queue.status.fair_share);
            let labels = QueueLabels {
                queue: name.to_owned(),
            };
            self.queue_dominant_share
                .get_or_create(&labels)
                .set(float(queue.status.dominant_share_millionths) / 1e6);
        }
    }

    fn take_in_gpus(&self, gpus: &[GpuReport]) {
        self.gpus.clear();
        for report in gpus {
            for (state, amount) in [
                ("used", report.used),
                ("shared", report.shared),
                ("free", report.free),
                ("fragmented", report.fragmented),
                ("closed", report.closed),
                ("unhealthy", report.unhealthy),
            ] {
                let labels = GpuLabels {
                    model: report.model.to_string(),
                    resource: report.resource.to_string(),
                    state,
                };
                self.gpus.get_or_create(&labels).set(float(amount));
            }
        }
    }
}

fn set(family: &Family<QueueResourceLabels, FloatGauge>, queue: &str, amounts: &GovernedAmounts) {
    for (resource, amount) in amounts {
        let labels = QueueResourceLabels {
            queue: queue.to_owned(),
            resource: resource.to_string(),
        };
        let unit = float(queue_unit(resource));
        family.get_or_create(&labels).set(float(*amount) / unit);
    }
}

/// An amount for people to look at: exact up to 2^53, which is 8 PiB.
fn float(amount: Amount) -> f64 {
    amount as f64
}

/// The resident memory of this process in bytes: `VmRSS` of `/proc/self/status`. `None` where there
/// is no such file.
fn resident_memory_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests;
