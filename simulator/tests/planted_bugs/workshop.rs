//! A copy of the sources in which a bug can be planted, built and run.

use super::bugs::{Bug, Catcher};
use super::places::Sources;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The seeds that must catch every bug: those of each test run.
pub(crate) const SEEDS: &str = "0..20000";
/// The seeds that a copy without a bug must survive.
const HEALTHY_SEEDS: &str = "0..200";
/// So many worlds are compared with brute force.
const WORLDS: u64 = 20_000;

/// A package of its own for the tests of eviction plans: as tests of `policies` they would be built
/// with all that the other tests there need. With the features of crates that the simulator turns
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

/// What the seeds made of a copy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A seed failed: its line.
    Caught(String),
    /// All seeds passed.
    Survived,
    /// The copy cannot be built, so that no seed was run: what the compiler says first.
    NotBuilt(String),
}

impl Workshop {
    /// Copies the sources into a folder of this number below the one for test files. What was built
    /// there before is kept, so that a second run is quick.
    pub(crate) fn new(number: usize) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("planted-bugs-{number}"));
        let workspace = workspace();
        for package in ["policies", "simulator", "testing"] {
            let (from, to) = (workspace.join(package), folder.join(package));
            copy(&from.join("src"), &to.join("src"));
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
        let tests = workspace.join("policies/tests/victims");
        copy(&tests, &folder.join("brute-force/tests/victims"));
        replace(&folder.join("brute-force/Cargo.toml"), BRUTE_FORCE);
        replace(&folder.join("brute-force/src/lib.rs"), "");
        // A build that was cut off must not spoil the next one.
        let incremental = folder.join("target/debug/incremental");
        if incremental.exists() {
            fs::remove_dir_all(incremental).expect("a folder that can go");
        }
        let lock = text(&workspace.join("Cargo.lock"));
        replace(&folder.join("Cargo.lock"), &lock);
        Self { folder }
    }

    /// Plants a bug, builds, runs the tests that must catch it, and takes the bug out again.
    pub(crate) fn try_bug(&self, bug: &Bug) -> Verdict {
        let planted = Sources::read(&self.folder).with(bug);
        let planted = planted.unwrap_or_else(|message| panic!("{message}"));
        let healthy = text(&planted.path);
        replace(&planted.path, &planted.text);
        let mut verdict = Verdict::Survived;
        if bug.first > 0 {
            verdict = self.try_seeds(bug.catcher, Some(bug.first));
        }
        if verdict == Verdict::Survived {
            verdict = self.try_seeds(bug.catcher, None);
        }
        replace(&planted.path, &healthy);
        verdict
    }

    /// Tries one seed or world, or all of them.
    fn try_seeds(&self, catcher: Catcher, only: Option<u64>) -> Verdict {
        match (catcher, only) {
            (Catcher::Seeds, Some(seed)) => self.run(&format!("{seed}..{}", seed + 1)),
            (Catcher::Seeds, None) => self.run(SEEDS),
            (Catcher::BruteForce, Some(world)) => self.try_plans(world, 1),
            (Catcher::BruteForce, None) => self.try_plans(0, WORLDS),
        }
    }

    /// Runs the seeds without a bug.
    pub(crate) fn try_healthy(&self) -> Verdict {
        self.run(HEALTHY_SEEDS)
    }

    fn run(&self, seeds: &str) -> Verdict {
        if let Some(verdict) = self.build(&["build", "--bin", "chaos"]) {
            return verdict;
        }
        let campaign = Command::new(self.folder.join("target/debug/chaos"))
            .args(["--seeds", seeds, "--threads", "1", "--stop-at-first"])
            .output()
            .expect("the campaign runs");
        match campaign.status.code() {
            Some(0) => Verdict::Survived,
            Some(1) => Verdict::Caught(first_line(&campaign, "  seed ")),
            _ => panic!("{}", shown(&campaign)),
        }
    }

    /// Compares eviction plans with brute force, in so many worlds from the first on.
    fn try_plans(&self, first: u64, worlds: u64) -> Verdict {
        let test = ["test", "--package", "brute-force", "--test", "victims"];
        if let Some(verdict) = self.build(&[&test[..], &["--no-run"]].concat()) {
            return verdict;
        }
        let plans = self
            .command(&[&test[..], &["plans"]].concat())
            .env("VICTIM_FIRST", first.to_string())
            .env("VICTIM_SEEDS", worlds.to_string())
            .output()
            .expect("cargo runs");
        match plans.status.code() {
            Some(0) => Verdict::Survived,
            Some(101) => Verdict::Caught(first_line(&plans, " seed ")),
            _ => panic!("{}", shown(&plans)),
        }
    }

    /// Builds the copy; `None`: it is built.
    fn build(&self, arguments: &[&str]) -> Option<Verdict> {
        let build = self.cargo(arguments);
        (!build.status.success()).then(|| Verdict::NotBuilt(first_error(&build)))
    }

    fn cargo(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("cargo runs")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(arguments)
            .args(["--quiet", "--offline", "--jobs", "1"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            // A bug changes one function; most of the code is as it was.
            .env("CARGO_INCREMENTAL", "1")
            .env("RUSTFLAGS", "-Awarnings");
        command
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

/// The first error of the compiler and where it is, or all that was printed if there is none.
fn first_error(build: &Output) -> String {
    let text = shown(build);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("error"));
    match (lines.next(), lines.next()) {
        (Some(error), Some(place)) => format!("{error}{place}"),
        _ => text,
    }
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            replace(&target, &text(&entry.path()));
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
