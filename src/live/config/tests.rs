mod health;

use super::*;
use crate::extender::ExtenderFiles;
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
    assert_eq!(settings.reservations, 8);
}

/// Every key with another value than its default.
pub(super) const EVERY_KEY: &str = "schedulerName: night-shift\n\
         serveAddress: '[::1]:9090'\n\
         extender: {serveAddress: '[::]:8443', schedulerName: day-shift, certificateFile: a.crt, \
         privateKeyFile: a.key, clientAuthorityFile: clients.crt, tokenFile: token}\n\
         log: {format: json, level: 'info,gpu_batch=debug'}\n\
         leaderElection: {namespace: batch, name: night, identity: me, leaseDuration: 1m, \
         renewDeadline: 40s, retryPeriod: 500ms}\n\
         placement: {gpu: best-fit, cpu: spread}\n\
         stalenessGracePeriod: -1s\n\
         preemptionDelay: 5m\n\
         evictions: {inFlight: 0, perSecond: 7}\n\
         consolidation: {movedGpusMax: 0}\n\
         reservations: 3\n\
         requestDeadline: 3s\n\
         inFlight: {actions: 1, statuses: 2, events: 3}\n\
         queueStatusInterval: 2s\n\
         useHalfLife: 24h\n\
         aging: 1m\n\
         health: {recoveryPeriod: 2m, rules: [{condition: CardsBurn, action: evict, after: 1h}]}\n\
         timeSlicing: {failRequestsGreaterThanOne: true}\n\
         preferences: {imageLocality: true, defaultSpreading: true}\n\
         retryAfter: 1m30s\n";

