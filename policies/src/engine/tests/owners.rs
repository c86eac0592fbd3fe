//! Pods that owners make: Jobs, which count evictions, and Deployments, which replace pods one by
//! one.

use super::world::{PodSketch, Thing, World, gang, node, pod};
use crate::event::Object;
use crate::facts::{JobFacts, OwnerReference, PodFacts, Problem, Uid};
use alloc::{format, string::String, vec::Vec};

/// A pod, and what its owner makes of it.
struct Made<F>(PodSketch, F);

impl<F: FnOnce(&mut PodFacts)> Thing for Made<F> {
    fn object(self, world: &mut World) -> Object {
        let Object::Pod(mut facts) = self.0.object(world) else {
            unreachable!("a sketch of a pod makes a pod");
        };
        (self.1)(&mut facts);
        Object::Pod(facts).object(world)
    }
}

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
        active_deadline_ms: None,
        ignores_evictions,
    }
}

/// The two pods of a Job.
fn pods_of(job: &JobFacts, change: fn(&mut PodFacts)) -> [Made<impl FnOnce(&mut PodFacts)>; 2] {
    [0, 1].map(|index| {
        let owner = owner("Job", &job.name, job.uid);
        Made(
            pod(&format!("{}-{index}", job.name), 1),
            move |facts: &mut PodFacts| {
                facts.owner = Some(owner);
                change(facts);
            },
        )
    })
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
    for job in [&fragile, &robust, &protected] {
        world.apply(Object::Job(job.clone()));
    }
    for pods in [pods_of(&fragile, |_| {}), pods_of(&robust, |_| {})] {
        pods.into_iter().for_each(|pod| world.apply(pod));
    }
    for pod in pods_of(&protected, |facts| facts.hints.preemptible = Some(false)) {
        world.apply(pod);
    }
    world.settle();
    assert_eq!(told(&world, "FailsWhenEvicted"), ["Job fragile"]);
    world.pass(60_000);
    world.apply(Object::Job(JobFacts {
        parallelism: 3,
        ..fragile
    }));
    world.settle();
    assert_eq!(told(&world, "FailsWhenEvicted"), ["Job fragile"]);
    let notes = |world: &mut World, name: &str| {
        let gang = format!("default/{name}");
        let explanation = world.engine().explain(crate::explain::Subject::Gang(&gang));
        explanation.unwrap().notes
    };
    let said = notes(&mut world, "pod/fragile-0");
    assert!(
        said[0].starts_with("Job fragile: each pod that is evicted counts"),
        "{said:?}"
    );
    assert_eq!(notes(&mut world, "job/robust"), Vec::<String>::new());
    assert_eq!(notes(&mut world, "job/protected"), Vec::<String>::new());
}

#[test]
fn nothing_is_told_of_a_job_before_its_podgroup_says_whether_it_is_preemptible() {
    let mut world = World::new();
    let job = job("train", 1, false);
    world.apply(Object::Job(job.clone()));
    for pod in pods_of(&job, |facts| facts.pod_group = Some("train".into())) {
        world.apply(pod);
    }
    world.settle();
    let mut group = gang("train", 2);
    group.preemptible = Some(false);
    world.apply(group.clone());
    world.settle();
    assert_eq!(told(&world, "FailsWhenEvicted"), Vec::<String>::new());
    group.preemptible = None;
    world.apply(group);
    world.settle();
    assert_eq!(told(&world, "FailsWhenEvicted"), ["Job train"]);
}

#[test]
fn what_a_pod_says_in_vain_is_told_on_the_pod_and_holds_nothing_up() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    for _ in 0..2 {
        world.apply(Made(pod("a", 1), |facts: &mut PodFacts| {
            facts.unknown_keys = [
                ("metadata.labels[x]", "means nothing"),
                ("metadata.annotations[y]", "is a label"),
            ]
            .map(|(field, message)| Problem {
                field: field.into(),
                message: message.into(),
            })
            .into();
        }));
        world.settle();
    }
    assert!(world.node_of("a").is_some());
    let said = "Pod a: UnknownKey: metadata.labels[x]: means nothing; metadata.annotations[y]: is \
                a label";
    assert_eq!(world.told, [said]);
}

/// A pod of one of the ReplicaSets of the Deployment `web`, which is a gang of three.
fn replica(name: &'static str, replica_set: u128) -> Made<impl FnOnce(&mut PodFacts)> {
    Made(pod(name, 1), move |facts: &mut PodFacts| {
        let name = format!("web-{replica_set}");
        facts.owner = Some(owner("ReplicaSet", &name, Uid(8 << 64 | replica_set)));
        facts.deployment = Some("web".into());
        facts.hints.min_member = Some(3);
    })
}

#[test]
fn a_rolling_update_of_a_deployment_goes_on_in_the_gang_that_runs() {
    let mut world = World::new();
    world.apply(node("n1", 4));
    for name in ["a", "b"] {
        world.apply(replica(name, 1));
    }
    world.settle();
    assert_eq!(world.nodes_of(&["a", "b"]).len(), 0, "two of three");
    world.apply(replica("c", 1));
    world.settle();
    assert_eq!(world.nodes_of(&["a", "b", "c"]).len(), 3);
    // One more of the new template, then one less of the old one.
    for (new, old) in [("d", "a"), ("e", "b"), ("f", "c")] {
        world.apply(replica(new, 2));
        world.settle();
        assert!(world.node_of(new).is_some(), "{new}");
        world.delete(old);
        world.settle();
    }
    assert_eq!(world.gang("default/deployment/web").status.members.bound, 3);
    world.pass(120_000);
    world.settle();
    assert_eq!(world.evictions, 0);
}
