//! `gpu-batch plan` and `gpu-batch queues -f` on files: what users see, byte for byte.
//!
//! Each folder of `tests/data/plan` is a case: `input.yaml`, perhaps `arguments`, and what is
//! printed: `output.txt` for people, `output.json` for programs.
//! `UPDATE=1 cargo test --test plan` rewrites what is expected; read it before you commit it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plan")
}

fn gpu_batch(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .args(arguments)
        .current_dir(folder)
        .env("GPU_BATCH_NOW", "2026-11-21T10:00:00Z")
        .output()
        .expect("the binary was built for this test")
}

/// Standard error, standard output and the exit code, as on a terminal.
fn transcript(folder: &Path, arguments: &[&str]) -> String {
    let output = gpu_batch(folder, arguments);
    let text = |bytes| String::from_utf8(bytes).expect("the output is text");
    format!(
        "$ gpu-batch {}\n{}{}exit code {}\n",
        arguments.join(" "),
        text(output.stderr),
        text(output.stdout),
        output.status.code().expect("it was not killed"),
    )
}

fn check(file: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, found).expect("the test data can be rewritten");
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(found, expected, "{}", file.display());
}

#[test]
fn every_case_prints_what_is_expected() {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(data())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 15);
    for case in cases {
        let more = std::fs::read_to_string(case.join("arguments")).unwrap_or_default();
        let mut arguments = vec!["plan", "-f", "input.yaml"];
        arguments.extend(more.split_whitespace());
        let output = transcript(&case, &arguments);
        check(&case.join("output.txt"), &output);
        if output.ends_with("exit code 0\n") {
            arguments.extend(["-o", "json"]);
            let json = String::from_utf8(gpu_batch(&case, &arguments).stdout).unwrap();
            check(&case.join("output.json"), &json);
        }
    }
}

#[test]
fn the_examples_are_planned() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let gang = transcript(&examples, &["plan", "-f", "gang.yaml"]);
    assert!(gang.contains("2 Bound, 2 Pending"), "{gang}");
    assert!(gang.ends_with("exit code 0\n"), "{gang}");
    let roles = transcript(&examples, &["plan", "-f", "sub-groups.yaml"]);
    assert!(roles.contains("5 Bound, 2 Pending"), "{roles}");
    let queues = transcript(
        &examples,
        &["queues", "-f", "queues.yaml", "gang-of-job.yaml"],
    );
    assert!(queues.contains("└─ team-vision"), "{queues}");
    assert!(queues.ends_with("exit code 0\n"), "{queues}");
}

#[test]
fn the_same_objects_in_any_order_and_form_give_the_same_bytes() {
    let folder = data().join("gang-fits");
    let text = std::fs::read_to_string(folder.join("input.yaml")).unwrap();
    let mut objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    objects.reverse();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("list.json"), list.to_string()).unwrap();
    let file = gpu_batch(&folder, &["plan", "-f", "input.yaml"]).stdout;
    for source in ["list.json", "."] {
        let other = gpu_batch(scratch.path(), &["plan", "-f", source]).stdout;
        assert_eq!(
            String::from_utf8(other).unwrap(),
            String::from_utf8(file.clone()).unwrap(),
            "{source}"
        );
    }
}
