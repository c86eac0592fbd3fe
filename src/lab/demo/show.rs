//! What a person sees while the demo runs, and its last word: on a terminal the table is redrawn in
//! place, anywhere else there is a line now and then.

use super::check::Check;
use super::summary::{self, Utilisation};
use super::table::{self, View};
use super::witness::Books;
use crate::handles::inbox::Reports;
use anyhow::bail;
use console::Term;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the table is drawn.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Gangs may take one and a half times the given time to end, and this on top.
const GRACE: Duration = Duration::from_secs(15);
/// How long the demo goes on after the last end, so that the messages of gangs that still wait are
/// true of the idle cluster: the scheduler writes a few of them a second.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The screen, and the numbers of the last tick.
pub(super) struct Show<'a> {
    books: &'a Books,
    screen: Screen,
    title: &'static str,
    start: Instant,
    reports: Arc<Reports>,
    utilisation: Utilisation,
    /// When the utilisation was last added up.
    looked: Instant,
    /// When the table was drawn last, and the number of bindings at that time.
    before: (Instant, u64),
}

impl<'a> Show<'a> {
    /// Begins at `start`. The caller says what time it is, because the embedded world has its own
    /// time.
    pub(super) fn new(title: &'static str, books: &'a Books, start: Instant) -> Self {
        Self {
            books,
            screen: Screen::new(),
            title,
            start,
            reports: Arc::default(),
            utilisation: Utilisation::default(),
            looked: start,
            before: (start, 0),
        }
    }

    /// Adds up what is in use, as if it had been in use since the last look.
    pub(super) fn look(&mut self, now: Instant) {
        let lasted = now.duration_since(self.looked);
        self.utilisation.add(&self.books.open(), lasted);
        self.looked = now;
    }

    /// Looks, and draws the table. Without reports the last reports stay.
    pub(super) fn tick(&mut self, reports: Option<Arc<Reports>>, now: Instant) {
        self.look(now);
        self.reports = reports.unwrap_or_else(|| Arc::clone(&self.reports));
        let witness = self.books.open();
        let (then, binds) = self.before;
        let lasted = now.duration_since(then);
        let lasted_ms = u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX);
        self.before = (now, witness.binds);
        self.screen.show(&View {
            title: self.title,
            witness: &witness,
            reports: &self.reports,
            now,
            elapsed: now.duration_since(self.start),
            binds_per_s: (witness.binds - binds) * 1_000 / lasted_ms.max(1),
        });
    }

    /// Whether the demo is over: time is up, or all gangs but the hopeless ones have ended a while
    /// ago.
    pub(super) fn is_over(&self, length: Duration, now: Instant) -> bool {
        let witness = self.books.open();
        let mut courses = witness.courses.values();
        let give_up = length + length / 2 + GRACE;
        now.duration_since(self.start) > give_up
            || courses.all(|course| {
                let hopeless = course.gang.hopeless && course.submitted.is_some();
                let ended = |ended| now.duration_since(ended) >= LAST_WORDS;
                hopeless || course.ended.is_some_and(ended)
            })
    }

    /// Takes the table away and prints the summary. `source`: where the checks had their facts
    /// from.
    ///
    /// # Errors
    /// If a check found a violation.
    pub(super) fn end(self, source: &str, checks: &[Check], now: Instant) -> anyhow::Result<()> {
        drop(self.screen);
        let witness = self.books.open();
        let time = (now.duration_since(self.start), now);
        let (reports, utilisation) = (&self.reports, &self.utilisation);
        summary::print(&witness, reports, utilisation, (source, checks), time);
        let violations: usize = checks.iter().map(|check| check.violations.len()).sum();
        match violations {
            0 => Ok(()),
            1 => bail!("1 violation was found"),
            more => bail!("{more} violations were found"),
        }
    }
}

/// Standard output. The cursor is hidden while the table is shown, and comes back when this is
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

    /// Shows the view. If nobody reads the output any more, that is no reason to stop.
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
            // The terminal has wrapped the old lines anew, so it is not known where they are.
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
