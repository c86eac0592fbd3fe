//! The image: what it is built from, and that the manifests run it as it is.

use crate::source::{Source, read, root};
use gpu_batch::live::config::Configuration;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// The arguments of an instruction of a Dockerfile, each time that it occurs.
fn arguments<'t>(dockerfile: &'t str, instruction: &str) -> Vec<&'t str> {
    let lines = dockerfile.lines();
    let found = lines.filter_map(|line| line.strip_prefix(instruction)?.strip_prefix(' '));
    found.map(str::trim).collect()
}

/// The mistakes in a Dockerfile, given what the manifests say of its user.
fn problems(dockerfile: &str, user: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |instruction: &str, holds: &dyn Fn(&str) -> bool| {
        let last = arguments(dockerfile, instruction).pop().unwrap_or_default();
        if !holds(last) {
            found.push(format!("{instruction} {last}"));
        }
    };
    let port = Configuration::load(None).unwrap().serve_address.port();
    expect("FROM", &|base| base == "scratch");
    expect("USER", &|numbers| numbers == user);
    expect("ENTRYPOINT", &|program| program == "[\"/gpu-batch\"]");
    expect("EXPOSE", &|exposed| exposed == port.to_string());
    for part in [
        "+crt-static",
        "--profile dist --locked",
        "ldd /gpu-batch",
        "ARG GPU_BATCH_COMMIT",
        "COPY --from=build /share /usr/share",
    ] {
        if !dockerfile.contains(part) {
            found.push(format!("no {part}"));
        }
    }
    let base = arguments(dockerfile, "FROM").remove(0);
    if base.contains('/') || compiler(base) < minimum_compiler() {
        found.push(base.to_owned());
    }
    found
}

/// The minor version of an image such as `rust:1.95-slim`.
fn compiler(base: &str) -> u32 {
    let version = base.strip_prefix("rust:1.").unwrap_or_default();
    let minor = version.split(['-', '.', ' ']).next().unwrap();
    minor.parse().unwrap_or(0)
}

fn minimum_compiler() -> u32 {
    let manifest = read("Cargo.toml");
    let (_, rest) = manifest.split_once("rust-version = \"1.").unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn the_image_is_one_static_program_that_runs_as_the_manifests_say() {
    let text = read("deploy/deployment.yaml");
    let deployment: Value = serde_saphyr::from_str(&text).unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let context = &pod["securityContext"];
    let user = format!("{}:{}", context["runAsUser"], context["runAsGroup"]);
    assert_eq!(pod["containers"][0]["command"], Value::Null);
    let dockerfile = read("Dockerfile");
    assert_eq!(problems(&dockerfile, &user), Vec::<String>::new());
    for (from, to, problem) in [
        ("FROM scratch", "FROM debian", "FROM debian"),
        ("USER 65532:65532", "USER nobody", "USER nobody"),
        ("[\"/gpu-batch\"]", "/gpu-batch", "ENTRYPOINT /gpu-batch"),
        ("rust:1.", "rust:1.2", "no problem"),
        (
            "FROM rust:1.95",
            "FROM rust:1.12",
            "rust:1.12-slim-trixie AS build",
        ),
        (
            "FROM rust",
            "FROM example.com/rust",
            "example.com/rust:1.95-slim-trixie AS build",
        ),
    ] {
        let found = problems(&dockerfile.replace(from, to), &user);
        let expected: &[&str] = if problem == "no problem" {
            &[]
        } else {
            &[problem]
        };
        assert_eq!(found, expected);
    }
}

/// Whether `.dockerignore` lets a file in: all is ignored but what is listed.
fn is_let_in(rules: &str, path: &Path) -> bool {
    let mut listed = rules.lines().filter_map(|rule| rule.strip_prefix('!'));
    listed.any(|start| path.starts_with(start))
}

/// `a/../b` as `b`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

#[test]
fn everything_that_is_compiled_is_in_the_build_of_the_image() {
    let rules = read(".dockerignore");
    assert!(rules.lines().any(|rule| rule == "*"), "{rules}");
    assert!(is_let_in(&rules, Path::new("src/main.rs")));
    assert!(!is_let_in(&rules, Path::new(".git/config")));
    let mut included = 0;
    for source in Source::all() {
        let path = Path::new(&source.path);
        assert!(is_let_in(&rules, path), "{}", source.path);
        let folder = path.parent().unwrap();
        for rest in source.text.split("include_str!(\"").skip(1) {
            let file = normal(&folder.join(rest.split('"').next().unwrap()));
            if root().join(&file).exists() {
                assert!(is_let_in(&rules, &file), "{file:?}");
                included += 1;
            }
        }
    }
    assert!(included > 3, "{included}");
    for copied in ["Cargo.toml", "Cargo.lock", "LICENSE", "build.rs"] {
        assert!(is_let_in(&rules, Path::new(copied)), "{copied}");
    }
}
