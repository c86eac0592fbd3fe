//! A copy of the sources in which all bugs are planted, each behind a switch: it is built once, and
//! run with one bug on at a time.

use super::bugs::{BUGS, Bug, Catcher};
use super::places::Sources;
use gpu_batch_simulator::run::{
    ALIGNED_SEEDS_FROM, CLAIMING_SEEDS_FROM, RELATED_SEEDS_FROM, RESERVING_SEEDS_FROM,
    SHARING_SEEDS_FROM,
};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The seeds that must catch every bug: those of each test run.
pub(crate) const SEEDS: Range<u64> = 0..20_000;
/// The seeds that must catch every bug in rules about other pods: those of each test run.
const RULES: Range<u64> = RELATED_SEEDS_FROM..RELATED_SEEDS_FROM + 150;
/// The seeds that must catch every bug in cards that are shared: those of each test run.
const CARDS: Range<u64> = SHARING_SEEDS_FROM..SHARING_SEEDS_FROM + 200;
/// The seeds that must catch every bug in what kubelets align: those of each test run.
const ALIGNMENT: Range<u64> = ALIGNED_SEEDS_FROM..ALIGNED_SEEDS_FROM + 200;
/// The seeds that must catch every bug in where volumes can be: those of each test run.
const VOLUMES: Range<u64> = CLAIMING_SEEDS_FROM..CLAIMING_SEEDS_FROM + 150;
/// The seeds that must catch every bug in promised starts: those of each test run.
const PROMISES: Range<u64> = RESERVING_SEEDS_FROM..RESERVING_SEEDS_FROM + 300;
/// The seeds that a copy without a bug must survive.
const HEALTHY_SEEDS: Range<u64> = 0..200;
const HEALTHY_PROMISES: Range<u64> = RESERVING_SEEDS_FROM..RESERVING_SEEDS_FROM + 20;
/// So many worlds are compared with brute force, and so many of a copy without a bug.
const WORLDS: u64 = 20_000;
const HEALTHY_WORLDS: u64 = 200;

/// Tells which bug is on. It belongs to `policies`, which cannot name `std` otherwise.
const SWITCH: &str = r#"
/// The bug that is on.
pub mod planted {
    extern crate std;
    static ON: std::sync::OnceLock<usize> = std::sync::OnceLock::new();

    /// Whether the bug of this number is on.
    pub fn is(number: usize) -> bool {
        let on = || std::env::var("PLANTED_BUG").map_or(0, |on| on.parse().expect("a number"));
        *ON.get_or_init(on) == number
    }
}
"#;

/// So many worlds are held against counting.
const COUNTED_WORLDS: u64 = 200;
/// In how many worlds gangs with promises must come to rest.
const RESTLESS_WORLDS: u64 = 2_000;
/// The tests of `policies` that catch bugs.
const TESTS: [&str; 2] = ["victims", "promises"];

/// A package of its own for these tests: as tests of `policies` they would be built with all that
/// the other tests there need. With the features of crates that the simulator turns
/// on, `policies` is built once for both.
const BRUTE_FORCE: &str = r#"[package]
name = "brute-force"
edition.workspace = true

[dev-dependencies]
fastrand.workspace = true
gpu-batch-policies.workspace = true
gpu-batch-testing.workspace = true
thiserror = { workspace = true, features = ["std"] }
"#;

/// Brute force takes most of the time of its tests.
const BRUTE_FORCE_PROFILE: &str = "
[profile.dev.package.brute-force]
opt-level = 1
";

/// A copy of the workspace without the root package, with a build folder of its own.
pub(crate) struct Workshop {
    folder: PathBuf,
}

/// What the seeds or brute force made of the copy with a bug on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A seed failed: its line.
    Caught(String),
    /// All seeds passed.
    Survived,
}

