//! The binary `gpu-batch`.

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// glibc's keeps what it once needed for a list, and its reserve grows in steps for hours. This one
/// gives pages back.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    gpu_batch::cli::main()
}
