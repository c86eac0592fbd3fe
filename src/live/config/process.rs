//! How a scheduler that does not run in a pod signs a Lease: `HOST_16HEXDIGITS`.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// How many hexadecimal digits the random part has.
const DIGITS: usize = 16;

/// A name that no other process has, and that does not change while this process lives: if several
/// processes on one host signed a Lease with one name, all of them would lead.
pub(super) static NAME: LazyLock<String> = LazyLock::new(|| {
    // The only random numbers in the standard library that come from the system.
    let random = RandomState::new().build_hasher().finish();
    name_on(host().as_deref().unwrap_or("gpu-batch"), random)
});

fn name_on(host: &str, random: u64) -> String {
    format!("{host}_{random:0DIGITS$x}")
}

fn host() -> Option<String> {
    let host = nix::unistd::gethostname().ok()?.into_string().ok()?;
    Some(host).filter(|host| !host.is_empty())
}

/// Whether a name is that of a process of this machine, unless a configuration has set it.
pub(crate) fn is_of_this_machine(name: &str) -> bool {
    host().is_some_and(|host| is_on(&host, name))
}

fn is_on(host: &str, name: &str) -> bool {
    let random = name
        .strip_prefix(host)
        .and_then(|rest| rest.strip_prefix('_'));
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    random.is_some_and(|random| random.len() == DIGITS && random.chars().all(is_digit))
}

#[cfg(test)]
mod tests {
    use super::{NAME, is_of_this_machine, is_on, name_on};

    #[test]
    fn a_process_is_known_by_the_whole_name_of_its_host() {
        assert!(is_of_this_machine(&NAME), "{}", *NAME);
        let name = name_on("gpu-1", 0x2f);
        assert_eq!(name, "gpu-1_000000000000002f");
        assert!(is_on("gpu-1", &name));
        for other in [
            "gpu-1",
            "gpu-10_000000000000002f",
            "gpu-1-7d4b9c-x2x9k",
            "gpu-1_2f",
            "gpu-1_000000000000002F",
            "gpu-1_b_000000000000002f",
        ] {
            assert!(!is_on("gpu-1", other), "{other}");
        }
    }
}
