use super::{annotations, cases, list, with_problems};
use crate::kube::convert::hami::register::cards;
use gpu_batch_policies::facts::{CardClosed, CardFacts, MigPlacement, MigProfile, Problem};
use serde_json::{Value, json};

fn read(annotations_of_node: &Value) -> (Vec<CardFacts>, Vec<Problem>) {
    let annotations = annotations(annotations_of_node);
    with_problems(|problems| cards(&annotations, problems))
}

fn read_text(register: &str) -> (Vec<CardFacts>, Vec<Problem>) {
    read(&json!({"hami.io/node-nvidia-register": register}))
}

/// The profiles of a card in MIG mode that HAMi has read.
fn profiles(device: &Value) -> Vec<MigProfile> {
    let listed = list(&device["migProfiles"]);
    let listed = listed.filter(|_| device["mode"] == "mig");
    let profiles = listed.map(|profile| {
        let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
        let placements = list(&profile["placements"]);
        let placements = placements.map(|it| {
            let [start, size] = ["start", "size"].map(|name| number(it, name).try_into().unwrap());
            MigPlacement { start, size }
        });
        MigProfile {
            name: profile["name"].as_str().unwrap().into(),
            memory_mib: number(profile, "memoryMB"),
            thousandths: 10 * u32::try_from(number(profile, "core")).unwrap(),
            placements: placements.collect(),
        }
    });
    let mut profiles: Vec<MigProfile> = profiles.collect();
    profiles.sort();
    profiles
}

/// The card that HAMi has read, and whether it makes sense.
fn of_hami(device: &Value) -> (CardFacts, bool) {
    let number = |name: &str| device[name].as_i64().unwrap();
    let text = |name: &str| device[name].as_str().unwrap();
    let positive = |name: &str| u32::try_from(number(name)).unwrap_or(0);
    let in_core = ["", "hami-core"].contains(&text("mode"));
    let healthy = device["health"] == json!(true);
    let in_core = in_core || !profiles(device).is_empty();
    let card = CardFacts {
        id: text("id").into(),
        model: text("type").into(),
        memory_mib: positive("devmem").into(),
        thousandths: 10 * positive("devcore"),
        slots: positive("count"),
        numa: positive("numa"),
        profiles: profiles(device),
        closed: match (healthy, in_core) {
            (false, _) => Some(CardClosed::Unhealthy),
            (true, false) => Some(CardClosed::OtherMode),
            (true, true) => None,
        },
    };
    // HAMi would write a separator in an id into the pod's annotation and not read it again.
    let sound = !card.id.is_empty()
        && !card.id.contains([',', ':', ';'])
        && card.memory_mib > 0
        && card.thousandths > 0
        && (1..=1_000).contains(&card.slots);
    (card, sound)
}

/// Compares with what HAMi answers; returns whether HAMi has refused the register.
fn compare(
    case: &Value,
    answer: &Value,
    (cards, problems): (Vec<CardFacts>, Vec<Problem>),
) -> bool {
    let Some(devices) = answer["devices"].as_array() else {
        assert!(cards.is_empty(), "{case}: {cards:?}");
        let is_absent = case["input"]["annotations"]["hami.io/node-nvidia-register"].is_null();
        assert!(
            !problems.is_empty() || is_absent && case["kind"] == json!("node-json"),
            "{case}"
        );
        return true;
    };
    let (sound, nonsense): (Vec<_>, Vec<_>) = devices.iter().map(of_hami).partition(|it| it.1);
    let mut expected: Vec<CardFacts> = sound.into_iter().map(|(card, _)| card).collect();
    expected.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(cards, expected, "{case}");
    assert_eq!(problems.len(), nonsense.len(), "{case}: {problems:?}");
    false
}

#[test]
fn registers_in_json_are_read_as_hami_reads_them() {
    let cases = cases("codec", Some("node-json"));
    let (mut refused, mut others) = (0, 0);
    for case in &cases {
        let register = &case["input"]["annotations"]["hami.io/node-nvidia-register"];
        let text = register.as_str().unwrap_or("[");
        if text.starts_with("GPU-") || text == "null" {
            // HAMi's function for JSON refuses records, which we read, and takes null for a list.
            others += 1;
            continue;
        }
        // HAMi takes a node without readable scores for one without cards. We do not read scores.
        let answer = &case["answer"]["unmarshal"];
        refused += usize::from(compare(case, answer, read(&case["input"]["annotations"])));
    }
    println!(
        "{} registers in JSON compared, {refused} refused; {others} are no lists",
        cases.len() - others
    );
    assert!(cases.len() > 250 && refused > 40 && others < 10);
}

#[test]
fn registers_in_records_are_read_as_hami_reads_them() {
    let cases = cases("codec", Some("node-list"));
    let mut refused = 0;
    for case in &cases {
        let text = case["input"]["value"].as_str().unwrap();
        refused += usize::from(compare(case, &case["answer"], read_text(text)));
    }
    println!(
        "{} registers in records compared, {refused} refused",
        cases.len()
    );
    assert!(cases.len() > 200 && refused > 50);
}

