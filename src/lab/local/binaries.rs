//! The programs of the control plane: found, or built from source once.
//!
//! The files of `deploy/local` are part of this binary, so that an installed `gpu-batch` can build
//! without its source tree. Their hash names the cache folder, so that other versions of them use
//! another folder.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::LocalError;

/// The files of `deploy/local` that a build needs.
const MODULE: [(&str, &str); 5] = [
    ("build.sh", include_str!("../../../deploy/local/build.sh")),
    ("go.mod", include_str!("../../../deploy/local/go.mod")),
    ("go.sum", include_str!("../../../deploy/local/go.sum")),
    (
        "stages/pod-finish.yaml",
        include_str!("../../../deploy/local/stages/pod-finish.yaml"),
    ),
    (
        "stages/pod-stop.yaml",
        include_str!("../../../deploy/local/stages/pod-stop.yaml"),
    ),
];

/// The lowest version of Go that builds the module; a test compares it with `go.mod`.
const GO_VERSION: &str = "1.26";

/// How many of the last lines of a failed build are shown.
const BUILD_LINES_SHOWN: usize = 20;

/// A program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The controllers: Jobs, garbage collection and the like.
    KubeControllerManager,
    /// The scheduler that Kubernetes comes with.
    KubeScheduler,
    /// Plays the kubelets of fake nodes.
    Kwok,
    /// The command-line client, for tests and people.
    Kubectl,
    /// The installer of charts.
    Helm,
    /// This program, as the scheduler of a control plane that is kept. It is never built.
    GpuBatch,
}

