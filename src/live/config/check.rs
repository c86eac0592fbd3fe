//! From the file as written to a configuration that can be used.

mod extender;
mod health;

use super::file::{ConfigurationFile, LeaderElectionFile};
use super::{Configuration, process};
use crate::kube::api::{API_VERSION, Duration, InvalidDuration, Placement, parse_placement};
use crate::kube::convert::ClusterPreferences;
use crate::kube::execute::LeaseName;
use gpu_batch_policies::lease::LeaseSettings;
use gpu_batch_policies::settings::{
    AGING_MAX_MS, Evictions, InFlight, Leadership, LeafOrder, Queueing, Settings,
};
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// What the number at a key may be.
pub(crate) fn numbers(key: &str) -> RangeInclusive<i64> {
    let first = match key {
        "evictions.inFlight" | "consolidation.movedGpusMax" | "reservations" => 0,
        _ => 1,
    };
    first..=100_000
}

/// Collects what is wrong, so that an administrator sees all of it at once.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, key: &str, message: impl Display) {
        self.0.push(format!("{key}: {message}"));
    }

    fn require(&mut self, holds: bool, key: &str, message: impl Display) {
        if !holds {
            self.add(key, message);
        }
    }

    /// The value; on an error its default, and a problem is noted.
    fn value<T: Default, E: Display>(&mut self, key: &str, result: Result<T, E>) -> T {
        result.unwrap_or_else(|error| {
            self.add(key, error);
            T::default()
        })
    }

    /// A whole number in the range of its key.
    fn number(&mut self, key: &str, number: i64) -> u32 {
        let range = numbers(key);
        let count = u32::try_from(number)
            .ok()
            .filter(|_| range.contains(&number));
        let (least, most) = (range.start(), range.end());
        let message = format!("must be from {least} to {most}, not {number}");
        self.value(key, count.ok_or(message))
    }

    /// A duration in milliseconds that must be longer than 0.
    fn positive(&mut self, key: &str, milliseconds: Result<u64, InvalidDuration>) -> u64 {
        self.require(milliseconds != Ok(0), key, "must be longer than 0s");
        self.value(key, milliseconds)
    }
}

/// The file as one typed value.
///
/// # Errors
/// Everything that is wrong with the file.
pub(super) fn check(file: &ConfigurationFile) -> Result<Configuration, Vec<String>> {
    let mut problems = Problems::default();
    for (key, text, allowed) in [
        ("apiVersion", &file.api_version, API_VERSION),
        ("kind", &file.kind, "Configuration"),
    ] {
        problems.require(text == allowed, key, format_args!("must be {allowed}"));
    }
    for (key, name) in [
        ("schedulerName", &file.scheduler_name),
        ("extender.schedulerName", &file.extender.scheduler_name),
        ("leaderElection.namespace", &file.leader_election.namespace),
        ("leaderElection.name", &file.leader_election.name),
    ] {
        problems.require(
            is_object_name(name),
            key,
            "must be of lower case letters, digits, - and .",
        );
    }
    problems.require(
        is_log_level(&file.log.level),
        "log.level",
        "must be error, warn, info, debug or trace, also by module, as in info,gpu_batch=debug",
    );
    let settings = settings(file, &mut problems);
    let extender = extender::check(file, &mut problems);
    let serve_address = file
        .serve_address
        .parse::<SocketAddr>()
        .map_err(|_| "must be an IP address and a port, as in 0.0.0.0:8080 or [::]:8080");
    match serve_address {
        Ok(serve_address) if problems.0.is_empty() => Ok(Configuration {
            file: file.clone(),
            settings,
            scheduler_name: file.scheduler_name.clone(),
            serve_address,
            preferences: ClusterPreferences {
                image_locality: file.preferences.image_locality,
                default_spreading: file.preferences.default_spreading,
            },
            extender,
            lease: LeaseName {
                namespace: file.leader_election.namespace.clone(),
                name: file.leader_election.name.clone(),
            },
            log_format: file.log.format,
            log_level: file.log.level.clone(),
        }),
        Ok(_) => Err(problems.0),
        Err(message) => {
            problems.add("serveAddress", message);
            Err(problems.0)
        }
    }
}

