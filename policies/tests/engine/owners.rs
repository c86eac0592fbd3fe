//! Pods that owners make: Jobs, which count evictions, and Deployments, which replace pods one by
//! one.

use gpu_batch_policies::event::ObjectKey;
use gpu_batch_policies::facts::{
    GroupSource, JobFacts, OwnerReference, PodFacts, PodGroupFacts, Problem, Uid,
};
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{Sketch, World, gang, node, pod, queue};
use std::collections::BTreeSet;

fn owner(kind: &str, name: &str, uid: Uid) -> OwnerReference {
    let api_version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid,
    }
}

fn job(name: &str, number: u128, ignores_evictions: bool) -> JobFacts {
    JobFacts {
        uid: Uid(9 << 64 | number),
        namespace: "default".into(),
        name: name.into(),
        indexed: true,
        parallelism: 2,
        completions: Some(2),
        succeeded: 0,
        active_deadline_ms: None,
        ignores_evictions,
        unknown_keys: Vec::new(),
    }
}

/// The two pods of a Job.
fn pods_of(job: &JobFacts) -> Sketch<PodFacts> {
    let owner = owner("Job", &job.name, job.uid);
    let names = [0, 1].map(|index| format!("{}-{index}", job.name));
    pod(&names.join(" "), 1).with(|pod| pod.owner = Some(owner.clone()))
}

fn told(world: &World, reason: &str) -> Vec<String> {
    let told = world.told.iter().filter_map(|told| {
        let (object, rest) = told.split_once(": ")?;
        rest.starts_with(reason).then(|| object.into())
    });
    told.collect()
}

#[test]
fn the_owner_of_a_job_that_evictions_make_fail_is_told_once() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    let (fragile, robust, protected) = (
        job("fragile", 1, false),
        job("robust", 2, true),
        job("protected", 3, false),
    );
    world.then((
        [fragile.clone(), robust.clone(), protected.clone()],
        pods_of(&fragile),
        pods_of(&robust),
        pods_of(&protected).with(|pod| pod.hints.preemptible = Some(false)),
    ));
    assert_eq!(told(&world, "FailsWhenEvicted"), ["Job fragile"]);
    world.pass(60_000);
    world.then(JobFacts {
        parallelism: 3,
        ..fragile
    });
    assert_eq!(told(&world, "FailsWhenEvicted"), ["Job fragile"]);
    let said = world.explain("pod/fragile-0").notes;
    assert!(
        said[0].starts_with("Job fragile: each pod that is evicted counts"),
        "{said:?}"
    );
    assert_eq!(world.explain("job/robust").notes, Vec::<String>::new());
    assert_eq!(world.explain("job/protected").notes, Vec::<String>::new());
}

/// Its members become gangs of their own in the step in which the queue goes that they count in.
#[test]
fn what_ran_of_a_job_that_goes_with_its_queue_is_not_counted_in_the_next_queue() {
    let job = job("train", 1, true);
    let mut world = World::of((
        node("n1", 8),
        queue("team").limit(8),
        job.clone(),
        pods_of(&job).queue("team"),
    ));
    assert_eq!(world.requested("team"), 2);
    world.forget(ObjectKey::Job(job.uid));
    world.lose_queue("team");
    world.settle();
    world.then(queue("next").limit(8));
    assert_eq!(world.requested("next"), 0);
}

#[test]
fn nothing_is_told_of_a_job_before_its_podgroup_says_whether_it_is_preemptible() {
    let job = job("train", 1, false);
    let mut world = World::of((job.clone(), pods_of(&job).of("train")));
    let group = gang("train", 2);
    world.then(group.clone().with(|group| group.preemptible = Some(false)));
    assert_eq!(told(&world, "FailsWhenEvicted"), Vec::<String>::new());
    world.then(group);
    assert_eq!(told(&world, "FailsWhenEvicted"), ["Job train"]);
}

#[test]
fn what_a_pod_says_in_vain_is_told_on_the_pod_and_holds_nothing_up() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    for _ in 0..2 {
        let unknown_keys: Vec<Problem> = [
            ("metadata.labels[x]", "means nothing"),
            ("metadata.annotations[y]", "is a label"),
        ]
        .map(|(field, message)| Problem {
            field: field.into(),
            message: message.into(),
        })
        .to_vec();
        world.then(pod("a", 1).with(|pod| pod.unknown_keys.clone_from(&unknown_keys)));
    }
    assert!(world.is_placed("a"));
    let said = "Pod a: UnknownKey: metadata.labels[x]: means nothing; metadata.annotations[y]: is \
                a label";
    assert_eq!(world.told, [said]);
}

