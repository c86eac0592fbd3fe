use super::{Damage, Reader, Record, Recorder, Step, VERSION, beginning, pack, replay};
use crate::random::Random;
use crate::run::record;
use crate::what_if::Session;
use gpu_batch_policies::command::{
    Action, Beneficiary, ClaimKind, Command, CommandId, Evict, EvictionCause, Lift, PodReference,
    SelectNode, StatusPatch,
};
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{
    AccessModes, AlignedContainer, AlignmentPolicy, AlignmentScope, AttachmentFacts, CapacityFacts,
    CellResource, ClaimFacts, ClaimReference, ClaimUse, ContainerRole, CsiDriverFacts,
    CsiNodeFacts, LabelSelector, NodeSelectorTerm, NumaCell, NumaFacts, PodFacts, PodShape,
    SharedVolume, StorageClassFacts, StorageFacts, Uid, VolumeFacts, VolumeNeeds, VolumePlaces,
    ZoneLabel,
};
use gpu_batch_policies::settings::Settings;
use proptest::prelude::{any, proptest};
use std::sync::Arc;

/// The journals of a world in which a lot goes wrong.
fn journals(seed: u64) -> Vec<Vec<u8>> {
    let (_, recorded) = record(seed, true).unwrap();
    recorded.iter().map(|raw| with_inside(raw)).collect()
}

fn read(journal: &[u8]) -> Result<Vec<Record>, Damage> {
    let mut reader = Reader::new(journal)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok(records)
}

/// A journal of these records, each in a block of its own.
fn write(records: &[Record]) -> Vec<u8> {
    let mut journal = beginning();
    for record in records {
        let mut recorder = Recorder::default();
        recorder.record(record);
        journal.extend(pack(&recorder.seal()).unwrap());
    }
    journal
}

/// One block with these bytes inside.
fn with_inside(raw: &[u8]) -> Vec<u8> {
    [beginning(), pack(raw).unwrap()].concat()
}

/// `GPU_BATCH_SEEDS=FROM..TO` runs other seeds.
#[test]
fn whatever_happens_in_a_world_is_replayed_without_a_difference() {
    let asked_for = std::env::var("GPU_BATCH_SEEDS").unwrap_or_else(|_| "0..100".to_owned());
    let (from, to) = asked_for.split_once("..").unwrap();
    let (mut steps, mut commands) = (0, 0);
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        for journal in journals(seed) {
            let replayed = replay(&mut Reader::new(&journal[..]).unwrap());
            assert_eq!(replayed.difference, None, "seed {seed}");
            assert!(replayed.damage.is_none(), "seed {seed}");
            steps += replayed.steps;
            commands += replayed.commands;
        }
    }
    println!("{steps} steps, {commands} commands");
    assert!(steps > 10_000 && commands > 5_000, "{steps} {commands}");
}

#[test]
fn what_is_read_is_what_was_written() {
    for seed in 0..10 {
        for journal in journals(seed) {
            let records = read(&journal).unwrap();
            assert_eq!(read(&write(&records)).unwrap(), records);
        }
    }
}

#[test]
fn evictions_for_others_and_nominations_are_read_back_and_said_in_words() {
    let pod = PodReference {
        namespace: "vision".into(),
        name: "a".into(),
        uid: Uid(1),
    };
    let command = |action| Command {
        id: CommandId(7),
        deadline_ms: 5,
        action,
    };
    let evict = command(Action::Evict(Evict {
        pod: pod.clone(),
        cause: EvictionCause::Reclaim,
        beneficiary: Some(Beneficiary {
            gang: "vision/train".into(),
            claim: Some(ClaimKind::Quota),
            is_optimal: true,
        }),
    }));
    let words = Step::Command(Box::new(evict.clone())).to_string();
    let reason = "Reclaim for vision/train, to its quota, optimal (command 7, until 5)";
    assert_eq!(words, format!("evict pod vision/a ({}): {reason}", Uid(1)));
    let nominate = |node: Option<&str>| {
        command(Action::PatchStatus(StatusPatch::Nominated {
            pod: pod.clone(),
            node: node.map(Into::into),
        }))
    };
    let lift = command(Action::Lift(Lift {
        pod: pod.clone(),
        node: "n1".into(),
    }));
    let leaves = PodFacts {
        nominated: Some("n1".into()),
        planned_node: Some("n1".into()),
        deletion_ms: Some(9),
        ..PodFacts::new(Uid(1), "vision", "a", Arc::new(PodShape::default()))
    };
    let records = [
        Record::Begun {
            version: "0".into(),
            settings: Box::default(),
        },
        Record::Events {
            now_ms: 1,
            events: vec![Object::Pod(leaves).into()],
        },
        Record::Commands(vec![evict, nominate(Some("n1")), nominate(None), lift]),
    ];
    assert_eq!(read(&write(&records)).unwrap(), records);
}

