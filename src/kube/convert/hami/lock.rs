//! The lock of a node: which pod HAMi's device plugin serves.
//!
//! ```text
//! 2026-08-21T10:00:00Z,namespace,pod
//! ```

use crate::kube::format;
use crate::kube::objects::Timestamp;
use gpu_batch_policies::facts::UnixMs;

/// Who has a node's cards locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    /// Namespace and name of the pod. `None`: not said, as in old versions of HAMi.
    pub(super) holder: Option<(Box<str>, Box<str>)>,
    pub(super) at_ms: UnixMs,
}

/// Reads a lock: a time, or a time, a namespace and a name. `None`: HAMi does not understand it
/// either, and waits until somebody takes it away.
pub(super) fn read(value: &str) -> Option<Lock> {
    let parts: Vec<&str> = value.splitn(4, ',').collect();
    let (time, holder) = match *parts.as_slice() {
        [time] | [time, "", ""] => (time, None),
        [time, namespace, name] => (time, Some((namespace.into(), name.into()))),
        _ => return None,
    };
    let at_ms = is_rfc3339(time)
        .then(|| Timestamp::parse(time))
        .flatten()?
        .0;
    Some(Lock { holder, at_ms })
}

/// The lock that is ours while the pod is served.
pub(super) fn written(at_ms: UnixMs, namespace: &str, name: &str) -> String {
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
