//! How large things may be.

use crate::source::Source;
use crate::{check, hold};

const FILE_LINES_MAX: usize = 800;
const FILE_LINES_MEDIAN_MAX: usize = 250;
/// Of code: blank lines and comments do not count.
const FUNCTION_LINES_MAX: usize = 69;
const COLUMNS_MAX: usize = 100;

fn long_files(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    let message = format!("{lines} lines, at most {FILE_LINES_MAX} are allowed");
    vec![source.at(lines, &message)]
}

/// Comments everywhere, and the code that users run. A long literal is as long as it is: breaking
/// it would hide it from searches.
fn long_lines(source: &Source) -> Vec<String> {
    let columns = |line: &str| line.chars().count();
    let production = source.production();
    let lines = source.text.lines().zip(production);
    lines
        .filter(|(text, (_, code))| {
            let is_comment = text.trim_start().starts_with("//");
            columns(if is_comment { text } else { code }) > COLUMNS_MAX
        })
        .map(|(_, (number, _))| source.at(number, &format!("more than {COLUMNS_MAX} columns")))
        .collect()
}

/// Relies on rustfmt: a function ends with the first `}` under its first letter. Lines that hold
/// only a comment do not count.
fn long_functions(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    let lines = source.production();
    for (index, (number, line)) in lines.iter().enumerate() {
        if !begins_function(line) || line.ends_with('}') || line.ends_with(';') {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let body = lines[index + 1..].iter().map(|(_, line)| line.trim_end());
        let length = body
            .take_while(|line| *line != end)
            .filter(|line| !line.trim().is_empty())
            .count();
        if length > FUNCTION_LINES_MAX {
            let message = format!("a function of {length} lines, {FUNCTION_LINES_MAX} are allowed");
            violations.push(source.at(*number, &message));
        }
    }
    violations
}

fn begins_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let before = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "const",
        "async",
        "extern",
    ];
    words.find(|word| !before.contains(word)) == Some("fn")
}

fn old_module_files(source: &Source) -> Vec<String> {
    let old = source.path.ends_with("/mod.rs");
    let message = "`foo.rs` beside `foo/`, so that tabs and searches tell modules apart";
    old.then(|| source.at(1, message)).into_iter().collect()
}

#[test]
fn no_file_is_too_long() {
    hold(long_files);
    check(long_files, "src/a.rs", &"\n".repeat(800), &[]);
    check(long_files, "src/a.rs", &"\n".repeat(801), &[801]);
}

#[test]
fn most_files_are_short() {
    let mut lengths: Vec<usize> = Source::all()
        .iter()
        .map(|source| source.text.lines().count())
        .collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(
        median < FILE_LINES_MEDIAN_MAX,
        "the median is {median} lines"
    );
}

#[test]
fn no_line_is_too_long() {
    hold(long_lines);
    let long = "x".repeat(101);
    let text = format!("{}\n{long}\n// {long}\n\"{long}\"\n", "é".repeat(100));
    check(long_lines, "src/a.rs", &text, &[2, 3]);
}

#[test]
fn no_function_is_too_long() {
    hold(long_functions);
    let function = |lines| {
        let body = "        a();\n\n        // b\n".repeat(lines);
        format!("impl A {{\n    pub(crate) const fn b(\n    ) {{\n{body}    }}\n}}\n")
    };
    // The line that closes the parameters counts too.
    check(long_functions, "src/a.rs", &function(68), &[]);
    check(long_functions, "src/a.rs", &function(69), &[2]);
    check(long_functions, "src/tests.rs", &function(70), &[]);
}

#[test]
fn modules_lie_beside_their_folders() {
    hold(old_module_files);
    check(old_module_files, "src/a/mod.rs", "", &[1]);
    check(old_module_files, "src/a.rs", "", &[]);
}