/// An object of each kind about volumes.
fn storage() -> Vec<StorageFacts> {
    let claim = ClaimFacts {
        namespace: "vision".into(),
        name: "data".into(),
        uid: Uid(3),
        class: "fast".into(),
        volume: Some("pv".into()),
        bind_completed: true,
        is_lost: false,
        is_deleting: true,
        size: Some(5),
        access: AccessModes(3),
        is_block: false,
        selector: Some(LabelSelector::default()),
        attributes_class: "gold".into(),
        selected_node: Some("n1".into()),
        pod: Some(Uid(1)),
    };
    let volume = VolumeFacts {
        name: "pv".into(),
        version: "12".into(),
        labels: vec![("zone".into(), "a".into())],
        affinity: Some(vec![NodeSelectorTerm::default()]),
        affinity_once_bound: Some(Vec::new()),
        claim: Some(ClaimReference {
            namespace: "vision".into(),
            name: "data".into(),
            uid: None,
        }),
        class: "fast".into(),
        size: 6,
        access: AccessModes::MANY,
        is_block: true,
        attributes_class: "".into(),
        is_available: true,
        is_deleting: false,
        csi: Some(("disks".into(), "d-1".into())),
        is_in_tree: true,
    };
    let class = StorageClassFacts {
        name: "fast".into(),
        provisioner: "disks".into(),
        waits: true,
        topologies: Some(Vec::new()),
    };
    let mut all = vec![
        StorageFacts::Claim(claim),
        StorageFacts::Volume(volume),
        StorageFacts::Class(class),
    ];
    all.extend(storage_of_nodes());
    all
}

fn storage_of_nodes() -> Vec<StorageFacts> {
    let capacity = CapacityFacts {
        namespace: "system".into(),
        name: "room".into(),
        class: "fast".into(),
        largest: None,
        nodes: Some(LabelSelector::default()),
    };
    vec![
        StorageFacts::CsiNode(CsiNodeFacts {
            name: "n1".into(),
            drivers: vec![("disks".into(), Some(25)), ("others".into(), None)],
            migrated: vec!["kubernetes.io/gce-pd".into()],
        }),
        StorageFacts::CsiDriver(CsiDriverFacts {
            name: "disks".into(),
            tells_capacity: true,
        }),
        StorageFacts::Capacity(capacity),
        StorageFacts::Attachment(AttachmentFacts {
            name: "csi-1".into(),
            driver: "disks".into(),
            node: "n1".into(),
            volume: Some("pv".into()),
        }),
    ]
}

#[test]
fn numa_nodes_are_read_back() {
    let resource = CellResource {
        name: "cpu".into(),
        capacity: 8_000,
        allocatable: 7_000,
        available: 2_000,
    };
    let policies = [
        AlignmentPolicy::None,
        AlignmentPolicy::BestEffort,
        AlignmentPolicy::Restricted,
        AlignmentPolicy::SingleCell,
    ];
    let scopes = [AlignmentScope::Container, AlignmentScope::Pod];
    let facts = |policy, scope| NumaFacts {
        name: format!("n-{policy:?}-{scope:?}").into(),
        uid: Uid(9),
        policy,
        scope,
        cells: vec![NumaCell {
            number: 3,
            resources: vec![resource.clone()],
        }],
        problems: Vec::new(),
    };
    let all = policies
        .into_iter()
        .flat_map(|policy| scopes.map(|scope| facts(policy, scope)));
    let objects: Vec<Object> = all.map(Object::Numa).collect();
    let roles = [
        ContainerRole::Init,
        ContainerRole::Sidecar,
        ContainerRole::Main,
    ];
    let shape = PodShape {
        aligned: roles
            .map(|role| AlignedContainer {
                role,
                amounts: vec![("cpu".into(), 1_000)],
            })
            .into(),
        ..PodShape::default()
    };
    let mut pod = PodFacts::new(Uid(1), "vision", "a", Arc::new(shape));
    pod.is_misaligned = true;
    let deleted = objects.iter().map(|object| Event::Deleted(object.key()));
    let mut events: Vec<Event> = deleted.collect();
    events.extend(Event::lists(objects));
    events.push(Object::Pod(pod).into());
    let begun = Record::Begun {
        version: "0".into(),
        settings: Box::default(),
    };
    let records = vec![begun, Record::Events { now_ms: 1, events }];
    assert_eq!(read(&write(&records)).unwrap(), records);
}

