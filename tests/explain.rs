//! `gpu-batch explain` on files: what users see for every reason, byte for byte.
//!
//! Each folder of `tests/data/explain` is a case: `input.yaml`, `arguments` (what is asked), and
//! what is printed: `output.txt` for people, `output.json` for programs. Its name begins with the
//! reason that it must show. `UPDATE=1 cargo test --test explain` rewrites what is expected; read
//! it before you commit it.
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics has failed, also in its helpers"
)]

#[path = "shared/golden.rs"]
mod golden;

use golden::{check, gpu_batch, transcript};
use gpu_batch::kube::convert::ClusterPreferences;
use gpu_batch::plan::{Reading, read};
use gpu_batch::views::explain::{ExplanationView, draw};
use gpu_batch_policies::engine::Engine;
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::explain::Subject;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::{Queueing, Settings};
use gpu_batch_testing::{To, World, node, pod};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The time of [`golden`]: 2026-11-21T10:00:00Z.
const NOW_MS: u64 = 1_795_255_200_000;

/// Reasons that no plan of files can show, because in it every command succeeds, everybody is tried
/// and nobody takes room from others: here the engine is told otherwise.
const NOT_IN_A_PLAN: &[Reason] = &[
    Reason::BindingFailed,
    Reason::PreemptionDelay,
    Reason::WaitingForEviction,
    Reason::WaitingForKubeScheduler,
    Reason::WaitingForTurn,
];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/explain")
}

/// The folders, each with the word before the first `-`.
fn cases() -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(data()).expect("the cases are there");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let word = |case: &PathBuf| {
        let name = case.file_name().and_then(|name| name.to_str()).unwrap();
        name.split('-').next().unwrap().to_owned()
    };
    cases
        .into_iter()
        .map(|case| (case.clone(), word(&case)))
        .collect()
}

