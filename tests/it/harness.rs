//! What every test here needs: a control plane, or the reason why there is none.

use gpu_batch::local::{Binaries, ControlPlane, LocalError, Options};

/// Starts a control plane. `None` where its programs are missing and cannot be built for want of Go:
/// the test is skipped there, except where `CI` is set.
pub(crate) async fn start(options: Options) -> Option<ControlPlane> {
    let programs = options.programs();
    let found = tokio::task::spawn_blocking(move || {
        Binaries::find_or_build(&programs, |line| eprintln!("{line}"))
    });
    match found.await.unwrap() {
        Ok(binaries) => match ControlPlane::start(&binaries, options).await {
            Ok(control_plane) => Some(control_plane),
            Err(error) => panic!("{error}"),
        },
        Err(error @ LocalError::GoMissing { .. }) if std::env::var_os("CI").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
