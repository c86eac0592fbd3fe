//! The rules of this repository, as tests.
//!
//! `ARCHITECTURE.md` says why they exist. A rule is a function from a source file to the places
//! that break it; each is also tried on a snippet that does, because a rule that cannot fail
//! protects nothing.
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

mod circles;
mod dependencies;
mod documents;
mod image;
mod layers;
mod limits;
mod modules;
mod source;
mod words;

use source::Source;

/// Fails with all violations of a rule, not only the first.
#[track_caller]
fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// Holds every Rust file of the repository to a rule.
#[track_caller]
fn hold(rule: impl Fn(&Source) -> Vec<String>) {
    let sources = Source::all();
    assert!(sources.len() > 100, "only {} files found", sources.len());
    let violations: Vec<String> = sources.iter().flat_map(rule).collect();
    assert_none(&violations);
}

/// Tries a rule on a snippet: it is broken on these lines and on no others.
#[track_caller]
fn check(rule: impl Fn(&Source) -> Vec<String>, path: &str, text: &str, lines: &[usize]) {
    let found: Vec<usize> = rule(&Source::new(path, text.to_owned()))
        .iter()
        .map(|violation| violation.split(':').nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(found, lines, "in {path}:\n{text}");
}
