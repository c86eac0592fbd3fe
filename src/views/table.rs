//! Tables for people: aligned, in colours only on a terminal, the same bytes in every pipe.

mod figures;

pub(crate) use figures::{age, readable};

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, Width};
use std::io::IsTerminal;

/// How wide a table is at least, and where there is no terminal to ask; in columns.
const WIDTH: u16 = 110;

/// The width below which the last column never falls, even if the table is then too wide.
const LAST_COLUMN: Width = Width::Fixed(40);

/// What a cell says of the thing that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing special.
    Plain,
    /// The thing is well.
    Good,
    /// The thing waits.
    Waiting,
    /// The thing is wrong.
    Bad,
}

/// A cell: its text and its tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    text: String,
    tone: Tone,
}

impl Entry {
    /// A cell with a tone.
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: printable(&text.into()),
            tone,
        }
    }
}

/// Text in which control characters are escaped: names in files were written by others, and a
/// control character could move the cursor of a terminal or set the title of its window.
#[must_use]
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && character != '\n' {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

impl<T: Into<String>> From<T> for Entry {
    fn from(text: T) -> Self {
        Self::new(text, Tone::Plain)
    }
}

/// Where a table is shown: colours and the width depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    /// A file or a pipe.
    Plain,
    /// A terminal; in colours unless the environment variable `NO_COLOR` is set.
    Terminal {
        /// Whether colours are wanted.
        colours: bool,
    },
}

impl Screen {
    /// The screen that standard output is.
    #[must_use]
    pub(crate) fn of_stdout() -> Self {
        if std::io::stdout().is_terminal() {
            let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            Self::Terminal { colours }
        } else {
            Self::Plain
        }
    }
}

/// Draws rows under their headings, without columns in which all rows are empty. Only the last
/// column is wrapped. Ends with a line break.
#[must_use]
pub(crate) fn draw(headings: &[&str], rows: Vec<Vec<Entry>>, screen: Screen) -> String {
    let used = |index: usize| {
        rows.iter()
            .any(|row| row.get(index).is_some_and(|entry| !entry.text.is_empty()))
    };
    let used: Vec<usize> = (0..headings.len()).filter(|index| used(*index)).collect();
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    if screen == Screen::Plain {
        table.force_no_tty();
    }
    table.set_width(table.width().unwrap_or(WIDTH).max(WIDTH));
    let colours = screen == Screen::Terminal { colours: true };
    table.set_header(used.iter().map(|index| {
        let cell = Cell::new(headings[*index]);
        if colours {
            cell.add_attribute(Attribute::Bold)
        } else {
            cell
        }
    }));
    for row in rows {
        let entries = row.into_iter().enumerate();
        let shown = entries.filter(|(index, _)| used.contains(index));
        table.add_row(shown.map(|(_, entry)| cell(entry, colours)));
    }
    let last = used.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_constraint(if index < last {
            ColumnConstraint::ContentWidth
        } else {
            ColumnConstraint::LowerBoundary(LAST_COLUMN)
        });
    }
    table.trim_fmt() + "\n"
}

fn cell(entry: Entry, colours: bool) -> Cell {
    let cell = Cell::new(entry.text);
    let colour = match entry.tone {
        Tone::Plain => None,
        Tone::Good => Some(Color::Green),
        Tone::Waiting => Some(Color::Yellow),
        Tone::Bad => Some(Color::Red),
    };
    match colour.filter(|_| colours) {
        Some(colour) => cell.fg(colour),
        None => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_column_is_not_drawn() {
        let rows = vec![vec!["a".into(), "".into(), "b".into()]];
        let drawn = draw(&["ONE", "TWO", "THREE"], rows, Screen::Plain);
        assert_eq!(drawn, "ONE  THREE\na    b\n");
    }

    #[test]
    fn a_terminal_shows_control_characters_and_does_not_obey_them() {
        let rows = vec![vec!["a\u{1b}[31m\u{7}".into(), "é\tx\ny".into()]];
        let drawn = draw(&["ONE", "TWO"], rows, Screen::Plain);
        assert!(drawn.contains(r"a\u{1b}[31m\u{7}"), "{drawn}");
        assert!(drawn.contains(r"é\tx"), "{drawn}");
        assert!(drawn.chars().all(|c| c == '\n' || !c.is_control()));
    }

    #[test]
    fn columns_are_aligned_and_only_the_last_one_is_wrapped() {
        let words = "word ".repeat(30);
        let row = |name: &str, text: &str| vec![name.into(), Entry::new(text, Tone::Bad)];
        let rows = vec![row("a", "short"), row("a long name", words.trim())];
        let drawn = draw(&["NAME", "TEXT"], rows, Screen::Plain);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[..2], ["NAME         TEXT", "a            short"]);
        assert_eq!(lines.len(), 4, "{drawn}");
        assert!(lines[3].starts_with("             word word"), "{drawn}");
        assert!(lines.iter().all(|line| line.len() <= usize::from(WIDTH)));
        assert!(!drawn.contains('\u{1b}'));
    }
}
