//! The oracle of `tests/oracle`: Kubernetes' own code as a program, built once.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use gpu_batch::lab::local::cache_folder;
use serde::Deserialize;
use serde_json::Value;

/// The files that decide what a build produces.
const MODULE: [&str; 8] = [
    include_str!("../oracle/main.go"),
    include_str!("../oracle/admit.go"),
    include_str!("../oracle/numa.go"),
    include_str!("../oracle/link.s"),
    include_str!("../oracle/objects.go"),
    include_str!("../oracle/verdicts.go"),
    include_str!("../oracle/go.mod"),
    include_str!("../oracle/go.sum"),
];

/// What the oracle says of one case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// What the API server refuses; empty: nothing.
    #[serde(default)]
    pub(crate) refused: Vec<Refusal>,
    /// What keeps the pod off each node; empty: nothing.
    #[serde(default)]
    pub(crate) nodes: BTreeMap<String, String>,
    /// How the plugins that read preferences score each node that fits, from 0 to 100; a plugin
    /// that has nothing to say is missing.
    #[serde(default)]
    pub(crate) scores: BTreeMap<String, BTreeMap<String, u32>>,
    /// What became of pods that came to a node, one after the other.
    #[serde(default)]
    pub(crate) steps: Vec<NumaStep>,
    /// The objects as the API server would hold them.
    pub(crate) stored: Option<Stored>,
    /// Why the case cannot be judged.
    error: Option<String>,
}

/// What became of a pod that came to a node.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NumaStep {
    /// What each NUMA node had free before, by resource.
    pub(crate) free: Vec<BTreeMap<String, u64>>,
    /// Why the kubelet rejected the pod; empty: it did not.
    pub(crate) verdict: String,
    /// Whether a container of the pod before the last got something from several NUMA nodes.
    pub(crate) split: bool,
}

/// A mistake in a pod.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Refusal {
    /// The field; empty where the pod cannot be decoded.
    pub(crate) field: String,
    /// The sentence of the API server about the mistake.
    pub(crate) message: String,
}

/// Objects as the API server would hold them.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Stored {
    pub(crate) nodes: Vec<Value>,
    pub(crate) pods: Vec<Value>,
    /// Objects of other kinds, which they say.
    pub(crate) objects: Vec<Value>,
    pub(crate) pod: Value,
}

/// A running oracle, which is asked one line after the other.
pub(crate) struct Oracle {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts the oracle, which lies in each so many answers; 0: never. `None` where it is missing
    /// and cannot be built for want of Go: the test is skipped there, except where `CI` is set.
    pub(crate) fn start(lie_every: usize) -> Option<Self> {
        static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
        let program = PROGRAM.get_or_init(found_or_built).as_ref()?;
        let mut process = Command::new(program)
            .arg(format!("-lie-every={lie_every}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self {
            questions: process.stdin.take(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
        })
    }

    /// Asks all at once, which is faster than one by one.
    pub(crate) fn ask_all(&mut self, cases: &[String]) -> Vec<Answer> {
        let Self {
            questions, answers, ..
        } = self;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let pipe = questions.as_mut().unwrap();
                for case in cases {
                    writeln!(pipe, "{case}").unwrap();
                }
                pipe.flush().unwrap();
            });
            cases.iter().map(|case| next(answers, case)).collect()
        })
    }

    /// Asks for one case.
    pub(crate) fn ask(&mut self, case: &str) -> Answer {
        writeln!(self.questions.as_mut().unwrap(), "{case}").unwrap();
        next(&mut self.answers, case)
    }
}

impl Drop for Oracle {
    /// The oracle ends with its input.
    fn drop(&mut self) {
        drop(self.questions.take());
        let _ = self.process.wait();
    }
}

fn next(answers: &mut impl BufRead, case: &str) -> Answer {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    let answer: Answer = serde_json::from_str(&line)
        .unwrap_or_else(|error| panic!("the oracle says `{line}` ({error}) of {case}"));
    if let Some(error) = &answer.error {
        panic!("the oracle cannot judge a case: {error}: {case}");
    }
    answer
}

/// The program in the cache, where it is built if it is missing or its source has changed.
fn found_or_built() -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    MODULE.hash(&mut hasher);
    let folder = cache_folder().join(format!("oracle-{:016x}", hasher.finish()));
    let program = folder.join("oracle");
    if program.is_file() {
        return Some(program);
    }
    if let Err(error) = Command::new("go").arg("version").output() {
        let message =
            format!("Go is needed to build the oracle ({error}); install Go 1.26 or newer");
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("skipped: {message}");
        return None;
    }
    std::fs::create_dir_all(&folder).unwrap();
    build(&folder, &program);
    Some(program)
}

/// Builds as `deploy/local/build.sh` does, so that both share what Go keeps of earlier builds; then
/// it takes seconds, and minutes otherwise.
fn build(folder: &Path, program: &Path) {
    eprintln!(
        "building the oracle from source, once: {}",
        program.display()
    );
    let unfinished = folder.join(format!("oracle.tmp.{}", std::process::id()));
    let output = Command::new("go")
        .args([
            "build",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags=-s -w",
            "-o",
        ])
        .arg(&unfinished)
        .arg(".")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle"))
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .envs([
            ("CGO_ENABLED", "0"),
            ("GOFLAGS", "-mod=readonly"),
            ("GOTOOLCHAIN", "local"),
            ("GOWORK", "off"),
        ])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot build the oracle:\n{error}");
    std::fs::rename(unfinished, program).unwrap();
}
