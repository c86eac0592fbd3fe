//! The problems of an object, field by field, bounded in number and length; and errors about fields
//! of the wrong type, in the words of those who write YAML.

use super::limits;
use gpu_batch_policies::facts::Problem;
use std::fmt;

/// Collects what is wrong with one object: few entries, short texts, whatever the object holds.
#[derive(Debug, Default)]
pub(super) struct Problems {
    problems: Vec<Problem>,
    /// Those of `problems` for which the API server would have refused the object.
    impossible: Vec<Problem>,
}

impl Problems {
    /// Notes a problem. The field is written as a user would write it, the message as a sentence
    /// without its full stop.
    pub(super) fn push(&mut self, field: impl fmt::Display, message: impl fmt::Display) {
        if self.problems.len() < limits::PROBLEMS {
            self.problems.push(Problem {
                field: shortened(field, limits::PROBLEM_TEXT).into(),
                message: shortened(message, limits::PROBLEM_TEXT).into(),
            });
        }
    }

    /// Notes a problem for which the API server would have refused the object, which is from a
    /// file.
    pub(super) fn push_impossible(&mut self, field: impl fmt::Display, message: impl fmt::Display) {
        let before = self.problems.len();
        self.push(field, message);
        self.impossible.extend_from_slice(&self.problems[before..]);
    }

    /// The first `limit` entries of a list; a longer list is a problem.
    pub(super) fn at_most<'a, T>(
        &mut self,
        limit: usize,
        list: &'a [T],
        field: impl fmt::Display,
    ) -> &'a [T] {
        match list.get(..limit) {
            Some(head) if list.len() > limit => {
                let count = list.len();
                self.push(field, format_args!("{count} entries are more than {limit}"));
                head
            }
            _ => list,
        }
    }

    /// The problems for which the API server would have refused the object.
    pub(super) fn impossible(&self) -> Vec<Problem> {
        self.impossible.clone()
    }

    pub(super) fn into_vec(self) -> Vec<Problem> {
        self.problems
    }
}

/// At most `limit` bytes of a text, ended by dots where it was cut. No longer text is built
/// meanwhile.
pub(super) fn shortened(text: impl fmt::Display, limit: usize) -> String {
    let mut short = Shortened {
        text: String::new(),
        limit,
    };
    // The only error is that the text was cut.
    if fmt::write(&mut short, format_args!("{text}")).is_err() {
        short.text.push_str("...");
    }
    short.text
}

struct Shortened {
    text: String,
    limit: usize,
}

impl fmt::Write for Shortened {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.limit.saturating_sub(self.text.len());
        let mut end = room.min(part.len());
        while !part.is_char_boundary(end) {
            end -= 1;
        }
        self.text.push_str(&part[..end]);
        if end < part.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// What a decoder says of a value of the wrong type, without the names of our types:
/// `must be an object, not 5` of ``invalid type: integer `5`, expected struct PodSpec``. Any
/// other message stays as it is, without the place in a text that it may name.
pub(super) fn in_plain_words(error: &str) -> String {
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
    use super::*;
    use crate::kube::objects::Pod;
    use serde_json::{Value, json};

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (text, limit, expected) in [
            ("short", 5, "short"),
            ("shorter", 5, "short..."),
            ("aé", 2, "a..."),
            ("", 0, ""),
        ] {
            assert_eq!(shortened(text, limit), expected, "{text}");
        }
    }

    #[test]
    fn only_the_first_problems_are_kept() {
        let mut problems = Problems::default();
        for index in 0..100 {
            problems.push(format_args!("spec.list[{index}]"), "is wrong");
        }
        let problems = problems.into_vec();
        assert_eq!(problems.len(), limits::PROBLEMS);
        assert_eq!(problems[15].field.as_ref(), "spec.list[15]");
    }

    #[test]
    fn a_list_at_the_limit_is_whole_and_one_above_it_is_cut_with_a_problem() {
        let mut problems = Problems::default();
        assert_eq!(problems.at_most(3, &[1, 2, 3], "spec.list").len(), 3);
        assert_eq!(problems.at_most(3, &[1, 2, 3, 4], "spec.list").len(), 3);
        let problems = problems.into_vec();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].message.as_ref(), "4 entries are more than 3");
    }

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
