//! Requests about one node: the lock on its cards.

use super::classify;
use super::exchange::{Answer, ExchangeError, JSON_PATCH, Request};
use crate::kube::convert::{CARD_LOCK, written_card_lock};
use gpu_batch_policies::command::{LockCards, OwnCardLock, UnlockCards};
use gpu_batch_policies::event::Outcome;
use http::StatusCode;
use serde_json::{Value, json};

/// The request that takes the lock, if what was seen still stands there. `test` with null holds
/// where there is no lock.
pub(crate) fn lock_cards(lock: &LockCards) -> Request {
    let write = json!({"op": "add", "path": path(), "value": value(&lock.lock)});
    patch(&lock.node, lock.seen.as_deref(), write)
}

/// The request that takes our lock away, if it still stands there.
pub(super) fn unlock_cards(unlock: &UnlockCards) -> Request {
    let remove = json!({"op": "remove", "path": path()});
    patch(&unlock.node, Some(&value(&unlock.lock)), remove)
}

fn patch(node: &str, seen: Option<&str>, change: Value) -> Request {
    let test = json!({"op": "test", "path": path(), "value": seen});
    Request::patch(format!("/api/v1/nodes/{node}"), JSON_PATCH, &[test, change])
}

fn value(lock: &OwnCardLock) -> String {
    written_card_lock(lock.at_ms, &lock.namespace, &lock.name)
}

/// The annotation as a JSON Pointer.
fn path() -> String {
    format!("/metadata/annotations/{}", CARD_LOCK.replace('/', "~1"))
}

/// What the answer means. A `test` that fails is a 422, as is a patch that cannot be applied: the
/// node is not what it was when it was seen.
pub(super) fn outcome(answer: &Result<Answer, ExchangeError>) -> Outcome {
    let status = answer.as_ref().map(|answer| answer.status);
    let changed = matches!(status, Ok(StatusCode::UNPROCESSABLE_ENTITY));
    match classify::classify(answer) {
        Outcome::Refused { message } if changed && !classify::is_denied(answer) => {
            Outcome::Conflict { message }
        }
        outcome => outcome,
    }
}
