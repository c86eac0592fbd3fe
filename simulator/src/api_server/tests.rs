use super::{Answer, ApiServer, Conflict, Expected, Name, Request, Sort, Stored, Version};
use crate::objects::{node, pod, pod_group};
use gpu_batch_policies::command::{Bind, Evict, EvictionCause, PodReference, StatusPatch};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    DisruptionBudgetFacts, LabelSelector, PodFacts, PodPhase, QueueFacts, Uid,
};
use gpu_batch_policies::lease::LeaseCall;
use gpu_batch_policies::status::QueueStatus;
use std::sync::Arc;

const NOW_MS: u64 = 1_800_000_000_123;

struct Server(ApiServer);

impl Server {
    fn new() -> Self {
        Self(ApiServer::default())
    }

    fn ask(&mut self, request: Request) -> Answer {
        self.0.handle(request, NOW_MS)
    }

    fn create(&mut self, object: impl Into<Created>) -> Answer {
        self.ask(Request::Create(object.into().0))
    }

    /// Creates a pod and says what it is called.
    fn pod(&mut self, name: &str) -> PodReference {
        self.create(pod(name, Uid(0), 0, 1, 1));
        self.reference(name)
    }

    /// Creates a budget for the gang `g`; its controller lets it allow so many evictions.
    fn budget(&mut self, name: &str, allowed: Option<u32>) -> Arc<Stored> {
        let selector = LabelSelector {
            match_labels: vec![("gpu-batch.io/pod-group".into(), "g".into())],
            ..LabelSelector::default()
        };
        let budget = DisruptionBudgetFacts {
            uid: Uid(0),
            namespace: "default".into(),
            name: name.into(),
            selector: Some(selector),
            allowed: 7,
            problems: Vec::new(),
        };
        self.create(Object::DisruptionBudget(budget));
        let stored = self.budget_now(name);
        if let Some(allowed) = allowed {
            self.allow(&stored, allowed);
        }
        stored
    }

    fn budget_now(&self, name: &str) -> Arc<Stored> {
        let mut budgets = self.0.budgets();
        let (stored, _) = budgets.find(|(_, facts)| &*facts.name == name).unwrap();
        Arc::clone(stored)
    }

    fn allow(&mut self, stored: &Stored, allowed: u32) {
        let Object::DisruptionBudget(mut facts) = stored.object.clone() else {
            panic!("it is a budget");
        };
        facts.allowed = allowed;
        let answer = self.ask(Request::ReplaceStatus {
            object: Object::DisruptionBudget(facts),
            version: Some(stored.version),
        });
        assert!(matches!(answer, Answer::Found(_)));
    }

    fn reference(&self, name: &str) -> PodReference {
        let facts = self.facts(name);
        PodReference {
            namespace: facts.namespace,
            name: facts.name,
            uid: facts.uid,
        }
    }

    fn facts(&self, name: &str) -> PodFacts {
        let found = self.0.pods().find(|facts| &*facts.name == name);
        found.expect("the pod is there").clone()
    }

    fn bind(&mut self, pod: &PodReference) -> Answer {
        self.ask(Request::Bind(Bind {
            pod: pod.clone(),
            node: "n1".into(),
            cards: [].into(),
            assignment: None,
            queue: "team".into(),
            pod_group: None,
            minima: Vec::new(),
        }))
    }

    fn evict(&mut self, pod: &PodReference) -> Answer {
        self.ask(Request::Evict(Evict {
            pod: pod.clone(),
            cause: EvictionCause::Stale,
            beneficiary: None,
        }))
    }

    fn delete(&mut self, name: &str, grace_s: Option<u64>) -> Answer {
        self.ask(Request::Delete {
            name: Name::pod("default", name),
            expected: Expected::default(),
            grace_s,
        })
    }

    fn run(&mut self, name: &str) {
        let mut facts = self.facts(name);
        facts.phase = PodPhase::Running;
        let object = Object::Pod(facts);
        let version = None;
        self.ask(Request::ReplaceStatus { object, version });
    }

