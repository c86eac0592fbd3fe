//! `gpu-batch replay` on the command line, with a session of the embedded demo.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

use std::path::Path;
use std::process::{Command, Output};

use gpu_batch_simulator::journal::VERSION;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn gpu_batch(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-batch"));
    command.args(arguments).current_dir(ROOT).output().unwrap()
}

fn shown(output: &Output, code: i32) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{shown}");
    shown
}

/// As docs/replay.md shows it; the model world needs no control plane, and is the same each time.
#[test]
fn what_the_page_shows_is_what_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo.journal");
    let journal = path.to_str().unwrap();
    let demo = ["demo", "--embedded", "--gangs", "100", "--seconds", "60"];
    let recorded = gpu_batch(&[&demo[..], &["--record", journal]].concat());
    shown(&recorded, 0);
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/replay.md")).unwrap();

    let replayed = shown(&gpu_batch(&["replay", journal]), 0);
    assert!(replayed.ends_with("s: no difference\n"), "{replayed}");
    let (before_time, _) = replayed.split_once(" commands in ").unwrap();
    assert!(page.contains(before_time), "{replayed}");

    let queues = [
        "replay",
        journal,
        "--queues",
        "examples/what-if-queues.yaml",
    ];
    let what_if = shown(&gpu_batch(&queues), 0);
    let (summary, gangs) = what_if.split_once("\n\nGANG").unwrap();
    assert!(page.contains(summary), "{what_if}");
    assert!(gangs.contains("never"), "{what_if}");
    let json = gpu_batch(&[&queues[..], &["-o", "json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["total"]["recorded"]["started"], 100);
    assert_eq!(json["total"]["other"]["started"], 98);

    let out = folder.path().join("results");
    let shown_again = shown(
        &gpu_batch(&[&queues[..], &["--out", out.to_str().unwrap()]].concat()),
        0,
    );
    assert_eq!(shown_again, what_if);
    let file = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(file("gangs.csv").lines().count(), 1 + 104);
    assert!(file("pods.csv").starts_with("pod,gang,gpus,recorded_node,"));
    assert!(file("report.html").contains("what-if-queues.yaml"));
    let report: serde_json::Value = serde_json::from_str(&file("report.json")).unwrap();
    assert_eq!(report["runs"], serde_json::json!(["recorded", "other"]));
    let blocked = [&queues[..], &["--out", journal]].concat();
    assert!(shown(&gpu_batch(&blocked), 2).contains(journal));
    shown(&gpu_batch(&["replay", journal, "--out", "somewhere"]), 2);
    std::fs::write(folder.path().join("empty.yaml"), "").unwrap();
    let empty = folder.path().join("empty.yaml");
    let empty = gpu_batch(&["replay", journal, "--queues", empty.to_str().unwrap()]);
    assert!(shown(&empty, 2).contains("empty.yaml: there is no Queue"));

    let spread = [
        "replay",
        journal,
        "--config",
        "examples/what-if-spread.yaml",
    ];
    let text = shown(&gpu_batch(&spread), 0);
    let json = gpu_batch(&[&spread[..], &["-o", "json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let moved = json["pods"].as_array().unwrap().len();
    assert!(moved > 100, "spreading moves more than {moved} pods");
    let says = format!("{moved} pods would have been on another node");
    assert!(text.contains(&says), "{text}");
}

#[test]
fn bad_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.journal");
    let journal = path.to_str().unwrap();
    let missing = shown(&gpu_batch(&["replay", journal]), 2);
    assert!(missing.contains(journal), "{missing}");
    let of_version =
        |version: u32, rest: &[u8]| [b"gpubjrnl", &version.to_le_bytes()[..], rest].concat();
    let other_version = format!("version: this is a journal of version {}", VERSION + 1);
    let cases = [
        (Vec::new(), "magic: this is not a journal"),
        (b"kind: Queue".to_vec(), "magic: this is not a journal"),
        (of_version(VERSION + 1, b""), &other_version),
        (of_version(VERSION, b""), "block 0: length: the file ends"),
        (
            of_version(VERSION, b"\xff\xff\xff\xff\0\0"),
            "block 1: length: the file ends",
        ),
    ];
    for (bytes, says) in cases {
        std::fs::write(&path, bytes).unwrap();
        for more in [&[][..], &["--config", "examples/what-if-spread.yaml"]] {
            let output = gpu_batch(&[&["replay", journal], more].concat());
            let output = shown(&output, 2);
            assert!(output.contains(&format!("{journal}: {says}")), "{output}");
        }
    }
    let record = gpu_batch(&["demo", "--embedded", "--record", "Cargo.toml"]);
    assert!(shown(&record, 2).contains("Cargo.toml: there is a file that is not a journal"));
    let nowhere = gpu_batch(&["demo", "--embedded", "--record", "nowhere/j"]);
    assert!(shown(&nowhere, 2).contains("nowhere/j"));
    let size = gpu_batch(&["run", "--record", journal, "--record-size", "1Ki"]);
    assert!(shown(&size, 2).contains("at least 1Mi"));
}

/// A machine that crashes may cut off a journal that has just begun.
#[test]
fn a_journal_that_was_cut_off_at_once_takes_no_journals_place() {
    let folder = tempfile::tempdir().unwrap();
    let (path, before) = (folder.path().join("j"), folder.path().join("j.1"));
    let demo = ["demo", "--embedded", "--gangs", "2", "--seconds", "10"];
    let record = [&demo[..], &["--record", path.to_str().unwrap()]].concat();
    shown(&gpu_batch(&record), 0);
    std::fs::rename(&path, &before).unwrap();
    let good = std::fs::read(&before).unwrap();
    std::fs::write(&path, &good[..20]).unwrap();
    shown(&gpu_batch(&record), 0);
    assert!(std::fs::read(&before).unwrap() == good, "it was replaced");
    let replayed = shown(&gpu_batch(&["replay", path.to_str().unwrap()]), 0);
    assert!(replayed.ends_with("s: no difference\n"), "{replayed}");
}
