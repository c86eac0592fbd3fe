//! The file's fields, what they mean and their defaults; and the file with all of these as text.

mod health;

pub use health::{HealthFile, HealthRuleFile, TimeSlicingFile};

use crate::kube::api::{API_VERSION, Duration, Placement, SignedDuration};
use crate::live::log::LogFormat;
use anyhow::Context;
use gpu_batch_policies::facts;
use gpu_batch_policies::settings::Settings;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The configuration file as it is written. The doc comments are what
/// `gpu-batch config --print-defaults` prints. A change takes effect within seconds; where they say
/// that the scheduler begins anew, it lets go of the Lease, lists everything again and goes on, in
/// the same process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default = "ConfigurationFile::unversioned"
)]
pub struct ConfigurationFile {
    /// The version of this file's format.
    pub api_version: String,
    /// Always Configuration.
    pub kind: String,
    /// Pods whose spec.schedulerName is this are ours. After a change the scheduler begins anew.
    #[schemars(
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
        length(max = 253)
    )]
    pub scheduler_name: String,
    /// Address and port of /healthz, /readyz, /metrics and the other pages. After a change the
    /// scheduler begins anew.
    pub serve_address: String,
    /// gpu-batch as an extender of kube-scheduler, for pods that kube-scheduler places: see
    /// docs/extender.md. After a change the scheduler begins anew.
    pub extender: ExtenderFile,
    /// The log, on standard error.
    pub log: LogFile,
    /// Which of several replicas acts. After a change the scheduler begins anew.
    pub leader_election: LeaderElectionFile,
    /// How nodes are chosen where neither gang nor queue says: binpack, spread, best-fit or
    /// fragmentation, or one of them for GPU and one for CPU work, as in {gpu: binpack, cpu:
    /// spread}.
    pub placement: Placement,
    /// Waiting raises a gang in the line of its queue: each such time counts as one more priority.
    /// A duration of at most 168h, such as 1m; null: a higher priority always goes first.
    pub aging: Option<Duration>,
    /// A running gang below its minimum for this long is evicted whole, where its PodGroup does not
    /// say; a duration, negative (-1s): never.
    pub staleness_grace_period: SignedDuration,
    /// How long a gang is complete and finds no room before it may evict or move others, where its
    /// PodGroup does not say: autoscalers go first. A duration.
    pub preemption_delay: Duration,
    /// How running pods are evicted so that others can start.
    pub evictions: EvictionsFile,
    /// How running gangs are moved so that others can start.
    pub consolidation: ConsolidationFile,
    /// How many gangs that wait for room have a reservation, in fair order: a start that they are
    /// promised, by when gangs that run are expected to end. Other gangs start only where that
    /// delays none of these starts. 0: nobody has one; 1: only the first (EASY backfilling).
    #[schemars(range(min = 0, max = 100_000))]
    pub reservations: i64,
    /// What nodes say of failed GPUs, and what follows: see docs/gpus.md.
    pub health: HealthFile,
    /// GPUs that several pods take turns on.
    pub time_slicing: TimeSlicingFile,
    /// What the cluster adds to the preferences that pods state: see docs/jobs.md. After a change
    /// the scheduler begins anew.
    pub preferences: PreferencesFile,
    /// How long a request to the API server may take before its outcome counts as unknown; a
    /// duration, shorter than leaseDuration less renewDeadline.
    pub request_deadline: Duration,
    /// How many requests of each sort may be under way.
    pub in_flight: InFlightFile,
    /// How often at most the status of one queue is written; a duration.
    pub queue_status_interval: Duration,
    /// What a queue has used in the past adjusts its weights, at most by a factor of four; what
    /// lies this long back counts half. A duration of at least a minute, such as 168h; null: the
    /// past does not count.
    pub use_half_life: Option<Duration>,
    /// How long a gang pauses after a binding of one of its pods was refused; each further refusal
    /// makes the pause longer. Other requests that failed are made again after this long, too. A
    /// duration.
    pub retry_after: Duration,
}