fn key(field: &str) -> Vec<Problem> {
    let problem = |field: &str| Problem {
        field: field.into(),
        message: "means nothing here".into(),
    };
    field.split_whitespace().map(problem).collect()
}

/// On the Job and the PodGroup of a gang that has members, and on the Queue; once, and anew when
/// they have changed.
#[test]
fn what_owners_and_groups_say_in_vain_is_told_on_them() {
    let job = |field: &str| JobFacts {
        unknown_keys: key(field),
        ..job("train", 1, true)
    };
    let group = |field: &str| gang("g", 2).with(|group| group.unknown_keys = key(field));
    let mut native = PodGroupFacts::new(Uid(7 << 64), "default", "native", 2);
    native.source = GroupSource::Native;
    native.unknown_keys = key("n");
    let mut world = World::new();
    let queue = queue("default").with(|queue| queue.unknown_keys = key("q"));
    let group_and_job = (group("g"), job("j"), native.clone());
    world.then((node("n1", 8), queue, group_and_job));
    let of =
        |object: &str, field: &str| format!("{object}: UnknownKey: {field}: means nothing here");
    let unknown_keys = |world: &mut World| {
        let told = world.told.drain(..);
        told.filter(|told| told.contains("UnknownKey"))
            .collect::<BTreeSet<_>>()
    };
    let expect = |told: BTreeSet<String>, expected: &[String]| {
        assert_eq!(told, expected.iter().cloned().collect::<BTreeSet<_>>());
    };
    // The gangs have no members.
    expect(unknown_keys(&mut world), &[of("Queue default", "q")]);
    let members = pods_of(&job("j")).of("g");
    let of_native = pod("a b", 1).with(|pod| pod.native_group = Some("native".into()));
    world.then((members, of_native));
    let all = [
        of("Job train", "j"),
        of("PodGroup g", "g"),
        of("PodGroup native", "n"),
    ];
    expect(unknown_keys(&mut world), &all);
    let notes = [
        "Job train: j: means nothing here",
        "PodGroup g: g: means nothing here",
    ];
    assert_eq!(world.explain("g").notes, notes);
    world.later(60_000);
    world.then((job("j"), group("g")));
    expect(unknown_keys(&mut world), &[]);
    world.then((job("j k"), group("")));
    expect(
        unknown_keys(&mut world),
        &[of("Job train", "j: means nothing here; k")],
    );
    world.then(group("g"));
    expect(unknown_keys(&mut world), &[of("PodGroup g", "g")]);
}

/// A pod of one of the ReplicaSets of the Deployment `web`, which is a gang of three.
fn replica(names: &str, replica_set: u128) -> Sketch<PodFacts> {
    let uid = Uid(8 << 64 | replica_set);
    let owner = owner("ReplicaSet", &format!("web-{replica_set}"), uid);
    pod(names, 1).with(|pod| {
        pod.owner = Some(owner.clone());
        pod.deployment = Some("web".into());
        pod.hints.min_member = Some(3);
    })
}

#[test]
fn a_rolling_update_of_a_deployment_goes_on_in_the_gang_that_runs() {
    let mut world = World::of((node("n1", 4), replica("a b", 1)));
    assert_eq!(world.nodes_of("a b").len(), 0, "two of three");
    world.then(replica("c", 1));
    assert_eq!(world.nodes_of("a b c").len(), 3);
    // One more of the new template, then one less of the old one.
    for (new, old) in [("d", "a"), ("e", "b"), ("f", "c")] {
        world.then(replica(new, 2));
        assert!(world.is_placed(new), "{new}");
        world.delete(old);
        world.settle();
    }
    assert_eq!(world.gang("deployment/web").status.members.bound, 3);
    world.later(120_000);
    assert_eq!(world.evictions, 0);
}