#[test]
fn claims_and_volumes_are_read_back() {
    let needs = VolumeNeeds {
        missing: Some("PersistentVolumeClaim data does not exist".into()),
        places: vec![VolumePlaces {
            only_on: Some("n1".into()),
            is_bound: true,
            any_of: vec![vec![vec![NodeSelectorTerm::default()]]],
        }],
        zones: vec![ZoneLabel {
            key: "zone".into(),
            values: vec!["a".into()],
        }],
        shared: vec![SharedVolume {
            driver: "disks.example.com".into(),
            handle: "v".into(),
        }],
    };
    let shape = PodShape {
        volumes: Some(Box::new(needs)),
        ..PodShape::default()
    };
    let mut pod = PodFacts::new(Uid(1), "vision", "a", Arc::new(shape));
    pod.claims = vec![ClaimUse {
        name: "data".into(),
        is_ephemeral: true,
    }];
    let objects: Vec<Object> = storage().into_iter().map(Object::Storage).collect();
    let deleted = objects.iter().map(|object| Event::Deleted(object.key()));
    let mut events: Vec<Event> = deleted.collect();
    events.extend(Event::lists(objects));
    events.push(Object::Pod(pod).into());
    let select = |node: Option<&str>| Command {
        id: CommandId(7),
        deadline_ms: 5,
        action: Action::SelectNode(SelectNode {
            namespace: "vision".into(),
            name: "data".into(),
            uid: Uid(3),
            node: node.map(Into::into),
        }),
    };
    let records = [
        Record::Begun {
            version: "0".into(),
            settings: Box::default(),
        },
        Record::Events { now_ms: 1, events },
        Record::Commands(vec![select(Some("n1")), select(None)]),
    ];
    assert_eq!(read(&write(&records)).unwrap(), records);
}

#[test]
fn another_node_is_found_and_named() {
    let journal = &journals(7)[0];
    let mut records = read(journal).unwrap();
    let actions = records.iter_mut().flat_map(|record| match record {
        Record::Commands(commands) => commands.iter_mut().map(|it| &mut it.action).collect(),
        _ => Vec::new(),
    });
    let mut binds = actions.filter_map(|action| match action {
        Action::Bind(bind) => Some(bind),
        _ => None,
    });
    let bind = binds.nth(2).unwrap();
    let node = std::mem::replace(&mut bind.node, "elsewhere".into());
    drop(binds);
    let replayed = replay(&mut Reader::new(&write(&records)[..]).unwrap());
    let difference = replayed.difference.unwrap();
    assert_eq!(difference.step, replayed.steps);
    assert!(difference.recorded.to_string().contains("elsewhere"));
    assert!(difference.replayed.to_string().contains(&*node));
}

#[test]
fn commands_that_are_missing_or_too_many_are_found() {
    let mut records = read(&journals(7)[0]).unwrap();
    let last = |records: &mut Vec<Record>| {
        let found = records.iter_mut().rev().find_map(|record| match record {
            Record::Commands(commands) if !commands.is_empty() => Some(std::mem::take(commands)),
            _ => None,
        });
        found.unwrap()
    };
    let commands = last(&mut records);
    let replayed = replay(&mut Reader::new(&write(&records)[..]).unwrap());
    let difference = replayed.difference.unwrap();
    assert_eq!(difference.recorded, Step::End);
    assert_eq!(
        difference.replayed,
        Step::Command(Box::new(commands[0].clone()))
    );
}

#[test]
fn a_panic_that_does_not_come_again_is_a_difference() {
    let begun = Record::Begun {
        version: "0".into(),
        settings: Box::default(),
    };
    let events = Record::Events {
        now_ms: 1,
        events: vec![Event::Continue],
    };
    let panicked = Record::Panicked {
        message: "boom".into(),
    };
    let journal = write(&[begun, events, panicked]);
    let replayed = replay(&mut Reader::new(&journal[..]).unwrap());
    let difference = replayed.difference.unwrap();
    assert_eq!(difference.recorded, Step::Panic("boom".into()));
    assert_eq!(difference.replayed, Step::End);
}