fn arguments(case: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(case.join("arguments")).expect("each case has arguments");
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_reason_has_a_case() {
    let shown: BTreeSet<String> = cases().into_iter().map(|(_, word)| word).collect();
    for reason in Reason::ALL {
        assert!(shown.contains(reason.as_str()), "{reason}");
    }
}

#[test]
fn every_case_prints_what_is_expected() {
    for (case, word) in cases() {
        if NOT_IN_A_PLAN.iter().any(|reason| reason.as_str() == word) {
            continue;
        }
        let asked = arguments(&case);
        let mut arguments = vec!["explain"];
        arguments.extend(asked.iter().map(String::as_str));
        arguments.extend(["-f", "input.yaml"]);
        check(&case.join("output.txt"), &transcript(&case, &arguments));
        arguments.extend(["-o", "json"]);
        let json = String::from_utf8(gpu_batch(&case, &arguments).stdout).unwrap();
        check(&case.join("output.json"), &json);
        let view: ExplanationView = serde_json::from_str(&json).unwrap();
        let reason = view.reason.unwrap_or_else(|| "nothing".to_owned());
        assert_eq!(reason, word, "{}", case.display());
    }
}

/// A world of what the case says.
fn world_of(case: &Path, settings: Settings) -> World {
    let reading = Reading {
        scheduler_name: "gpu-batch",
        namespace: "default",
        now_ms: NOW_MS,
        health: &settings.health,
        preferences: ClusterPreferences::default(),
    };
    let read = read(None, &[case.join("input.yaml")], reading);
    let mut world = World::with(settings);
    world.now_ms = NOW_MS;
    world.apply(read.unwrap().objects);
    world
}

fn check_engine(case: &Path, engine: &mut Engine) {
    let name = &arguments(case)[1];
    let view = ExplanationView::from(engine.explain(Subject::Gang(name)).unwrap());
    check(&case.join("output.txt"), &draw(&view));
    let json = serde_json::to_string_pretty(&view).unwrap() + "\n";
    check(&case.join("output.json"), &json);
}

/// Compares with the files of a case what an engine with these settings explains at rest.
fn check_settled(case: &str, settings: Settings) {
    let case = data().join(case);
    let mut world = world_of(&case, settings);
    world.settle();
    check_engine(&case, &mut world.engine);
}

#[test]
fn a_binding_that_the_api_server_refuses_is_explained() {
    let case = data().join("BindingFailed");
    let mut world = world_of(&case, Settings::default());
    let message = "admission webhook \"policy.example.com\" denied the request".into();
    world.answers(To::Bind, Outcome::Refused { message });
    world.settle();
    check_engine(&case, &mut world.engine);
}

#[test]
fn a_gang_that_waits_for_its_turn_is_explained() {
    let settings = Settings {
        queueing: Queueing::Strict,
        ..Settings::default()
    };
    check_settled("WaitingForTurn", settings);
}

#[test]
fn a_pod_whose_node_kube_scheduler_chooses_is_explained() {
    let case = data().join("WaitingForKubeScheduler");
    let mut world = world_of(&case, Settings::default());
    world.change("notebook", |pod| pod.extended = true);
    world.settle();
    check_engine(&case, &mut world.engine);
}

#[test]
fn a_gang_that_may_not_take_room_yet_is_explained() {
    check_settled("PreemptionDelay", Settings::default());
}

#[test]
fn a_gang_for_which_pods_leave_is_explained() {
    check_settled("WaitingForEviction", Settings::default());
}

#[test]
fn what_is_asked_wrongly_ends_with_code_2_and_says_what_may_be_meant() {
    let folder = data().join("DoesNotFit");
    let cases = [
        (
            "podgroup vision/trian",
            "there is no gang vision/trian; did you mean vision/train?",
        ),
        ("gang vison/train", "did you mean vision/train?"),
        (
            "podgroup speech/whisper",
            "there is no gang in the namespace speech; there are some in vision",
        ),
        (
            "pod vision/train-9",
            "there is no pod vision/train-9; did you mean vision/train-0, vision/train-1 or \
             vision/train-2?",
        ),
        (
            "podgroup train",
            "there is no gang default/train; did you mean vision/train?",
        ),
        (
            "podgroup whisper -n speech",
            "there is no gang in the namespace speech; there are some in vision",
        ),
        (
            "pod vision/pod/train-0",
            "the name must be NAME or NAMESPACE/NAME\n",
        ),
        ("podgroup vision/", "the name must be"),
        ("queue vision/train", "invalid value 'queue'"),
    ];
    for (arguments, says) in cases {
        let mut all = vec!["explain"];
        all.extend(arguments.split(' '));
        all.extend(["-f", "input.yaml"]);
        let said = transcript(&folder, &all);
        assert!(said.contains(says), "{said}");
        assert!(said.ends_with("exit code 2\n"), "{said}");
    }
}

#[test]
fn a_name_without_a_namespace_is_one_of_the_namespace_that_is_named() {
    let folder = data().join("DoesNotFit");
    let whole = transcript(
        &folder,
        &["explain", "podgroup", "vision/train", "-f", "input.yaml"],
    );
    let short = [
        "explain",
        "podgroup",
        "train",
        "-n",
        "vision",
        "-f",
        "input.yaml",
    ];
    let short = transcript(&folder, &short);
    let told = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(told(&short), told(&whole));
}

#[test]
fn files_and_a_running_scheduler_do_not_go_together() {
    for option in ["--server http://127.0.0.1:1", "--lease a/b"] {
        let mut all = vec!["explain", "pod", "a/b", "-f", "input.yaml"];
        all.extend(option.split(' '));
        let said = transcript(&data(), &all);
        assert!(said.contains("cannot be used with"), "{said}");
        assert!(said.ends_with("exit code 2\n"), "{said}");
    }
}

#[test]
fn a_server_that_is_written_wrongly_ends_with_code_2_and_says_what_to_write() {
    let cases = [
        ("foo", "did you mean http://foo?"),
        ("127.0.0.1:8080", "did you mean http://127.0.0.1:8080?"),
        ("localhost:8080", "did you mean http://localhost:8080?"),
        ("tcp://localhost", "did you mean http://localhost?"),
        (
            "http://localhost:8080/foo",
            "without a page; did you mean http://localhost:8080?",
        ),
        (
            "http://",
            "write it like http://127.0.0.1:8080, with http:// and without a page",
        ),
        ("", "write it like http://127.0.0.1:8080"),
    ];
    for (server, says) in cases {
        let said = transcript(&data(), &["explain", "pod", "a/b", "--server", server]);
        assert!(said.contains(says), "{said}");
        assert!(said.ends_with("exit code 2\n"), "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_scheduler_that_does_not_answer_is_told_with_what_to_do() {
    let cases = [
        (
            "http://127.0.0.1:1",
            "no scheduler answers at http://127.0.0.1:1: nothing listens there; without --server",
        ),
        (
            "http://nobody.invalid:8080",
            "no scheduler answers at http://nobody.invalid:8080: there is no host of that name;",
        ),
    ];
    for (server, says) in cases {
        let said = transcript(&data(), &["explain", "pod", "a/b", "--server", server]);
        assert!(said.contains(says), "{said}");
        assert!(
            said.ends_with("the one that leads in the cluster is asked\nexit code 1\n"),
            "{said}"
        );
    }
}

#[test]
fn the_same_objects_in_any_order_give_the_same_bytes() {
    let folder = data().join("DoesNotFit-in-a-tree-of-queues");
    let text = std::fs::read_to_string(folder.join("input.yaml")).unwrap();
    let mut objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    objects.reverse();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("input.yaml"), list.to_string()).unwrap();
    let arguments = ["explain", "podgroup", "vision/train", "-f", "input.yaml"];
    assert_eq!(
        transcript(scratch.path(), &arguments),
        transcript(&folder, &arguments)
    );
}

/// The GPU models and MIG profiles that NVIDIA's software names.
///
/// # Panics
/// If the file is not there.
fn mig_profiles() -> serde_json::Value {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/reference");
    let reference = std::env::var_os("GPU_BATCH_REFERENCE").unwrap_or_else(|| beside.into());
    let path = PathBuf::from(reference).join("mig-profiles.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!(
            "cannot read {}: {error}; set GPU_BATCH_REFERENCE to its directory",
            path.display()
        )
    });
    serde_json::from_str(&text).unwrap()
}

/// Variants of profiles, with media engines or for graphics, are not looked at: `1g.10gb+me`.
#[test]
fn cards_of_every_model_would_be_cut_into_as_many_devices_as_they_can_be() {
    let mut compared = 0;
    for model in mig_profiles()["models"].as_array().unwrap() {
        for product in model["gfd_product_examples"].as_array().unwrap() {
            let product = product.as_str().unwrap();
            for profile in model["profiles"].as_array().unwrap() {
                let name = profile["profile"].as_str().unwrap();
                if name.contains(['+', '-']) {
                    continue;
                }
                let resource = profile["resource_name_mixed"].as_str().unwrap();
                let idle = node("n", 0)
                    .has("nvidia.com/mig-other", 1)
                    .label("nvidia.com/gpu.product", product)
                    .label("nvidia.com/gpu.count", "2")
                    .label("nvidia.com/mig.strategy", "mixed");
                let mut world = World::of((idle, pod("p", 0).with_one(resource)));
                let most = 2 * profile["max_instances"].as_u64().unwrap();
                let said = format!("as all-{name} it would hold {most} members");
                let remedies = world.explain("pod/p").remedies;
                assert!(
                    remedies[0].contains(&said),
                    "{product}: {said}: {remedies:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 80, "{compared} profiles");
}