impl Program {
    /// The name of the program's file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::GpuBatch => "gpu-batch",
        }
    }

    /// Whether `folder` has what the program needs to run: kwok does nothing without its stages.
    fn is_in(self, folder: &Path) -> bool {
        folder.join(self.name()).is_file() && (self != Self::Kwok || folder.join("stages").is_dir())
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Binaries {
    folders: BTreeMap<Program, PathBuf>,
}

impl Binaries {
    /// Finds `programs`, and builds those that are missing.
    ///
    /// Looks into the folder that the environment variable `KUBEBUILDER_ASSETS` names, then into
    /// the cache: `local-HASH` in `GPU_BATCH_CACHE`, else in `gpu-batch` below `XDG_CACHE_HOME`,
    /// else below `~/.cache`. Programs that are in neither are built into the cache, which takes
    /// minutes; `progress` is given a line at each step. It blocks; of two processes that build,
    /// one waits for the other.
    ///
    /// # Errors
    /// [`LocalError::GoMissing`] if something must be built and Go is not installed,
    /// [`LocalError::Build`] if the build fails.
    pub fn find_or_build(
        programs: &[Program],
        progress: impl FnMut(&str),
    ) -> Result<Self, LocalError> {
        let given = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let cache = cache_folder().join(format!("local-{:016x}", module_hash()));
        let found = |program: Program| {
            given
                .iter()
                .chain([&cache])
                .find(|folder| program.is_in(folder))
                .cloned()
        };
        let missing: Vec<Program> = programs
            .iter()
            .copied()
            .filter(|program| found(*program).is_none())
            .collect();
        if !missing.is_empty() {
            build(&missing, &cache, progress)?;
        }
        let folders = programs
            .iter()
            .map(|program| (*program, found(*program).unwrap_or_else(|| cache.clone())))
            .collect();
        Ok(Self { folders })
    }

    /// The file of `program`. For a program that was not asked for: its bare name, to be found on
    /// `PATH`.
    pub fn path(&self, program: Program) -> PathBuf {
        match self.folders.get(&program) {
            Some(folder) => folder.join(program.name()),
            None => program.name().into(),
        }
    }

    /// The stage files of kwok, sorted; none if kwok was not among the programs asked for.
    pub(super) fn stages(&self) -> Result<Vec<PathBuf>, LocalError> {
        let Some(folder) = self.folders.get(&Program::Kwok) else {
            return Ok(Vec::new());
        };
        let folder = folder.join("stages");
        let mut files: Vec<PathBuf> = fs::read_dir(&folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .map_err(LocalError::io("read", &folder))?;
        files.sort();
        Ok(files)
    }
}

/// The folder for everything that is built once: what `GPU_BATCH_CACHE` names, else `gpu-batch`
/// below `XDG_CACHE_HOME` or `~/.cache`.
#[must_use]
pub fn cache_folder() -> PathBuf {
    let from = |variable: &str, below: &str| {
        std::env::var_os(variable)
            .filter(|value| !value.is_empty())
            .map(|value| Path::new(&value).join(below))
    };
    from("GPU_BATCH_CACHE", "")
        .or_else(|| from("XDG_CACHE_HOME", "gpu-batch"))
        .or_else(|| from("HOME", ".cache/gpu-batch"))
        .unwrap_or_else(|| std::env::temp_dir().join("gpu-batch"))
}

/// A hash that names what a build would produce. If a later standard library hashes differently,
/// the only consequence is one more build.
fn module_hash() -> u64 {
    let mut hasher = DefaultHasher::new();
    (MODULE, std::env::consts::OS, std::env::consts::ARCH).hash(&mut hasher);
    hasher.finish()
}

/// Builds `programs` into `cache`, with the module's files written to a temporary folder.
fn build(
    programs: &[Program],
    cache: &Path,
    mut progress: impl FnMut(&str),
) -> Result<(), LocalError> {
    if !is_on_path("go") {
        let names: Vec<&str> = programs.iter().map(|program| program.name()).collect();
        return Err(LocalError::GoMissing {
            version: GO_VERSION,
            missing: names.join(", "),
        });
    }
    fs::create_dir_all(cache).map_err(LocalError::io("make the folder", cache))?;
    let _lock = lock(&cache.with_extension("lock"), &mut progress)?;

    let module = tempfile::Builder::new()
        .prefix("gpu-batch-build-")
        .tempdir()
        .map_err(LocalError::io("make a folder in", std::env::temp_dir()))?;
    for (name, text) in MODULE {
        let file = module.path().join(name);
        let folder = file.parent().unwrap_or(module.path());
        fs::create_dir_all(folder).map_err(LocalError::io("make the folder", folder))?;
        fs::write(&file, text).map_err(LocalError::io("write", file))?;
    }
    progress("building a local Kubernetes from source, once: about 7 minutes on 2 cores");
    progress(&format!(
        "it takes up to 4 GB of disk; the programs go to {}",
        cache.display()
    ));
    run_build(module.path(), programs, cache, progress)
}

/// Runs `build.sh`. It stays in the process group of this process, so that Ctrl-C ends both.
fn run_build(
    module: &Path,
    programs: &[Program],
    cache: &Path,
    mut progress: impl FnMut(&str),
) -> Result<(), LocalError> {
    let mut child = Command::new("sh")
        .arg(module.join("build.sh"))
        .arg(cache)
        .args(programs.iter().map(|program| program.name()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(LocalError::io("run", "sh"))?;
    let mut last_lines = std::collections::VecDeque::new();
    for line in child
        .stderr
        .take()
        .into_iter()
        .flat_map(|pipe| BufReader::new(pipe).lines())
    {
        let Ok(line) = line else { break };
        progress(&line);
        if last_lines.len() == BUILD_LINES_SHOWN {
            last_lines.pop_front();
        }
        last_lines.push_back(line);
    }
    let status = child
        .wait()
        .map_err(LocalError::io("wait for", "build.sh"))?;
    if status.success() {
        return Ok(());
    }
    last_lines.push_back(format!("build.sh: {status}"));
    Err(LocalError::Build {
        output: Vec::from(last_lines).join("\n"),
    })
}

/// Takes the lock that keeps two processes from building at once; it is held until it is dropped.
fn lock(path: &Path, progress: &mut impl FnMut(&str)) -> Result<File, LocalError> {
    let file = File::create(path).map_err(LocalError::io("make", path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress("waiting for another process that builds the local Kubernetes");
            file.lock().map_err(LocalError::io("lock", path))?;
        }
        Err(TryLockError::Error(source)) => return Err(LocalError::io("lock", path)(source)),
    }
    Ok(file)
}

fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_go_version_named_in_the_message_is_that_of_the_module() {
        let (_, text) = MODULE[1];
        let line = text.lines().find(|line| line.starts_with("go ")).unwrap();
        assert_eq!(line.trim_end_matches(".0"), format!("go {GO_VERSION}"));
    }

    #[test]
    fn every_stage_of_the_module_is_embedded() {
        let on_disk = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/local/stages"))
            .unwrap()
            .map(|entry| format!("stages/{}", entry.unwrap().file_name().display()));
        for name in on_disk {
            assert!(
                MODULE.iter().any(|(embedded, _)| *embedded == name),
                "{name}"
            );
        }
    }

    #[test]
    fn a_program_is_missing_until_its_file_is_there_and_kwok_until_its_stages_are() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!Program::Etcd.is_in(folder.path()));
        fs::write(folder.path().join("etcd"), "").unwrap();
        fs::write(folder.path().join("kwok"), "").unwrap();
        assert!(Program::Etcd.is_in(folder.path()));
        assert!(!Program::Kwok.is_in(folder.path()));
        fs::create_dir(folder.path().join("stages")).unwrap();
        assert!(Program::Kwok.is_in(folder.path()));
    }
}
