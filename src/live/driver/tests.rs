mod asked;
mod poison;
mod uncertain;

use super::{Batch, Driver, Ended, Question};
use crate::handles::Handles;
use crate::handles::inbox::Inbox;
use crate::kube::execute::{Executor, LeaseName};
use crate::live::recording::{JournalFile, Recording};
use gpu_batch_policies::command::CommandId;
use gpu_batch_policies::event::{Event, Kind, Outcome};
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::journal::{Reader, replay};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// A driver whose engine sends nothing.
fn driver() -> (Driver, watch::Receiver<u64>) {
    driver_at(&kube::Config::new("http://127.0.0.1:1".parse().unwrap()))
}

fn driver_at(cluster: &kube::Config) -> (Driver, watch::Receiver<u64>) {
    let handles = Handles::new(String::new());
    let lease = LeaseName {
        namespace: "sys".to_owned(),
        name: "gb".to_owned(),
    };
    let executor = Executor::new(cluster, lease, "me".to_owned(), "gpu-batch", &handles).unwrap();
    let (relist, relisted) = watch::channel(0);
    let settings = Settings::default();
    let executor = Arc::new(executor);
    let driver = Driver::new(settings, String::new(), handles, executor, relist, None);
    (driver, relisted)
}

/// The outcome of a command that was under way, a moment from now.
fn ends_soon(inbox: &Arc<Inbox>) {
    let inbox = Arc::clone(inbox);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        inbox.ended(Event::Outcome(CommandId(1), Outcome::Done));
    });
}

#[tokio::test]
async fn a_panic_waits_for_requests_under_way_and_lists_everything_anew() {
    let (mut driver, relisted) = driver();
    driver.in_flight = 1;
    ends_soon(&driver.handles.inbox);
    assert!(driver.recover(&"boom"));
    assert_eq!(driver.in_flight, 0);
    assert!(relisted.has_changed().unwrap());
    assert_eq!(driver.handles.metrics.panics.get(), 1);
    // The outcome belonged to the engine that is gone.
    let Batch { events, .. } = driver.handles.inbox.take(Duration::ZERO, true);
    assert_eq!(events, []);
}

#[tokio::test]
async fn the_third_panic_within_ten_minutes_is_the_last() {
    let (mut driver, _relisted) = driver();
    assert!(driver.recover(&"one"));
    assert!(driver.recover(&"two"));
    assert!(!driver.recover(&"three"));
}

#[tokio::test]
async fn panics_of_long_ago_are_forgotten() {
    let (mut driver, _relisted) = driver();
    let long_ago = Instant::now().checked_sub(Duration::from_secs(601));
    driver.panics.extend([long_ago; 5].into_iter().flatten());
    assert!(driver.recover(&"boom"));
}

#[tokio::test]
async fn a_stopping_driver_waits_for_requests_under_way() {
    let (mut driver, _relisted) = driver();
    driver.in_flight = 1;
    let started = Instant::now();
    ends_soon(&driver.handles.inbox);
    driver.handles.inbox.stop();
    assert!(matches!(driver.run(), Ended::Stopped));
    let took = started.elapsed();
    assert!(
        took >= Duration::from_millis(30) && took < Duration::from_secs(4),
        "{took:?}"
    );
}

#[tokio::test]
async fn questions_are_answered_and_reports_are_kept_for_a_second() {
    let (mut driver, _relisted) = driver();
    let mut ask = || {
        let (sender, mut receiver) = oneshot::channel();
        driver.answer(vec![Question::Reports(sender)]).unwrap();
        receiver.try_recv().unwrap()
    };
    assert!(Arc::ptr_eq(&ask(), &ask()));
}

#[tokio::test]
async fn a_full_journal_is_followed_by_one_of_a_new_engine_from_new_lists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("j");
    let (mut driver, relisted) = driver();
    let file = JournalFile::create(&path, 1 << 20).unwrap();
    let settings = Settings::default();
    driver.recording = Some(Recording::start(file, &settings, &driver.handles.metrics).unwrap());
    driver.turn(Event::lists([])).unwrap();
    driver.follow_recording();
    assert!(driver.engine.is_synced());
    assert!(!relisted.has_changed().unwrap());

    driver.recording.as_mut().unwrap().pretend_full();
    driver.follow_recording();
    assert!(!driver.engine.is_synced());
    assert!(relisted.has_changed().unwrap());
    driver.turn(Event::lists([])).unwrap();
    assert!(driver.engine.is_synced());
    drop(driver.recording.take());
    for name in ["j.1", "j"] {
        let journal = std::fs::File::open(folder.path().join(name)).unwrap();
        let replayed = replay(&mut Reader::new(journal).unwrap());
        assert_eq!(replayed.events, Kind::ALL.len() as u64, "{name}");
        assert_eq!(replayed.difference, None, "{name}");
    }
}
