//! What the demo prints at its end.

use super::check::Check;
use super::table::{Counts, clock, phases, reasons};
use super::witness::{Course, Witness};
use crate::handles::inbox::Reports;
use console::{Term, style};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How many violations of one promise are named.
const VIOLATIONS_SHOWN: usize = 10;
/// How many gangs that wait are named.
const WAITING_SHOWN: usize = 8;
/// How many pods of a gang that has not ended are named.
const PODS_SHOWN: usize = 3;
/// The columns before a reason.
const NAME_COLUMNS: usize = 15;

/// GPUs in use over the time in which at least one gang waited that could start.
#[derive(Debug, Default)]
pub(super) struct Utilisation {
    used_ms: u128,
    all_ms: u128,
}

impl Utilisation {
    /// Adds a time in which the use was as it is now.
    pub(super) fn add(&mut self, witness: &Witness, lasted: Duration) {
        if witness.is_short_of_room() {
            let (used, all) = witness.gpus();
            self.used_ms += u128::from(used) * lasted.as_millis();
            self.all_ms += u128::from(all) * lasted.as_millis();
        }
    }

    fn percent(&self) -> u128 {
        self.used_ms * 100 / self.all_ms.max(1)
    }
}

/// Prints what happened, what was checked against `source`, and what still waits.
pub(super) fn print(
    witness: &Witness,
    reports: &Reports,
    utilisation: &Utilisation,
    (source, checks): (&str, &[Check]),
    (elapsed, now): (Duration, Instant),
) {
    print_figures(witness, utilisation, elapsed, now);
    say!();
    say!("{}", style(format!("Checked against {source}")).bold());
    for check in checks {
        let verdict = if check.violations.is_empty() {
            style("ok").green()
        } else {
            style("VIOLATED").red().bold()
        };
        say!("  {verdict:<4} {:<27} {}", check.promise, check.extent);
        for violation in check.violations.iter().take(VIOLATIONS_SHOWN) {
            say!("       {violation}");
        }
        let more = check.violations.len().saturating_sub(VIOLATIONS_SHOWN);
        if more > 0 {
            say!("       and {more} more");
        }
    }
    print_running(witness, reports, now);
    print_waiting(witness, reports);
}

fn print_figures(witness: &Witness, utilisation: &Utilisation, elapsed: Duration, now: Instant) {
    let courses = || witness.courses.values();
    let submitted = courses().filter(|course| course.submitted.is_some());
    let started = courses().filter(|course| course.started.is_some());
    let mut waits: Vec<Duration> = started.map(|course| course.waited(now)).collect();
    waits.sort();
    let counts = Counts::of(witness);
    say!();
    say!(
        "{}",
        style(format!("Summary after {}", clock(elapsed))).bold()
    );
    say!(
        "  gangs        {} submitted, {} started, {} ended, {} running, {} waiting",
        submitted.count(),
        waits.len(),
        counts.ended,
        counts.running,
        counts.waiting,
    );
    say!(
        "  pods         {} bound, {}",
        witness.binds,
        evicted(&witness.evictions)
    );
    say!(
        "  waiting time {} median, {} at the 95th percentile, {} at most",
        seconds(quantile(&waits, 50)),
        seconds(quantile(&waits, 95)),
        seconds(quantile(&waits, 100)),
    );
    let (_, all) = witness.gpus();
    say!(
        "  GPUs         {}% of {all} in use while gangs waited for some",
        utilisation.percent(),
    );
}

/// `12 evicted: 8 of team-a, 4 of team-b`. The witness sees that pods were taken, not why.
fn evicted(evictions: &BTreeMap<&str, u64>) -> String {
    if evictions.is_empty() {
        return "0 evicted".to_owned();
    }
    let all: u64 = evictions.values().sum();
    let from = evictions
        .iter()
        .map(|(queue, pods)| format!("{pods} of {queue}"));
    let from = from.collect::<Vec<_>>().join(", ");
    format!("{all} evicted: {from}")
}

/// Names the gangs that have started and not ended, and their pods that have not ended.
fn print_running(witness: &Witness, reports: &Reports, now: Instant) {
    let courses = witness.courses.values();
    let running: Vec<&Course> = courses.filter(|course| course.is_running()).collect();
    if running.is_empty() {
        return;
    }
    let phases = phases(reports);
    say!();
    say!("{}", style("Not ended, and what is left of it").bold());
    for course in running.iter().take(WAITING_SHOWN) {
        let name = course.gang.name.as_str();
        let phase = phases.get(name).map(String::as_str);
        print_named(name, &remainder(course, &witness.unended(name), phase, now));
    }
    let more = running.len().saturating_sub(WAITING_SHOWN);
    if more > 0 {
        say!("  and {more} more");
    }
}

