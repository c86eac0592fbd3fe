//! Suggestions: the known name that may have been meant by one that does not exist.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

/// How many names a suggestion or a list has at most.
const SUGGESTED: usize = 3;
/// Names of more bytes are not compared letter by letter.
const COMPARED: usize = 253;

/// All names of a kind, `NS/NAME`, in any order.
pub(crate) struct Names<'a> {
    /// The kind as a word: `gang` or `pod`.
    pub(crate) kind: &'static str,
    pub(crate) known: Vec<&'a str>,
}

impl Names<'_> {
    /// A sentence about a name that is not among the known ones.
    pub(crate) fn missing(&self, name: &str) -> String {
        let kind = self.kind;
        if let Some(suggestion) = suggestion(name, self.known.iter().copied()) {
            return format!("there is no {kind} {name}; {suggestion}");
        }
        let (namespace, _) = name.split_once('/').unwrap_or((name, ""));
        let namespaces: BTreeSet<&str> = self
            .known
            .iter()
            .filter_map(|known| Some(known.split_once('/')?.0))
            .collect();
        let inside: BTreeSet<&str> = self
            .known
            .iter()
            .filter(|known| known.split_once('/').is_some_and(|(ns, _)| ns == namespace))
            .copied()
            .collect();
        if namespaces.is_empty() {
            format!("there is no {kind} {name}; there are none at all")
        } else if inside.is_empty() {
            let namespaces = listed(namespaces.into_iter());
            format!(
                "there is no {kind} in the namespace {namespace}; there are some in {namespaces}"
            )
        } else {
            let inside = listed(inside.into_iter());
            format!("there is no {kind} {name}; the namespace has {inside}")
        }
    }
}

/// `did you mean A or B?`, the nearest first; `None`: no known name is near.
#[must_use]
pub fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let most = 1 + name.len() / 5;
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|known| {
            // Often an object with this name in another namespace is meant.
            let moved = matches!((name.split_once('/'), known.split_once('/')),
                (Some((_, name)), Some((_, known))) if name == known);
            let distance = if moved {
                0
            } else {
                distance(name, known, most)?
            };
            Some((distance, known))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    let names: Vec<&str> = near.iter().take(SUGGESTED).map(|(_, name)| *name).collect();
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", others.join(", "))
    })
}

/// The known name that is nearest; `None`: none is near.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = 1 + name.len() / 5;
    let near = known.filter_map(|known| Some((distance(name, known, most)?, known)));
    near.min().map(|(_, known)| known)
}

/// `there is A`, `there are A and B`, `there are A, B, C and 4 more`; `None`: there is nothing.
pub(crate) fn there_are<T: AsRef<str>>(names: &[T]) -> Option<String> {
    let verb = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| format!("there {verb} {}", first_joined(names, SUGGESTED)))
}

/// `a, b and c`; of more than `most` names the first ones, and how many more there are: `a, b and 4
/// more`.
pub(crate) fn first_joined<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let shown = names.iter().take(most).map(|name| name.as_ref().into());
    let mut shown: Vec<String> = shown.collect();
    if names.len() > shown.len() {
        shown.push(format!("{} more", names.len() - shown.len()));
    }
    joined(&shown)
}

/// `a, b and c`.
pub(crate) fn joined(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The first of these names, and how many more there are.
pub(crate) fn listed<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let shown: Vec<&str> = names.by_ref().take(SUGGESTED).collect();
    let rest = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{rest}", shown.join(", "))
}

/// How many bytes must be inserted, removed or replaced to make one name the other (Levenshtein);
/// `None`: more than `most`, or a name is too long.
fn distance(one: &str, other: &str, most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most || one.len().max(other.len()) > COMPARED {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.bytes().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], line + 1);
        for (column, against) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != against);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::{Names, distance};
    use alloc::vec::Vec;

    #[test]
    fn letters_are_counted() {
        assert_eq!(distance("train", "train", 2), Some(0));
        assert_eq!(distance("trian", "train", 2), Some(2));
        assert_eq!(distance("trai", "train", 2), Some(1));
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("kitten", "sitting", 2), None);
    }

    #[test]
    fn what_is_near_is_suggested_and_else_what_there_is() {
        let names = Names {
            kind: "gang",
            known: Vec::from(["vision/train", "vision/tune", "speech/a", "speech/b"]),
        };
        let cases = [
            (
                "vision/trian",
                "there is no gang vision/trian; did you mean vision/train?",
            ),
            (
                "speech/train",
                "there is no gang speech/train; did you mean vision/train?",
            ),
            (
                "speech/whisper",
                "there is no gang speech/whisper; the namespace has speech/a, speech/b",
            ),
            (
                "robots/whisper",
                "there is no gang in the namespace robots; there are some in speech, vision",
            ),
        ];
        for (name, sentence) in cases {
            assert_eq!(names.missing(name), sentence);
        }
        let none = Names {
            kind: "pod",
            known: Vec::new(),
        };
        assert_eq!(
            none.missing("a/b"),
            "there is no pod a/b; there are none at all"
        );
    }
}
