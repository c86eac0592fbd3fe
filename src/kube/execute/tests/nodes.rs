//! The lock on the cards of a node, and a binding with cards.

use super::{bind, check};
use gpu_batch_policies::command::{
    Action, Bind, CardAssignment, LockCards, OwnCardLock, UnlockCards,
};
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::CardPart;
use serde_json::{Value, json};

const PATH: &str = "/metadata/annotations/hami.io~1mutex.lock";
const OURS: &str = "2026-11-21T10:00:00Z,vision,train-0";

fn own() -> OwnCardLock {
    OwnCardLock {
        namespace: "vision".into(),
        name: "train-0".into(),
        at_ms: super::TEN_O_CLOCK_MS,
    }
}

fn lock(seen: Option<&str>) -> Action {
    Action::LockCards(LockCards {
        node: "n1".into(),
        lock: own(),
        seen: seen.map(Into::into),
    })
}

fn unlock() -> Action {
    Action::UnlockCards(UnlockCards {
        node: "n1".into(),
        lock: own(),
    })
}

#[tokio::test]
async fn a_lock_is_taken_as_it_was_seen_and_given_back_if_it_is_ours() {
    let add = json!({"op": "add", "path": PATH, "value": OURS});
    let remove = json!({"op": "remove", "path": PATH});
    for (action, seen, change) in [
        (lock(None), Value::Null, add.clone()),
        (lock(Some("x")), json!("x"), add),
        (unlock(), json!(OURS), remove),
    ] {
        let asked = check(action, 200, json!({}), Outcome::Done).await;
        assert_eq!(asked.method, "PATCH");
        assert_eq!(asked.path, "/api/v1/nodes/n1");
        assert_eq!(asked.content_type, "application/json-patch+json");
        let test = json!({"op": "test", "path": PATH, "value": seen});
        assert_eq!(asked.body, json!([test, change]));
    }
}

#[tokio::test]
async fn a_lock_that_is_not_as_it_was_seen_is_a_conflict() {
    let failed = "the server rejected our request due to an error in our request";
    let denied = "admission webhook \"a.example.com\" denied the request: no";
    let refused = |message: &str| Outcome::Refused {
        message: message.into(),
    };
    for action in [lock(None), unlock()] {
        for (status, message, expected) in [
            (
                422,
                failed,
                Outcome::Conflict {
                    message: failed.into(),
                },
            ),
            (422, denied, refused(denied)),
            (403, "no right", refused("no right")),
            (404, "no node", Outcome::NotFound),
        ] {
            let body = json!({"kind": "Status", "status": "Failure", "message": message});
            check(action.clone(), status, body, expected).await;
        }
    }
}

fn with_cards(node: &str) -> Action {
    let Action::Bind(bind) = bind() else {
        panic!("a binding");
    };
    let cards = vec![CardPart {
        instances: Vec::new(),
        card: "GPU-a".into(),
        slots: 1,
        thousandths: 300,
        memory_mib: 8_000,
    }];
    Action::Bind(Bind {
        node: node.into(),
        cards: cards.clone(),
        assignment: Some(CardAssignment {
            entries: vec![vec![], cards],
            at_ms: super::TEN_O_CLOCK_MS,
        }),
        ..bind
    })
}

#[tokio::test]
async fn a_binding_with_cards_tells_hamis_plugin_which() {
    let asked = check(with_cards("n1"), 201, json!({}), Outcome::Done).await;
    let metadata = &asked.body["metadata"];
    let cards = ";GPU-a,NVIDIA,8000,30:;";
    let expected = json!({
        "gpu-batch.io/bound-queue": "team",
        "gpu-batch.io/bound-podgroup": "train",
        "gpu-batch.io/bound-minimum": "2/3",
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-time": "1795255200",
        "hami.io/vgpu-devices-to-allocate": cards,
        "hami.io/vgpu-devices-allocated": cards,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1795255200",
    });
    assert_eq!(metadata["annotations"], expected);
    assert_eq!(metadata["labels"], json!({"hami.io/vgpu-node": "n1"}));
    // No label has a value as long as the longest name of a node.
    let long = "n".repeat(64);
    let asked = check(with_cards(&long), 201, json!({}), Outcome::Done).await;
    let metadata = &asked.body["metadata"];
    assert_eq!(metadata["annotations"]["hami.io/vgpu-node"], long);
    assert_eq!(metadata["labels"], Value::Null);
}
