//! Time lines of evictions under settings that most clusters have: victims that never leave, gangs
//! that come while room is held, and another scheduler that takes it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    A_WHILE, begin_shared, evictions, full, gang_of, high_gang, is_gone, is_nominated, let_go,
    name_of, slow,
};
use crate::cluster::{Cluster, stays, until};
use crate::diary::Diary;
use crate::work::{ensure, patched};

/// How long a pod is waited for that should be gone already. Its grace here is 0.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// The `preemptionDelay` of the gang that is evicted.
const DELAY: Duration = Duration::from_secs(8);

/// The scenarios in which almost all the time is waiting, side by side.
#[tokio::test]
async fn victims_that_never_leave_are_given_up_and_evicted_gangs_wait_their_delay_anew() {
    let Some(stuck) = begin_shared("stuck").await else {
        return;
    };
    let cascade = begin_shared("cascade").await.unwrap();
    tokio::join!(
        a_victim_never_leaves(&stuck),
        an_evicted_gang_waits_its_delay_anew(&cascade),
    );
}

/// Scenario S02: a victim never leaves, because nobody removes its finalizer; the hold ends, and
/// another set of victims is found. Its grace is 0 s here instead of 30 s.
async fn a_victim_never_leaves(cluster: &Cluster) {
    cluster.nodes(["r1"; 2]).await;
    full(cluster, "cheap", "low").await;
    full(cluster, "dear", "middle").await;
    let diary = Diary::start(cluster).await;
    let members = high_gang(cluster, "urgent", 1, 8).await;
    assert_eq!(evictions(&diary, 1).await, ["cheap"]);
    // Times of deletion are whole seconds, and a slow machine sees the eviction late.
    let early = STUCK_AFTER - Duration::from_secs(10);
    stays("nobody else is evicted", early, async || {
        ensure(diary.evicted().len() == 1, diary.evicted())
    })
    .await;
    assert_eq!(evictions(&diary, 2).await, ["cheap", "dear"]);
    let dear = cluster.node_of("dear").await.unwrap();
    is_nominated(cluster, &members[0], &dear).await;
    let_go(cluster, "dear").await;
    assert_eq!(cluster.bound(&members).await, [dear]);
    stays("nobody else is evicted", A_WHILE, async || {
        ensure(diary.evicted().len() == 2, diary.evicted())
    })
    .await;
    let stuck = cluster.get(&cluster.pod_path("cheap")).await.unwrap();
    assert!(
        stuck["metadata"]["deletionTimestamp"].is_string(),
        "{stuck:#}"
    );
}

/// Scenario S11: the evicted gang waits its `preemptionDelay` anew, of 8 s instead of 5 minutes.
/// The Job controller makes its pod anew.
async fn an_evicted_gang_waits_its_delay_anew(cluster: &Cluster) {
    cluster.nodes(["r1"; 2]).await;
    let delay = format!("{}s", DELAY.as_secs());
    let spec = json!({"priorityClassName": "middle", "preemptionDelay": delay});
    cluster.group("middle", &spec).await;
    let of_group = json!({"metadata": {"labels": {"gpu-batch.io/pod-group": "middle"}}});
    let template = patched(of_group, &json!({"spec": {"priorityClassName": "middle"}}));
    let job = json!({"spec": {"template": template}});
    cluster.job("middle", 1, 8, &job).await;
    let is_running = |pod: &Value| pod["status"]["phase"] == "Running";
    let middle = name_of(&cluster.job_pods("middle", 1, is_running).await[0]);
    let node = cluster.node_of(&middle).await.unwrap();
    full(cluster, "least", "low").await;
    let other = cluster.node_of("least").await.unwrap();

    let diary = Diary::start(cluster).await;
    let there = json!({"spec": {
        "priorityClassName": "high",
        "nodeSelector": {"kubernetes.io/hostname": node},
    }});
    cluster.create(&cluster.pod("urgent", 8, &there)).await;
    assert_eq!(cluster.bound(&["urgent".to_owned()]).await, [node]);
    assert_eq!(evictions(&diary, 1).await, [&*middle]);
    let is_new = |pod: &Value| name_of(pod) != middle;
    let anew = cluster.job_pods("middle", 1, is_new).await.remove(0);
    cluster.group_waits("middle", "PreemptionDelay").await;
    assert_eq!(evictions(&diary, 2).await.len(), 2);
    // The API server marks a pod first, and deletes it then.
    let least = until("least is deleted", async || {
        let least = cluster.get(&cluster.pod_path("least")).await.unwrap();
        let is_deleted = least["metadata"]["deletionTimestamp"].is_string();
        ensure(is_deleted, &least["metadata"]).map(|()| least)
    })
    .await;
    let time = |pod: &Value, field: &str| -> Timestamp {
        let time = pod["metadata"][field].as_str().unwrap();
        time.parse().unwrap()
    };
    let waited = time(&anew, "creationTimestamp").duration_until(time(&least, "deletionTimestamp"));
    // Both are whole seconds.
    let delay = DELAY - Duration::from_secs(1);
    assert!(waited.unsigned_abs() >= delay, "{waited:?}");
    let_go(cluster, "least").await;
    assert_eq!(cluster.bound(&[name_of(&anew)]).await, [other]);
    assert_eq!(diary.evicted().len(), 2, "{:?}", diary.evicted());
}

