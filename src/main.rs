//! The binary `gpu-batch`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpu_batch::cli::main()
}
