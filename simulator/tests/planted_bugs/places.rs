//! Finds the place of a bug in the sources by its marker, and puts the bug there. The first lines
//! of `bugs.rs` say what a marker looks like and what it covers.

use super::bugs::{Bug, Catcher};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A line with a marker begins with this; the marker's name follows.
const MARKER: &str = "// tests plant bugs here: ";
/// The folders in which code may be marked, seen from the workspace.
const FOLDERS: [&str; 2] = ["policies/src", "simulator/src"];
/// A line that begins with one of these goes on with the statement above it.
const GOES_ON: [&str; 7] = [")", "]", "}", "{", ".", "| ", "else"];

/// The Rust files in which code may be marked.
pub(crate) struct Sources(Vec<Source>);

/// A file.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Sources {
    /// Reads the files of a workspace.
    pub(crate) fn read(workspace: &Path) -> Self {
        let mut found = Vec::new();
        let mut folders: Vec<PathBuf> = FOLDERS.map(|folder| workspace.join(folder)).into();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let text = fs::read_to_string(&path).expect("a source");
                    found.push(Source { path, text });
                }
            }
        }
        Self(found)
    }

    /// The names of all markers, sorted; one that occurs twice is there twice.
    pub(crate) fn markers(&self) -> Vec<&str> {
        let texts = self.0.iter().flat_map(|source| source.text.lines());
        let mut markers: Vec<&str> = texts.filter_map(marker_of).collect();
        markers.sort_unstable();
        markers
    }

    /// The file in which a bug belongs, with the bug in it.
    ///
    /// # Errors
    /// If its marker is not there exactly once, has no code below it, or that code is what would be
    /// planted.
    pub(crate) fn with(&self, bug: &Bug) -> Result<Source, String> {
        let refused = |message: String| format!("{}: {message}", bug.name);
        let mut marked = self.0.iter().flat_map(|source| {
            let lines = source.text.lines().enumerate();
            let marked = lines.filter(|(_, line)| marker_of(line) == Some(bug.marker));
            marked.map(move |(number, _)| (source, number))
        });
        let (Some((source, number)), None) = (marked.next(), marked.next()) else {
            let message = format!("{MARKER}{} is not there once", bug.marker);
            return Err(refused(message));
        };
        let lines: Vec<&str> = source.text.lines().collect();
        let place = place(&lines, number + 1, bug.planted.ends_with('{'));
        let place = place.map_err(refused)?;
        if bare(&lines[place.clone()].concat()) == bare(bug.planted) {
            return Err(refused("the code is what would be planted".to_owned()));
        }
        let (above, below) = (&lines[..place.start], &lines[place.end..]);
        let text = [above, &[bug.planted], below].concat().join("\n");
        Ok(Source {
            path: source.path.clone(),
            text: text + "\n",
        })
    }
}

/// The name of the marker that a line is.
fn marker_of(line: &str) -> Option<&str> {
    line.trim().strip_prefix(MARKER)
}

/// The lines that a marker above `first` covers; of what has a block only the `head` if wanted.
///
/// # Errors
/// If there is no code at `first`, or no block after the head.
fn place(lines: &[&str], first: usize, head: bool) -> Result<Range<usize>, String> {
    let code = lines.get(first).map_or("", |line| line.trim());
    if code.is_empty() || code.starts_with("//") || code.starts_with('#') {
        return Err(format!("the line below the marker is no code: {code:?}"));
    }
    let indent = indent_of(lines[first]);
    let goes_on = |line: &str| {
        let code = line.trim();
        let continued = GOES_ON.iter().any(|begin| code.starts_with(begin));
        let deeper = indent_of(line) > indent;
        code.is_empty() || deeper || indent_of(line) == indent && continued
    };
    let below = lines[first + 1..].iter();
    let end = first + 1 + below.take_while(|line| goes_on(line)).count();
    if !head {
        return Ok(first..end);
    }
    let opens = lines[first..end]
        .iter()
        .position(|line| line.ends_with('{'));
    let opens = opens.ok_or("only the head of a block would be planted, and there is no block")?;
    Ok(first..first + opens + 1)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Code without blanks, which do not make a bug.
fn bare(code: &str) -> String {
    code.split_whitespace().collect()
}

/// A bug at the marker `here`, in files of these texts.
fn planted(texts: &[&str], planted: &'static str) -> Result<Source, String> {
    let numbered = texts.iter().enumerate();
    let sources = numbered.map(|(number, text)| Source {
        path: number.to_string().into(),
        text: (*text).to_owned(),
    });
    let (name, marker) = ("a bug", "here");
    Sources(sources.collect()).with(&Bug {
        name,
        marker,
        planted,
        catcher: Catcher::Seeds,
        first: 0,
    })
}

/// The marker `here` covers what is left out of `left`.
fn check(code: &str, put: &'static str, left: &str) {
    let source = planted(&["mod other;\n", code], put).expect(code);
    assert_eq!(source.path, Path::new("1"));
    assert_eq!(bare(&source.text), bare(left), "{code}");
    // Elsewhere, and in a block more.
    let deeper: String = code.lines().map(|line| format!("    {line}\n")).collect();
    let source = planted(&[&format!("{{\n{deeper}}}\n")], put).expect(code);
    assert_eq!(bare(&source.text), bare(&format!("{{{left}}}")), "{deeper}");
}

#[test]
fn a_marker_covers_what_stands_below_it_however_rustfmt_breaks_it() {
    let here = "// tests plant bugs here: here";
    for code in [
        "a(b);",
        "a(\n    b,\n);",
        "a\n    .b()\n    .c();",
        "match a {\n    b => c,\n}\n.d();",
        "let a = if b {\n    c\n} else {\n\n    d\n};",
        "let Some(a) = b\nelse {\n    return;\n};",
        "if a\n    && b\n{\n    c();\n}",
        "A { a } => b,",
        "A { a }\n| B { a } => {\n    b\n}",
        "a: b\n    .c(),",
    ] {
        let text = format!("before {{\n}}\n{here}\n{code}\nafter();\n");
        check(&text, "bug();", &format!("before {{}}{here}bug();after();"));
        let text = format!("before();\n{{\n    {here}\n    a(b)\n}}\n");
        check(&text, "", &format!("before();{{{here}}}"));
    }
}

#[test]
fn planted_code_that_opens_a_block_leaves_the_rest_of_the_block() {
    let here = "// tests plant bugs here: here";
    for head in ["if a {", "if a\n    && b\n{", "let c = if a {"] {
        let text = format!("{here}\n{head}\n    b();\n}} else {{\n    c();\n}}\n");
        check(&text, "if d {", &format!("{here}if d {{b();}}else{{c();}}"));
    }
}

#[test]
fn a_place_that_is_not_there_once_or_is_so_already_is_refused() {
    let refused = |texts: &[&str], put, why: &str| {
        let message = planted(texts, put).expect_err(why);
        assert!(message.contains(why), "{message}");
    };
    let code = "// tests plant bugs here: here\na(b);\n";
    refused(&["a(b);\n"], "c();", "is not there once");
    refused(&[code, code], "c();", "is not there once");
    refused(&[code], "a(\n    b);", "is what would be planted");
    refused(&[code], "if c {", "there is no block");
    refused(
        &["// tests plant bugs here: here\n// Why.\na();\n"],
        "",
        "no code",
    );
    refused(&["// tests plant bugs here: here\n"], "", "no code");
}
