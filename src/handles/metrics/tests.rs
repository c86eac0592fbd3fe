use super::Metrics;
use crate::handles::inbox::Reports;
use gpu_batch_policies::command::{Beneficiary, ClaimKind, Evict, EvictionCause, PodReference};
use gpu_batch_policies::event::Kind;
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::report::{Forecast, GpuReport, QueueReport};
use gpu_batch_policies::status::QueueStatus;
use serde_json::Value;
use std::collections::BTreeSet;

fn reports(name: &str) -> Reports {
    let status = QueueStatus {
        allocated: vec![("cpu".into(), 1_500), ("nvidia.com/gpu".into(), 8_500)],
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
        gpus: vec![GpuReport {
            model: "H100".into(),
            resource: "nvidia.com/gpu".into(),
            used: 5,
            unhealthy: 1,
            ..GpuReport::default()
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
        r#"gpu_batch_queue_allocated{queue="old",resource="nvidia.com/gpu"} 8.5"#,
        r#"gpu_batch_queue_dominant_share_ratio{queue="old"} 0.42"#,
        r#"gpu_batch_gpus{model="H100",resource="nvidia.com/gpu",state="used"} 5.0"#,
        r#"gpu_batch_gpus{model="H100",resource="nvidia.com/gpu",state="unhealthy"} 1.0"#,
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

/// All words in a text that begin with `prefix`.
fn words<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    let words = text.split(move |letter| !is_of_word(letter));
    words.filter(move |word| word.starts_with(prefix))
}

fn file(path: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// Every query of the dashboard, with the title of its panel.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| {
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(|target| (panel["title"].to_string(), target["expr"].to_string()))
    });
    targets.collect()
}

#[test]
fn the_dashboard_and_the_rules_name_metrics_and_rules_that_there_are() {
    // Families without series are not in what `/metrics` answers, so names are looked up where they
    // are registered.
    let registered = file("src/handles/metrics.rs");
    let there_is = |name: &str| {
        let stem = name.trim_start_matches("gpu_batch_");
        let stem = stem.trim_end_matches("_bucket").trim_end_matches("_total");
        registered.contains(&format!("\"{stem}\","))
    };
    let rules = file("deploy/prometheus/gpu-use.yaml");
    let recorded: Vec<&str> = words(&rules, "gpu_batch:").collect();
    let dashboard = file("deploy/grafana/gpu-batch.json");
    let alerts = file("deploy/helm/gpu-batch/templates/prometheusrule.yaml");
    let mut named = 0;
    for text in [&dashboard, &alerts] {
        for name in words(text, "gpu_batch_") {
            assert!(there_is(name), "there is no metric {name}");
            named += 1;
        }
        for name in words(text, "gpu_batch:") {
            assert!(recorded.contains(&name), "no rule records {name}");
        }
    }
    assert!(named > 20, "only {named} metrics are named");
    for rule in words(&file("docs/metrics.md"), "gpu_batch:") {
        assert!(recorded.contains(&rule), "no rule records {rule}");
    }
}

#[test]
fn every_panel_of_the_dashboard_has_a_place_and_queries_that_can_be_read() {
    let dashboard: Value = serde_json::from_str(&file("deploy/grafana/gpu-batch.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "every id is there once");
    let mut taken = BTreeSet::new();
    for panel in panels {
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{}", panel["title"]);
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "{} lies on another", panel["title"]);
            }
        }
    }
    let queries = queries(&dashboard);
    assert!(queries.len() > 15, "{}", queries.len());
    for (title, query) in queries {
        for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
            let count = |letter| query.matches(letter).count();
            assert_eq!(count(open), count(close), "{title}: {query}");
        }
    }
}
