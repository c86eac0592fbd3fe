//! A progress bar for long work: what is done, how much a second, how long it still takes.
//!
//! The work counts and knows neither the bar nor a clock; a thread looks at the counter and draws
//! the bar, on standard error and only if that is a terminal. In a pipe nothing is printed.

use indicatif::{HumanFloatCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

const REDRAW: Duration = Duration::from_millis(100);

const TEMPLATE: &str = "{prefix} {wide_bar} {human_pos}/{human_len} {msg} · {speed}/s · {eta} left";

/// A bar that is shown as long as this value lives.
pub(super) struct Progress {
    counter: Arc<AtomicU64>,
    /// The thread that draws ends when this is dropped; `None` where nothing is drawn.
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins: `label` says what is done, `unit` what is counted, and at `total` it is finished.
    #[must_use]
    pub(super) fn start(label: &str, unit: &str, total: u64) -> Self {
        Self::on(ProgressDrawTarget::stderr(), label, unit, total)
    }

    fn on(target: ProgressDrawTarget, label: &str, unit: &str, total: u64) -> Self {
        let counter = Arc::new(AtomicU64::new(0));
        if target.is_hidden() {
            return Self {
                counter,
                drawing: None,
            };
        }
        let style = ProgressStyle::with_template(TEMPLATE)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key(
                "speed",
                |state: &ProgressState, out: &mut dyn fmt::Write| {
                    // An error of drawing must not end the work.
                    let _ = write!(out, "{:.0}", HumanFloatCount(state.per_sec()));
                },
            );
        let bar = ProgressBar::with_draw_target(Some(total), target)
            .with_style(style)
            .with_prefix(label.to_owned())
            .with_message(unit.to_owned());
        let (sender, ended) = mpsc::channel();
        let counted = Arc::clone(&counter);
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
                bar.set_position(counted.load(Ordering::Relaxed));
            }
            bar.finish_and_clear();
        });
        Self {
            counter,
            drawing: Some((sender, thread)),
        }
    }

    /// What the work adds to, from any thread.
    #[must_use]
    pub(super) fn counter(&self) -> &AtomicU64 {
        &self.counter
    }
}

impl Drop for Progress {
    /// Takes the bar away, so that what is printed next begins on a line of its own.
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.drawing.take() {
            drop(sender);
            // The thread only draws: if it panicked, the work is none the worse.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Mutex, PoisonError};

    /// A terminal that keeps everything that was written to it.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn add(&self, text: &str) -> io::Result<()> {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *all += text;
            Ok(())
        }

        fn text(&self) -> String {
            self.0.lock().unwrap().clone()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.add(line)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.add(text)
        }

        fn clear_line(&self) -> io::Result<()> {
            self.add("[cleared]")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_shows_what_is_done_and_is_clean_at_the_end() {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let progress = Progress::on(target, "philly", "events", 4_000);
        progress.counter().store(1_234, Ordering::Relaxed);
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !screen.text().contains("1,234/4,000 events") {
            assert!(std::time::Instant::now() < deadline, "{:?}", screen.text());
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(progress);
        let text = screen.text();
        assert!(text.starts_with("philly "), "{text}");
        assert!(text.contains("/s · ") && text.contains(" left"), "{text}");
        assert!(text.trim_end().ends_with("[cleared]"), "{text}");
    }

    #[test]
    fn nothing_is_drawn_where_there_is_no_terminal() {
        let progress = Progress::on(ProgressDrawTarget::hidden(), "philly", "events", 10);
        progress.counter().fetch_add(3, Ordering::Relaxed);
        assert!(progress.drawing.is_none());
    }
}
