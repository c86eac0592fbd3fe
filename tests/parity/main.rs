//! Every node gets the verdict that kube-scheduler gives it, and every pod that the API server
//! refuses is refused: generated cases, which Kubernetes' own code judges beside gpu-batch.
//!
//! The program of `tests/oracle` speaks for Kubernetes. A difference is shrunk and printed as one
//! line, to be kept in `kept.jsonl`, whose cases always run.
//!
//! `GPU_BATCH_CASES=200000` compares so many cases instead of 5,000. `GPU_BATCH_SEED=7` draws other
//! cases, and `GPU_BATCH_SEED=new` cases that were never drawn; the seed is printed.
//!
//! What differs on purpose: a node that is not ready takes no pod, even if the pod tolerates its
//! taints; how often that counts is printed. Amounts of 2^55 and more are not generated for nodes,
//! because such a node is taken for one without the resource. Pods that ask for what is not
//! supported are skipped, and of each family most cases must not be.
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

mod compare;
mod families;
mod numa;
mod oracle;
mod ours;
mod shrink;
mod tally;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gpu_batch_policies::report::PreferenceScores;
use serde_json::{Value, json};

use compare::{Found, Sort, compare};
use oracle::{Answer, Oracle};
use ours::Files;
use shrink::shrink;
use tally::Tally;

/// Cases in each run of the tests.
const CASES: u64 = 5_000;
/// How many cases are kept in memory with what the oracle says of them: 1 GB.
const AT_ONCE: usize = 5_000;
/// The seed where none is asked for.
const SEED: u64 = 20_261_127;
/// How many differences are shrunk and printed.
const SHOWN: usize = 8;

/// Cases that were found once, a line each, with the reason why they are kept.
const KEPT: &str = include_str!("kept.jsonl");

fn seed() -> u64 {
    match std::env::var("GPU_BATCH_SEED").as_deref() {
        Ok("new") => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos()) ^ now.as_secs()
        }
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => SEED,
    }
}

/// How many cases are compared. Other tests take a folder by the same name, which is no number.
fn cases() -> u64 {
    let asked = std::env::var("GPU_BATCH_CASES").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(CASES)
}

/// A case, what the oracle says of it, and what came of the comparison.
struct Compared {
    family: &'static str,
    case: Value,
    found: Found,
}

/// Compares the cases of these numbers. `None` without an oracle.
fn compare_all(
    seed: u64,
    numbers: std::ops::Range<u64>,
    lie_every: usize,
) -> Option<Vec<Compared>> {
    let mut oracle = Oracle::start(lie_every)?;
    let cases: Vec<_> = numbers.map(|number| families::case(seed, number)).collect();
    let lines: Vec<String> = cases.iter().map(|(_, case)| case.to_string()).collect();
    let answers: Vec<Answer> = oracle.ask_all(&lines);
    let files = Files::new();
    let compared = cases
        .into_iter()
        .zip(answers)
        .map(|((family, case), answer)| Compared {
            family,
            found: compare(&case, &answer, &files),
            case,
        });
    Some(compared.collect())
}

/// Compares the cases of these numbers in two halves at once, each with an oracle of its own.
fn compare_in_halves(seed: u64, numbers: std::ops::Range<u64>) -> Option<Vec<Compared>> {
    let middle = numbers.start.midpoint(numbers.end);
    let halves = [numbers.start..middle, middle..numbers.end];
    let compared: Option<Vec<Vec<Compared>>> = std::thread::scope(|scope| {
        let work = halves.map(|numbers| scope.spawn(move || compare_all(seed, numbers, 0)));
        work.into_iter().map(|half| half.join().unwrap()).collect()
    });
    Some(compared?.into_iter().flatten().collect())
}

/// Shrinks and prints differences, of those in equal words one; how many there were.
fn show<'a>(differences: impl Iterator<Item = (&'a Value, Sort, &'a str)>) -> usize {
    let mut oracle = Oracle::start(0).unwrap();
    let files = Files::new();
    let mut known = BTreeSet::new();
    let mut count = 0;
    for (case, sort, words) in differences {
        count += 1;
        // Which node it is does not make another difference.
        let words = words.split_once(": ").map_or(words, |(_, words)| words);
        let words = words.replace(|char: char| char.is_ascii_digit(), "");
        if known.len() < SHOWN && known.insert((sort, words)) {
            let (case, words) = smallest(case, sort, &mut oracle, &files);
            eprintln!("\n{sort:?}: {words}\n{}", json!({"why": "", "case": case}));
        }
    }
    count
}

