//! Many small worlds, with faults and without: the engine keeps its promises in all of them.
//!
//! `GPU_BATCH_SEEDS=FROM..TO` runs other seeds than the default ones; a failure names its seed.

use gpu_batch_simulator::campaign::{Campaign, Findings, campaign};
use gpu_batch_simulator::run::run;
use std::ops::Range;
use std::time::Duration;

/// The seeds that were asked for, else the default ones.
fn seeds(default: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("GPU_BATCH_SEEDS") else {
        return default;
    };
    let parsed = text
        .split_once("..")
        .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.expect("GPU_BATCH_SEEDS is FROM..TO")
}

fn check(default: Range<u64>, with_faults: bool) -> Findings {
    let orders = Campaign {
        seeds: seeds(default),
        with_faults,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        stop_at_first: false,
    };
    let findings = campaign(&orders, || Duration::ZERO);
    println!("{findings}");
    assert_eq!(findings.failed, 0, "{findings}");
    findings
}

#[test]
fn worlds_without_faults_come_to_a_good_rest() {
    check(0..1_000, false);
}

#[test]
fn worlds_with_faults_come_to_a_good_rest() {
    let findings = check(0..20_000, true);
    if findings.seeds >= 1_000 {
        assert_eq!(findings.idle_kinds(), [], "every kind of fault strikes");
        assert!(findings.gangs >= 8 * findings.seeds, "enough gangs");
        assert!(findings.pods >= 30 * findings.seeds, "enough pods");
        assert!(findings.faults() >= 10 * findings.seeds, "enough faults");
    }
}

#[test]
fn the_same_seed_gives_the_same_commands() {
    for seed in 0..100 {
        assert_eq!(run(seed, true), run(seed, true), "seed {seed}");
    }
}
