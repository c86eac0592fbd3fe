//! Sessions on the real control plane, recorded and run again.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use gpu_batch::lab::local::SchedulerProcess;
use gpu_batch_policies::command::Action;
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::journal::{Reader, Record, Recorder, beginning, pack};
use gpu_batch_simulator::what_if::Session;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncBufReadExt;
use tokio::process::Command;

use crate::cluster::{self, TEST_LABEL};
use crate::demo::CLUSTER;
use crate::harness;
use crate::work::ensure;

/// What a start may be late by where the control plane answers and the simulator does at once.
const CONTROL_PLANE_DELAY_MS: u64 = 1_000;

async fn gpu_batch(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-batch"));
    command.args(arguments).stdin(Stdio::null());
    command.kill_on_drop(true).output().await.unwrap()
}

#[track_caller]
fn assert_ends(output: &Output, code: i32, says: &[&str]) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{shown}");
    for line in says {
        assert!(shown.contains(line), "no '{line}' in:\n{shown}");
    }
}

fn open(path: &Path) -> Reader<BufReader<File>> {
    Reader::new(BufReader::new(File::open(path).unwrap())).unwrap()
}

fn records(path: &Path) -> Vec<Record> {
    let mut reader = open(path);
    std::iter::from_fn(|| reader.next_record().unwrap()).collect()
}

/// The demo's load, live: replayed without a difference; in the simulator the same placements, and
/// starts within the control plane's own delay; and a planted difference is found.
#[tokio::test]
async fn a_demo_that_was_recorded_is_replayed_and_simulated_alike() {
    if harness::binaries(CLUSTER).await.is_none() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("demo.journal");
    let journal = path.to_str().unwrap();
    let recorded = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .args([
            "demo",
            "--gangs",
            "60",
            "--seconds",
            "30",
            "--record",
            journal,
        ])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    assert_ends(&recorded.await.unwrap(), 0, &["64 submitted, 60 started"]);
    assert_ends(
        &gpu_batch(&["replay", journal]).await,
        0,
        &["no difference"],
    );

    let session = Session::read(&mut open(&path));
    let course = session.under(&session.settings, &[]);
    assert!(session.course.starts.len() > 100, "{}", course.starts.len());
    let comparison = session.compare(&course);
    assert_eq!(comparison.pods, [], "placements are equal");
    for (pod, recorded) in &session.course.starts {
        let late_ms = course.starts[pod].at_ms.abs_diff(recorded.at_ms);
        assert!(late_ms <= CONTROL_PLANE_DELAY_MS, "{pod}: {late_ms} ms");
    }

    plant_a_difference(&path);
    let says = [
        "the first difference is command",
        "to node elsewhere",
        "went another way",
    ];
    assert_ends(&gpu_batch(&["replay", journal]).await, 1, &says);
    damaged(&temporary, &path).await;
}

/// Another node in one binding of the record.
fn plant_a_difference(path: &Path) {
    let mut planted = false;
    let mut recorder = Recorder::default();
    for record in records(path) {
        match record {
            Record::Begun { version, settings } => recorder = Recorder::new(&version, &settings),
            Record::Events { now_ms, events } => recorder.events(now_ms, &events),
            Record::Commands(mut commands) => {
                for command in &mut commands {
                    if let Action::Bind(bind) = &mut command.action
                        && !planted
                    {
                        bind.node = "elsewhere".into();
                        planted = true;
                    }
                }
                recorder.commands(&commands);
            }
            Record::Panicked { message } => recorder.panicked(&message),
            Record::ShutDown => recorder.shut_down(),
        }
    }
    assert!(planted);
    let journal = [beginning(), pack(&recorder.seal()).unwrap()].concat();
    std::fs::write(path, journal).unwrap();
}

/// A damaged file is refused with the number of the block and the name of the field.
async fn damaged(temporary: &TempDir, path: &Path) {
    let journal = std::fs::read(path).unwrap();
    let mut other_version = journal.clone();
    other_version[8] += 1;
    let of_other_version = format!("version: this is a journal of version {}", other_version[8]);
    let mut flipped = journal.clone();
    flipped[200] ^= 0x10;
    let cases: [(&[u8], &str); 4] = [
        (&other_version, &of_other_version),
        (
            &journal[..journal.len() / 2],
            "block 1: length: the file ends within the block",
        ),
        (&flipped, "block 1: checksum"),
        (b"{}", "magic: this is not a journal"),
    ];
    for (bytes, says) in cases {
        let path = temporary.path().join("damaged");
        std::fs::write(&path, bytes).unwrap();
        let name = path.to_str().unwrap();
        let says = format!("{name}: {says}");
        assert_ends(&gpu_batch(&["replay", name]).await, 2, &[&says]);
    }
}