    /// What a watch of pods says, in short.
    fn watched(&mut self, after: Version) -> Vec<(Sort, Version)> {
        let kind = Kind::Pod;
        match self.ask(Request::Watch { kind, after }) {
            Answer::Changes { changes, .. } => changes
                .iter()
                .map(|change| (change.sort, change.object.version))
                .collect(),
            other => panic!("{other:?}"),
        }
    }
}

struct Created(Object);

impl From<PodFacts> for Created {
    fn from(facts: PodFacts) -> Self {
        Self(Object::Pod(facts))
    }
}

impl From<Object> for Created {
    fn from(object: Object) -> Self {
        Self(object)
    }
}

/// A pod of this name with another identity.
fn other(pod: &PodReference) -> PodReference {
    PodReference {
        uid: Uid(999),
        ..pod.clone()
    }
}

#[test]
fn a_pod_is_bound_once() {
    let mut server = Server::new();
    let pod = server.pod("a");
    assert_eq!(
        server.bind(&other(&pod)),
        Answer::Conflict(Conflict::Uid),
        "another UID"
    );
    assert_eq!(server.bind(&pod), Answer::Done, "the node is not looked at");
    assert_eq!(server.bind(&pod), Answer::Conflict(Conflict::AlreadyBound));
    assert_eq!(server.facts("a").node.as_deref(), Some("n1"));
    assert_eq!(server.facts("a").bound_queue.as_deref(), Some("team"));
    server.delete("a", None);
    assert_eq!(server.bind(&pod), Answer::Conflict(Conflict::BeingDeleted));
    server.delete("a", Some(0));
    assert_eq!(server.bind(&pod), Answer::NotFound);
}

#[test]
fn a_gated_pod_is_not_bound_until_its_gates_are_gone() {
    let mut server = Server::new();
    let mut gated = pod("a", Uid(0), 0, 1, 1);
    gated.gates.push("wait".into());
    server.create(gated);
    let reference = server.reference("a");
    let condition = server.facts("a").unscheduled.map(|said| said.reason);
    assert_eq!(condition.as_deref(), Some("SchedulingGated"));
    assert_eq!(server.bind(&reference), Answer::Conflict(Conflict::Gated));
    let mut facts = server.facts("a");
    facts.gates.clear();
    let (object, version) = (Object::Pod(facts), None);
    server.ask(Request::Replace { object, version });
    assert_eq!(server.bind(&reference), Answer::Done);
    assert_eq!(server.facts("a").unscheduled, None);
}

#[test]
fn a_nomination_lasts_until_the_pod_is_bound() {
    let mut server = Server::new();
    let pod = server.pod("a");
    let nominate = |pod: &PodReference, node: Option<&str>| {
        Request::PatchStatus(StatusPatch::Nominated {
            pod: pod.clone(),
            node: node.map(Into::into),
        })
    };
    assert!(matches!(
        server.ask(nominate(&other(&pod), Some("n1"))),
        Answer::Invalid(_)
    ));
    for node in [Some("n1"), None, Some("n2")] {
        let answer = server.ask(nominate(&pod, node));
        assert!(matches!(answer, Answer::Found(_)));
        assert_eq!(server.facts("a").nominated.as_deref(), node);
    }
    server.run("a");
    assert_eq!(server.facts("a").nominated.as_deref(), Some("n2"));
    server.bind(&pod);
    assert_eq!(server.facts("a").nominated, None);
    assert!(matches!(
        server.ask(nominate(&pod, Some("n1"))),
        Answer::Invalid(_)
    ));
    assert!(matches!(server.ask(nominate(&pod, None)), Answer::Found(_)));
}

#[test]
fn pods_leave_at_once_or_with_a_grace() {
    use Sort::{Added, Deleted, Modified};
    let mut server = Server::new();
    server.pod("waits");
    server.delete("waits", None);
    assert_eq!(
        server.watched(0),
        [(Added, 1), (Modified, 2), (Deleted, 3)],
        "a pod without a node"
    );
    let bound = server.pod("bound");
    server.bind(&bound);
    server.delete("bound", None);
    server.delete("bound", None);
    server.delete("bound", Some(60));
    let grace_ends_ms = NOW_MS / 1_000 * 1_000 + 30_000;
    assert_eq!(server.facts("bound").deletion_ms, Some(grace_ends_ms));
    assert_eq!(
        server.watched(3),
        [(Added, 4), (Modified, 5), (Modified, 6)],
        "a longer grace changes nothing"
    );
    server.delete("bound", Some(0));
    assert_eq!(server.watched(6), [(Modified, 7), (Deleted, 8)]);
}