/// Whether the text is log levels, alone or for a module: `info,gpu_batch=debug`. A word that is no
/// level would count as a module's name, and nothing of other modules would be logged any more.
fn is_log_level(text: &str) -> bool {
    let level = |part: &str| {
        part.rsplit('=')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let known = |part| level(part).parse::<LevelFilter>().is_ok();
    text.split(',').all(known) && EnvFilter::try_new(text).is_ok()
}

/// A DNS subdomain of at most 253 characters.
fn is_object_name(name: &str) -> bool {
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty()
            && part.bytes().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(part)
}

fn settings(file: &ConfigurationFile, problems: &mut Problems) -> Settings {
    let defaults = Settings::default();
    let Placement { gpu, cpu } = &file.placement;
    let mut placement = |key, name: &Option<String>, default| match name.as_deref() {
        Some(name) => parse_placement(name).unwrap_or_else(|error| {
            problems.add(key, error);
            default
        }),
        None => default,
    };
    let gpu_placement = placement("placement.gpu", gpu, defaults.gpu_placement);
    let cpu_placement = placement("placement.cpu", cpu, defaults.cpu_placement);
    let in_flight = InFlight {
        actions: problems.number("inFlight.actions", file.in_flight.actions),
        statuses: problems.number("inFlight.statuses", file.in_flight.statuses),
        announcements: problems.number("inFlight.events", file.in_flight.events),
    };
    let evictions = Evictions {
        in_flight: problems.number("evictions.inFlight", file.evictions.in_flight),
        per_second: problems.number("evictions.perSecond", file.evictions.per_second),
    };
    let moved_gpus_max = problems.number(
        "consolidation.movedGpusMax",
        file.consolidation.moved_gpus_max,
    );
    let preemption_delay_ms =
        problems.value("preemptionDelay", file.preemption_delay.milliseconds());
    let grace = file.staleness_grace_period.milliseconds();
    let use_half_life_ms = file.use_half_life.as_ref().map(|duration| {
        let milliseconds = duration.milliseconds();
        let enough = !matches!(milliseconds, Ok(..60_000));
        problems.require(enough, "useHalfLife", "must be at least 1m, or null");
        problems.value("useHalfLife", milliseconds)
    });
    let request_deadline_ms =
        problems.positive("requestDeadline", file.request_deadline.milliseconds());
    Settings {
        gpu_placement,
        cpu_placement,
        target_workload: None,
        // The other values are for simulations alone.
        leaf_order: LeafOrder::Age,
        queueing: Queueing::BestEffort,
        aging_ms: aging(file, problems),
        staleness_grace_ms: u64::try_from(problems.value("stalenessGracePeriod", grace)).ok(),
        request_deadline_ms,
        in_flight,
        queue_status_interval_ms: problems.positive(
            "queueStatusInterval",
            file.queue_status_interval.milliseconds(),
        ),
        use_half_life_ms,
        retry_after_ms: problems.positive("retryAfter", file.retry_after.milliseconds()),
        evictions,
        preemption_delay_ms,
        moved_gpus_max: moved_gpus_max.into(),
        reservations: problems.number("reservations", file.reservations),
        health: health::check(&file.health, problems),
        time_slices_are_single: file.time_slicing.fail_requests_greater_than_one,
        leadership: leadership(&file.leader_election, request_deadline_ms, problems),
    }
}

fn aging(file: &ConfigurationFile, problems: &mut Problems) -> Option<u64> {
    let milliseconds = file.aging.as_ref()?.milliseconds();
    let fits = !milliseconds
        .as_ref()
        .is_ok_and(|long| !(1..=AGING_MAX_MS).contains(long));
    problems.require(
        fits,
        "aging",
        "must be longer than 0s and at most 168h, or null",
    );
    Some(problems.value("aging", milliseconds))
}

fn leadership(
    file: &LeaderElectionFile,
    request_deadline_ms: u64,
    problems: &mut Problems,
) -> Leadership {
    let key = |name: &str| format!("leaderElection.{name}");
    let duration_ms = problems.positive(&key("leaseDuration"), file.lease_duration.milliseconds());
    let renew_deadline_ms =
        problems.positive(&key("renewDeadline"), file.renew_deadline.milliseconds());
    let retry_ms = problems.positive(&key("retryPeriod"), file.retry_period.milliseconds());
    if !file.enabled {
        return Leadership::Assumed;
    }
    // What cannot be read is told already, and is compared with nothing.
    let read = |duration: &Duration| duration.milliseconds().ok().filter(|read| *read > 0);
    let lease = read(&file.lease_duration);
    let renew = read(&file.renew_deadline);
    let retry = read(&file.retry_period);
    problems.require(
        lease.is_none_or(|lease_ms| lease_ms.is_multiple_of(1_000)),
        &key("leaseDuration"),
        "must be in whole seconds, because the Lease stores seconds",
    );
    problems.require(
        lease.is_none_or(|lease_ms| lease_ms / 1_000 <= i32::MAX.unsigned_abs().into()),
        &key("leaseDuration"),
        "must be at most 596523h, because the Lease stores it in 32 bits",
    );
    let shorter = |one: Option<u64>, other: Option<u64>| {
        let both = one.zip(other);
        both.is_none_or(|(one_ms, other_ms)| one_ms < other_ms)
    };
    problems.require(
        shorter(renew, lease),
        &key("renewDeadline"),
        "must be shorter than leaderElection.leaseDuration",
    );
    problems.require(
        shorter(retry, renew),
        &key("retryPeriod"),
        "must be shorter than leaderElection.renewDeadline",
    );
    let left = lease.zip(renew);
    let left = left.map(|(lease_ms, renew_ms)| lease_ms.saturating_sub(renew_ms));
    problems.require(
        shorter(Some(request_deadline_ms), left),
        "requestDeadline",
        "must be shorter than leaderElection.leaseDuration less renewDeadline, \
         or requests outlive the lease",
    );
    let identity = problems.value(&key("identity"), identity(file));
    Leadership::Elected(LeaseSettings {
        identity: identity.into(),
        duration_ms,
        renew_deadline_ms,
        retry_ms,
    })
}

/// The name of this replica: the one in the file, else the pod's name, which a restarted container
/// keeps, else the name of this process.
fn identity(file: &LeaderElectionFile) -> Result<String, &'static str> {
    let pod = || std::env::var("POD_NAME").ok();
    let pod = || pod().filter(|name| !name.is_empty());
    let name = file.identity.clone().or_else(pod);
    let name = name.unwrap_or_else(|| process::NAME.clone());
    match name.is_empty() {
        true => Err("must not be empty; null: the environment variable POD_NAME, or a random name"),
        false => Ok(name),
    }
}
