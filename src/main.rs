//! The binary `gpu-batch`.

use std::process::ExitCode;

// What a step needs comes and goes in small pieces: glibc's allocator takes up to a quarter longer.
// The feature `no_thp` keeps mimalloc from huge pages, with which it takes half as much memory
// again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gpu_batch::cli::main()
}
