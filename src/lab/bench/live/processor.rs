//! The processor time of the processes that share the machine in a measurement.

use std::fs;

/// How many ticks of `/proc` a second has: the kernel uses this number for all programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time, of all threads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Processor {
    /// The API server and etcd.
    pub(super) control_plane: f64,
    /// This process: the bare binder, or the scheduler.
    pub(super) own: f64,
}

impl Processor {
    /// The processor time used up to now. Zero where there is no `/proc`, and of a control plane
    /// that runs elsewhere.
    pub(super) fn now() -> Self {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats =
            processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
        let of_control_plane = stats.filter_map(|stat| {
            let (name, seconds) = read(&stat)?;
            ["kube-apiserver", "etcd"]
                .contains(&name)
                .then_some(seconds)
        });
        let own = fs::read_to_string("/proc/self/stat");
        let own = own.ok().and_then(|stat| Some(read(&stat)?.1));
        Self {
            control_plane: of_control_plane.sum(),
            own: own.unwrap_or_default(),
        }
    }

    /// The processor time used since an earlier reading.
    pub(super) fn since(then: Self) -> Self {
        let now = Self::now();
        Self {
            control_plane: now.control_plane - then.control_plane,
            own: now.own - then.own,
        }
    }
}

/// The name of a process and the processor time that it has used, from its `/proc/PID/stat`. The
/// name is cut by the kernel after 15 bytes and stands in parentheses, which may be part of it.
fn read(stat: &str) -> Option<(&str, f64)> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split(' ').skip(11);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some((name, seconds()? + seconds()?))
}

#[cfg(test)]
mod tests {
    use super::{Processor, read};

    #[test]
    fn user_and_system_time_are_added_whatever_the_name() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 9 0 5 6 7";
        assert_eq!(read(stat), Some(("a (b) c", 3.0)));
        assert_eq!(read("7 (a) S"), None);
    }

    #[test]
    fn work_of_this_process_counts() {
        let before = Processor::now();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 60 {
            std::hint::black_box(before);
        }
        assert!(Processor::since(before).own > 0.0);
    }
}
