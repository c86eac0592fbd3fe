//! Many small worlds, with faults and without: the engine keeps its promises in all of them.
//!
//! `GPU_BATCH_SEEDS=FROM..TO` runs other seeds than the default ones; a failure names its seed.

use gpu_batch_simulator::run::run;

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("GPU_BATCH_SEEDS") else {
        return 0..2_000;
    };
    let parsed = text
        .split_once("..")
        .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.expect("GPU_BATCH_SEEDS is FROM..TO")
}

fn check(with_faults: bool) {
    let (mut binds, mut steps, mut evictions) = (0u64, 0u64, 0u64);
    let mut failures = Vec::new();
    let seeds = seeds();
    for seed in seeds.clone() {
        match run(seed, with_faults) {
            Ok(summary) => {
                binds += u64::from(summary.binds);
                steps += u64::from(summary.steps);
                evictions += u64::from(summary.evictions);
            }
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    println!("seeds {seeds:?}: {steps} steps, {binds} binds, {evictions} evictions");
    let shown: Vec<&String> = failures.iter().take(5).collect();
    assert!(
        failures.is_empty(),
        "{} seeds failed: {shown:#?}",
        failures.len()
    );
}

#[test]
fn worlds_without_faults_come_to_a_good_rest() {
    check(false);
}

#[test]
fn worlds_with_faults_come_to_a_good_rest() {
    check(true);
}

#[test]
fn the_same_seed_gives_the_same_commands() {
    for seed in 0..100 {
        assert_eq!(run(seed, true), run(seed, true), "seed {seed}");
    }
}
