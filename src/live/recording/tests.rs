use super::{JournalFile, Recording, ToWrite};
use crate::handles::metrics::Metrics;
use gpu_batch_policies::command::CommandId;
use gpu_batch_policies::event::{Event, Outcome};
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::journal::{Reader, Replayed, beginning, replay};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

const ROOMY: u64 = 1 << 30;

fn start(path: &Path, bytes_max: u64) -> (Recording, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::new());
    let file = JournalFile::create(path, bytes_max).unwrap();
    let recording = Recording::start(file, &Settings::default(), &metrics).unwrap();
    (recording, metrics)
}

/// A step with so many events of random numbers, which do not deflate.
fn step(recording: &mut Recording, events: u64) {
    let mut random = 1;
    let mut next = || {
        random = u64::wrapping_mul(random, 6_364_136_223_846_793_005) + 1;
        random
    };
    let events = (0..events).map(|_| Event::Outcome(CommandId(next()), Outcome::Done));
    recording.events(1, &events.collect::<Vec<_>>());
    recording.commands(&[]);
}

fn replayed(path: &Path) -> Replayed {
    let replayed = replay(&mut Reader::new(File::open(path).unwrap()).unwrap());
    assert_eq!(replayed.difference, None);
    assert!(replayed.damage.is_none(), "{:?}", replayed.damage);
    replayed
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_was_recorded_is_in_the_file_when_the_recording_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let (mut recording, metrics) = start(&path, ROOMY);
    assert_eq!(metrics.recording.get(), 1);
    (0..3).for_each(|_| step(&mut recording, 10));
    drop(recording);
    let replayed = replayed(&path);
    assert_eq!((replayed.steps, replayed.events), (3, 30));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_was_recorded_is_in_the_file_after_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let (mut recording, metrics) = start(&path, ROOMY);
    step(&mut recording, 1);
    recording.turned();
    assert!(recording.wait().unwrap() > Duration::from_millis(500));
    assert_eq!(metrics.recorded_bytes.get(), 0);
    recording.running.as_mut().unwrap().unsealed_since =
        Instant::now().checked_sub(Duration::from_secs(1));
    assert_eq!(recording.wait(), Some(Duration::ZERO));
    recording.turned();
    assert_eq!(recording.wait(), None);
    wait_until(|| metrics.recorded_bytes.get() > 0);
    // The recording is not ended: as if the process were killed.
    let replayed = replayed(&path);
    assert_eq!(replayed.steps, 1);
    drop(recording);
}

#[test]
fn a_full_file_is_followed_by_another_and_both_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let (mut recording, metrics) = start(&path, 1 << 20);
    let running = recording.running.as_mut().unwrap();
    running.file_since = running
        .file_since
        .checked_sub(Duration::from_secs(61))
        .unwrap();
    let mut steps = 0;
    while !recording.is_file_full() {
        let before = metrics.recorded_bytes.get();
        step(&mut recording, 5_000);
        recording.seal_if(|_| true);
        steps += 1;
        wait_until(|| metrics.recorded_bytes.get() > before);
    }
    recording.begin_file();
    assert!(!recording.is_file_full());
    step(&mut recording, 5);
    drop(recording);
    assert_eq!(metrics.recordings_stopped.get(), 0);
    let before = replayed(&folder.path().join("j.1"));
    assert!(steps > 4 && before.steps == steps, "{steps}");
    assert_eq!(replayed(&path).events, 5);
    for name in ["j", "j.1"] {
        let bytes = fs::metadata(folder.path().join(name)).unwrap().len();
        assert!(bytes <= 1 << 19, "{bytes}");
    }
}

#[test]
fn starts_in_vain_take_no_journals_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let (mut recording, _) = start(&path, ROOMY);
    step(&mut recording, 5);
    drop(recording);
    for _ in 0..3 {
        JournalFile::create(&path, ROOMY).unwrap();
    }
    assert_eq!(replayed(&folder.path().join("j.1")).events, 5);
}

#[test]
fn a_journal_cut_off_in_its_first_block_takes_no_journals_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let (mut recording, _) = start(&path, ROOMY);
    step(&mut recording, 5);
    drop(recording);
    let (mut recording, _) = start(&path, ROOMY);
    step(&mut recording, 6);
    drop(recording);
    // As if the disk had been full, or the machine had crashed.
    let whole = fs::read(&path).unwrap();
    for bytes in [4, 12, 20, whole.len() - 1] {
        fs::write(&path, &whole[..bytes]).unwrap();
        JournalFile::create(&path, ROOMY).unwrap();
        assert_eq!(replayed(&folder.path().join("j.1")).events, 5, "{bytes}");
    }
    fs::write(&path, &whole).unwrap();
    JournalFile::create(&path, ROOMY).unwrap();
    assert_eq!(replayed(&folder.path().join("j.1")).events, 6);
}

#[test]
fn a_file_that_is_full_at_once_ends_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recording, metrics) = start(&folder.path().join("j"), 1 << 10);
    let wanted = Instant::now();
    while metrics.recordings_stopped.get() == 0 {
        step(&mut recording, 100_000);
        assert!(!recording.is_file_full());
        assert!(wanted.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(metrics.recording.get(), 0);
    // What comes later costs nothing and changes nothing.
    step(&mut recording, 1);
    assert_eq!(recording.wait(), None);
}

#[test]
fn a_disk_that_does_not_keep_up_ends_the_recording_and_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recording, metrics) = start(&folder.path().join("j"), ROOMY);
    // A thread that takes nothing.
    let (blocks, to_write) = sync_channel::<ToWrite>(1);
    recording.running.as_mut().unwrap().blocks = blocks;
    let started = Instant::now();
    for _ in 0..3 {
        step(&mut recording, 100_000);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(metrics.recordings_stopped.get(), 1);
    drop(to_write);
}

#[test]
fn the_last_journal_is_kept_and_other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let (mut recording, _) = start(&path, ROOMY);
    step(&mut recording, 7);
    drop(recording);
    drop(start(&path, ROOMY));
    assert_eq!(replayed(&folder.path().join("j.1")).events, 7);
    assert_eq!(replayed(&path).events, 0);

    fs::write(&path, "precious").unwrap();
    let refused = JournalFile::create(&path, ROOMY).unwrap_err().to_string();
    assert!(refused.contains("not a journal"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    // A process that could not write, or not to the end, leaves such a file behind.
    for bytes in [&b""[..], b"gpub", &beginning()] {
        fs::write(&path, bytes).unwrap();
        drop(start(&path, ROOMY));
        assert_eq!(replayed(&path).events, 0);
        assert_eq!(replayed(&folder.path().join("j.1")).events, 7);
    }
    let device = JournalFile::create(Path::new("/dev/null"), ROOMY);
    assert!(device.unwrap_err().to_string().contains("not a journal"));
    let nowhere = JournalFile::create(&folder.path().join("no/j"), ROOMY);
    assert!(nowhere.unwrap_err().to_string().contains("no/j"));
}
