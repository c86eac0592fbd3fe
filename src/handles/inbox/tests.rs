use super::{Batch, BindAsker, CAPACITY, Inbox};
use gpu_batch_policies::command::CommandId;
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey, Outcome};
use gpu_batch_policies::facts::{NamespaceFacts, PriorityClassFacts, Uid};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

fn namespace(name: &str, version: u8) -> Object {
    Object::Namespace(NamespaceFacts {
        uid: Uid(0),
        problems: Vec::new(),
        name: name.into(),
        labels: vec![("version".into(), version.to_string().into())],
    })
}

fn class(name: &str, value: u8) -> Object {
    Object::PriorityClass(PriorityClassFacts {
        name: name.into(),
        value: value.into(),
        never_preempts: false,
    })
}

fn applied(object: Object) -> Event {
    Event::Applied(Box::new(object))
}

fn listed(kind: Kind, objects: Vec<Object>) -> Event {
    Event::Listed(Listing { kind, objects })
}

fn put(inbox: &Inbox, event: Event) {
    inbox.lock().watched(event).unwrap();
}

fn take(inbox: &Inbox) -> Vec<Event> {
    inbox.take(Duration::ZERO, true).events
}

#[test]
fn only_the_latest_news_of_an_object_waits_in_the_place_of_the_first() {
    let inbox = Inbox::default();
    put(&inbox, applied(namespace("a", 1)));
    put(&inbox, applied(namespace("b", 1)));
    put(&inbox, applied(namespace("a", 2)));
    put(&inbox, Event::Deleted(ObjectKey::Namespace("b".into())));
    let expected = [
        applied(namespace("a", 2)),
        Event::Deleted(ObjectKey::Namespace("b".into())),
    ];
    assert_eq!(take(&inbox), expected);
    assert_eq!(take(&inbox), []);
}

#[test]
fn a_list_replaces_the_news_of_its_kind_alone() {
    let inbox = Inbox::default();
    put(&inbox, applied(namespace("a", 1)));
    put(&inbox, applied(class("a", 1)));
    put(&inbox, listed(Kind::Namespace, vec![]));
    put(&inbox, applied(namespace("a", 2)));
    let expected = [
        applied(class("a", 1)),
        listed(Kind::Namespace, vec![]),
        applied(namespace("a", 2)),
    ];
    assert_eq!(take(&inbox), expected);
}

#[test]
fn outcomes_are_never_coalesced() {
    let inbox = Inbox::default();
    let outcome = Event::Outcome(CommandId(1), Outcome::Done);
    inbox.ended(outcome.clone());
    inbox.ended(outcome.clone());
    assert_eq!(take(&inbox), [outcome.clone(), outcome]);
}

#[test]
fn binds_that_were_asked_for_are_neither_coalesced_nor_lost_and_come_with_their_askers() {
    let inbox = Inbox::default();
    let places = Arc::new(Semaphore::new(2));
    let asked = Event::BindAsked {
        pod: Uid(1),
        node: "a".into(),
    };
    put(&inbox, applied(namespace("a", 1)));
    for _ in 0..2 {
        inbox.bind(BindAsker {
            pod: Uid(1),
            node: "a".into(),
            asker: oneshot::channel().0,
            _place: Arc::clone(&places).try_acquire_owned().unwrap(),
        });
    }
    for kind in Kind::ALL {
        put(&inbox, listed(kind, vec![]));
    }
    let Batch {
        events, questions, ..
    } = inbox.take(Duration::ZERO, true);
    assert_eq!(events[..2], [asked.clone(), asked]);
    assert_eq!(questions.len(), 2);
    assert_eq!(places.available_permits(), 0);
    drop(questions);
    assert_eq!(places.available_permits(), 2);
}

#[test]
fn a_request_to_stop_wakes_once_and_is_remembered() {
    let inbox = Inbox::default();
    inbox.stop();
    assert!(inbox.take(Duration::from_secs(60), false).stopping);
    assert!(inbox.take(Duration::ZERO, true).stopping);
}

#[tokio::test]
async fn a_full_inbox_holds_back_new_objects_and_nothing_else() {
    let inbox = Arc::new(Inbox::default());
    let deleted = |number: usize| Event::Deleted(ObjectKey::Pod(Uid(number as u128)));
    for number in 0..CAPACITY {
        inbox.watched(deleted(number)).await;
    }
    inbox.watched(deleted(7)).await;
    inbox.ended(Event::Outcome(CommandId(1), Outcome::Done));
    let waiting = tokio::spawn({
        let inbox = Arc::clone(&inbox);
        async move { inbox.watched(deleted(CAPACITY)).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    assert_eq!(take(&inbox).len(), CAPACITY + 1);
    waiting.await.unwrap();
    assert_eq!(take(&inbox), [deleted(CAPACITY)]);
}

type World = BTreeMap<ObjectKey, Object>;

fn apply(world: &mut World, events: Vec<Event>) {
    for event in events {
        match event {
            Event::Applied(object) => {
                world.insert(object.key(), *object);
            }
            Event::Deleted(key) => {
                world.remove(&key);
            }
            Event::Listed(listing) => {
                world.retain(|key, _| key.kind() != listing.kind);
                let objects = listing.objects.into_iter();
                world.extend(objects.map(|object| (object.key(), object)));
            }
            Event::Outcome(..)
            | Event::Configured(_)
            | Event::BindAsked { .. }
            | Event::Continue => {}
        }
    }
}

fn object() -> impl Strategy<Value = Object> {
    ("[a-d]", any::<u8>(), any::<bool>()).prop_map(|(name, version, is_class)| {
        if is_class {
            class(&name, version)
        } else {
            namespace(&name, version)
        }
    })
}

fn event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![Just(Kind::Namespace), Just(Kind::PriorityClass)];
    prop_oneof![
        4 => object().prop_map(applied),
        3 => object().prop_map(|object| Event::Deleted(object.key())),
        1 => (kind, proptest::collection::vec(object(), 0..3)).prop_map(|(kind, mut objects)| {
            objects.retain(|object| object.kind() == kind);
            listed(kind, objects)
        }),
    ]
}

proptest! {
    #[test]
    fn coalescing_changes_nothing_about_the_world(
        before in proptest::collection::vec(object(), 0..4),
        events in proptest::collection::vec(event(), 0..20),
    ) {
        let mut world = World::new();
        apply(&mut world, before.into_iter().map(applied).collect());
        let mut coalesced = world.clone();
        let inbox = Inbox::default();
        for event in events.clone() {
            put(&inbox, event);
        }
        apply(&mut world, events);
        apply(&mut coalesced, take(&inbox));
        prop_assert_eq!(world, coalesced);
    }
}
