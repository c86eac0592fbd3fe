//! Documentation that stays true.

use crate::assert_none;
use crate::source::{files, read, root};
use gpu_batch_policies::reason::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Command lines of `gpu-batch` in the fenced blocks of a text: the arguments.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("```").skip(1).step_by(2);
    blocks
        .flat_map(|block| {
            block
                .replace("\\\n", " ")
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter_map(|line| arguments(line.trim().trim_start_matches("$ ")))
        .collect()
}

fn arguments(line: &str) -> Option<Vec<String>> {
    let rest = line
        .strip_prefix("gpu-batch ")
        .or_else(|| line.strip_prefix("cargo run --release -- "))?;
    let words = rest.split(['|', '>', '#']).next()?.split_whitespace();
    Some(words.map(str::to_owned).collect())
}

/// Subcommands that a text mentions as `gpu-batch NAME`.
fn mentioned(text: &str) -> BTreeSet<String> {
    text.match_indices("`gpu-batch ")
        .filter_map(|(start, found)| text[start + found.len()..].split([' ', '`', '\n']).next())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What `gpu-batch ... --help` prints; `Err` if there is no such command.
fn help(words: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .args(words)
        .arg("--help")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(format!("no such command: gpu-batch {}", words.join(" "))),
    }
}

/// The subcommands in the help of the program or of one command.
fn subcommands(help: &str) -> Vec<String> {
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    let names = list.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let own = |name: &&str| !name.is_empty() && *name != "help";
    names.filter(own).map(str::to_owned).collect()
}

/// Commands and options of a text that the program does not have.
fn unknown_commands(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for name in mentioned(text) {
        problems.extend(help(&[&name]).err());
    }
    for words in command_lines(text) {
        let mut command = vec![&*words[0]];
        let mut page = help(&command);
        if let Some(nested) = words.get(1)
            && page
                .as_ref()
                .is_ok_and(|page| subcommands(page).contains(nested))
        {
            command.push(nested);
            page = help(&command);
        }
        match page {
            Err(problem) => problems.push(problem),
            Ok(page) => {
                let options = words
                    .iter()
                    .filter(|word| word.starts_with('-') && *word != "-");
                let unknown = options.filter(|option| !page.contains(&***option));
                problems.extend(unknown.map(|option| format!("{}: {option}", command.join(" "))));
            }
        }
    }
    problems
}

/// Headings of a level, without the marks of code.
fn headings(text: &str, level: usize) -> Vec<String> {
    let mark = format!("{} ", "#".repeat(level));
    let lines = text.lines().filter_map(|line| line.strip_prefix(&mark));
    lines.map(|heading| heading.replace('`', "")).collect()
}

/// Relative links of a page that lead nowhere.
fn broken_links(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap();
    text.match_indices("](")
        .filter_map(|(start, _)| text[start + 2..].split([')', '#']).next())
        .filter(|link| !link.is_empty() && !link.contains("://"))
        .filter(|link| !root().join(folder).join(link).exists())
        .map(|link| format!("{path}: {link} does not exist"))
        .collect()
}

/// The names under which metrics are registered.
fn metrics() -> Vec<String> {
    let source = read("src/serve/metrics.rs");
    let registered = source.split(".register(").skip(1);
    let names = registered.filter_map(|rest| rest.split('"').nth(1));
    names.map(str::to_owned).collect()
}

#[test]
fn commands_in_the_documentation_exist() {
    for path in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        assert_none(&unknown_commands(&read(path)));
    }
    for (path, text) in files(&["md"]) {
        if path.starts_with("docs/") {
            assert_none(&unknown_commands(&text));
        }
    }
    let wrong = "`gpu-batch plam`\n```sh\ngpu-batch plan --flie x\ngpu-batch crds | less -R\n```\n";
    let problems = unknown_commands(wrong);
    assert_eq!(
        problems,
        ["no such command: gpu-batch plam", "plan: --flie"]
    );
}

#[test]
fn every_command_is_in_the_readme() {
    let readme = read("README.md");
    let lines = command_lines(&readme)
        .into_iter()
        .map(|mut words| words.swap_remove(0));
    let known: BTreeSet<String> = mentioned(&readme).into_iter().chain(lines).collect();
    let commands = subcommands(&help(&[]).unwrap());
    assert!(commands.contains(&"run".to_owned()), "{commands:?}");
    let missing = commands.into_iter().filter(|name| !known.contains(name));
    assert_none(&missing.collect::<Vec<_>>());
}

#[test]
fn reasons_are_documented_once_each() {
    let documented = headings(&read("docs/reasons.md"), 3);
    let mut expected: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let mut found: Vec<&str> = documented.iter().map(String::as_str).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn metrics_are_documented() {
    let page = read("docs/metrics.md");
    let names = metrics();
    assert!(names.len() > 10, "{names:?}");
    let missing = names.into_iter().filter(|name| {
        let full = [format!("`gpu_batch_{name}"), format!("`{name}")];
        !full.iter().any(|name| page.contains(name))
    });
    assert_none(&missing.collect::<Vec<_>>());
}

#[test]
fn links_lead_somewhere() {
    for (path, text) in files(&["md"]) {
        assert_none(&broken_links(&path, &text));
    }
    let page = "[a](Cargo.toml) [b](nowhere.md#c) [d](#e) [f](https://example.com)";
    assert_eq!(broken_links("README.md", page).len(), 1);
}

/// The samples of the documentation are the files that were run: a block that follows
/// `<!-- FILE -->` has the text of that file.
#[test]
fn samples_are_the_files_that_they_name() {
    let mut seen = BTreeMap::new();
    for (path, text) in files(&["md"]) {
        for piece in text.split("<!-- ").skip(1) {
            let Some((name, rest)) = piece.split_once(" -->\n```") else {
                continue;
            };
            let sample = rest
                .split_once('\n')
                .unwrap()
                .1
                .split("```")
                .next()
                .unwrap();
            assert_eq!(sample, read(name), "{path}: the block is not {name}");
            seen.insert(name.to_owned(), path.clone());
        }
    }
    assert!(seen.contains_key("examples/first-gang.yaml"), "{seen:?}");
}
