use super::*;
use alloc::{collections::BTreeSet, format, vec::Vec};

#[test]
fn names_that_come_and_go_do_not_add_up() {
    let mut names = ResourceNames::new();
    let kept = names.vector(&Vec::from([("kept".into(), 1)]))[0].0;
    let mut numbers = BTreeSet::new();
    for volume in 0..100_000 {
        let name = format!("free volumes of {volume}");
        let (id, amount) = names.vector(&Vec::from([(name.as_str().into(), 1)]))[0];
        assert_eq!((names.name(id), amount), (name.as_str(), 1));
        numbers.insert(id);
        if names.are_many() {
            names.retain(|id, name| id == kept || !name.starts_with("free"));
        }
    }
    assert!(numbers.len() <= MANY, "{} numbers", numbers.len());
    assert_eq!(names.name(kept), "kept");
    assert_eq!(
        names.vector(&Vec::from([("cpu".into(), 1)]))[0].0,
        ResourceNames::cpu()
    );
}

#[test]
fn names_are_looked_for_again_only_once_there_are_twice_as_many() {
    let mut names = ResourceNames::new();
    let mut sweeps = 0;
    for resource in 0..10_000 {
        names.vector(&Vec::from([(
            format!("used {resource}").as_str().into(),
            1,
        )]));
        if names.are_many() {
            names.retain(|_, _| true);
            sweeps += 1;
        }
    }
    assert!(sweeps <= 7, "{sweeps}");
}
