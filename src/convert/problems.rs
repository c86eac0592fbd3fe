//! The problems of an object, field by field, bounded in number and length.

use super::limits;
use gpu_batch_policies::facts::Problem;
use std::fmt;

/// Collects what is wrong with one object: few entries, short texts, whatever the object holds.
#[derive(Debug, Default)]
pub(super) struct Problems {
    problems: Vec<Problem>,
    /// Those of them that no object of an API server has.
    impossible: Vec<Problem>,
}

impl Problems {
    /// Notes a problem. The field is written as a user would write it, the message as a sentence
    /// without its point.
    pub(super) fn push(&mut self, field: impl fmt::Display, message: impl fmt::Display) {
        if self.problems.len() < limits::PROBLEMS {
            self.problems.push(Problem {
                field: shortened(field, limits::PROBLEM_TEXT).into(),
                message: shortened(message, limits::PROBLEM_TEXT).into(),
            });
        }
    }

    /// Notes a problem that the API server would have refused: the object is from a file.
    pub(super) fn push_impossible(&mut self, field: impl fmt::Display, message: impl fmt::Display) {
        let before = self.problems.len();
        self.push(field, message);
        self.impossible.extend_from_slice(&self.problems[before..]);
    }

    /// The first `limit` entries; a longer list is a problem.
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

    /// Those problems that no object of an API server has.
    pub(super) fn impossible(&self) -> Vec<Problem> {
        self.impossible.clone()
    }

    pub(super) fn into_vec(self) -> Vec<Problem> {
        self.problems
    }
}

/// At most `limit` bytes of a text, ended by dots where it was cut. Nothing longer is ever built.
pub(super) fn shortened(text: impl fmt::Display, limit: usize) -> String {
    let mut short = Shortened {
        text: String::new(),
        limit,
    };
    // An error only says that the text was cut.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
