use super::Descriptions;
use crate::event::{Object, ObjectKey};
use crate::facts::{PodFacts, PodShape, Uid};
use crate::state::ClusterState;
use alloc::{format, sync::Arc};

/// Classes without pods are kept for a while, and so is what the nodes say to them.
#[test]
fn what_was_said_to_classes_that_have_gone_is_forgotten() {
    let mut state = ClusterState::new();
    let mut descriptions = Descriptions::default();
    for number in 0..1_000_u64 {
        let requests = [("cpu".into(), number + 1)].into_iter().collect();
        let shape = PodShape {
            requests,
            ..PodShape::default()
        };
        let uid = Uid(u128::from(number));
        let pod = PodFacts::new(uid, "default", &format!("p{number}"), Arc::new(shape));
        state.apply(Object::Pod(pod), 0);
        let class = state.pods[state.pod_ids[&uid]].class;
        descriptions.of(&mut state, class);
        state.delete(ObjectKey::Pod(uid));
    }
    let of_gone = |descriptions: &Descriptions| {
        let classes = descriptions.by_class.keys();
        classes
            .filter(|class| state.classes.get(**class).is_none())
            .count()
    };
    assert!(of_gone(&descriptions) > 0, "no class has gone");
    descriptions.forget_gone(&state);
    assert_eq!(of_gone(&descriptions), 0);
    assert!(!descriptions.by_class.is_empty());
}