/// Scenario S04: a gang of higher priority comes while the room is held. It gets that room without
/// another eviction for it, and the gang that waits for it already is planned anew. Victims leave
/// when the test has seen that, instead of after a minute.
#[tokio::test]
async fn a_gang_that_goes_first_gets_held_room_and_the_other_is_planned_anew() {
    let Some(cluster) = begin_shared("outranked").await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    full(&cluster, "cheap", "low").await;
    full(&cluster, "dear", "middle").await;
    let cheap = cluster.node_of("cheap").await.unwrap();
    let dear = cluster.node_of("dear").await.unwrap();
    let diary = Diary::start(&cluster).await;
    let second = high_gang(&cluster, "second", 1, 8).await;
    assert_eq!(evictions(&diary, 1).await, ["cheap"]);
    assert_eq!(
        diary.nominated_before_evictions(&second),
        [Some(cheap.clone())]
    );

    let first = gang_of("top", &cluster, "first", 1, 8).await;
    assert_eq!(evictions(&diary, 2).await, ["cheap", "dear"]);
    is_nominated(&cluster, &first[0], &cheap).await;
    is_nominated(&cluster, &second[0], &dear).await;
    cluster.group_waits("second", "WaitingForEviction").await;
    let both = [first, second].concat();
    cluster.none_bound(&both).await.unwrap();
    for pod in ["dear", "cheap"] {
        let_go(&cluster, pod).await;
    }
    assert_eq!(cluster.bound(&both).await, [cheap, dear]);
    assert_eq!(diary.evicted().len(), 2, "{:?}", diary.evicted());
}

/// Scenario S07: two claimants, whose victims would be the same. The second one comes a moment
/// later here, while the victims of the first are leaving.
#[tokio::test]
async fn a_second_claimant_finds_what_the_first_one_has_left() {
    let Some(cluster) = begin_shared("claimants").await else {
        return;
    };
    cluster.nodes(["r1"; 3]).await;
    for name in ["x", "y", "z"] {
        full(&cluster, name, "low").await;
    }
    let diary = Diary::start(&cluster).await;
    let first = high_gang(&cluster, "first", 2, 8).await;
    let evicted = evictions(&diary, 2).await;
    // Creation times are whole seconds, and decide between gangs of one priority.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = high_gang(&cluster, "second", 2, 8).await;
    cluster.group_waits("second", "DoesNotFit").await;
    for pod in &evicted {
        let_go(&cluster, pod).await;
    }
    cluster.bound(&first).await;
    cluster.group_waits("second", "DoesNotFit").await;
    stays("the third one runs on", A_WHILE, async || {
        ensure(diary.evicted().len() == 2, diary.evicted())?;
        cluster.none_bound(&second).await
    })
    .await;
}

/// Scenario S08: another scheduler takes the freed room, again and again. Its pod is there before
/// the victim has left, and ends when the test has seen that the gang waits, instead of after a
/// minute; then a pod of the victim's owner is on the node first.
#[tokio::test]
async fn a_gang_whose_room_another_scheduler_takes_thrice_makes_a_pause() {
    let Some(cluster) = begin_shared("taken").await else {
        return;
    };
    let [node] = cluster.nodes(["r1"]).await;
    full(&cluster, "victim-0", "low").await;
    let diary = Diary::start(&cluster).await;
    let members = high_gang(&cluster, "urgent", 1, 8).await;
    let there = json!({"spec": {"nodeName": node}});
    for round in 1..=3 {
        assert_eq!(evictions(&diary, round).await.len(), round);
        let (rival, victim) = (format!("rival-{round}"), format!("victim-{}", round - 1));
        let foreign = patched(there.clone(), &json!({"spec": {"schedulerName": "rival"}}));
        cluster.create(&cluster.pod(&rival, 8, &foreign)).await;
        let_go(&cluster, &victim).await;
        is_gone(&cluster, &victim).await;
        cluster.group_waits("urgent", "DoesNotFit").await;
        let next = patched(slow(), &there);
        let next = cluster.pod(&format!("victim-{round}"), 8, &next);
        cluster.create(&next).await;
        cluster.delete(&cluster.pod_path(&rival)).await;
    }
    stays("the gang makes a pause", 2 * A_WHILE, async || {
        ensure(diary.evicted().len() == 3, diary.evicted())?;
        cluster.none_bound(&members).await
    })
    .await;
    cluster.group_waits("urgent", "DoesNotFit").await;
    // As soon as somebody else makes room, the gang starts.
    cluster.delete(&cluster.pod_path("victim-3")).await;
    let_go(&cluster, "victim-3").await;
    assert_eq!(cluster.bound(&members).await, [node]);
}

/// A node is deleted while a victim that never leaves is on it: the gang is planned anew.
#[tokio::test]
async fn a_gang_whose_node_vanishes_with_the_victim_takes_another() {
    let Some(cluster) = begin_shared("vanished").await else {
        return;
    };
    cluster.nodes(["r1"; 2]).await;
    full(&cluster, "cheap", "low").await;
    full(&cluster, "dear", "middle").await;
    let diary = Diary::start(&cluster).await;
    let members = high_gang(&cluster, "urgent", 1, 8).await;
    assert_eq!(evictions(&diary, 1).await, ["cheap"]);
    let cheap = cluster.node_of("cheap").await.unwrap();
    let dear = cluster.node_of("dear").await.unwrap();
    cluster.delete(&format!("/api/v1/nodes/{cheap}")).await;
    assert_eq!(evictions(&diary, 2).await, ["cheap", "dear"]);
    is_nominated(&cluster, &members[0], &dear).await;
    let_go(&cluster, "dear").await;
    assert_eq!(cluster.bound(&members).await, [dear]);
    until("events say why", async || {
        let path = "/apis/events.k8s.io/v1/namespaces/vanished/events";
        let events = cluster.list(path).await?;
        let preempted = |event: &&Value| event["reason"] == "Preempted";
        ensure(events.iter().filter(preempted).count() == 2, events.len())
    })
    .await;
    assert_eq!(diary.evicted().len(), 2, "{:?}", diary.evicted());
}