/// The smallest case in which the two still differ so, and how.
fn smallest(case: &Value, sort: Sort, oracle: &mut Oracle, files: &Files) -> (Value, String) {
    let fields = |answer: &Answer| -> BTreeSet<String> {
        let fields = answer.refused.iter().map(|one| one.field.clone());
        fields.collect()
    };
    let known = fields(&oracle.ask(&case.to_string()));
    shrink(case, |smaller| {
        let answer = oracle.ask(&smaller.to_string());
        let found = compare(smaller, &answer, files);
        // A mistake that was not there before is no part of the difference.
        let same = fields(&answer).is_subset(&known);
        let (_, words) = found.difference.filter(|(now, _)| same && *now == sort)?;
        Some(words)
    })
}

#[test]
fn nodes_and_pods_are_judged_as_kubernetes_judges_them() {
    let (seed, count, start) = (seed(), cases(), Instant::now());
    eprintln!("{count} cases of GPU_BATCH_SEED={seed}");
    let (mut tally, mut different) = (Tally::default(), Vec::new());
    for from in (0..count).step_by(AT_ONCE) {
        let to = count.min(from + AT_ONCE as u64);
        let Some(compared) = compare_in_halves(seed, from..to) else {
            return;
        };
        tally.add(&compared);
        let differs = |one: &Compared| one.found.difference.is_some();
        different.extend(compared.into_iter().filter(differs));
    }
    eprintln!("{tally}in {:.1} s", start.elapsed().as_secs_f32());
    let differences = different.iter().filter_map(|one| {
        let (sort, words) = one.found.difference.as_ref()?;
        Some((&one.case, *sort, words.as_str()))
    });
    let count = show(differences);
    assert_eq!(
        count, 0,
        "differences, of which the first are above; seed {seed}"
    );
    tally.check();
}

#[test]
fn kept_cases_are_judged_as_kubernetes_judges_them() {
    let Some(mut oracle) = Oracle::start(0) else {
        return;
    };
    let files = Files::new();
    for line in KEPT.lines().filter(|line| !line.trim().is_empty()) {
        let kept: Value = serde_json::from_str(line).unwrap();
        let (why, case) = (&kept["why"], &kept["case"]);
        let found = compare(case, &oracle.ask(&case.to_string()), &files);
        assert!(!found.skipped, "{why}: nothing is compared");
        if let Some((sort, words)) = found.difference {
            panic!("{why}: {sort:?}: {words}\n{line}");
        }
    }
}

/// The comparison is worth nothing if it cannot fail.
#[test]
fn every_lie_of_the_oracle_is_found() {
    const EVERY: usize = 100;
    let Some(compared) = compare_all(seed(), 0..6_000, EVERY) else {
        return;
    };
    let lies = || compared.iter().skip(EVERY - 1).step_by(EVERY);
    let missed = lies().filter(|lie| lie.found.difference.is_none());
    let missed: Vec<&Compared> = missed.collect();
    let skipped = missed.iter().filter(|lie| lie.found.skipped).count();
    for lie in missed.iter().filter(|lie| !lie.found.skipped) {
        eprintln!("{}: {}", lie.family, lie.case);
    }
    assert_eq!(missed.len(), skipped, "lies that were believed");
    assert!(
        skipped <= 2,
        "{skipped} of 60 lies are about pods that are skipped"
    );
    let found = lies().filter_map(|lie| lie.found.difference.as_ref());
    let scores: Vec<&str> = found
        .filter(|(sort, _)| *sort == Sort::Scores)
        .map(|(_, words)| words.as_str())
        .collect();
    for (plugin, _) in compare::plugins(&PreferenceScores::default()) {
        let of_plugin = format!("{plugin} scores");
        let is_found = scores.iter().any(|words| words.contains(&of_plugin));
        assert!(is_found, "no lie about {of_plugin} among {scores:#?}");
    }
}

/// As users meet it: the program ends with code 2 and names the fields, which the other tests
/// compare with the API server's.
#[test]
fn plan_ends_with_code_2_and_the_field_where_the_api_server_refuses() {
    let Some(compared) = compare_all(seed(), 0..400, 0) else {
        return;
    };
    let files = Files::new();
    let refused = compared.iter().filter(|one| one.found.refused);
    let mut count = 0;
    for Compared { case, .. } in refused.take(25) {
        let output = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
            .args(["plan", "-f"])
            .arg(files.write(case))
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}\n{case}");
        for mistake in files.judge(case).unwrap_err() {
            let told = format!("{}: {}", mistake.object, mistake.field);
            assert!(error.contains(&told), "{error}\n{told}\n{case}");
        }
        count += 1;
    }
    assert_eq!(count, 25);
}
