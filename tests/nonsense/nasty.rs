//! Values that nobody expects.

use gpu_batch_simulator::random::Random;
use serde_json::{Map, Value, json};

/// Numbers at the edges of what is counted with.
fn number(random: &mut Random) -> Value {
    let numbers = [
        json!(-1),
        json!(0),
        json!(1),
        json!(65_536),
        json!(i64::from(i32::MAX)),
        json!(i64::MAX),
        json!(i64::MIN),
    ];
    random.pick(&numbers).clone()
}

fn text(random: &mut Random) -> Value {
    const TEXTS: &[&str] = &[
        "",
        " ",
        "0",
        "-1",
        "1",
        "8",
        "NaN",
        "1e100",
        "-1e100",
        "1.5",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "36028797018963967",
        "36028797018963968",
        "30000000Gi",
        "100Ei",
        "1n",
        "999999999h",
        "-5m",
        "10m",
        "🦀",
        "\u{0}",
        "\u{202e}desrever",
        "e\u{301}\u{200d}🏳️‍🌈",
        "../../etc",
        "true",
        "binpack",
        "fragmentation",
        "2026-02-30T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "Never",
        "Always",
        "In",
        "Gt",
        "Indexed",
    ];
    if random.below(2_000) == 0 {
        return json!("x🦀".repeat(200_000));
    }
    json!(*random.pick(TEXTS))
}

/// A list or map that is larger or deeper than any that makes sense.
fn heap(random: &mut Random) -> Value {
    match random.below(400) {
        0 => {
            let pairs = (0..10_000).map(|n| (format!("example.com/l{n}"), json!(n.to_string())));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        1 => json!(vec!["x"; 2_000]),
        2..20 => (0..random.between(1, 200)).fold(json!(1), |inner, _| {
            Value::Object(Map::from_iter([("a".to_owned(), inner)]))
        }),
        20..40 => (0..100).fold(json!([]), |inner, _| Value::Array(vec![inner])),
        40..200 => json!([]),
        _ => json!({}),
    }
}

/// Anything.
pub(crate) fn any(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => json!(random.percent(50)),
        2 => json!(1.5e300),
        3 => json!(u64::MAX),
        4 => number(random),
        5 => heap(random),
        _ => text(random),
    }
}

/// Something of the same type, which gets past a decoder.
fn alike(random: &mut Random, value: &Value) -> Value {
    match value {
        Value::String(_) => text(random),
        Value::Number(_) => number(random),
        Value::Bool(value) => json!(!value),
        Value::Array(_) => json!([]),
        Value::Object(_) => heap(random),
        Value::Null => Value::Null,
    }
}

/// Changes one thing somewhere in a value.
pub(crate) fn change(random: &mut Random, value: &mut Value) {
    let deeper = !random.percent(20);
    match value {
        Value::Object(map) if deeper && !map.is_empty() => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = random.pick(&keys);
            if random.percent(4) {
                map.remove(key);
            } else if random.percent(4) {
                map.insert("bogus🦀".to_owned(), any(random));
            } else {
                change(random, &mut map[key.as_str()]);
            }
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let index = usize::try_from(random.below(list.len() as u64)).unwrap();
            if random.percent(10) {
                let twice = list[index].clone();
                list.push(twice);
            } else {
                change(random, &mut list[index]);
            }
        }
        value if random.percent(85) => *value = alike(random, value),
        value => *value = any(random),
    }
}
