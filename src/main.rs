//! The binary `gpu-batch`.

use std::process::ExitCode;

// The state of a step comes and goes in small pieces. With glibc's allocator decisions take a fifth
// longer, and pages that it gives back too early make single steps ten times as long.
// Without its feature `no_thp`, huge pages, mimalloc takes half as much memory again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gpu_batch::cli::main()
}
