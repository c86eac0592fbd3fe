//! `gpu-batch plan` and `gpu-batch queues -f` on files: what users see, byte for byte.
//!
//! Each folder of `tests/data/plan` is a case: `input.yaml`, perhaps `arguments`, and what is
//! printed: `output.txt` for people, `output.json` for programs.
//! `UPDATE=1 cargo test --test plan` rewrites what is expected; read it before you commit it.

#[path = "shared/golden.rs"]
mod golden;

use golden::{check, gpu_batch, transcript};
use std::path::{Path, PathBuf};
use std::process::Command;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plan")
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

/// A gang that requires one domain of a level.
fn tied(members: usize, level: &str) -> Vec<String> {
    let mut objects = vec![format!(
        "apiVersion: gpu-batch.io/v1alpha1\nkind: PodGroup\n\
         metadata: {{name: g, namespace: vision}}\n\
         spec: {{minMember: {members}, topology: {{required: {level}}}}}\n"
    )];
    objects.extend((0..members).map(|number| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}, namespace: vision, \
             labels: {{gpu-batch.io/pod-group: g}}}}\nspec: {{schedulerName: gpu-batch, \
             containers: [{{name: main, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]}}\n"
        )
    }));
    objects
}

/// Two nodes that are near each other, one that has the same name under another parent, one whose
/// label is missing, and one whose clique is of zeros.
#[test]
fn presets_know_what_is_near_and_what_only_looks_so() {
    const ROOT: &str = env!("CARGO_MANIFEST_DIR");
    let folder = Path::new(ROOT).join("deploy/topologies");
    let presets = std::fs::read_dir(&folder).unwrap();
    let mut presets: Vec<PathBuf> = presets.map(|entry| entry.unwrap().path()).collect();
    assert!(presets.len() >= 6, "{presets:?}");
    presets.push(Path::new(ROOT).join("deploy/defaults/topology-default.yaml"));
    for preset in presets {
        let text = std::fs::read_to_string(&preset).unwrap();
        let levels: Vec<(&str, &str)> = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- {name: ")?.strip_suffix('}'))
            .map(|level| level.split_once(", nodeLabel: ").unwrap())
            .collect();
        let (nearest, last) = *levels.last().unwrap();
        let node = |name: &str, top: &str, own: Option<&str>| {
            let above = levels[..levels.len() - 1].iter();
            let mut labels: Vec<String> =
                above.map(|(_, label)| format!("{label}: {top}")).collect();
            labels.extend(own.map(|value| format!("{last}: {value:?}")));
            format!(
                "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{}}}}}\n\
                 status: {{allocatable: {{cpu: 64, memory: 1Ti, pods: 110, nvidia.com/gpu: 8}}}}\n",
                labels.join(", ")
            )
        };
        let zeros = "00000000-0000-0000-0000-000000000000.0";
        for (members, fits) in [(2, true), (3, false)] {
            let mut objects = vec![
                text.clone(),
                node("no-label", "a", None),
                node("zeros-1", "a", Some(zeros)),
                node("zeros-2", "a", Some(zeros)),
                node("zeros-3", "a", Some(zeros)),
                node("near-1", "a", Some("1")),
                node("near-2", "a", Some("1")),
            ];
            if levels.len() > 1 {
                objects.push(node("other-parent", "b", Some("1")));
            }
            objects.extend(tied(members, nearest));
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("input.yaml");
            std::fs::write(&file, objects.join("---\n")).unwrap();
            let said = transcript(directory.path(), &["plan", "-f", "input.yaml"]);
            let near = said.contains("near-1") && said.contains("near-2");
            assert_eq!(near && said.contains("2 Bound"), fits, "{preset:?}: {said}");
            assert_eq!(said.contains("DoesNotFit"), !fits, "{preset:?}: {said}");
        }
    }
}

/// Machines of one's own have no zones. What does not say of which cloud it is must do without.
#[test]
fn what_is_of_no_cloud_finds_nvlink_domains_where_nodes_have_no_zone() {
    const ROOT: &str = env!("CARGO_MANIFEST_DIR");
    for file in ["defaults/topology-default.yaml", "topologies/nvlink.yaml"] {
        let path = Path::new(ROOT).join("deploy").join(file);
        let mut objects = vec![std::fs::read_to_string(path).unwrap()];
        objects.extend(
            [("n1", 0), ("n2", 1), ("n3", 0), ("n4", 1)].map(|(name, clique)| {
                format!(
                    "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: \
                 {{nvidia.com/gpu.clique: 7b968a6d-c8aa-45e1-9e07-e1e51be99c31.{clique}}}}}\n\
                 status: {{allocatable: {{cpu: 64, memory: 1Ti, pods: 110, nvidia.com/gpu: 8}}}}\n"
                )
            }),
        );
        objects.extend(tied(2, "nvlink-domain"));
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("input.yaml"), objects.join("---\n")).unwrap();
        let said = transcript(directory.path(), &["plan", "-f", "input.yaml"]);
        assert!(said.contains("2 Bound"), "{file}: {said}");
        let one_clique = said.contains("n1") && said.contains("n3");
        assert!(one_clique, "{file}: {said}");
    }
}

/// What stands below a command of a page is what the command prints, whenever readers run it: so
/// the program is told no time here.
#[test]
fn the_pages_print_what_is_printed() {
    const ROOT: &str = env!("CARGO_MANIFEST_DIR");
    for (page, samples) in [
        ("README.md", 1),
        ("docs/plan.md", 2),
        ("docs/explain.md", 1),
    ] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
        let blocks: Vec<&str> = text.split("```console\n$ gpu-batch ").skip(1).collect();
        assert_eq!(blocks.len(), samples, "{page}");
        for block in blocks {
            let (command, expected) = block.split("```").next().unwrap().split_once('\n').unwrap();
            let arguments: Vec<&str> = command.split_whitespace().collect();
            let output = Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
                .args(arguments)
                .current_dir(ROOT)
                .env_remove("GPU_BATCH_NOW")
                .output()
                .unwrap();
            let printed = [output.stderr, output.stdout].concat();
            assert_eq!(String::from_utf8(printed).unwrap(), expected, "{page}");
            assert!(output.status.success(), "{page}");
        }
    }
}

/// Of a long text, a page shows the part between two lines of three dots.
#[test]
fn the_page_about_reservations_shows_what_explain_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/reservations.md")).unwrap();
    let sample = text.split("$ export GPU_BATCH_NOW=").nth(1).unwrap();
    let mut lines = sample.lines();
    assert_eq!(lines.next(), Some(golden::NOW));
    let command = lines.next().and_then(|it| it.strip_prefix("$ gpu-batch "));
    let arguments: Vec<&str> = command.unwrap().split_whitespace().collect();
    let printed = transcript(root, &arguments);
    assert_eq!(lines.next(), Some("..."));
    let shown: Vec<&str> = lines.take_while(|line| *line != "...").collect();
    assert!(shown.len() > 1, "{shown:?}");
    let shown = format!("\n\n{}\n\n", shown.join("\n"));
    assert!(printed.contains(&shown), "{shown}\nis not in\n{printed}");
}
