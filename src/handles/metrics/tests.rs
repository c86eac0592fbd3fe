use super::Metrics;
use crate::handles::inbox::Reports;
use gpu_batch_policies::command::{Beneficiary, ClaimKind, Evict, EvictionCause, PodReference};
use gpu_batch_policies::event::Kind;
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::report::{Forecast, QueueReport};
use gpu_batch_policies::status::QueueStatus;

fn reports(name: &str) -> Reports {
    let status = QueueStatus {
        allocated: vec![("cpu".into(), 1_500), ("nvidia.com/gpu".into(), 8)],
        dominant_share_millionths: 420_000,
        ..QueueStatus::default()
    };
    Reports {
        is_leader: true,
        queues: vec![QueueReport {
            name: name.into(),
            parent: None,
            defined: true,
            status,
        }],
        ..Reports::default()
    }
}

fn claim(claim: Option<ClaimKind>, is_optimal: bool) -> Option<Beneficiary> {
    let gang = "default/b".into();
    Some(Beneficiary {
        gang,
        claim,
        is_optimal,
    })
}

#[test]
fn metrics_show_what_happened_and_what_is() {
    let metrics = Metrics::new();
    metrics.command_ended("bind", "done");
    metrics.watch_restarted(Kind::Pod, "gone");
    for (cause, beneficiary) in [
        (EvictionCause::Stale, None),
        (EvictionCause::Reclaim, claim(Some(ClaimKind::Quota), true)),
        (EvictionCause::Preempt, claim(None, false)),
    ] {
        metrics.evicted(&Evict {
            pod: PodReference {
                namespace: "default".into(),
                name: "a".into(),
                uid: Uid(1),
            },
            cause,
            beneficiary,
        });
    }
    let text = metrics.encode(&reports("old")).unwrap();
    for line in [
        r#"gpu_batch_commands_total{action="bind",outcome="done"} 1"#,
        r#"gpu_batch_watch_restarts_total{kind="Pod",cause="gone"} 1"#,
        r#"gpu_batch_evictions_total{cause="stale",claim="",verdict=""} 1"#,
        r#"gpu_batch_evictions_total{cause="reclaim",claim="quota",verdict="optimal"} 1"#,
        r#"gpu_batch_evictions_total{cause="preempt",claim="",verdict="feasible"} 1"#,
        r#"gpu_batch_queue_allocated{queue="old",resource="cpu"} 1.5"#,
        r#"gpu_batch_queue_allocated{queue="old",resource="nvidia.com/gpu"} 8.0"#,
        r#"gpu_batch_queue_dominant_share_ratio{queue="old"} 0.42"#,
        "gpu_batch_leader 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
}

/// As in simulations: a gang that starts later than promised makes a negative error.
#[test]
fn the_error_of_a_promise_is_the_promised_start_minus_the_real_one() {
    let metrics = Metrics::new();
    metrics.foreseen(Forecast::Start {
        promised_ms: 10_000,
        started_ms: 32_000,
    });
    let text = metrics.encode(&reports("a")).unwrap();
    let name = "gpu_batch_start_error_seconds";
    for line in [
        format!("{name}_sum -22.0"),
        format!("{name}_bucket{{le=\"-60.0\"}} 0"),
        format!("{name}_bucket{{le=\"-10.0\"}} 1"),
    ] {
        assert!(text.contains(&line), "no {line} in\n{text}");
    }
}

#[test]
fn a_queue_that_is_gone_leaves_no_series() {
    let metrics = Metrics::new();
    metrics.encode(&reports("old")).unwrap();
    let text = metrics.encode(&reports("new")).unwrap();
    assert!(text.contains("queue=\"new\""));
    assert!(!text.contains("queue=\"old\""), "{text}");
}
