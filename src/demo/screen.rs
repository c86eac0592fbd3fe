//! Where the table goes: redrawn in place on a terminal, a line now and then anywhere else.

use super::table::{self, View};
use console::Term;
use std::time::{Duration, Instant};

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Standard output. The cursor is hidden while the table stands, and comes back when this is
/// dropped.
pub(super) struct Screen {
    terminal: Term,
    /// The size for which the table was drawn last, and how many lines it has.
    drawn: Option<((u16, u16), usize)>,
    last_line: Option<Instant>,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            terminal: Term::buffered_stdout(),
            drawn: None,
            last_line: None,
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.terminal.is_term()
    }

    /// Shows how things stand. That nobody reads it any more is no reason to stop.
    pub(super) fn show(&mut self, view: &View<'_>) {
        if self.is_terminal() {
            let _ = self.redraw(view);
        } else if self
            .last_line
            .is_none_or(|last| view.now.duration_since(last) >= LINE_EVERY)
        {
            self.last_line = Some(view.now);
            say!("{}", table::one_line(view));
        }
    }

    fn redraw(&mut self, view: &View<'_>) -> std::io::Result<()> {
        let size = self.terminal.size();
        let (rows, columns) = size;
        match self.drawn {
            Some((before, lines)) if before == size => self.terminal.move_cursor_up(lines)?,
            // The old lines were wrapped anew: nobody knows where they are.
            Some(_) => self.terminal.clear_screen()?,
            None => self.terminal.hide_cursor()?,
        }
        let lines = table::frame(view, columns.into(), rows.into());
        for line in &lines {
            self.terminal.clear_line()?;
            self.terminal.write_line(line)?;
        }
        self.terminal.clear_to_end_of_screen()?;
        self.terminal.flush()?;
        self.drawn = Some((size, lines.len()));
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = self.terminal.show_cursor();
            let _ = self.terminal.flush();
        }
    }
}