#[test]
fn pods_of_one_shape_share_it_again() {
    let journal = &journals(3)[0];
    let mut shapes: Vec<Arc<PodShape>> = Vec::new();
    let mut pods = 0;
    for record in read(journal).unwrap() {
        let Record::Events { events, .. } = record else {
            continue;
        };
        for event in events {
            if let Event::Applied(object) = event
                && let Object::Pod(pod) = *object
            {
                pods += 1;
                shapes.push(pod.shape);
            }
        }
    }
    shapes.sort_by_key(Arc::as_ptr);
    shapes.dedup_by(|a, b| Arc::ptr_eq(a, b));
    assert!(shapes.len() * 4 < pods, "{} of {pods}", shapes.len());
}

#[test]
fn a_journal_that_is_cut_is_read_to_its_last_full_block() {
    let records = read(&journals(1)[0]).unwrap();
    let journal = write(&records[..3]);
    let full = read(&journal).unwrap();
    let mut read_before = 0;
    for length in 0..journal.len() {
        let Ok(mut reader) = Reader::new(&journal[..length]) else {
            assert!(length < 12);
            continue;
        };
        let mut found = Vec::new();
        let end = loop {
            match reader.next_record() {
                Ok(Some(record)) => found.push(record),
                other => break other,
            }
        };
        assert_eq!(found, full[..found.len()]);
        assert!(found.len() >= read_before);
        let between_blocks = found.len() > read_before;
        match end {
            Ok(None) => assert!(between_blocks),
            Err(Damage::Cut { block }) => {
                assert!(length == 12 || block == found.len() as u64 + 1);
            }
            other => panic!("{other:?}"),
        }
        read_before = found.len();
    }
}

#[test]
fn damage_is_told_with_its_block_and_field() {
    let journal = &journals(1)[0];
    let told = |journal: &[u8]| read(journal).unwrap_err().to_string();
    assert_eq!(told(b"{}"), "magic: this is not a journal of gpu-batch");
    assert_eq!(told(b""), "magic: this is not a journal of gpu-batch");
    let mut other = journal.clone();
    other[8] += 1;
    let says = format!(
        "version: this is a journal of version {}; this program reads version {VERSION}",
        VERSION + 1
    );
    assert_eq!(told(&other), says);
    let mut flipped = journal.clone();
    flipped[100] ^= 1;
    let checksum = "block 1: checksum: it is not that of the bytes";
    assert_eq!(told(&flipped), checksum);
    assert_eq!(
        told(&with_inside(&[7])),
        "block 1: record 1: Record has no variant 7"
    );
    assert_eq!(
        told(&with_inside(&[4])),
        "block 1: record 1: the settings stand in the first record, and only there"
    );
    assert_eq!(
        told(&with_inside(&[0, 1, b'1', 0])),
        "block 1: record 1.settings.cpu_placement: 1 bytes are needed, 0 are left"
    );
}

/// The checksum of a block is right here and a bit of what is inside is not, or the rest is
/// missing: whatever that says, it is damage, or it is run again and continued.
#[test]
fn a_flipped_bit_inside_of_a_block_makes_nothing_panic() {
    let mut random = Random::new(5);
    let mut damaged = 0;
    for seed in 0..8 {
        let raw = &record(seed, true).unwrap().1[0];
        let raw = &raw[..raw.len().min(6_000)];
        for _ in 0..250 {
            let mut flipped = raw.to_vec();
            let place = usize::try_from(random.below(flipped.len() as u64)).unwrap();
            if random.below(10) == 0 {
                flipped.truncate(place);
            } else {
                flipped[place] ^= 1 << random.below(8);
            }
            let journal = with_inside(&flipped);
            let replayed = replay(&mut Reader::new(&journal[..]).unwrap());
            let session = Session::read(&mut Reader::new(&journal[..]).unwrap());
            let course = session.under(&Settings::default(), &[]);
            let _ = session.compare(&course);
            let wrong = replayed.damage.is_some() || replayed.difference.is_some();
            damaged += u32::from(wrong);
        }
    }
    assert!(damaged > 1_000, "{damaged}");
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, tag in 0..5u8) {
        let _ = read(&with_inside(&[&[tag][..], &bytes].concat()));
        let _ = read(&[beginning(), bytes].concat());
    }

    #[test]
    fn no_flipped_byte_goes_unnoticed(place in any::<proptest::sample::Index>(), bit in 0..8u8) {
        let record = Record::Events { now_ms: 5, events: vec![Event::Continue; 9] };
        let begun = Record::Begun { version: "0".into(), settings: Box::default() };
        let mut journal = write(&[begun, record]);
        let place = place.index(journal.len());
        journal[place] ^= 1 << bit;
        assert!(read(&journal).is_err());
    }
}