#[test]
fn evictions_ask_budgets_for_running_pods_only() {
    let mut server = Server::new();
    server.budget("b", Some(1));
    for name in ["a", "b", "c"] {
        let mut facts = pod(name, Uid(0), 0, 1, 1);
        facts.pod_group = Some("g".into());
        server.create(facts);
        let reference = server.reference(name);
        server.bind(&reference);
    }
    for name in ["a", "b"] {
        server.run(name);
    }
    let (a, b, c) = (
        server.reference("a"),
        server.reference("b"),
        server.reference("c"),
    );
    assert_eq!(server.evict(&a), Answer::Done);
    assert!(server.facts("a").deletion_ms.is_some());
    let refusal = Answer::TooManyRequests {
        retry_after_s: 0,
        by_budget: true,
    };
    assert_eq!(server.evict(&b), refusal);
    assert_eq!(
        server.evict(&other(&b)),
        refusal,
        "the budget is asked first"
    );
    assert_eq!(
        server.evict(&other(&c)),
        Answer::Conflict(Conflict::Uid),
        "no budget guards a pod that does not run yet"
    );
    assert_eq!(server.evict(&c), Answer::Done);
    server.delete("c", Some(0));
    assert_eq!(server.evict(&c), Answer::NotFound);
}

#[test]
fn a_budget_that_was_not_counted_yet_refuses_and_so_do_two_budgets() {
    let mut server = Server::new();
    let mut facts = pod("a", Uid(0), 0, 1, 1);
    facts.pod_group = Some("g".into());
    server.create(facts);
    let a = server.reference("a");
    server.bind(&a);
    server.run("a");
    let mut stored = server.budget("b", None);
    let uncounted = Answer::TooManyRequests {
        retry_after_s: 10,
        by_budget: true,
    };
    assert_eq!(server.evict(&a), uncounted);
    server.allow(&stored, 2);
    stored = server.budget_now("b");
    // Another selector is another spec, which must be counted again.
    let Object::DisruptionBudget(mut facts) = stored.object.clone() else {
        panic!("it is a budget");
    };
    facts.selector = Some(LabelSelector::default());
    let replace = |version| Request::Replace {
        object: Object::DisruptionBudget(facts.clone()),
        version,
    };
    assert!(matches!(server.ask(replace(None)), Answer::Invalid(_)));
    assert!(matches!(
        server.ask(replace(Some(stored.version))),
        Answer::Found(_)
    ));
    assert_eq!(server.evict(&a), uncounted);
    let stored = server.budget_now("b");
    server.allow(&stored, 2);
    server.budget("c", Some(2));
    assert!(matches!(server.evict(&a), Answer::InternalError(_)));
    let c = Name::of(&server.budget_now("c").object);
    let deleted = server.ask(Request::Delete {
        name: c,
        expected: Expected::default(),
        grace_s: None,
    });
    assert_eq!(deleted, Answer::Done);
    assert_eq!(server.evict(&a), Answer::Done);
    let Object::DisruptionBudget(facts) = &server.budget_now("b").object else {
        panic!("it is a budget");
    };
    assert_eq!(facts.allowed, 1);
}

