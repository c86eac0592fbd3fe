//! What the program prints, kept in files and compared byte for byte.

use std::path::Path;
use std::process::{Command, Output};

/// The time that the program is told: 2026-11-21T10:00:00Z.
pub(crate) const NOW: &str = "2026-11-21T10:00:00Z";

/// Runs the program in a folder.
pub(crate) fn gpu_batch(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpu-batch"))
        .args(arguments)
        .current_dir(folder)
        .env("GPU_BATCH_NOW", NOW)
        .output()
        .expect("the binary was built for this test")
}

/// Standard error, standard output and the exit code, as on a terminal.
pub(crate) fn transcript(folder: &Path, arguments: &[&str]) -> String {
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

/// Compares with a file, or rewrites it where `UPDATE` is set.
pub(crate) fn check(file: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, found).expect("the test data can be rewritten");
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(found, expected, "{}", file.display());
}