/// Room is kept for the pods that a Job makes anew after they were moved, and no longer than there
/// is a Job to make them. Meanwhile those who lack it are told for whom it is kept.
#[test]
fn room_is_kept_for_the_moved_pods_of_a_job_until_the_job_is_gone() {
    let mut world = World::new();
    let movable = JobFacts {
        indexed: false,
        ..job("movable", 1, true)
    };
    let of_job = owner("Job", "movable", movable.uid);
    let quota = queue("default").entry("nvidia.com/gpu", None, (16, None), 1);
    world.then((
        quota,
        node("n1 n2", 8),
        movable.clone(),
        pod("m", 4)
            .on("n1")
            .with(|pod| pod.owner = Some(of_job.clone())),
        pod("keeps", 4)
            .on("n2")
            .with(|pod| pod.hints.preemptible = Some(false)),
        pod("large", 8),
    ));
    world.run(5_000);
    assert_eq!(world.evicted, ["m"]);
    world.then(pod("late", 4));
    world.run(5_000);
    assert_eq!(world.places("large late"), "n1 -");
    let kept = world.explain("pod/late").shortages[0].kept.remove(0);
    assert_eq!(
        kept.beneficiary,
        "new pods of the Job default/movable, whose pods were moved"
    );
    assert_eq!((&*kept.amount, kept.nodes), ("4 nvidia.com/gpu", 1));
    assert!(kept.until_ms.is_some());
    world.forget(ObjectKey::Job(movable.uid));
    world.run(5_000);
    assert_eq!(world.places("late"), "n2");
}

/// Whatever its owner expects, a gang ends at the deadline of its Job or of its pods.
#[test]
fn a_gang_is_expected_to_run_no_longer_than_its_deadline() {
    let deadline = JobFacts {
        active_deadline_ms: Some(80_000),
        ..job("j", 1, false)
    };
    let members = pods_of(&deadline).on("n1").runtime(600_000);
    let group = gang("g", 2).with(|gang| gang.expected_runtime_ms = Some(600_000));
    let of_group = pod("m0 m1", 1).of("g").on("n1").runtime(80_000);
    let both = pods_of(&deadline).of("g").on("n1");
    for mut world in [
        World::of((node("n1", 2), group.clone(), deadline.clone(), both)),
        World::of((node("n1", 2), deadline, members)),
        World::of((node("n1", 2), group, of_group)),
    ] {
        world.configure(Settings {
            reservations: 1,
            ..Settings::default()
        });
        // Pods that are sketched on a node have run for 30 s.
        let at_ms = world.now_ms + 50_000;
        world.then(pod("a", 2).runtime(10_000));
        let promised: Vec<_> = world.engine.promised_starts().collect();
        assert_eq!(promised, [("default/pod/a", at_ms)]);
    }
}

/// An eviction may come as a member ends. Its pod goes, and its Job makes no other one.
#[test]
fn members_that_ended_well_and_were_removed_are_not_waited_for() {
    let job = JobFacts {
        parallelism: 3,
        completions: Some(3),
        ..job("train", 1, true)
    };
    let of_job = owner("Job", "train", job.uid);
    let member = |names: &str| pod(names, 2).with(|pod| pod.owner = Some(of_job.clone()));
    let succeeded = |succeeded| JobFacts {
        succeeded,
        ..job.clone()
    };
    let group = gang("g", 3);
    for in_group in [false, true] {
        let member = |names: &str| match in_group {
            true => member(names).of("g"),
            false => member(names),
        };
        let mut world = World::of((node("n1", 8), group.clone(), job.clone(), member("a b c")));
        world.run(2_000);
        assert_eq!(world.places("a b c"), "n1 n1 n1");
        world.end("a b");
        world.then(succeeded(2));
        world.delete("a b c");
        world.then(member("d"));
        world.run(2_000);
        assert_eq!(world.places("d"), "n1");

        // While the Job does not say that a member ended well, all are waited for.
        let mut world = World::of((node("n1", 8), group.clone(), succeeded(1), member("d")));
        world.run(2_000);
        assert_eq!(world.places("d"), "-");
        world.then(member("e"));
        world.run(2_000);
        assert_eq!(world.places("d e"), "n1 n1");
        world.then(succeeded(2));
        world.end("d");
        world.delete("e");
        world.then(member("f"));
        world.run(2_000);
        assert_eq!(world.places("f"), "n1");

        // Of a Job that has ended, nothing is kept in mind: another one may use the PodGroup.
        let mut world = World::of((node("n1", 8), group.clone(), job.clone(), member("a b c")));
        world.run(2_000);
        world.end("a b c");
        world.then(succeeded(3));
        world.delete("a b c");
        world.then(pod("x", 2).of("g"));
        world.run(2_000);
        assert_eq!(world.places("x"), "-");
    }
}
