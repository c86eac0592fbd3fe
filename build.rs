//! What `--version` tells of this build: the commit, the profile, the target and, where it is
//! known, the time. Nothing here can fail: what is not known is left out.
//!
//! The commit is `GPU_BATCH_COMMIT`, else the one that is checked out where this file lies. The
//! time is `SOURCE_DATE_EPOCH` alone, so that the same sources give the same bytes. Cargo runs this
//! again only when one of these changes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let given = variable("GPU_BATCH_COMMIT");
    let commit = given.or_else(|| Checkout::find(Path::new("."))?.commit());
    let facts = [
        ("GPU_BATCH_BUILD_COMMIT", commit),
        ("GPU_BATCH_BUILD_EPOCH", variable("SOURCE_DATE_EPOCH")),
        ("GPU_BATCH_BUILD_PROFILE", profile()),
        ("GPU_BATCH_BUILD_TARGET", env::var("TARGET").ok()),
    ];
    for (name, value) in facts {
        // One line, whatever was given.
        let value = value.unwrap_or_default().replace(['\r', '\n'], " ");
        println!("cargo:rustc-env={name}={value}");
    }
}

/// The name of the profile, as in `--profile`: that of the folder with all that is built, such as
/// `target/dist/build/gpu-batch-1234/out`. Cargo's `PROFILE` is only the profile that this one
/// inherits from.
fn profile() -> Option<String> {
    let out = PathBuf::from(env::var_os("OUT_DIR")?);
    let build = out.ancestors().find(|folder| folder.ends_with("build"))?;
    let name = build.parent()?.file_name()?.to_str()?;
    Some(name.to_owned())
}

/// A variable of the environment that is set and not empty.
fn variable(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The files that git keeps of a checkout, read without git.
struct Checkout {
    /// The folder of this checkout alone, with `HEAD` and its log.
    own: PathBuf,
    /// The folder that all worktrees share, with the branches.
    shared: PathBuf,
}

impl Checkout {
    fn find(folder: &Path) -> Option<Self> {
        let git = folder.join(".git");
        let own = if git.is_dir() {
            git
        } else {
            // A worktree has a file that names the folder.
            folder.join(line(&git)?.strip_prefix("gitdir: ")?)
        };
        let shared = line(&own.join("commondir"));
        let shared = shared.map_or_else(|| own.clone(), |shared| own.join(shared));
        Some(Self { own, shared })
    }

    fn commit(&self) -> Option<String> {
        // The log of HEAD grows with every commit, also where the branch is in a packed file.
        line(&self.own.join("logs/HEAD"));
        let head = line(&self.own.join("HEAD"))?;
        let Some(branch) = head.strip_prefix("ref: ") else {
            return Some(head);
        };
        let loose = line(&self.shared.join(branch));
        loose.or_else(|| {
            let packed = text(&self.shared.join("packed-refs"))?;
            let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
            let (commit, _) = lines.find(|(_, name)| *name == branch)?;
            Some(commit.to_owned())
        })
    }
}

/// The first line of a file.
fn line(path: &Path) -> Option<String> {
    Some(text(path)?.lines().next()?.trim().to_owned())
}

/// A file, on which the build depends from then on. One that is not there would make Cargo build
/// everything anew each time.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text)
}
