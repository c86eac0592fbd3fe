//! Words that do not occur.

use crate::source::{Source, files, has_word};
use crate::{assert_none, check, hold};

/// Words that are wrong wherever they stand, also in tests.
const NEVER: &[(&str, &str)] = &[
    ("unsafe", "nothing here needs it"),
    ("todo!", "finish it or leave it out"),
    ("unimplemented!", "finish it or leave it out"),
    ("dbg!", "left over"),
    (
        "#[allow",
        "`#[expect(lint, reason = ...)]` fails when it is not needed any more",
    ),
    (
        "#![allow",
        "`#![expect(lint, reason = ...)]` fails when it is not needed any more",
    ),
    (
        "#[should_panic",
        "compare the result instead: any panic at all would pass",
    ),
];

/// Words that may stand nowhere in the repository: notes to oneself and the paths of one machine.
/// In pieces, so that this file does not break the rule.
const IN_NO_TEXT: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "finish it or leave it out"),
    (concat!("FIX", "ME"), "finish it or leave it out"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/t", "mp/"), "a path of one machine"),
];

/// A test that is only there to be started by another test, as a process of its own.
const CHILD_PROCESS: &str = "#[ignore = \"started by other tests\"]";

fn words(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    for (index, line) in source.code.lines().enumerate() {
        for (word, because) in NEVER {
            if occurs(line, word) {
                violations.push(source.at(index + 1, &format!("`{word}`: {because}")));
            }
        }
    }
    for (number, line) in source.production() {
        if line.contains(".unwrap()") {
            violations.push(source.at(number, "`unwrap`: say with `expect` why it cannot fail"));
        }
    }
    violations
}

/// Names stand alone; what has other characters at its ends may stand anywhere.
fn occurs(line: &str, word: &str) -> bool {
    match word.starts_with('#') {
        true => line.contains(word),
        false => has_word(line, word),
    }
}

fn skipped_tests(source: &Source) -> Vec<String> {
    let text = source.text.lines();
    let code = source.code.lines();
    text.zip(code)
        .enumerate()
        .filter(|(_, (text, code))| code.contains("#[ignore") && text.trim() != CHILD_PROCESS)
        .map(|(index, _)| source.at(index + 1, "a test that is not run proves nothing"))
        .collect()
}

fn text(path: &str, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (word, because) in IN_NO_TEXT {
            if line.contains(word) {
                violations.push(format!("{path}:{}: `{word}`: {because}", index + 1));
            }
        }
    }
    violations
}

/// Every file says what it is about. Tests say it with their names, and a command of the program
/// with the help that it prints.
fn module_documentation(source: &Source) -> Vec<String> {
    let says_so_otherwise = source.is_test || source.path.starts_with("src/cli/");
    let missing = !says_so_otherwise && !source.text.starts_with("//!");
    let message = "begin with a `//!` sentence: what is here, and what is not";
    missing.then(|| source.at(1, message)).into_iter().collect()
}

#[test]
fn no_word_of_haste() {
    hold(words);
    check(words, "src/a.rs", "a.unwrap();\n// b.unwrap()\n", &[1]);
    check(words, "src/tests.rs", "a.unwrap();\n#[allow(b)]\n", &[2]);
    check(
        words,
        "src/a.rs",
        "todo!()\nlet a = \"todo!\";\nunsafe {}\n",
        &[1, 3],
    );
    check(words, "src/a.rs", "#![forbid(unsafe_code)]\n", &[]);
}

#[test]
fn no_test_is_skipped() {
    hold(skipped_tests);
    let snippet = format!("#[ignore]\n{CHILD_PROCESS}\n#[ignore = \"slow\"]\n");
    check(skipped_tests, "tests/a.rs", &snippet, &[1, 3]);
}

#[test]
fn no_notes_and_no_paths_of_one_machine() {
    let mut violations = Vec::new();
    for (path, content) in files(&["rs", "md", "toml", "yaml", "json", "sh", "run", "mod"]) {
        violations.extend(text(&path, &content));
    }
    assert_none(&violations);
    let found = text("a.md", concat!("a\n# FIX", "ME\n/ro", "ot/b\nroot/c\n"));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn every_file_says_what_it_is_about() {
    hold(module_documentation);
    check(module_documentation, "src/a.rs", "use b;\n", &[1]);
    check(module_documentation, "src/a.rs", "//! B.\n", &[]);
    check(module_documentation, "src/a/tests.rs", "use b;\n", &[]);
}
