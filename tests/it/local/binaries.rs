//! Programs that are missing: what is built, and what is said when that is impossible.
//!
//! Each case is a process of its own, this test binary again, with an environment of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use gpu_batch::lab::local::{Binaries, Program};

/// A Go that builds an empty program.
const GOOD_GO: &str = r#"#!/bin/sh
case $1 in
env) echo go1.99.0 ;;
list) echo v1.36.3 ;;
build)
    while [ "$1" != -o ]; do shift; done
    echo '#!/bin/sh' >"$2"
    chmod +x "$2"
    ;;
esac
"#;

const OLD_GO: &str = "#!/bin/sh\necho go1.20.1\n";

const BROKEN_GO: &str = r#"#!/bin/sh
case $1 in
env) echo go1.99.0 ;;
list) echo v1.36.3 ;;
build) echo 'out of memory' >&2; exit 2 ;;
esac
"#;

/// Not a test: what the tests below run with another environment.
#[test]
#[ignore = "started by other tests"]
fn find_two_programs() {
    let programs = [Program::Etcd, Program::KubeApiserver];
    match Binaries::find_or_build(&programs, |line| println!("\nprogress: {line}")) {
        Ok(binaries) => {
            for program in programs {
                println!("found: {}", binaries.path(program).display());
            }
        }
        Err(error) => println!("failed: {error}"),
    }
}

/// What [`find_two_programs`] prints where `go` is this script (or missing) and `assets` are there.
fn find(folder: &Path, go: Option<&str>, assets: &[&str]) -> String {
    let given = folder.join("assets");
    fs::create_dir_all(&given).unwrap();
    for name in assets {
        fs::write(given.join(name), "").unwrap();
    }
    // The folders of sh and the like, without the real Go.
    let mut path = vec![folder.to_owned()];
    if let Some(script) = go {
        fs::write(folder.join("go"), script).unwrap();
        fs::set_permissions(folder.join("go"), fs::Permissions::from_mode(0o755)).unwrap();
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "local::binaries::find_two_programs",
            "--ignored",
            "--nocapture",
        ])
        .env("KUBEBUILDER_ASSETS", given)
        .env("GPU_BATCH_CACHE", folder.join("cache"))
        .env("PATH", std::env::join_paths(path).unwrap())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_that_are_given_are_taken_without_go() {
    let folder = tempfile::tempdir().unwrap();
    let output = find(folder.path(), None, &["etcd", "kube-apiserver"]);
    assert!(output.contains("/assets/etcd\n"), "{output}");
    assert!(output.contains("/assets/kube-apiserver\n"), "{output}");
}

#[test]
fn only_what_is_missing_is_built_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = find(folder.path(), Some(GOOD_GO), &["etcd"]);
    assert!(
        output.contains("progress: building kube-apiserver (1 of 1)"),
        "{output}"
    );
    assert!(output.contains("/assets/etcd\n"), "{output}");
    assert!(output.contains("/cache/local-"), "{output}");

    let output = find(folder.path(), None, &["etcd"]);
    assert!(!output.contains("progress"), "{output}");
    assert!(output.contains("/cache/local-"), "{output}");
}

#[test]
fn the_message_says_what_is_missing() {
    let check = |go, message: &str| {
        let folder = tempfile::tempdir().unwrap();
        let output = find(folder.path(), go, &[]);
        assert!(output.contains(message), "{message:?} is not in:\n{output}");
    };
    check(None, "Go 1.26 or newer is needed");
    check(
        None,
        "set KUBEBUILDER_ASSETS to a folder that holds etcd, kube-apiserver",
    );
    check(Some(OLD_GO), "Go is too old: found 1.20.1");
    check(Some(BROKEN_GO), "out of memory");
}