#[test]
fn every_key_can_be_set() {
    let configuration = parse(EVERY_KEY).unwrap();
    let settings = &configuration.settings;
    assert_eq!(configuration.scheduler_name, "night-shift");
    assert_eq!(configuration.serve_address.port(), 9090);
    let extender = configuration.extender.unwrap();
    assert_eq!(extender.serve_address.port(), 8443);
    assert_eq!(extender.scheduler_name, "day-shift");
    let files = ExtenderFiles {
        certificate: Some(("a.crt".into(), "a.key".into())),
        client_authority: Some("clients.crt".into()),
        token: Some("token".into()),
    };
    assert_eq!(extender.files, files);
    assert_eq!(configuration.lease.namespace, "batch");
    assert_eq!(configuration.lease.name, "night");
    assert_eq!(configuration.log_format, LogFormat::Json);
    assert_eq!(settings.gpu_placement, Placement::BestFit);
    assert_eq!(settings.cpu_placement, Placement::Spread);
    assert_eq!(settings.staleness_grace_ms, None);
    assert_eq!(settings.preemption_delay_ms, 300_000);
    let evictions = settings.evictions;
    assert_eq!((evictions.in_flight, evictions.per_second), (0, 7));
    assert_eq!(settings.moved_gpus_max, 0);
    assert_eq!(settings.reservations, 3);
    assert_eq!(settings.request_deadline_ms, 3_000);
    assert_eq!(settings.in_flight.announcements, 3);
    assert_eq!(settings.queue_status_interval_ms, 2_000);
    assert_eq!(settings.use_half_life_ms, Some(86_400_000));
    assert_eq!(settings.aging_ms, Some(60_000));
    assert_eq!(settings.health.recovery_ms, 120_000);
    assert_eq!(settings.health.rules[0].evict_after_ms, Some(3_600_000));
    assert!(settings.time_slices_are_single);
    let preferences = configuration.preferences;
    assert!(preferences.image_locality && preferences.default_spreading);
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
fn an_extender_without_credentials_is_on_a_loopback_address_alone() {
    assert_eq!(parse("").unwrap().extender, None);
    for address in ["127.0.0.1:1", "'[::1]:1'", "'[::ffff:127.0.0.1]:1'"] {
        let text = format!("extender: {{serveAddress: {address}}}");
        let extender = parse(&text).unwrap().extender.unwrap();
        assert_eq!(extender.scheduler_name, "default-scheduler");
        assert_eq!(extender.files, ExtenderFiles::default());
    }
    // Certificate and token, or certificate and authority, are enough anywhere.
    for credential in ["tokenFile", "clientAuthorityFile"] {
        let text = format!(
            "extender: {{serveAddress: '0.0.0.0:1', certificateFile: a, privateKeyFile: b, \
             {credential}: c}}"
        );
        assert!(parse(&text).is_ok(), "{credential}");
    }
}

#[test]
fn without_election_leadership_is_assumed() {
    let configuration = parse("leaderElection: {enabled: false}\nrequestDeadline: 1m").unwrap();
    assert_eq!(configuration.settings.leadership, Leadership::Assumed);
}

/// What a file says after its head, and a part of the message.
const WRONG: &[(&str, &str)] = &[
    (
        "schedulerNames: a",
        "schedulerNames: there is no such key; did you mean schedulerName? (line 3)",
    ),
    (
        "log: {colour: red}",
        "log.colour: there is no such key; there are format, level (line 3)",
    ),
    (
        "log: {format: xml}",
        "log.format: must be text or json, not \"xml\" (line 3)",
    ),
    ("log: {level: 'a=loud'}", "log.level: must be error, warn"),
    ("log: {level: loud}", "log.level: must be error, warn"),
    ("schedulerName: ''", "schedulerName: must be of lower case"),
    ("schedulerName: -a", "schedulerName: must be of lower case"),
    (
        "serveAddress: ':8080'",
        "serveAddress: must be an IP address and a port",
    ),
    (
        "extender: {serveAddress: ':8443'}",
        "extender.serveAddress: must be an IP address and a port, as in 0.0.0.0:8443",
    ),
    (
        "serveAddress: 127.0.0.1:80\nextender: {serveAddress: 127.0.0.1:80}",
        "extender.serveAddress: must differ from serveAddress",
    ),
    (
        "extender: {serveAddress: 127.0.0.1:1, schedulerName: gpu-batch}",
        "extender.schedulerName: must differ from schedulerName",
    ),
    (
        "extender: {serveAddress: 127.0.0.1:1, certificateFile: a}",
        "extender.privateKeyFile: must be set where certificateFile is",
    ),
    (
        "extender: {serveAddress: 127.0.0.1:1, privateKeyFile: a}",
        "extender.certificateFile: must be set where privateKeyFile is",
    ),
    (
        "extender: {serveAddress: 127.0.0.1:1, clientAuthorityFile: a}",
        "extender.clientAuthorityFile: needs certificateFile and privateKeyFile",
    ),
    (
        "extender: {serveAddress: 0.0.0.0:1, tokenFile: a}",
        "extender.certificateFile: must be set, with privateKeyFile, because other machines reach",
    ),
    (
        "extender: {serveAddress: '[::]:1', certificateFile: a, privateKeyFile: b}",
        "extender: clientAuthorityFile or tokenFile must be set, because other machines reach",
    ),
    (
        "extender: {address: 127.0.0.1:1}",
        "extender.address: there is no such key",
    ),
    (
        "reservations: '8'",
        "reservations: must be a whole number from 0 to 100000, not \"8\"",
    ),
    (
        "inFlight: {events: '1'}",
        "inFlight.events: must be a whole number from 1 to 100000, not \"1\"",
    ),
    (
        "placement: tight",
        "placement.gpu: `tight` is not a placement; use binpack, spread, best-fit or fragmentation",
    ),
    (
        "placement: {gpus: spread}",
        "placement.gpus: there is no such key; did you mean gpu?",
    ),
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
        "inFlight.statuses: must be from 1 to 100000, not 0",
    ),
    (
        "evictions: {inFlight: -1}",
        "evictions.inFlight: must be from 0 to 100000, not -1",
    ),
    (
        "evictions: {perSecond: 0}",
        "evictions.perSecond: must be from 1 to 100000, not 0",
    ),
    (
        "consolidation: {movedGpusMax: many}",
        "consolidation.movedGpusMax: must be a whole number from 0 to 100000, not \"many\"",
    ),
    (
        "preemptionDelay: -1s",
        "preemptionDelay: `-1s` is not a duration",
    ),
    (
        "inFlight: {events: -1}",
        "inFlight.events: must be from 1 to 100000, not -1",
    ),
    (
        "leaderElection: {namespace: A}",
        "leaderElection.namespace: must be of lower case",
    ),
    (
        "leaderElection: {identity: ''}",
        "leaderElection.identity: must not be empty",
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
    (
        "schedulerName: a\nschedulerName: b",
        "schedulerName: the key is there twice (line 4)",
    ),
    (
        "placement: null",
        "placement: must be one of binpack, spread, best-fit, fragmentation, not null (line 3)",
    ),
    (
        "placement: {gpu: [spread]}",
        "placement.gpu: must be one of binpack, spread, best-fit, fragmentation, not a list",
    ),
    (
        "inFlight: {actions: ten}",
        "inFlight.actions: must be a whole number from 1 to 100000, not \"ten\" (line 3)",
    ),
    (
        "inFlight: {actions: 1.5}",
        "inFlight.actions: must be a whole number from 1 to 100000, not 1.5",
    ),
    (
        "retryAfter: null",
        "retryAfter: must be a duration such as 1s, not null",
    ),
    (
        "log: loud",
        "log: must be keys and values; the keys are format, level, not \"loud\"",
    ),
    (
        "leaderElection: {enabled: maybe}",
        "leaderElection.enabled: must be true or false, not \"maybe\"",
    ),
    (
        "retryAfter: 999999999999999999999h",
        "retryAfter: `999999999999999999999h` is too long; write it in hours, at most 876000h",
    ),
    (
        "useHalfLife: 1000000000h",
        "useHalfLife: `1000000000h` is too long",
    ),
    (
        "leaderElection: {leaseDuration: 600000h}",
        "leaderElection.leaseDuration: must be at most 596523h",
    ),
    (
        "placement: spread\n---\nkind: Configuration",
        "there is more than one document",
    ),
    ("placement: [", "this is not YAML: "),
    ("- a", "cannot be used:"),
];

#[test]
fn what_is_wrong_is_named_with_its_key_and_what_is_allowed() {
    for (text, expected) in WRONG {
        let message = parse(text).expect_err(text).to_string();
        assert!(message.contains(expected), "{text}:\n{message}");
        assert!(message.starts_with("scheduler.yaml "), "{message}");
        for word in ["i64", "serde", "Options", "unit value", "from_", "error:"] {
            assert!(!message.contains(word), "{text}:\n{message}");
        }
    }
}

#[test]
fn everything_wrong_is_said_at_once() {
    let problems = parse("retryAfter: 0s\nserveAddress: x\nplacement: tight")
        .unwrap_err()
        .problems;
    assert_eq!(problems.len(), 4, "{problems:?}");
    // A problem that keeps a part of the file from being read hides none of the other problems.
    for (text, told) in [
        ("colour: red\nretryAfter: 0s\nplacement: tight", 4),
        ("inFlight: {actions: ten}\nserveAddress: x", 2),
        ("log: {level: loud, colour: red}", 2),
        ("evictions: {inFlight: 0, perSecond: two}", 1),
        ("aging: 0s\nretryAfter: 1s\nretryAfter: 2s\ncolour: red", 3),
        // A bare number is a text to YAML.
        ("colour: red\nretryAfter: 5\nserveAddress: x", 3),
        ("colour: red\nuseHalfLife: 3", 2),
        ("retryAfter: 5\nserveAddress: 5\nlog: 3", 3),
    ] {
        let problems = parse(text).unwrap_err().problems;
        assert_eq!(problems.len(), told, "{text}: {problems:?}");
    }
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
fn a_duration_that_cannot_be_read_is_told_once() {
    for text in [
        "useHalfLife: 7d",
        "useHalfLife: 1s",
        "retryAfter: 0s",
        "aging: 7d",
        "aging: 0s",
    ] {
        let problems = parse(text).unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}

#[test]
fn several_keys_that_cannot_be_read_are_all_told() {
    let problems =
        parse("retryafter: 1s\ninFlight: {actions: ten, events: 0}\nlog: 1").unwrap_err();
    let told = problems.problems;
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told.contains(&"retryafter: there is no such key; did you mean retryAfter?".to_owned())
    );
}

#[test]
fn every_key_that_is_there_twice_is_told_beside_other_mistakes() {
    let text = "log:\n  level: info\n  level: warn\nretryAfter: 1s\nretryAfter: 2s\nlogs: 1\n\
                leaderElection: {leaseDuration: x, renewDeadline: 1s, retryPeriod: 2s}";
    let told = parse(text).unwrap_err().problems;
    for (start, end) in [
        ("level: the key is there twice", "(line 5)"),
        ("retryAfter: the key is there twice", "(line 7)"),
        ("logs: there is no such key", ""),
        ("leaderElection.leaseDuration: ", ""),
        ("leaderElection.retryPeriod: must be shorter", ""),
    ] {
        let is_it = |one: &&String| one.starts_with(start) && one.ends_with(end);
        assert_eq!(told.iter().filter(is_it).count(), 1, "{start}: {told:?}");
    }
    assert_eq!(told.len(), 5, "{told:?}");
}

#[test]
fn what_is_no_file_says_what_to_do() {
    let told = |path: &Path| Configuration::load(Some(path)).unwrap_err().to_string();
    assert_eq!(
        told(Path::new("/nowhere/scheduler.yaml")),
        "/nowhere/scheduler.yaml cannot be used:\nthere is no such file; `gpu-batch config \
         --print-defaults` prints one to begin with"
    );
    let folder = told(Path::new("/"));
    assert!(
        folder.contains("this is a folder; name the file in it"),
        "{folder}"
    );
}