#[test]
fn writes_compare_versions_and_count_generations() {
    let mut server = Server::new();
    let Answer::Created(first) = server.create(Object::Queue(QueueFacts::new(Uid(0), "q"))) else {
        panic!("the queue is created");
    };
    let Object::Queue(mut facts) = first.object.clone() else {
        panic!("it is a queue");
    };
    assert_eq!((first.version, facts.generation), (1, 1));
    assert_eq!(
        server.create(Object::Queue(QueueFacts::new(Uid(0), "q"))),
        Answer::AlreadyExists
    );
    let replace = |facts: &_, version| Request::Replace {
        object: Object::Queue(Clone::clone(facts)),
        version,
    };
    assert_eq!(
        server.ask(replace(&facts, Some(1))),
        Answer::Found(first),
        "a write that changes nothing takes no version"
    );
    let status = QueueStatus {
        pending: 1,
        ..QueueStatus::default()
    };
    let patch = |uid| {
        Request::PatchStatus(StatusPatch::Queue {
            name: "q".into(),
            uid,
            status: status.clone(),
        })
    };
    assert!(matches!(server.ask(patch(facts.uid)), Answer::Found(_)));
    assert!(matches!(server.ask(patch(Uid(999))), Answer::Invalid(_)));
    facts.closed = true;
    let stale = server.ask(replace(&facts, Some(1)));
    assert_eq!(stale, Answer::Conflict(Conflict::Version));
    assert!(matches!(
        server.ask(replace(&facts, None)),
        Answer::Invalid(_)
    ));
    let Answer::Found(changed) = server.ask(replace(&facts, Some(2))) else {
        panic!("the queue is replaced");
    };
    let Object::Queue(facts) = &changed.object else {
        panic!("it is a queue");
    };
    assert_eq!(
        (changed.version, facts.generation),
        (3, 2),
        "a status is not counted, a spec is"
    );
}

#[test]
fn lists_of_the_past_and_watches_agree_until_they_are_compacted() {
    let mut server = Server::new();
    let list = |server: &mut Server, at| match server.ask(Request::List {
        kind: Kind::Pod,
        at,
    }) {
        Answer::Listed { version, objects } => Ok((version, objects)),
        other => Err(other),
    };
    let mut seen = vec![list(&mut server, None).unwrap()];
    for name in ["a", "b", "c"] {
        let reference = server.pod(name);
        seen.push(list(&mut server, None).unwrap());
        server.bind(&reference);
        seen.push(list(&mut server, None).unwrap());
    }
    server.delete("b", Some(0));
    seen.push(list(&mut server, None).unwrap());
    server.create(Object::Node(node("n", Uid(0), 1, 1, &[])));
    for (version, objects) in &seen {
        let then = list(&mut server, Some(*version)).unwrap();
        assert_eq!((&then.0, &then.1), (version, objects));
    }
    assert_eq!(list(&mut server, Some(99)), Err(Answer::TooLarge));
    let newest = server.0.revision();
    server.0.compact(newest);
    assert_eq!(list(&mut server, Some(newest - 1)), Err(Answer::Gone));
    assert!(list(&mut server, Some(newest)).is_ok());
    let kind = Kind::Pod;
    let after = newest - 2;
    assert_eq!(server.ask(Request::Watch { kind, after }), Answer::Gone);
    assert_eq!(server.watched(newest - 1), []);
}

#[test]
fn the_lease_changes_only_from_the_version_that_was_seen() {
    let mut server = Server::new();
    let write = |version: Option<&str>, holder: &str| {
        Request::Lease(LeaseCall::Write {
            resource_version: version.map(Into::into),
            holder: holder.into(),
            transitions: 1,
            acquire: true,
            duration_ms: 15_000,
        })
    };
    assert_eq!(
        server.ask(Request::Lease(LeaseCall::Read)),
        Answer::NotFound
    );
    let Answer::Lease(first) = server.ask(write(None, "me")) else {
        panic!("the lease is created");
    };
    assert_eq!(server.ask(write(None, "you")), Answer::AlreadyExists);
    let version = first.resource_version.as_deref();
    let renewed = server.0.handle(write(version, "me"), NOW_MS + 1);
    let Answer::Lease(second) = renewed else {
        panic!("the lease is renewed");
    };
    assert_ne!(second.resource_version, first.resource_version);
    assert_eq!(
        server.ask(write(version, "you")),
        Answer::Conflict(Conflict::Version)
    );
    server.0.flow_control_s = Some(1);
    assert!(matches!(
        server.ask(Request::Lease(LeaseCall::Read)),
        Answer::Lease(_)
    ));
    let group = Object::PodGroup(pod_group("g", Uid(0), 0, 1));
    assert!(matches!(
        server.create(group),
        Answer::TooManyRequests {
            by_budget: false,
            ..
        }
    ));
}
