//! The lock of a node: which pod HAMi's device plugin serves.
//!
//! ```text
//! 2026-08-21T10:00:00Z,namespace,pod
//! ```

use crate::kube::convert::limits;
use crate::kube::convert::problems::shortened;
use crate::kube::format;
use crate::kube::objects::{Annotations, Timestamp};
use gpu_batch_policies::facts::{CardLock, UnixMs};

/// The annotation of a node that is the lock.
pub(crate) const LOCK: &str = "hami.io/mutex.lock";

/// The lock of a node, if it has one.
pub(in crate::kube::convert) fn lock(annotations: &Annotations) -> Option<CardLock> {
    annotations.get(LOCK).map(read)
}

/// Reads a lock: a time, or a time, a namespace and a name. HAMi does not understand anything else
/// either, and waits until somebody takes it away.
pub(super) fn read(value: &str) -> CardLock {
    let parts: Vec<&str> = value.splitn(4, ',').collect();
    let (time, holder) = match *parts.as_slice() {
        // Without one of the two it names nobody, and the plugin serves whoever waits.
        [time] | [time, "", _] | [time, _, ""] => (time, None),
        [time, namespace, name] => (time, Some((namespace.into(), name.into()))),
        _ => ("", None),
    };
    let time = Some(time).filter(|time| value.len() <= limits::MESSAGE && is_rfc3339(time));
    match time.and_then(Timestamp::parse) {
        Some(Timestamp(at_ms)) => CardLock {
            value: value.into(),
            holder,
            at_ms: Some(at_ms),
        },
        None => CardLock {
            value: shortened(value, limits::TEXT).into(),
            holder: None,
            at_ms: None,
        },
    }
}

/// The lock that is ours while the pod is served.
pub(crate) fn written(at_ms: UnixMs, namespace: &str, name: &str) -> String {
    format!("{},{namespace},{name}", format::seconds(at_ms))
}

/// Whether a text has the form of a time in RFC 3339. `jiff` reads more than that.
fn is_rfc3339(text: &str) -> bool {
    let Some((moment, rest)) = text.split_at_checked("0000-00-00T00:00:00".len()) else {
        return false;
    };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => match fraction.trim_start_matches(|it: char| it.is_ascii_digit()) {
            zone if zone == fraction => return false,
            zone => zone,
        },
        None => rest,
    };
    let zones = ["Z", "+00:00", "-00:00"];
    has_form(moment, "0000-00-00T00:00:00") && zones.iter().any(|form| has_form(zone, form))
}

/// Whether a text has a digit wherever the form has 0, and is the same elsewhere.
fn has_form(text: &str, form: &str) -> bool {
    let mut pairs = text.bytes().zip(form.bytes());
    text.len() == form.len()
        && pairs.all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        })
}
