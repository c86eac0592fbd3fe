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

/// Where the links of a page lead that are not to other sites.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("](")
        .filter_map(|(start, _)| text[start + 2..].split(')').next())
        .filter(|link| !link.contains("://"))
}

/// Relative links of a page that lead nowhere: to a file or a heading that is not there.
fn broken_links(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap();
    let leads_somewhere = |link: &&str| {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        if file.is_empty() {
            return anchors(text).contains(heading);
        }
        let target = root().join(folder).join(file);
        let has_heading = || {
            let page = std::fs::read_to_string(&target);
            page.is_ok_and(|page| anchors(&page).contains(heading))
        };
        target.exists() && (heading.is_empty() || has_heading())
    };
    links(text)
        .filter(|link| !leads_somewhere(link))
        .map(|link| format!("{path}: {link} does not exist"))
        .collect()
}

/// The headings of a page as links name them: small letters, hyphens for spaces, no other signs.
fn anchors(text: &str) -> BTreeSet<String> {
    let levels = (1..=6).flat_map(|level| headings(text, level));
    let anchor = |heading: String| -> String {
        let chars = heading.chars().filter_map(|char| match char {
            ' ' => Some('-'),
            '-' | '_' => Some(char),
            _ => char.is_alphanumeric().then(|| char.to_ascii_lowercase()),
        });
        chars.collect()
    };
    levels.map(anchor).collect()
}

/// How many bytes the pages may have that everybody reads first.
const PAGE_BYTES_MAX: [(&str, usize); 2] = [("README.md", 10_000), ("ARCHITECTURE.md", 14_000)];

/// The violation of a page that is longer than a newcomer reads.
fn long_page(path: &str, text: &str) -> Option<String> {
    let (_, max) = PAGE_BYTES_MAX.iter().find(|(page, _)| *page == path)?;
    let bytes = text.len();
    (bytes > *max).then(|| format!("{path}: {bytes} bytes, at most {max} are allowed"))
}

/// The pages beside an index to which it has no link.
fn unlisted(index: &str, pages: &[&str]) -> Vec<String> {
    let listed: BTreeSet<&str> = links(index)
        .filter_map(|link| link.split('#').next())
        .collect();
    let missing = pages.iter().filter(|page| !listed.contains(*page));
    missing
        .map(|page| format!("docs/README.md: no link to {page}"))
        .collect()
}

/// The names under which metrics are registered.
fn metrics() -> Vec<String> {
    let source = read("src/handles/metrics.rs");
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
fn every_command_is_in_the_documentation() {
    let pages = files(&["md"]).into_iter();
    let pages = pages.filter(|(path, _)| path == "README.md" || path.starts_with("docs/"));
    let mut known = BTreeSet::new();
    for (_, text) in pages {
        known.extend(mentioned(&text));
        let lines = command_lines(&text).into_iter();
        known.extend(lines.map(|mut words| words.swap_remove(0)));
    }
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
    let page = "# E: `f -g`\n[a](Cargo.toml) [b](nowhere.md#c) [d](#e-f--g) [h](#i)\n\
                [j](https://example.com) [k](docs/reasons.md#no-such-reason)\n";
    let broken = broken_links("README.md", page);
    assert_eq!(broken.len(), 3, "{broken:?}");
}

#[test]
fn the_first_pages_are_short() {
    let long = PAGE_BYTES_MAX.map(|(path, _)| long_page(path, &read(path)));
    assert_none(&long.into_iter().flatten().collect::<Vec<_>>());
    for (path, max) in PAGE_BYTES_MAX {
        assert_eq!(long_page(path, &"x".repeat(max)), None);
        assert!(long_page(path, &"x".repeat(max + 1)).is_some());
    }
    assert_eq!(long_page("docs/reasons.md", &"x".repeat(20_000)), None);
}

#[test]
fn the_index_has_every_page() {
    let pages = files(&["md"]).into_iter();
    let pages: Vec<String> = pages
        .filter_map(|(path, _)| path.strip_prefix("docs/").map(str::to_owned))
        .filter(|page| page != "README.md")
        .collect();
    assert!(pages.len() > 10, "{pages:?}");
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    assert_none(&unlisted(&read("docs/README.md"), &pages));
    let index = "[a](a.md) [b](b.md#c) [d](../d.md)";
    assert_eq!(
        unlisted(index, &["a.md", "b.md", "d.md"]),
        ["docs/README.md: no link to d.md"]
    );
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
