//! The page around the data of a report.
//!
//! The page loads nothing, which its own content security policy enforces. Text gets into the page
//! as text only, because names in traces come from other people. The page is written by hand: a
//! library for plots is several times as large as the page with its data, or draws pictures that
//! cannot be read with a pointer or the keyboard.

use super::Report;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPTS: [&str; 3] = [
    include_str!("page/scales.js"),
    include_str!("page/plot.js"),
    include_str!("page/page.js"),
];

/// The page with its data, as one file that loads nothing else.
pub(super) fn page(report: &Report) -> String {
    let mut page = String::new();
    let mut rest = PAGE;
    // Text that was inserted is never searched for marks: a queue may be named like a mark of the
    // template.
    while let Some((before, mark, after)) = next_mark(rest) {
        page.push_str(before);
        match mark {
            "title" => page.push_str(&text(&report.title)),
            "subtitle" => page.push_str(&text(&report.subtitle)),
            "style" => page.push_str(STYLE),
            "data" => page.push_str(&script_data(&report.to_json())),
            "script" => page.push_str(&SCRIPTS.concat()),
            _ => {}
        }
        rest = after;
    }
    page.push_str(rest);
    page
}

/// The text before the next `{{mark}}`, the mark, and the text after it; `None`: there is no mark.
fn next_mark(template: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = template.split_once("{{")?;
    let (mark, after) = rest.split_once("}}")?;
    Some((before, mark, after))
}

/// A text, escaped as the content of an element.
fn text(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('<', "&lt;")
}

/// JSON as the content of a `script` element: nothing in it ends the element or begins a comment.
fn script_data(json: &str) -> String {
    json.replace('<', "\\u003c")
}
