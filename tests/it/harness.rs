//! What every test here needs: a control plane, or the reason why there is none.

#[cfg(target_os = "linux")]
use std::path::Path;
use std::time::{Duration, Instant};

use gpu_batch::lab::local::{Binaries, ControlPlane, LocalError, Options, Program};

/// Starts a control plane of the test's own, in 2 to 4 s. `None` as for [`binaries`].
pub(crate) async fn start(options: Options) -> Option<ControlPlane> {
    let binaries = binaries(options).await?;
    match ControlPlane::start(&binaries, options).await {
        Ok(control_plane) => Some(control_plane),
        Err(error) => panic!("{error}"),
    }
}

/// The programs for `options`. `None` where they are missing and cannot be built for want of Go:
/// the test is skipped there, except where `CI` is set.
pub(crate) async fn binaries(options: Options) -> Option<Binaries> {
    binaries_of(options.programs()).await
}

/// Any programs of a control plane, as [`binaries`] finds or builds those for some options.
pub(crate) async fn binaries_of(programs: Vec<Program>) -> Option<Binaries> {
    let found = tokio::task::spawn_blocking(move || {
        Binaries::find_or_build(&programs, |line| eprintln!("{line}"))
    });
    match found.await.unwrap() {
        Ok(binaries) => Some(binaries),
        Err(error @ LocalError::GoMissing { .. }) if std::env::var_os("CI").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// How long a condition may take to hold: programs that start beside a build take their time.
const PATIENCE: Duration = Duration::from_secs(90);

/// Asks every 50 ms.
pub(crate) async fn wait_for(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < PATIENCE, "no {what} within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The command lines of the processes that have `folder` in theirs.
#[cfg(target_os = "linux")] // It reads /proc.
pub(crate) fn processes_that_name(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}