/// `extender`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ExtenderFile {
    /// Address and port for kube-scheduler, such as 0.0.0.0:8443; null: no extender.
    pub serve_address: Option<String>,
    /// The schedulerName of kube-scheduler: pods that have it and the label gpu-batch.io/queue
    /// count in their queue.
    pub scheduler_name: String,
    /// The certificate with which gpu-batch answers, and those that lead to its authority, in PEM.
    /// Files are read anew when they change. null: plain HTTP, on a loopback address only.
    pub certificate_file: Option<String>,
    /// The private key of the certificate, in PEM.
    pub private_key_file: Option<String>,
    /// The authority, in PEM, that has signed the certificates of those who may ask. Whoever has
    /// one may bind pods, so it should sign for kube-scheduler alone. null: no certificate counts.
    pub client_authority_file: Option<String>,
    /// A secret, on one line: who knows it may ask, too. kube-scheduler has it in its urlPrefix, as
    /// in https://any:SECRET@HOST:PORT. null: no secret counts.
    pub token_file: Option<String>,
}

/// `log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LogFile {
    /// text, or json: one object a line.
    pub format: LogFormat,
    /// error, warn, info, debug or trace, also by module, as in info,gpu_batch=debug.
    pub level: String,
}

/// `leaderElection`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LeaderElectionFile {
    /// false: this process always acts; then there must be only one.
    pub enabled: bool,
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// How this replica signs the Lease. Each needs a name of its own: two with one name both act.
    /// null: the environment variable POD_NAME, else the host's name and a random part.
    pub identity: Option<String>,
    /// How long a Lease holds that is not renewed; a duration in whole seconds.
    pub lease_duration: Duration,
    /// How long a leader that cannot renew goes on; a duration, shorter than leaseDuration.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed or looked at; a duration, shorter than renewDeadline.
    pub retry_period: Duration,
}

/// `inFlight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InFlightFile {
    /// Binds, evictions and what is read back after a lost answer.
    #[schemars(range(min = 1, max = 100_000))]
    pub actions: i64,
    /// Writes of statuses and conditions.
    #[schemars(range(min = 1, max = 100_000))]
    pub statuses: i64,
    /// Kubernetes events.
    #[schemars(range(min = 1, max = 100_000))]
    pub events: i64,
}

/// `evictions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EvictionsFile {
    /// How many evictions may be under way at a time so that others can start; 0: nobody is evicted
    /// for that.
    #[schemars(range(min = 0, max = 100_000))]
    pub in_flight: i64,
    /// How many pods are evicted in a second so that others can start.
    #[schemars(range(min = 1, max = 100_000))]
    pub per_second: i64,
}

/// `preferences`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreferencesFile {
    /// true: pods prefer nodes that have their images, as with kube-scheduler (ImageLocality).
    pub image_locality: bool,
    /// true: pods of a ReplicaSet, StatefulSet or ReplicationController without spread constraints
    /// prefer nodes and zones with few pods of it, as with kube-scheduler.
    pub default_spreading: bool,
}

/// `consolidation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConsolidationFile {
    /// How many GPUs may be moved for each GPU of the gang that gets the room; 0: no gang is moved.
    #[schemars(range(min = 0, max = 100_000))]
    pub moved_gpus_max: i64,
}

fn duration(milliseconds: u64) -> Duration {
    Duration(facts::duration(milliseconds))
}

impl ConfigurationFile {
    /// The defaults without `apiVersion` and `kind`, which a file must have.
    fn unversioned() -> Self {
        Self {
            api_version: String::new(),
            kind: String::new(),
            ..Self::default()
        }
    }
}

