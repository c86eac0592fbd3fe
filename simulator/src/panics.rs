//! Panics of the code that is run, as findings.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does some work. The trap: after a panic, what the work was changing must not be used any more.
///
/// # Errors
/// The message of its panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Box<str>> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("no message").into()
    })
}
