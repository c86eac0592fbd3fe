//! Nothing is left running, however it ends.
//!
//! A control plane is held by a process of its own, this test binary again, with its temporary
//! files in a folder that every process of the control plane names in its command line.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gpu_batch::lab::local::{Options, Program};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::harness::{self, processes_that_name, wait_for};

#[tokio::test]
async fn nothing_is_left_after_a_drop() {
    let Some(control_plane) = harness::start(super::EVERYTHING).await else {
        return;
    };
    let folder = control_plane.folder().to_owned();
    // Five programs and the watchdog.
    assert_eq!(
        processes_that_name(&folder).len(),
        6,
        "{:?}",
        processes_that_name(&folder)
    );
    drop(control_plane);
    assert_eq!(processes_that_name(&folder), Vec::<String>::new());
    assert!(!folder.exists());
}

#[tokio::test]
async fn nothing_is_left_after_the_parent_was_killed_or_interrupted() {
    if harness::binaries(Options::default()).await.is_none() {
        return;
    }
    for signal in [Signal::SIGKILL, Signal::SIGINT, Signal::SIGTERM] {
        let mut holder = Holder::spawn("0");
        let [folder] = holder.read_paths();
        assert_eq!(processes_that_name(&folder).len(), 3);
        holder.end(signal);
        holder.wait_until_nothing_is_left().await;
        assert!(!folder.exists());
    }
}

#[tokio::test]
async fn nothing_is_left_at_whatever_moment_of_its_start_the_parent_is_killed() {
    if harness::binaries(Options::default()).await.is_none() {
        return;
    }
    for delay_ms in [5, 10, 15, 20, 25, 30, 40, 50, 70, 100, 300, 1000] {
        let holder = Holder::spawn("0");
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        holder.end(Signal::SIGKILL);
        holder.wait_until_nothing_is_left().await;
    }
}

#[tokio::test]
async fn what_is_kept_runs_on_until_it_is_told_to_stop() {
    if harness::binaries(Options::default()).await.is_none() {
        return;
    }
    let mut holder = Holder::spawn("1");
    let [folder, stop] = holder.read_paths();
    holder.child.wait().unwrap();
    // Longer than the watchdog needs to find that its pipe has ended.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(processes_that_name(&folder).len(), 3);
    std::fs::write(stop, "").unwrap();
    holder.wait_until_nothing_is_left().await;
    assert!(!folder.exists());
}

/// Not a test: what the tests above run in a process of its own, in order to end it.
#[tokio::test]
#[ignore = "started by other tests"]
async fn hold_a_control_plane() {
    let Ok(keep) = std::env::var("KEEP") else {
        return;
    };
    let mut control_plane = harness::start(Options::default()).await.unwrap();
    println!("\npath {}", control_plane.folder().display());
    if keep == "1" {
        println!("path {}", control_plane.keep().display());
    } else {
        // A program that is paused must not escape either.
        control_plane.pause(Program::Etcd);
        println!("path {}", control_plane.folder().display());
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// The process that holds a control plane, in a process group of its own.
struct Holder {
    child: Child,
    temporary: TempDir,
}

impl Holder {
    fn spawn(keep: &str) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let test = "local::endings::hold_a_control_plane";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env("TMPDIR", temporary.path())
            .env("KEEP", keep)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Self { child, temporary }
    }

    /// Blocks until the control plane has started.
    fn read_paths<const N: usize>(&mut self) -> [PathBuf; N] {
        let lines = BufReader::new(self.child.stdout.as_mut().unwrap()).lines();
        let mut paths = lines.filter_map(|line| Some(line.unwrap().strip_prefix("path ")?.into()));
        std::array::from_fn(|_| paths.next().unwrap())
    }

    /// As the terminal does: the signal goes to the whole group.
    fn end(&self, signal: Signal) {
        killpg(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    async fn wait_until_nothing_is_left(mut self) {
        self.child.wait().unwrap();
        let folder = self.temporary.path();
        wait_for("end of all", async || {
            processes_that_name(folder).is_empty()
        })
        .await;
    }
}
