//! The demo as a user runs it: as a process of its own, without a terminal.
//!
//! Its temporary files are in a folder that every process it starts names in its command line.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use gpu_batch::lab::local::{CONTROLLERS, ControlPlane, Options};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::ListParams;
use kube::{Api, Client};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::harness::{self, processes_that_name, wait_for};

/// What the demo runs on.
pub(crate) const CLUSTER: Options = Options {
    controllers: CONTROLLERS,
    kwok: true,
    kube_scheduler: false,
    native_gangs: false,
    audit: false,
};

const SHORT: [&str; 5] = ["demo", "--gangs", "20", "--seconds", "20"];

fn demo(arguments: &[&str], temporary: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-batch"));
    command
        .args(SHORT)
        .args(arguments)
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn assert_shows(shown: &str, expected: &[&str]) {
    for line in expected {
        assert!(shown.contains(line), "no '{line}' in:\n{shown}");
    }
    assert!(!shown.contains("VIOLATED"), "{shown}");
}

#[tokio::test]
async fn a_demo_ends_with_all_promises_kept_and_leaves_nothing_running() {
    if harness::binaries(CLUSTER).await.is_none() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(&[], &temporary).output().await.unwrap();
    let shown = text(&output);
    assert!(output.status.success(), "{shown}");
    let expected = [
        "24 submitted, 20 started, 20 ended, 0 running, 4 waiting",
        "no gang started in part     20 gangs",
        "no node over its capacity   64 nodes",
        "too-large    DoesNotFit",
        "typo         QueueNotFound",
        "greedy       OverLimit",
        "incomplete   WaitingForMembers",
    ];
    assert_shows(&shown, &expected);
    assert!(!shown.contains('\u{1b}'), "no colours in a pipe: {shown}");
    assert_eq!(processes_that_name(temporary.path()), Vec::<String>::new());
    assert_eq!(entries(temporary.path()), 0);
}

#[tokio::test]
async fn an_interrupted_demo_says_what_was_and_leaves_nothing_running() {
    if harness::binaries(CLUSTER).await.is_none() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut child = demo(&[], &temporary).spawn().unwrap();
        let id = i32::try_from(child.id().unwrap()).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut shown = String::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("GPUs ") && line.contains("/512") && !shown.contains("/512") {
                kill(Pid::from_raw(id), signal).unwrap();
            }
            shown += &line;
            shown += "\n";
        }
        assert!(child.wait().await.unwrap().success(), "{shown}");
        assert_shows(&shown, &["Summary after", "no node over its capacity"]);
        assert_eq!(processes_that_name(temporary.path()), Vec::<String>::new());
        assert_eq!(entries(temporary.path()), 0);
    }
}

#[tokio::test]
async fn what_is_kept_goes_on_to_schedule_until_it_is_stopped() {
    if harness::binaries(CLUSTER).await.is_none() {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let output = demo(&["--keep"], &temporary).output().await.unwrap();
    let shown = text(&output);
    assert!(output.status.success(), "{shown}");
    let after = |word: &str| {
        let line = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix(word));
        line.unwrap_or_else(|| panic!("no {word} in:\n{shown}"))
            .trim()
            .to_owned()
    };
    let (export, stop) = (after("export "), after("stop        touch "));
    // The commands that are printed to try are run as they are, in a shell.
    let run = async |command: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("export {export}\n{command}")]);
        text(&shell.output().await.unwrap())
    };
    let kubectl = async |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
        run(&format!("kubectl {}", arguments.join(" "))).await
    };
    let job = kubectl(&[
        "create",
        "-n",
        "demo-vision",
        "-f",
        "tests/data/demo_job.yaml",
    ])
    .await;
    assert!(job.contains("created"), "{job}");
    wait_for("node for a new pod", async || {
        let nodes = ["get", "pods", "-n", "demo-vision", "-l", "job-name=mine"];
        let output = [&nodes[..], &["-o", "jsonpath={.items[*].spec.nodeName}"]].concat();
        !kubectl(&output).await.is_empty()
    })
    .await;
    let command = shown
        .lines()
        .find(|line| line.contains(" explain podgroup "))
        .unwrap_or_else(|| panic!("no explain in:\n{shown}"));
    let explained = run(command).await;
    assert_shows(&explained, &["demo-vision/incomplete", "WaitingForMembers"]);
    std::fs::write(stop, "").unwrap();
    wait_for("end", async || {
        processes_that_name(temporary.path()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn on_a_cluster_of_the_users_nothing_is_done_unasked_and_nothing_is_left() {
    let Some(control_plane) = harness::start(CLUSTER).await else {
        return;
    };
    let client = control_plane.client().await.unwrap();
    let before = state(&client).await;
    let output = on(&control_plane, &[]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_shows(
        &text(&output),
        &["64 fake nodes", "nothing was done: add --yes"],
    );
    assert_eq!(state(&client).await, before);

    let output = on(&control_plane, &["--yes"]).await;
    let shown = text(&output);
    assert!(output.status.success(), "{shown}");
    assert_shows(
        &shown,
        &["20 started, 20 ended", "Deleting what the demo created"],
    );
    wait_for("clean cluster", async || state(&client).await == before).await;
}

async fn on(control_plane: &ControlPlane, arguments: &[&str]) -> Output {
    let temporary = tempfile::tempdir().unwrap();
    let kubeconfig = control_plane.kubeconfig().to_str().unwrap();
    let arguments = [&["--kubeconfig", kubeconfig], arguments].concat();
    let ended = demo(&arguments, &temporary).output();
    let ended = tokio::time::timeout(Duration::from_secs(180), ended).await;
    ended.unwrap().unwrap()
}

/// The names of nodes and namespaces.
async fn state(client: &Client) -> Vec<String> {
    let all = ListParams::default();
    let nodes = Api::<Node>::all(client.clone()).list(&all).await.unwrap();
    let namespaces = Api::<Namespace>::all(client.clone())
        .list(&all)
        .await
        .unwrap();
    let nodes = nodes.items.into_iter().map(|node| node.metadata);
    let namespaces = namespaces
        .items
        .into_iter()
        .map(|namespace| namespace.metadata);
    nodes
        .chain(namespaces)
        .filter_map(|metadata| metadata.name)
        .collect()
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}
