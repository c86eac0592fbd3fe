//! The samples of docs/first-steps.md and of the README, on the cluster that newcomers are told to
//! start.
//!
//! Each command runs as it stands there, in one shell after the other. What is printed must be what
//! stands below it, but for ages, the letters at the end of generated names, addresses and paths.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;

use crate::demo::CLUSTER;
use crate::harness::{self, processes_that_name, wait_for};

/// How long it may take until a question is answered as on the page.
const PATIENCE: Duration = Duration::from_secs(40);

/// A command and what is printed below it.
#[derive(Debug)]
struct Sample {
    command: String,
    printed: String,
}

/// The samples of the blocks that are consoles, from one heading of a page to another one.
fn samples(page: &str, from: &str, to: &str) -> Vec<Sample> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(page).unwrap();
    let text = text.split(from).nth(1).unwrap().split(to).next().unwrap();
    let mut samples: Vec<Sample> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), samples.last_mut()) {
                (Some(command), _) => samples.push(Sample {
                    command: command.to_owned(),
                    printed: String::new(),
                }),
                (None, Some(sample)) => sample.printed += &format!("{line}\n"),
                (None, None) => panic!("{line} is no command"),
            }
        }
    }
    samples
}

/// The pods of the gang `near` in the rack of the page: of two pods that are deleted together,
/// chance says which one's rack is free first.
fn in_the_same_rack(text: &str) -> String {
    let other_rack = ["near-0", "h100-1", "h100-3"];
    match other_rack.iter().all(|word| text.contains(word)) {
        true => text.replace("h100-1", "h100-0").replace("h100-3", "h100-2"),
        false => text.to_owned(),
    }
}

/// A text without what differs from run to run, line by line.
fn plain(text: &str) -> Vec<String> {
    let text = in_the_same_rack(text);
    let lines = text.trim_end().lines();
    lines
        .map(|line| {
            let words: Vec<String> = line.split_whitespace().map(plain_word).collect();
            words.join(" ")
        })
        .collect()
}

fn plain_word(word: &str) -> String {
    let age = word.strip_suffix(['s', 'm', 'h']);
    if age.is_some_and(|age| age.starts_with(|c: char| c.is_ascii_digit())) {
        return "AGE".to_owned();
    }
    if word.starts_with("10.0.") || word.starts_with("http://127.0.0.1:") {
        return "ADDRESS".to_owned();
    }
    // On the page, DIR stands for a folder.
    let (before, in_folder) = word.split_once('/').unwrap_or((word, ""));
    let before = before.trim_end_matches("DIR");
    if !in_folder.is_empty() && (before.is_empty() || before.ends_with('=')) {
        return format!("{before}PATH");
    }
    if word.starts_with("PATH=") {
        return "PATH=PATH".to_owned();
    }
    match word.rsplit_once('-') {
        Some((name, letters))
            if letters.len() == 5 && name.ends_with(|c: char| c.is_ascii_digit()) =>
        {
            format!("{name}-LETTERS")
        }
        _ => word.to_owned(),
    }
}

/// Standard output and error of a command, as on a terminal.
async fn run(command: &str, setting: &str, temporary: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let path = std::env::var("PATH").unwrap();
    let folder = program.parent().unwrap().display();
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{setting}\n{command}")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TMPDIR", temporary)
        .env("PATH", format!("{folder}:{path}"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether a command only asks, so that it can be asked again until the cluster has come so far.
fn asks(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    matches!(words[..], ["kubectl", "get", ..] | ["gpu-batch", ..])
}

#[tokio::test]
async fn the_first_steps_print_what_the_readme_and_their_page_say() {
    let mut programs = CLUSTER.programs();
    programs.push(gpu_batch::lab::local::Program::Kubectl);
    if harness::binaries_of(programs).await.is_none() {
        return;
    }
    let page = "docs/first-steps.md";
    let mut first_steps = samples(page, "## A cluster to follow along", "## Roles and slices");
    assert!(first_steps.len() > 13, "{first_steps:?}");
    let of_readme = samples("README.md", "## A first gang", "## Where to go");
    assert_eq!(of_readme.len(), 3, "{of_readme:?}");
    first_steps.extend(of_readme);
    let (start, steps) = first_steps.split_first().unwrap();
    assert_eq!(start.command, "gpu-batch demo --empty --nodes 4");
    let temporary = tempfile::tempdir().unwrap();
    let started = run(&start.command, "", temporary.path()).await;
    assert_eq!(plain(&started), plain(&start.printed), "{started}");
    let line = |word: &str| {
        let mut lines = started.lines();
        lines
            .find_map(|line| line.trim().split_once(word))
            .unwrap()
            .1
    };
    let setting = format!("export {}", line("export "));
    for Sample { command, printed } in steps {
        let began = Instant::now();
        loop {
            let found = run(command, &setting, temporary.path()).await;
            if plain(&found) == plain(printed) {
                break;
            }
            let late = !asks(command) || began.elapsed() > PATIENCE;
            assert!(!late, "$ {command}\n{found}\nand not\n{printed}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    run(&format!("touch {}", line(" touch ")), "", temporary.path()).await;
    wait_for("end", async || {
        processes_that_name(temporary.path()).is_empty()
    })
    .await;
}

#[test]
fn only_what_differs_from_run_to_run_is_left_out() {
    let line = |pod: &str, age: &str| format!("{pod}   1/1  Running  {age}  10.0.0.3  h100-2");
    assert_eq!(
        plain(&line("near-0-bs2jq", "37s")),
        plain(&line("near-0-x9x9x", "2m5s"))
    );
    assert_ne!(
        plain(&line("near-0-bs2jq", "1s")),
        plain(&line("near-1-bs2jq", "1s"))
    );
    assert_eq!(plain("team-vision 24"), ["team-vision 24"]);
    assert_eq!(plain("touch DIR/stop"), plain("touch /a/b/stop"));
    let asks = |port| format!("gpu-batch gangs --server http://127.0.0.1:{port}");
    assert_eq!(plain(&asks("PORT")), plain(&asks("40123")));
}
