//! Errors about fields of the wrong type, in the words of those who write YAML.

/// What a decoder says of a value of the wrong type, without the names of our types:
/// `must be an object, not 5` of ``invalid type: integer `5`, expected struct PodSpec``. What says
/// something else stays as it is, without the place in a text that it may name.
pub(crate) fn in_plain_words(error: &str) -> String {
    let error = error.split(" at line ").next().unwrap_or(error);
    let wrong = ["invalid type: ", "invalid value: "];
    let wrong = wrong.iter().find_map(|start| error.strip_prefix(start));
    if let Some((found, expected)) = wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        return format!("must be {}, not {}", of_type(expected), value(found));
    }
    match error.strip_prefix("missing field ") {
        Some(field) => format!("{} is missing", field.trim_matches('`')),
        None => error.to_owned(),
    }
}

fn of_type(expected: &str) -> &str {
    match expected {
        "a string" | "string" | "a borrowed string" => "text",
        "a boolean" => "true or false",
        "a map" => "an object",
        "a sequence" => "a list",
        "unit" => "null",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "f32" | "f64" => "a number",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("tuple ") => "a list",
        _ => expected,
    }
}

fn value(found: &str) -> &str {
    match found {
        "map" => "an object",
        "sequence" => "a list",
        "unit value" | "Option value" => "null",
        _ => {
            let kinds = [
                "integer ",
                "floating point ",
                "boolean ",
                "string ",
                "character ",
            ];
            let literal = kinds.iter().find_map(|kind| found.strip_prefix(kind));
            literal.map_or(found, |literal| literal.trim_matches('`'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_plain_words;
    use crate::objects::Pod;
    use serde_json::{Value, json};

    #[test]
    fn no_word_is_of_our_code() {
        for (error, expected) in [
            (
                "invalid type: map, expected a sequence",
                "must be a list, not an object",
            ),
            (
                "invalid type: unit value, expected struct Meta at line 3 column 7",
                "must be an object, not null",
            ),
            (
                "invalid type: string \"a, expected b\", expected i64",
                "must be a whole number, not \"a, expected b\"",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "must be a whole number that is not negative, not -1",
            ),
            ("missing field `name`", "name is missing"),
            ("number out of range", "number out of range"),
        ] {
            assert_eq!(in_plain_words(error), expected, "{error}");
        }
    }

    #[test]
    fn pods_of_any_type_are_told_without_types() {
        let values = [
            json!(null),
            json!(5),
            json!(1.5),
            json!(true),
            json!("x"),
            json!([1]),
        ];
        let places: [fn(Value) -> Value; 4] = [
            |value| json!({"metadata": value}),
            |value| json!({"spec": value}),
            |value| json!({"spec": {"containers": [value]}}),
            |value| json!({"spec": {"nodeSelector": value, "priority": value}}),
        ];
        for (place, value) in places
            .iter()
            .flat_map(|place| values.iter().map(move |v| (place, v)))
        {
            if let Err(error) = serde_json::from_value::<Pod>(place(value.clone())) {
                let told = in_plain_words(&error.to_string());
                let code = [
                    "struct",
                    "map",
                    "sequence",
                    "unit",
                    "i64",
                    "i32",
                    "invalid type",
                ];
                let word = |word: &str| code.contains(&word);
                assert!(!told.split([' ', ',']).any(word), "{told}");
            }
        }
    }
}
