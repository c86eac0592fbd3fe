use super::{GangDifference, Session};
use crate::journal::{Reader, Recorder, beginning, pack};
use crate::objects::pod;
use crate::run::record;
use gpu_batch_policies::event::{Event, Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::{
    OwnerReference, Placement, PodFacts, PodPhase, QueueFacts, Uid, UnixMs,
};
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{Thing, World, node};

/// The sessions of a world in which nothing goes wrong.
fn sessions(seed: u64) -> Vec<Session> {
    let recorded = record(seed, false).unwrap().1;
    recorded.iter().map(|recorded| session(recorded)).collect()
}

fn session(recorded: &[u8]) -> Session {
    let journal = [beginning(), pack(recorded).unwrap()].concat();
    Session::read(&mut Reader::new(&journal[..]).unwrap())
}

/// A session without reservations in which these steps follow each other. Every binding succeeds
/// before the next one.
fn session_of(steps: impl IntoIterator<Item = (UnixMs, Vec<Event>)>) -> Session {
    let settings = Settings {
        reservations: 0,
        ..Settings::default()
    };
    let mut recorder = Recorder::new("0", &settings);
    let mut world = World::with(settings);
    for (now_ms, events) in steps {
        (world.now_ms, world.events) = (now_ms, events);
        while !world.events.is_empty() {
            recorder.events(now_ms, &world.events);
            let commands = world.commands();
            recorder.commands(&commands);
            for command in commands {
                world.carry_out(command, Outcome::Done);
            }
        }
    }
    session(&recorder.seal())
}

/// Here one pod comes just before another one leaves its node, and a third one just after: the
/// milliseconds are the same, the steps are not.
#[test]
fn what_happened_in_several_steps_of_one_millisecond_happens_so_again() {
    let arrival = |name: &str, uid, now_ms| pod(name, Uid(uid), now_ms, 1, 8);
    let ended = |pod: PodFacts| PodFacts {
        phase: PodPhase::Succeeded,
        node: Some("a".into()),
        ..pod
    };
    let first = arrival("first", 11, 1_000);
    let steps = [
        (0, Event::lists(node("a b", 8).objects())),
        (1_000, vec![Object::Pod(first.clone()).into()]),
        (
            5_000,
            vec![Object::Pod(arrival("second", 12, 5_000)).into()],
        ),
        (5_000, vec![Object::Pod(ended(first)).into()]),
        (5_000, vec![Object::Pod(arrival("third", 13, 5_000)).into()]),
        (6_000, vec![Event::Deleted(ObjectKey::Pod(Uid(11)))]),
    ];
    let session = session_of(steps);
    let node = |uid| &*session.course.starts[&Uid(uid)].node;
    assert_eq!([node(11), node(12), node(13)], ["a", "b", "a"]);
    assert_eq!(session.under(&session.settings, &[]), session.course);
}

/// Answers take milliseconds in these worlds and none in a session that goes on. That makes no
/// difference unless requests have to wait for answers. Then a start may come a little earlier, and
/// once in many sessions another gang goes first for it. Sessions in which gangs evict others are
/// left out: how long their victims took to leave is that of the record, whoever leaves now.
#[test]
fn with_the_same_settings_the_same_happens_at_the_same_times() {
    let (mut pods, mut moved, mut gangs, mut late) = (0, 0, 0, 0);
    let (mut waiting, mut reordered) = (0, 0);
    let sessions = (0..200).flat_map(sessions);
    for session in sessions.filter(|session| session.settings.evictions.in_flight == 0) {
        let course = session.under(&session.settings, &[]);
        let comparison = session.compare(&course);
        if session.settings.in_flight == Settings::default().in_flight {
            // The record has no promises.
            assert_eq!(course.starts, session.course.starts);
            assert_eq!(course.evictions, session.course.evictions);
            assert_eq!((comparison.gangs, comparison.pods), (vec![], vec![]));
            assert_eq!(comparison.total.recorded, comparison.total.other);
            continue;
        }
        pods += session.course.starts.len();
        moved += comparison.pods.len();
        gangs += comparison.total.recorded.started;
        late += u32::try_from(comparison.gangs.len()).unwrap();
        let is_near = |gang: &GangDifference| {
            let starts = gang.recorded_ms.zip(gang.other_ms);
            starts.is_some_and(|(recorded_ms, other_ms)| recorded_ms.abs_diff(other_ms) < 200)
        };
        waiting += 1;
        reordered += u32::from(!comparison.gangs.iter().all(is_near));
    }
    assert!(
        waiting > 60 && reordered * 50 < waiting,
        "{reordered} of {waiting}"
    );
    assert!(pods > 300 && moved * 20 < pods, "{moved} of {pods}");
    assert!(gangs > 100 && late * 10 < gangs, "{late} of {gangs}");
}

/// In the record a pod of 8 GPUs takes the second node for a long time, and a gang that needs both
/// nodes waits for its end. With reservations the gang is promised the expected end of the first
/// pod, and the long one waits behind it.
#[test]
fn reservations_would_have_kept_the_room_of_a_gang() {
    let expects = |mut pod: PodFacts, runtime_ms| {
        pod.hints.expected_runtime_ms = Some(runtime_ms);
        pod
    };
    let first = expects(pod("first", Uid(11), 1_000, 1, 8), 9_000);
    let long = expects(pod("long", Uid(14), 3_000, 1, 8), 100_000);
    let member = |name: &str, uid| {
        let mut facts = expects(pod(name, Uid(uid), 2_000, 1, 8), 5_000);
        facts.hints.min_member = Some(2);
        facts.owner = Some(OwnerReference {
            api_version: "v1".into(),
            kind: "Run".into(),
            name: "wide".into(),
            uid: Uid(7),
        });
        facts
    };
    let arrives = |pods: &[PodFacts]| -> Vec<Event> {
        let pods = pods.iter().cloned();
        pods.map(|pod| Object::Pod(pod).into()).collect()
    };
    let ends = |pod: &PodFacts, node: &str| {
        let (phase, node) = (PodPhase::Succeeded, Some(node.into()));
        let pod = pod.clone();
        vec![Object::Pod(PodFacts { phase, node, ..pod }).into()]
    };
    let wide = [member("wide-0", 12), member("wide-1", 13)];
    let steps = [
        (0, Event::lists(node("a b", 8).objects())),
        (1_000, arrives(std::slice::from_ref(&first))),
        (2_000, arrives(&wide)),
        (3_000, arrives(std::slice::from_ref(&long))),
        (10_000, ends(&first, "a")),
        (50_000, ends(&long, "b")),
        (60_000, ends(&wide[0], "a")),
        (60_000, ends(&wide[1], "b")),
        (90_000, vec![Event::Deleted(ObjectKey::Pod(Uid(11)))]),
    ];
    let session = session_of(steps);
    let start = |course: &super::Course, uid| course.starts[&Uid(uid)].at_ms;
    assert_eq!(session.promises_kept(&session.course), None);
    assert_eq!(start(&session.course, 14), 3_000);
    assert_eq!(start(&session.course, 12), 50_000);

    let with = Settings {
        reservations: 8,
        ..session.settings.clone()
    };
    let course = session.under(&with, &[]);
    assert_eq!([start(&course, 12), start(&course, 13)], [10_000; 2]);
    assert_eq!(start(&course, 14), 20_000, "the gang runs for ten seconds");
    let behind = course.promised.as_ref().map(|it| it.behind.iter());
    let behind: Vec<&str> = behind.into_iter().flatten().map(|gang| &**gang).collect();
    assert_eq!(behind, ["default/pod/long"]);
    let figures = session.promise_figures(&course).unwrap();
    // The gang runs for longer than expected, so the promise to the long one is not kept.
    assert_eq!((figures.promised, figures.kept, figures.open), (2, 1, 0));
    assert_eq!(figures.error_median_ms, Some(0));
    let comparison = session.compare(&course);
    let page = session.report(&course, &comparison, Vec::new());
    let promises = page.tables.last().unwrap();
    assert_eq!(promises.title, "Promised starts");
    assert_eq!(
        promises.rows[1],
        ["default/run/wide", "10.000", "10.000", "0.000"]
    );
    let mut bytes = Vec::new();
    session.write_gangs(&course, &mut bytes).unwrap();
    let wide = rows(&bytes);
    let wide = wide.iter().find(|row| row[0] == "default/run/wide");
    assert_eq!(wide.unwrap()[3..], ["50.000", "10.000", "10.000"]);
}

/// A queue that may hold nothing starts nothing, and the others are not worse off.
#[test]
fn other_queues_make_a_difference_where_they_should() {
    let (mut closed, mut unchanged) = (0, 0);
    for session in (0..20).flat_map(sessions) {
        let queues = session.objects.iter().filter_map(|object| match object {
            Object::Queue(queue) => Some(queue.clone()),
            _ => None,
        });
        let Some(queue) = queues.into_iter().find(|queue| &*queue.name == "red") else {
            continue;
        };
        let started = |course: &super::Course| {
            let starts = course.starts.values();
            starts.filter(|start| &*start.queue == "red").count()
        };
        let shut = QueueFacts {
            closed: true,
            ..queue.clone()
        };
        let course = session.under(&session.settings, &[shut]);
        assert_eq!(started(&course), 0);
        closed += started(&session.course);
        let comparison = session.compare(&course);
        let row = comparison.queues.iter().find(|row| &*row.queue == "red");
        assert!(row.is_none_or(|row| row.other.started == 0));

        // A queue as it was recorded is no change, unless it changes in the record.
        let changes = session.happenings.iter().map(|(_, event)| event);
        let mut changes = changes.filter_map(|event| match event {
            Event::Applied(object) => Some(object.key()),
            _ => None,
        });
        if changes.all(|key| key != ObjectKey::Queue("red".into())) {
            unchanged += 1;
            let again = session.under(&session.settings, &[queue]);
            assert_eq!(again, session.under(&session.settings, &[]));
        }
    }
    assert!(closed > 20 && unchanged > 5, "{closed} {unchanged}");
}

#[test]
fn shares_and_waits_are_those_of_the_record() {
    for session in (0..10).flat_map(sessions) {
        let comparison = session.compare(&session.course);
        let sum: u64 = comparison
            .queues
            .iter()
            .map(|row| row.recorded.gpu_share_millionths)
            .sum();
        let total = comparison.total.recorded;
        assert!(total.gpu_share_millionths.abs_diff(sum) <= 10);
        assert!(total.gpu_share_millionths <= 1_000_000);
        assert!(total.wait_mean_ms <= session.end_ms - session.start_ms);
        assert_eq!(comparison.total.other, total);
    }
}

/// The files say of every gang and pod what the comparison counts.
#[test]
fn the_page_and_the_files_say_what_the_comparison_counts() {
    let mut differed = 0;
    for session in (0..10).flat_map(sessions) {
        let other = Settings {
            gpu_placement: Placement::Spread,
            ..session.settings.clone()
        };
        let course = session.under(&other, &[]);
        let comparison = session.compare(&course);
        let mut bytes = Vec::new();
        session.write_gangs(&course, &mut bytes).unwrap();
        let gangs = rows(&bytes);
        let other_time = gangs.iter().filter(|row| row[3] != row[4]).count();
        assert_eq!(other_time, comparison.gangs.len());
        let mut bytes = Vec::new();
        session.write_pods(&course, &mut bytes).unwrap();
        let pods = rows(&bytes);
        let bound = |row: &&Vec<String>| !row[3].is_empty() && !row[6].is_empty();
        let elsewhere = pods
            .iter()
            .filter(bound)
            .filter(|row| row[3] != row[6])
            .count();
        assert_eq!(elsewhere, comparison.pods.len());
        differed += elsewhere;

        let page = session.report(&course, &comparison, Vec::new());
        assert_eq!(page.tables[1].rows.len(), comparison.gangs.len());
        assert_eq!(page.tables[2].rows.len(), comparison.pods.len());
        let in_use = page
            .panels
            .iter()
            .find(|panel| panel.title == "GPUs in use");
        assert!(in_use.is_some() || comparison.queues.is_empty());
    }
    assert!(differed > 20, "{differed}");
}

fn rows(csv: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_reader(csv);
    let rows = reader.records().map(|row| row.unwrap());
    rows.map(|row| row.iter().map(str::to_owned).collect())
        .collect()
}

#[test]
fn a_journal_of_nothing_is_an_empty_session() {
    let recorded = Recorder::new("0", &Settings::default()).seal();
    let journal = [beginning(), pack(&recorded).unwrap()].concat();
    let session = Session::read(&mut Reader::new(&journal[..]).unwrap());
    assert!(session.is_empty());
    assert!(session.under(&session.settings, &[]).starts.is_empty());
}
