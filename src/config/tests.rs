use super::*;
use gpu_batch_policies::facts::Placement;
use gpu_batch_policies::settings::Leadership;

pub(super) const HEAD: &str = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n";

pub(super) fn parse(text: &str) -> Result<Configuration, InvalidConfiguration> {
    Configuration::parse(&format!("{HEAD}{text}"), "scheduler.yaml")
}

#[test]
fn the_printed_defaults_are_the_defaults() {
    let printed = print_defaults().unwrap();
    let file: ConfigurationFile = serde_saphyr::from_str(&printed).unwrap();
    assert_eq!(file, ConfigurationFile::default());
    let defaults = Configuration::load(None).unwrap();
    assert_eq!(Configuration::parse(&printed, "printed"), Ok(defaults));
}

#[test]
fn a_file_that_says_nothing_has_every_default_of_the_engine() {
    let configuration = parse("").unwrap();
    assert_eq!(Ok(configuration.clone()), Configuration::load(None));
    let Leadership::Elected(lease) = &configuration.settings.leadership else {
        panic!("{:?}", configuration.settings.leadership);
    };
    assert!(!lease.identity.is_empty());
    let settings = Settings {
        leadership: Leadership::Assumed,
        ..configuration.settings
    };
    assert_eq!(settings, Settings::default());
}

/// Every key with another value than its default.
pub(super) const EVERY_KEY: &str = "schedulerName: night-shift\n\
         serveAddress: '[::1]:9090'\n\
         log: {format: json, level: 'info,gpu_batch=debug'}\n\
         leaderElection: {namespace: batch, name: night, identity: me, leaseDuration: 1m, \
         renewDeadline: 40s, retryPeriod: 500ms}\n\
         placement: {gpu: best-fit, cpu: spread}\n\
         stalenessGracePeriod: -1s\n\
         requestDeadline: 3s\n\
         inFlight: {actions: 1, statuses: 2, events: 3}\n\
         queueStatusInterval: 2s\n\
         useHalfLife: 24h\n\
         aging: 1m\n\
         retryAfter: 1m30s\n";

#[test]
fn every_key_can_be_set() {
    let configuration = parse(EVERY_KEY).unwrap();
    let settings = &configuration.settings;
    assert_eq!(configuration.scheduler_name, "night-shift");
    assert_eq!(configuration.serve_address.port(), 9090);
    assert_eq!(configuration.lease.namespace, "batch");
    assert_eq!(configuration.lease.name, "night");
    assert_eq!(configuration.log_format, LogFormat::Json);
    assert_eq!(settings.gpu_placement, Placement::BestFit);
    assert_eq!(settings.cpu_placement, Placement::Spread);
    assert_eq!(settings.staleness_grace_ms, None);
    assert_eq!(settings.request_deadline_ms, 3_000);
    assert_eq!(settings.in_flight.announcements, 3);
    assert_eq!(settings.queue_status_interval_ms, 2_000);
    assert_eq!(settings.use_half_life_ms, Some(86_400_000));
    assert_eq!(settings.aging_ms, Some(60_000));
    assert_eq!(settings.retry_after_ms, 90_000);
    let Leadership::Elected(lease) = &settings.leadership else {
        panic!("{:?}", settings.leadership);
    };
    assert_eq!(&*lease.identity, "me");
    assert_eq!(
        (lease.duration_ms, lease.renew_deadline_ms, lease.retry_ms),
        (60_000, 40_000, 500)
    );
}

#[test]
fn without_election_leadership_is_assumed() {
    let configuration = parse("leaderElection: {enabled: false}\nrequestDeadline: 1m").unwrap();
    assert_eq!(configuration.settings.leadership, Leadership::Assumed);
}

/// What a file says after its head, and a part of the message.
const WRONG: &[(&str, &str)] = &[
    ("schedulerNames: a", "unknown field `schedulerNames`"),
    ("log: {colour: red}", "unknown field `colour`"),
    ("log: {format: xml}", "unknown variant `xml`"),
    ("log: {level: 'a=loud'}", "log.level: must be error, warn"),
    ("schedulerName: ''", "schedulerName: must be of lower case"),
    ("schedulerName: -a", "schedulerName: must be of lower case"),
    (
        "serveAddress: ':8080'",
        "serveAddress: must be an IP address and a port",
    ),
    (
        "placement: tight",
        "placement.gpu: `tight` is not a placement; use binpack, spread, best-fit or fragmentation",
    ),
    ("placement: {gpus: spread}", "unknown field `gpus`"),
    (
        "stalenessGracePeriod: never",
        "stalenessGracePeriod: `never` is not a duration; write it like 90s",
    ),
    (
        "requestDeadline: -1s",
        "requestDeadline: `-1s` is not a duration",
    ),
    (
        "requestDeadline: 0s",
        "requestDeadline: must be longer than 0s",
    ),
    (
        "requestDeadline: 5s",
        "requestDeadline: must be shorter than",
    ),
    ("retryAfter: '0'", "retryAfter: must be longer than 0s"),
    (
        "queueStatusInterval: 1.5s",
        "queueStatusInterval: `1.5s` is not a duration",
    ),
    (
        "inFlight: {statuses: 0}",
        "inFlight.statuses: must be from 1 to 100000",
    ),
    (
        "inFlight: {events: -1}",
        "inFlight.events: must be from 1 to 100000",
    ),
    (
        "leaderElection: {namespace: A}",
        "leaderElection.namespace: must be of lower case",
    ),
    (
        "leaderElection: {identity: ''}",
        "leaderElection.identity: must be set",
    ),
    (
        "leaderElection: {leaseDuration: 15500ms}",
        "leaderElection.leaseDuration: must be in whole seconds",
    ),
    (
        "leaderElection: {renewDeadline: 15s}",
        "leaderElection.renewDeadline: must be shorter than leaderElection.leaseDuration",
    ),
    (
        "leaderElection: {retryPeriod: 10s}",
        "leaderElection.retryPeriod: must be shorter than leaderElection.renewDeadline",
    ),
    (
        "leaderElection: {retryPeriod: 0s}",
        "retryPeriod: must be longer than 0s",
    ),
    ("schedulerName: a\nschedulerName: b", "schedulerName"),
];

#[test]
fn what_is_wrong_is_named_with_its_key_and_what_is_allowed() {
    for (text, expected) in WRONG {
        let message = parse(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text}:\n{message}");
        assert!(message.starts_with("scheduler.yaml "), "{message}");
    }
}

#[test]
fn everything_wrong_is_said_at_once() {
    let problems = parse("retryAfter: 0s\nserveAddress: x\nplacement: tight")
        .unwrap_err()
        .problems;
    assert_eq!(problems.len(), 4, "{problems:?}");
}

#[test]
fn the_version_must_be_written() {
    for (text, expected) in [
        ("{}", "apiVersion: must be gpu-batch.io/v1alpha1"),
        (
            "apiVersion: v1\nkind: Configuration",
            "apiVersion: must be gpu-batch.io/v1alpha1",
        ),
        (
            "apiVersion: gpu-batch.io/v1alpha1\nkind: Queue",
            "kind: must be Configuration",
        ),
    ] {
        let message = Configuration::parse(text, "file").unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Configuration::load(Some(Path::new("/nowhere/scheduler.yaml"))).unwrap_err();
    assert!(
        error.to_string().starts_with("/nowhere/scheduler.yaml "),
        "{error}"
    );
}
