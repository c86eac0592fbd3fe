//! What the program says of itself, and the smaller commands.

#[path = "shared/golden.rs"]
mod golden;

use golden::{check, gpu_batch, transcript};
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the output is text")
}

/// What a command prints that succeeds.
fn printed(arguments: &[&str]) -> String {
    let output = gpu_batch(root(), arguments);
    assert!(output.status.success(), "{output:?}");
    text(output.stdout)
}

#[test]
fn the_version_tells_the_commit_the_profile_and_the_target() {
    let short = printed(&["-V"]);
    assert_eq!(
        short,
        concat!("gpu-batch ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let long = printed(&["--version"]);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], short.trim_end(), "{long}");
    let fact = |name: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} {long}"))
            .trim()
            .to_owned()
    };
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    assert_eq!(fact("profile:"), profile);
    assert!(fact("target:").contains(std::env::consts::ARCH), "{long}");
    assert!(!fact("built:").is_empty(), "{long}");
    let commit = fact("commit:");
    let hash = commit.len() >= 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
    let given = std::env::var_os("GPU_BATCH_COMMIT").is_some();
    let checked_out = root().join(".git").exists();
    assert!(
        hash || given || (commit == "unknown" && !checked_out),
        "{long}"
    );
}

#[test]
fn every_shell_completes_every_command() {
    let help = printed(&["--help"]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        for word in ["explain", "gangs", "record-size"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    for hidden in ["completions", "  man "] {
        assert!(!help.contains(hidden), "{help}");
    }
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man1");
    printed(&["man", "--out", out.to_str().unwrap()]);
    let pages = std::fs::read_dir(&out).unwrap();
    let mut pages: Vec<String> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let commands = "bench config crds demo explain gangs plan queues replay run simulate \
                    simulate-generate simulate-jobs simulate-openb";
    let mut expected = vec!["gpu-batch.1".to_owned()];
    expected.extend(
        commands
            .split_whitespace()
            .map(|name| format!("gpu-batch-{name}.1")),
    );
    expected.sort();
    assert_eq!(pages, expected);
    let page = std::fs::read_to_string(out.join("gpu-batch-explain.1")).unwrap();
    let words = [
        ".TH gpu-batch-explain 1",
        "gpu\\-batch explain",
        "Examples:",
        "namespace",
    ];
    for words in words {
        assert!(page.contains(words), "no {words:?}:\n{page}");
    }
    let main = std::fs::read_to_string(out.join("gpu-batch.1")).unwrap();
    assert!(main.contains("gpu\\-batch\\-plan(1)"), "{main}");
    assert!(!main.contains("completions"), "{main}");
}

#[test]
fn a_benchmark_that_does_not_exist_is_told_with_those_that_do() {
    for (suite, names) in [
        (
            "engine",
            "throughput, cards, choosing, gang, domains, sub-groups, events, reservations, journal, \
             queues, search, victims, extender, relations",
        ),
        (
            "live",
            "single pods, many gangs, one gang, reclaim, cards, restart, kube-scheduler",
        ),
        (
            "simulate",
            "philly, kth, million, openb, placements, topology, lingjun",
        ),
        ("soak", "soak"),
    ] {
        let said = transcript(root(), &["bench", suite, "--filter", "nonsense"]);
        let told = format!("no benchmark's name contains \"nonsense\"; there are: {names}\n");
        assert!(said.contains(&told), "{said}");
        assert!(said.ends_with("exit code 2\n"), "{said}");
    }
}

#[test]
fn a_context_that_does_not_exist_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let file = "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n";
    std::fs::write(&kubeconfig, file).unwrap();
    let named = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    for command in [&["bench", "live"][..], &["bench", "soak"], &["demo"]] {
        let arguments = [command, &named, &["--context", "nosuch"]].concat();
        let output = gpu_batch(root(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(output.stderr);
        assert!(
            said.starts_with("error: cannot use the kubeconfig: "),
            "{said}"
        );
        assert!(said.contains("nosuch"), "{said}");
    }
}

#[test]
fn waiting_gangs_are_listed_with_why() {
    let folder = root().join("tests/data/gangs");
    let list = |more: &[&str]| {
        let arguments = [&["gangs", "-f", "input.yaml"], more].concat();
        transcript(&folder, &arguments)
    };
    let promised = |more: &[&str]| {
        let folder = root().join("tests/data/plan/promised-start");
        let files = ["gangs", "-f", "input.yaml", "--config", "config.yaml"];
        transcript(&folder, &[&files[..], more].concat())
    };
    let said = [
        list(&[]),
        list(&["--all"]),
        list(&["-n", "speech", "-o", "json"]),
        list(&["--queue", "team-vision"]),
        list(&["-n", "nobody"]),
        promised(&[]),
        promised(&["--queue", "team", "-o", "json"]),
    ];
    check(&folder.join("output.txt"), &said.join("\n"));
}

/// Files by their paths, with what they hold.
type Files<'a> = &'a [(&'a str, &'a str)];

/// The build script, compiled as it is, run in folders of all kinds.
#[test]
fn the_commit_is_found_without_git_and_nothing_of_it_fails_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(rustc)
        .args(["--edition", "2024", "-o"])
        .args([&script, &root().join("build.rs")])
        .status();
    assert!(compiled.unwrap().success());
    let [hash, other] = ["a1", "b2"].map(|digits| digits.repeat(20));
    let log = format!("0 {hash} somebody\n");
    let packed =
        format!("# pack-refs with: peeled\n{other} refs/heads/x\n{hash} refs/heads/main\n");
    let unpacked = format!("{hash}\n");
    let main = "ref: refs/heads/main\n";
    let cases: [(&str, Files, &str); 7] = [
        ("none", &[], ""),
        ("detached", &[(".git/HEAD", &unpacked)], &hash),
        (
            "branch",
            &[
                (".git/HEAD", main),
                (".git/refs/heads/main", &unpacked),
                (".git/logs/HEAD", &log),
            ],
            &hash,
        ),
        (
            "packed",
            &[(".git/HEAD", main), (".git/packed-refs", &packed)],
            &hash,
        ),
        (
            "worktree",
            &[
                (".git", "gitdir: far/worktrees/a\n"),
                ("far/worktrees/a/HEAD", main),
                ("far/worktrees/a/commondir", "../..\n"),
                ("far/refs/heads/main", &unpacked),
            ],
            &hash,
        ),
        ("unborn", &[(".git/HEAD", main)], ""),
        ("broken", &[(".git", "nonsense")], ""),
    ];
    for (name, files, commit) in cases {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        for (file, content) in files {
            let file = place.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        the_build_script_tells(&script, &place, commit);
    }
}

/// Runs the build script in a folder in which it finds this commit.
fn the_build_script_tells(script: &Path, place: &Path, commit: &str) {
    let run = |given: &[(&str, &str)]| {
        let mut command = Command::new(script);
        command
            .current_dir(place)
            .env_clear()
            .envs(given.iter().copied());
        let output = command.output().expect("the script runs");
        assert!(output.status.success(), "{place:?}: {output:?}");
        text(output.stdout)
    };
    let told = run(&[]);
    let line = format!("cargo:rustc-env=GPU_BATCH_BUILD_COMMIT={commit}\n");
    assert!(told.contains(&line), "{place:?}: {told}");
    // Cargo would run it at each build for a file that is not there.
    let watched = told
        .lines()
        .filter_map(|line| line.strip_prefix("cargo:rerun-if-changed="));
    for file in watched.filter(|file| *file != "build.rs") {
        assert!(place.join(file).is_file(), "{place:?}: {file}");
    }
    let told = run(&[("GPU_BATCH_COMMIT", "given"), ("SOURCE_DATE_EPOCH", "0")]);
    assert!(told.contains("BUILD_COMMIT=given\n"), "{place:?}: {told}");
    assert!(told.contains("BUILD_EPOCH=0\n"), "{place:?}: {told}");
}

/// A package with this build script whose program prints the profile, built as images are: with a
/// profile that inherits from `dev`.
#[test]
fn a_build_for_an_image_tells_its_own_profile() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
                    [workspace]\n\n[profile.dist]\ninherits = \"dev\"\n";
    std::fs::write(place.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root().join("build.rs"), place.join("build.rs")).unwrap();
    std::fs::create_dir(place.join("src")).unwrap();
    let program = "fn main() { print!(env!(\"GPU_BATCH_BUILD_PROFILE\")); }\n";
    std::fs::write(place.join("src/main.rs"), program).unwrap();
    for (profile, name) in [("dist", "dist"), ("dev", "debug")] {
        let output = Command::new(env!("CARGO"))
            .args(["run", "--quiet", "--offline", "--profile", profile])
            .current_dir(place)
            .env("CARGO_TARGET_DIR", place.join("target"))
            .output()
            .expect("Cargo runs");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(text(output.stdout), name);
    }
}

#[test]
fn the_configuration_for_kube_scheduler_follows_that_of_gpu_batch() {
    let off = printed(&["config", "--kube-scheduler"]);
    assert!(
        off.starts_with("# gpu-batch serves no extender yet"),
        "{off}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scheduler.yaml");
    let text = "apiVersion: gpu-batch.io/v1alpha1\nkind: Configuration\n\
                extender: {serveAddress: '127.0.0.1:7000', schedulerName: day-shift}\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let on = printed(&["config", "--kube-scheduler", "--config", file]);
    for line in [
        "kind: KubeSchedulerConfiguration",
        "  - schedulerName: day-shift",
        "    urlPrefix: http://127.0.0.1:7000",
    ] {
        assert!(on.lines().any(|printed| printed == line), "{line}\n{on}");
    }
    for wrong in [
        &["config", "--config", file][..],
        &["config", "--print-defaults", "--config", file],
        &["config", "--kube-scheduler", "--print-defaults"],
        &["config", "--kube-scheduler", "--config", "missing.yaml"],
        &["config"],
    ] {
        let output = gpu_batch(root(), wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}
