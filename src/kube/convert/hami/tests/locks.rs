use super::cases;
use crate::kube::convert::hami::lock::{read, written};
use gpu_batch_policies::facts::CardLock;
use serde_json::json;

#[test]
fn locks_are_read_as_hami_reads_them() {
    let cases = cases("lock", Some("parse"));
    let (mut unreadable, mut with_short_hour) = (0, 0);
    for case in &cases {
        let value = case["input"]["value"].as_str().unwrap();
        let answer = &case["answer"];
        let found = read(value);
        if value.as_bytes().get(12) == Some(&b':') && answer["error"].is_null() {
            // Go reads an hour of one digit, which RFC 3339 does not have and nobody writes.
            assert_eq!(found.at_ms, None, "{case}");
            with_short_hour += 1;
            continue;
        }
        let expected = answer["unix"].as_u64().map(|unix| {
            let text = |name: &str| answer[name].as_str().unwrap().into();
            let holder = (answer["name"] != json!("")).then(|| (text("ns"), text("name")));
            (unix, holder)
        });
        unreadable += usize::from(expected.is_none());
        assert_eq!(&*found.value, value);
        let found = found.at_ms.map(|at_ms| (at_ms / 1_000, found.holder));
        assert_eq!(found, expected, "{case}");
    }
    println!(
        "{} locks compared, {unreadable} unreadable; {with_short_hour} with an hour of one digit",
        cases.len() - with_short_hour
    );
    assert!(unreadable > 50 && unreadable < cases.len() - 50 && with_short_hour < 10);
}

#[test]
fn our_lock_is_read_again() {
    let text = written(1_795_255_200_999, "team", "pair-0");
    assert_eq!(text, "2026-11-21T10:00:00Z,team,pair-0");
    let expected = CardLock {
        value: text.clone().into(),
        holder: Some(("team".into(), "pair-0".into())),
        at_ms: Some(1_795_255_200_000),
    };
    assert_eq!(read(&text), expected);
}

#[test]
fn of_a_lock_that_is_too_long_the_beginning_is_kept() {
    let lock = read(&format!("2026-11-21T10:00:00Z,team,{}", "x".repeat(5_000)));
    assert_eq!((lock.at_ms, lock.holder), (None, None));
    assert_eq!(lock.value.len(), 320);
}