impl Default for ConfigurationFile {
    fn default() -> Self {
        let settings = Settings::default();
        let grace = settings.staleness_grace_ms.map(facts::duration);
        Self {
            api_version: API_VERSION.to_owned(),
            kind: "Configuration".to_owned(),
            scheduler_name: "gpu-batch".to_owned(),
            serve_address: "0.0.0.0:8080".to_owned(),
            extender: ExtenderFile::default(),
            log: LogFile::default(),
            leader_election: LeaderElectionFile::default(),
            placement: Placement {
                gpu: Some("binpack".to_owned()),
                cpu: Some("binpack".to_owned()),
            },
            aging: settings.aging_ms.map(duration),
            staleness_grace_period: SignedDuration(grace.unwrap_or_else(|| "-1s".to_owned())),
            preemption_delay: duration(settings.preemption_delay_ms),
            evictions: EvictionsFile::default(),
            consolidation: ConsolidationFile::default(),
            reservations: settings.reservations.into(),
            health: HealthFile::default(),
            time_slicing: TimeSlicingFile::default(),
            preferences: PreferencesFile::default(),
            request_deadline: duration(settings.request_deadline_ms),
            in_flight: InFlightFile::default(),
            queue_status_interval: duration(settings.queue_status_interval_ms),
            use_half_life: settings.use_half_life_ms.map(duration),
            retry_after: duration(settings.retry_after_ms),
        }
    }
}

impl Default for ExtenderFile {
    fn default() -> Self {
        Self {
            serve_address: None,
            scheduler_name: "default-scheduler".to_owned(),
            certificate_file: None,
            private_key_file: None,
            client_authority_file: None,
            token_file: None,
        }
    }
}

impl Default for LogFile {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            level: "info".to_owned(),
        }
    }
}

impl Default for LeaderElectionFile {
    fn default() -> Self {
        Self {
            enabled: true,
            namespace: "gpu-batch".to_owned(),
            name: "gpu-batch".to_owned(),
            identity: None,
            lease_duration: duration(15_000),
            renew_deadline: duration(10_000),
            retry_period: duration(2_000),
        }
    }
}

impl Default for InFlightFile {
    fn default() -> Self {
        let defaults = Settings::default().in_flight;
        Self {
            actions: defaults.actions.into(),
            statuses: defaults.statuses.into(),
            events: defaults.announcements.into(),
        }
    }
}

impl Default for EvictionsFile {
    fn default() -> Self {
        let defaults = Settings::default().evictions;
        Self {
            in_flight: defaults.in_flight.into(),
            per_second: defaults.per_second.into(),
        }
    }
}

impl Default for ConsolidationFile {
    fn default() -> Self {
        let moved_gpus_max = Settings::default().moved_gpus_max;
        Self {
            moved_gpus_max: i64::try_from(moved_gpus_max).unwrap_or(i64::MAX),
        }
    }
}

/// The configuration file with every default, and with a comment on every key.
///
/// # Errors
/// The serializer's error; the defaults cause none.
pub(crate) fn print_defaults() -> anyhow::Result<String> {
    let schema = SchemaSettings::default()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<ConfigurationFile>()
        .to_value();
    let mut text = String::new();
    let mut parents: Vec<&Value> = vec![&schema];
    let yaml = serde_saphyr::to_string(&ConfigurationFile::default())?;
    // How far the items of a list are indented, while a list is printed.
    let mut list = None;
    for line in yaml.lines() {
        let indent = line.len() - line.trim_start().len();
        let is_item = line.trim_start().starts_with("- ");
        list = list
            .filter(|list| indent > *list)
            .or(is_item.then_some(indent));
        // The comment on the list tells of its items.
        if list.is_some() {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        let (key, _) = line.split_once(':').context("a line without a key")?;
        parents.truncate(1 + indent / 2);
        let parent = parents.last().context("a key without a parent")?;
        let field = &parent["properties"][key.trim()];
        let description = field["description"]
            .as_str()
            .context("an undocumented key")?;
        if !text.is_empty() && indent == 0 {
            text.push('\n');
        }
        for comment in description.lines() {
            text.push_str(&format!("{:indent$}# {comment}\n", ""));
        }
        text.push_str(line);
        text.push('\n');
        parents.push(field);
    }
    Ok(text)
}
