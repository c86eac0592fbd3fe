//! Which dependencies are allowed, and under which licences.

use crate::assert_none;
use crate::source::{read, root};
use serde_json::Value;
use std::process::Command;

/// All that deciding needs: containers and errors.
const POLICIES_MAY_USE: &[&str] = &[
    "fixedbitset",
    "hashbrown",
    "priority-queue",
    "rustc-hash",
    "smallvec",
    "thiserror",
];

/// What would tie the simulator to a cluster or to the live shell.
const SIMULATOR_MAY_NOT_USE: &[&str] = &["gpu-batch", "k8s-openapi", "kube", "tokio"];

const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "policies/Cargo.toml",
    "simulator/Cargo.toml",
    "testing/Cargo.toml",
];

/// The entries of one table of a manifest: key and the rest of the line.
fn entries(manifest: &str, table: &str) -> Vec<(String, String)> {
    let header = format!("[{table}]");
    let lines = manifest.lines().map(str::trim);
    lines
        .skip_while(|line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| {
            let (name, rest) = key.trim().split_once('.').unwrap_or((key.trim(), ""));
            (name.to_owned(), format!("{rest}={}", value.trim()))
        })
        .collect()
}

fn names(manifest: &str, table: &str) -> Vec<String> {
    let entries = entries(manifest, table);
    entries.into_iter().map(|(name, _)| name).collect()
}

/// Dependencies that state a version of their own.
fn own_versions(manifest: &str) -> Vec<String> {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .iter()
        .flat_map(|table| entries(manifest, table))
        .filter(|(_, value)| *value != "workspace=true" && !value.contains("workspace = true"))
        .map(|(name, _)| name)
        .collect()
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "cargo {}:\n{errors}",
        arguments.join(" ")
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Licences that `deny.toml` allows.
fn allowed_licences() -> Vec<String> {
    let file = read("deny.toml");
    let (_, list) = file.split_once("\nallow = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Whether a licence expression (SPDX, or with the old `/`) can be met with `allowed` alone.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ")
        .replace(" WITH ", "_WITH_");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any_of(&words, &mut at, allowed) && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all_of(words, at, allowed);
    }
    met
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let met = any_of(words, at, allowed);
        *at += 1;
        return met;
    }
    let name = word.replace("_WITH_", " WITH ");
    allowed.contains(&name)
}

#[test]
fn policies_depends_on_containers_and_errors_only() {
    assert_eq!(
        names(&read("policies/Cargo.toml"), "dependencies"),
        POLICIES_MAY_USE
    );
}

#[test]
fn the_simulator_depends_on_no_cluster() {
    let used = names(&read("simulator/Cargo.toml"), "dependencies");
    let wrong = used
        .into_iter()
        .filter(|name| SIMULATOR_MAY_NOT_USE.contains(&&**name));
    assert_none(&wrong.collect::<Vec<_>>());
}

#[test]
fn versions_stand_in_the_workspace_only() {
    for manifest in MANIFESTS {
        assert_none(&own_versions(&read(manifest)));
    }
    let manifest = "[dependencies]\na.workspace = true\nb = \"1\"\nc = { workspace = true }\n\
                    [dev-dependencies]\nd = { version = \"1\" }\n[lints]\nworkspace = true\n";
    assert_eq!(own_versions(manifest), ["b", "d"]);
}

/// Built with the rest of the workspace, a dependency may have features that another crate turned
/// on; alone, it has what the manifest of policies says.
#[test]
fn policies_compiles_alone() {
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/alone");
    let package = "gpu-batch-policies";
    cargo(&[
        "check",
        "--offline",
        "--quiet",
        "--target-dir",
        target,
        "-p",
        package,
    ]);
}

#[test]
fn no_dependency_of_policies_turns_on_std() {
    let edges = [
        "tree",
        "--offline",
        "-p",
        "gpu-batch-policies",
        "-e",
        "normal,features",
    ];
    let tree = cargo(&edges);
    let hosts = |line: &&str| !line.contains("proc-macro") && !line.contains("syn");
    let with_std = tree
        .lines()
        .filter(|line| line.contains("feature \"std\""))
        .filter(hosts);
    assert_none(&with_std.map(str::to_owned).collect::<Vec<_>>());
    assert!(
        tree.contains("hashbrown feature"),
        "the tree has lost its features:\n{tree}"
    );
}

/// The platform that this build is for, such as `x86_64-unknown-linux-gnu`.
fn platform() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap().to_owned()
}

/// Only crates of this platform: a build downloads no others, and the test asks no registry.
/// `cargo deny` knows the rest.
#[test]
fn licences_are_allowed() {
    let allowed = allowed_licences();
    let metadata = cargo(&[
        "metadata",
        "--offline",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        &platform(),
    ]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let refused = packages
        .iter()
        .filter(|package| !is_met(package["license"].as_str().unwrap_or_default(), &allowed));
    let named = |package: &Value| format!("{} {}", package["name"], package["license"]);
    assert_none(&refused.map(named).collect::<Vec<_>>());
}

#[test]
fn licence_expressions_are_read() {
    let allowed = [
        "MIT".to_owned(),
        "A WITH B".to_owned(),
        "Unicode-3.0".to_owned(),
    ];
    for met in [
        "MIT",
        "GPL OR MIT",
        "GPL/MIT",
        "(MIT OR GPL) AND Unicode-3.0",
        "A WITH B",
    ] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for refused in [
        "",
        "GPL",
        "GPL AND MIT",
        "MIT AND (GPL OR LGPL)",
        "A",
        "MIT)",
    ] {
        assert!(!is_met(refused, &allowed), "{refused}");
    }
}