impl Workshop {
    /// Copies the sources into a folder below the one for test files, plants all bugs and builds.
    /// What was built there before is kept, so that a second run is quick.
    pub(crate) fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted-bugs");
        let workspace = workspace();
        let planted = Sources::read(&workspace).with(BUGS);
        let planted = planted.unwrap_or_else(|message| panic!("{message}"));
        let library = workspace.join("policies/src/lib.rs");
        for package in ["policies", "simulator", "testing"] {
            let (from, to) = (workspace.join(package), folder.join(package));
            let planted = |file: &Path| {
                let bugged = planted.iter().find(|source| source.path == file);
                match bugged {
                    Some(source) => source.text.clone(),
                    None if file == library => text(file) + SWITCH,
                    None => text(file),
                }
            };
            copy(&from.join("src"), &to.join("src"), &planted);
            prune(&from.join("src"), &to.join("src"));
            replace(&to.join("Cargo.toml"), &text(&from.join("Cargo.toml")));
        }
        let manifest = text(&workspace.join("Cargo.toml"));
        // The root package stays out: the bugs are in what it shares with the simulator.
        let (manifest, _) = manifest.split_once("[package]").expect("a root package");
        let members = "members = [\"policies\", ";
        assert!(manifest.contains(members), "the members of the workspace");
        let with_force = manifest.replace(members, &format!("{members}\"brute-force\", "));
        let with_profile = with_force + BRUTE_FORCE_PROFILE;
        replace(&folder.join("Cargo.toml"), &with_profile);
        for test in TESTS {
            let tests = workspace.join("policies/tests").join(test);
            copy(&tests, &folder.join("brute-force/tests").join(test), &text);
        }
        replace(&folder.join("brute-force/Cargo.toml"), BRUTE_FORCE);
        replace(&folder.join("brute-force/src/lib.rs"), "");
        let lock = text(&workspace.join("Cargo.lock"));
        replace(&folder.join("Cargo.lock"), &lock);
        let workshop = Self { folder };
        workshop.build(&["build", "--bin", "chaos"]);
        workshop.build(&["test", "--package", "brute-force", "--tests", "--no-run"]);
        workshop
    }

    /// Runs the tests that must catch a bug with the bug on.
    pub(crate) fn try_bug(&self, bug: &Bug) -> Verdict {
        let on = BUGS.iter().position(|other| other.name == bug.name);
        let on = on.expect("a bug of the list") + 1;
        let seeds = |all, with_faults| {
            let first = || self.try_seeds(on, bug.first..bug.first + 1, with_faults);
            either(first, || self.try_seeds(on, all, with_faults))
        };
        let either_way = |all: Range<u64>| {
            let calm = || self.try_seeds(on, all.clone(), false);
            either(|| seeds(all.clone(), true), calm)
        };
        match bug.catcher {
            Catcher::Seeds => seeds(SEEDS, true),
            Catcher::Rules => either_way(RULES),
            Catcher::Cards => either_way(CARDS),
            Catcher::Alignment => either_way(ALIGNMENT),
            Catcher::Volumes => either_way(VOLUMES),
            Catcher::Promises => seeds(PROMISES, false),
            Catcher::BruteForce => {
                let first = || self.try_plans(on, bug.first, 1);
                either(first, || self.try_plans(on, 0, WORLDS))
            }
            Catcher::Counting => {
                let first = || self.try_starts(on, bug.first, 1);
                either(first, || self.try_starts(on, 0, COUNTED_WORLDS))
            }
            Catcher::Rest => {
                let first = || self.try_rest(on, bug.first, 1);
                either(first, || self.try_rest(on, 0, RESTLESS_WORLDS))
            }
        }
    }

    /// Runs some seeds and some worlds without a bug.
    pub(crate) fn try_healthy(&self) -> Verdict {
        let seeds = || self.try_seeds(0, HEALTHY_SEEDS, true);
        let promises = || self.try_seeds(0, HEALTHY_PROMISES, false);
        let plans = || self.try_plans(0, 0, HEALTHY_WORLDS);
        let starts = || self.try_starts(0, 0, COUNTED_WORLDS);
        let rest = || self.try_rest(0, 0, HEALTHY_WORLDS);
        let of_seeds = || either(seeds, promises);
        either(of_seeds, || either(plans, || either(starts, rest)))
    }

    fn try_seeds(&self, on: usize, seeds: Range<u64>, with_faults: bool) -> Verdict {
        let without_faults = (!with_faults).then_some("--without-faults");
        let seeds = format!("{}..{}", seeds.start, seeds.end);
        let campaign = Command::new(self.folder.join("target/debug/chaos"))
            .args(["--seeds", &seeds, "--threads", "1", "--stop-at-first"])
            .args(without_faults)
            .env("PLANTED_BUG", on.to_string())
            .output()
            .expect("the campaign runs");
        match campaign.status.code() {
            Some(0) => Verdict::Survived,
            Some(1) => Verdict::Caught(first_line(&campaign, "  seed ")),
            _ => panic!("{}", shown(&campaign)),
        }
    }

    /// Compares eviction plans with brute force, in so many worlds from the first on.
    fn try_plans(&self, on: usize, first: u64, worlds: u64) -> Verdict {
        self.try_test(
            on,
            ["victims", "plans"],
            ["VICTIM_FIRST", "VICTIM_SEEDS"],
            [first, worlds],
        )
    }

    /// Holds starts against counting, in so many worlds from the first on.
    fn try_starts(&self, on: usize, first: u64, worlds: u64) -> Verdict {
        self.try_promises(on, "where_counting_decides", [first, worlds])
    }

    /// Looks whether gangs with promises come to rest, in so many worlds from the first on.
    fn try_rest(&self, on: usize, first: u64, worlds: u64) -> Verdict {
        self.try_promises(on, "come_to_rest", [first, worlds])
    }

    fn try_promises(&self, on: usize, text: &str, worlds: [u64; 2]) -> Verdict {
        let variables = ["PROMISE_FIRST", "PROMISE_SEEDS"];
        self.try_test(on, ["promises", text], variables, worlds)
    }

    /// Runs the tests of one file whose names contain a text, with these variables.
    fn try_test(
        &self,
        on: usize,
        [file, text]: [&str; 2],
        variables: [&str; 2],
        values: [u64; 2],
    ) -> Verdict {
        let variables = variables
            .into_iter()
            .zip(values.map(|value| value.to_string()));
        let tested = self
            .command(&["test", "--package", "brute-force", "--test", file, text])
            .env("PLANTED_BUG", on.to_string())
            .envs(variables)
            .output()
            .expect("cargo runs");
        match tested.status.code() {
            Some(0) => Verdict::Survived,
            Some(101) => Verdict::Caught(first_line(&tested, "seed ")),
            _ => panic!("{}", shown(&tested)),
        }
    }

    /// Builds the copy. A bug that cannot be built fails the test: the place that the compiler
    /// names is in the copy, below the number of the bug.
    fn build(&self, arguments: &[&str]) {
        let build = self.command(arguments).output().expect("cargo runs");
        let folder = self.folder.display();
        assert!(build.status.success(), "{folder}: {}", shown(&build));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(arguments)
            .args(["--quiet", "--offline"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("CARGO_INCREMENTAL", "0")
            .env("RUSTFLAGS", "-Awarnings");
        command
    }
}

/// The second verdict where nothing was caught by the first.
fn either(first: impl FnOnce() -> Verdict, second: impl FnOnce() -> Verdict) -> Verdict {
    match first() {
        Verdict::Survived => second(),
        caught @ Verdict::Caught(_) => caught,
    }
}

fn workspace() -> PathBuf {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    parent.expect("a workspace around the package").to_owned()
}

/// The first line of an output with this text.
fn first_line(output: &Output, contains: &str) -> String {
    let text = shown(output);
    let line = text.lines().find(|line| line.contains(contains));
    line.unwrap_or_default().trim().to_owned()
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Copies a folder; `text_of` says what a file of it becomes.
fn copy(from: &Path, to: &Path, text_of: &impl Fn(&Path) -> String) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target, text_of);
        } else {
            replace(&target, &text_of(&entry.path()));
        }
    }
}

/// Removes files that have gone from the sources since they were copied.
fn prune(from: &Path, to: &Path) {
    for entry in fs::read_dir(to).expect("a folder") {
        let entry = entry.expect("an entry");
        let original = from.join(entry.file_name());
        match (entry.path().is_dir(), original.exists()) {
            (true, true) => prune(&original, &entry.path()),
            (true, false) => fs::remove_dir_all(entry.path()).expect("a folder that can go"),
            (false, false) => fs::remove_file(entry.path()).expect("a file that can go"),
            (false, true) => {}
        }
    }
}

/// Writes a file, with the folders above it, unless it is so already: cargo looks at the times.
fn replace(file: &Path, new: &str) {
    if fs::read_to_string(file).is_ok_and(|old| old == new) {
        return;
    }
    fs::create_dir_all(file.parent().expect("a folder")).expect("the folder can be made");
    fs::write(file, new).expect("the file can be written");
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