/// `Running; for 62.0 s, where each pod runs for 12 s: 3 of 4 pods have ended; not yet: ...`.
fn remainder(
    course: &Course,
    unended: &BTreeMap<&str, Option<&str>>,
    phase: Option<&str>,
    now: Instant,
) -> String {
    let phase = phase.unwrap_or("unknown to the scheduler");
    let started = course.started.unwrap_or(now);
    let lasted = seconds(now.saturating_duration_since(started));
    let (finished, pods, run_s) = (course.finished, course.gang.pods, course.gang.run_s);
    let mut text = format!(
        "{phase}; for {lasted}, where each pod runs for {run_s} s: {finished} of {pods} pods have ended"
    );
    let shown = unended.iter().take(PODS_SHOWN);
    let mut left: Vec<String> = shown
        .map(|(pod, node)| match node {
            Some(node) => format!("{pod} on {node}"),
            None => format!("{pod} without a node"),
        })
        .collect();
    if let more @ 1.. = unended.len().saturating_sub(PODS_SHOWN) {
        left.push(format!("{more} more"));
    }
    if !left.is_empty() {
        text.push_str(&format!("; not yet: {}", left.join(", ")));
    }
    text
}

/// A line with a name, and more lines if the text is long.
fn print_named(name: &str, text: &str) {
    let (_, columns) = Term::stdout().size();
    let width = usize::from(columns).clamp(60, 120) - NAME_COLUMNS;
    for (number, line) in wrapped(text, width).into_iter().enumerate() {
        say!("  {:<12} {line}", if number == 0 { name } else { "" });
    }
}

/// Why a gang waits of which the scheduler knows nothing: none of its pods exist.
fn unknown(course: &Course) -> &'static str {
    match course.started {
        Some(_) => "its pods were evicted; its Job makes them anew after a pause",
        None => "submitted a moment ago",
    }
}

fn print_waiting(witness: &Witness, reports: &Reports) {
    let mut waiting: Vec<&Course> = witness
        .courses
        .values()
        .filter(|course| course.is_waiting())
        .collect();
    if waiting.is_empty() {
        return;
    }
    waiting.sort_by_key(|course| (!course.gang.hopeless, course.submitted));
    let reasons = reasons(reports);
    say!();
    say!("{}", style("Still waiting, and why").bold());
    for course in waiting.iter().take(WAITING_SHOWN) {
        let name = course.gang.name.as_str();
        let why = reasons.get(name).map_or(unknown(course), String::as_str);
        print_named(name, why);
    }
    let more = waiting.len().saturating_sub(WAITING_SHOWN);
    if more > 0 {
        say!("  and {more} more");
    }
}

/// The words of a text in lines of at most `width` characters; a longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + word.chars().count() < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The smallest of the sorted values that `percent` of them do not exceed.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::demo::workload;

    #[test]
    fn a_text_is_wrapped_between_words() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("abcdef g", 4), ["abcdef", "g"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn what_is_left_of_a_gang_is_named() {
        let gangs = workload::gangs(1, Duration::from_secs(60));
        let gang = gangs.into_iter().find(|gang| !gang.hopeless);
        let mut witness = Witness::new(gang.into_iter().collect(), &[]);
        let now = Instant::now();
        let Some(course) = witness.courses.values_mut().next() else {
            panic!("there is a gang");
        };
        course.started = now.checked_sub(Duration::from_secs(62));
        (course.gang.pods, course.gang.run_s, course.finished) = (6, 12, 2);
        let unended = [
            ("p-2", Some("n1")),
            ("p-3", None),
            ("p-4", None),
            ("p-5", None),
        ];
        assert_eq!(
            remainder(course, &BTreeMap::from(unended), Some("Running"), now),
            "Running; for 62.0 s, where each pod runs for 12 s: 2 of 6 pods have ended; not yet: \
             p-2 on n1, p-3 without a node, p-4 without a node, 1 more"
        );
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let check = |values: &[u64], percent, expected| {
            let values: Vec<Duration> = values.iter().copied().map(Duration::from_secs).collect();
            assert_eq!(quantile(&values, percent), Duration::from_secs(expected));
        };
        check(&[], 95, 0);
        check(&[7], 50, 7);
        check(&[1, 2, 3, 4], 50, 2);
        check(&[1, 2, 3, 4], 95, 4);
        check(&[1, 2, 3, 4], 100, 4);
    }
}