/// A scheduler that is killed leaves a journal that can be replayed, and nothing of what its pods
/// keep secret is in it.
#[tokio::test]
async fn a_killed_scheduler_leaves_a_journal_without_secrets() {
    let Some(cluster) = cluster::shared("journal").await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.journal");
    let configuration = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
         schedulerName: recorded\nserveAddress: 127.0.0.1:0\nleaderElection: {enabled: false}\n";
    let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
    let arguments = [format!("--record={}", path.display())];
    let scheduler =
        SchedulerProcess::start_with(executable, &cluster.kubeconfig, configuration, &arguments);
    let scheduler = scheduler.unwrap();
    cluster.nodes(["r1"]).await;
    let secret = "correct-horse-battery-staple";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "annotations": {"example.com/token": secret}},
        "spec": {
            "schedulerName": "recorded",
            "nodeSelector": {TEST_LABEL: cluster.namespace},
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "c", "image": "none", "args": ["--token", secret],
                "env": [{"name": "TOKEN", "value": secret}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }],
        },
    });
    cluster.create(&pod).await;
    cluster::until("bound pod", async || {
        let pod = cluster.get(&cluster.pod_path("a")).await?;
        ensure(pod["spec"]["nodeName"].is_string(), &pod)
    })
    .await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    drop(scheduler); // SIGKILL

    let output = gpu_batch(&["replay", path.to_str().unwrap()]).await;
    assert_ends(&output, 0, &["no difference"]);
    let records = records(&path);
    let is_bind = |record: &Record| match record {
        Record::Commands(commands) => commands
            .iter()
            .any(|command| matches!(&command.action, Action::Bind(bind) if &*bind.pod.name == "a")),
        _ => false,
    };
    assert!(records.iter().any(is_bind), "the binding is recorded");
    let told = format!("{records:?}");
    assert!(told.contains(&cluster.namespace));
    assert!(!told.contains(secret));
}

/// A limit on the size of files stands for a full disk: it holds for root, too.
#[tokio::test]
async fn a_full_disk_keeps_no_scheduler_from_starting_and_loses_no_journal() {
    let Some(cluster) = cluster::shared("full-disk").await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("session.journal");
    let mut recorder = Recorder::new("0.0.1", &Settings::default());
    recorder.events(1, &[]);
    recorder.commands(&[]);
    let good = [beginning(), pack(&recorder.seal()).unwrap()].concat();
    std::fs::write(&journal, &good).unwrap();
    let configuration = tempfile::NamedTempFile::new().unwrap();
    let text = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
         schedulerName: full\nserveAddress: 127.0.0.1:0\nleaderElection: {enabled: false}\n";
    std::fs::write(&configuration, text).unwrap();
    let mut program = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_gpu-batch"))
        .args(["run", "--kubeconfig"])
        .arg(&cluster.kubeconfig)
        .arg("--config")
        .arg(configuration.path())
        .arg("--record")
        .arg(&journal)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(program.stderr.take().unwrap()).lines();
    let mut log = String::new();
    while !log.contains("scheduling for") {
        let line = tokio::time::timeout(Duration::from_secs(40), lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{log}")).unwrap();
        log.push_str(&line.unwrap_or_else(|| panic!("it has ended: {log}")));
        log.push('\n');
    }
    assert_eq!(log.matches("nothing is recorded").count(), 1, "{log}");
    assert_eq!(log.matches("File too large").count(), 1, "{log}");
    assert_eq!(std::fs::read(&journal).unwrap(), good);
    let files = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(files, 1, "no other file is left");
    drop(program);

    // A new journal begins as soon as there is room again, and also replaces an empty file, which a
    // process that could not write leaves behind.
    for left in [&good[..], b""] {
        std::fs::write(&journal, left).unwrap();
        let arguments = [format!("--record={}", journal.display())];
        let executable = Path::new(env!("CARGO_BIN_EXE_gpu-batch"));
        let scheduler =
            SchedulerProcess::start_with(executable, &cluster.kubeconfig, text, &arguments)
                .unwrap();
        cluster::until("a new journal", async || {
            let bytes = std::fs::read(&journal).unwrap_or_default();
            ensure(bytes.len() > good.len(), scheduler.log())
        })
        .await;
        let before = folder.path().join("session.journal.1");
        assert_eq!(std::fs::read(before).unwrap(), good);
    }
}