#[test]
fn a_card_listed_twice_and_a_card_of_nonsense_are_problems_and_the_others_stay() {
    let card = |id: &str, name: &str, number: i64| {
        let mut card = json!({"id": id, "count": 10, "devmem": 81559, "devcore": 100,
            "type": "NVIDIA H100", "mode": "hami-core", "health": true});
        card[name] = number.into();
        card
    };
    let register = json!([
        card("GPU-d", "numa", -1),
        card("GPU-a", "numa", 1),
        card("GPU-a", "devmem", 1),
        card("GPU-b", "count", 10_000),
        card("GPU-c", "devmem", 0),
        card("GPU-e,NVIDIA,1,1:", "numa", 0),
    ]);
    let (cards, problems) = read_text(&register.to_string());
    let ids: Vec<&str> = cards.iter().map(|card| &*card.id).collect();
    assert_eq!(ids, ["GPU-a", "GPU-d"]);
    assert_eq!(
        (cards[0].memory_mib, cards[0].numa, cards[1].numa),
        (81_559, 1, 0)
    );
    let messages: Vec<&str> = problems.iter().map(|problem| &*problem.message).collect();
    assert_eq!(
        messages,
        [
            "lists the card GPU-a twice",
            "gives the card GPU-b count 10000, and 1 to 1000 make sense",
            "gives the card GPU-c devmem 0, and 1 to 2147483647 make sense",
            "names a card `GPU-e,NVIDIA,1,1:`",
        ]
    );
    let field = "metadata.annotations[hami.io/node-nvidia-register]";
    assert!(problems.iter().all(|problem| &*problem.field == field));
}

#[test]
fn what_is_no_register_is_a_problem() {
    for (text, expected) in [
        ("", "is neither JSON nor records with a colon behind each"),
        ("{}", "is neither JSON nor records with a colon behind each"),
        ("[null]", "must be an object, not null"),
        ("[{\"id\":\"GPU-a\"", "EOF while parsing an object"),
        (
            "[{\"count\":10000000000}]",
            "must be a whole number, not 10000000000",
        ),
        ("GPU-a,10,1,100,T4,0,true,0:", "has a record of 8 fields"),
        (
            "GPU-a,10,1,100,T4,0,yes:",
            "has `yes` where true or false is due",
        ),
        ("GPU-a,10,1,100,T4,0,true:[{}]", "has a record of 1 fields"),
    ] {
        let (cards, problems) = read_text(text);
        assert!(cards.is_empty(), "{text}");
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert_eq!(&*problems[0].message, expected, "{text}");
    }
    let long = format!("[{}]", " ".repeat(64 * 1_024));
    assert_eq!(&*read_text(&long).1[0].message, "is more than 65536 bytes");
}

#[test]
fn cards_are_closed_where_the_handshake_of_an_old_plugin_says_that_it_is_gone() {
    let records = "GPU-a,10,1,100,T4,0,true:GPU-b,10,1,100,T4,0,false:";
    let json = r#"[{"id":"GPU-a","count":10,"devmem":1,"devcore":100,"health":true},
        {"id":"GPU-b","count":10,"devmem":1,"devcore":100}]"#;
    let unhealthy = Some(CardClosed::Unhealthy);
    for (handshake, of_records) in [
        ("Deleted_2024.01.23 04:30:04", unhealthy),
        ("Deleted_2024-01-23 04:30:04", unhealthy),
        ("Requesting_2024-01-23 04:30:04", None),
        ("Reported 2024-01-23 04:30:04.4 +0000 UTC m=+1.7", None),
        ("deleted", None),
        ("", None),
    ] {
        for (register, expected) in [(records, of_records), (json, None)] {
            let (cards, problems) = read(&json!({
                "hami.io/node-nvidia-register": register, "hami.io/node-handshake": handshake
            }));
            let closed: Vec<Option<CardClosed>> = cards.iter().map(|card| card.closed).collect();
            assert_eq!(closed, [expected, unhealthy], "{handshake}: {register}");
            assert_eq!(problems, [], "{handshake}: {register}");
        }
    }
}

#[test]
fn cordoned_cards_are_closed() {
    let register = "GPU-a,10,1,100,T4,0,true:GPU-b,10,1,100,T4,0,true:GPU-c,10,1,100,T4,0,false:";
    let (cards, problems) = read(&json!({
        "hami.io/node-nvidia-register": register, "hami.io/device-cordon": "GPU-b , GPU-c,GPU-x"
    }));
    let closed: Vec<Option<CardClosed>> = cards.iter().map(|card| card.closed).collect();
    let expected = [
        None,
        Some(CardClosed::Cordoned),
        Some(CardClosed::Unhealthy),
    ];
    assert_eq!(closed, expected);
    assert!(problems.is_empty());
}
