//! Finds the place of a bug in the sources by its marker, and puts the bug there. The first lines
//! of `bugs.rs` say what a marker looks like and what it covers.

use super::bugs::{Bug, Catcher};
use std::collections::BTreeMap;
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

    /// The files in which bugs belong, each with all its bugs: a function with a marker asks first
    /// whether one of its bugs is on, and is then what it would be with that bug. Bugs are numbered
    /// from 1 on in their order here.
    ///
    /// # Errors
    /// If a marker is not there exactly once, has no code below it or no function around it, or
    /// that code is what would be planted.
    pub(crate) fn with(&self, bugs: &[Bug]) -> Result<Vec<Source>, String> {
        let mut switches: BTreeMap<(usize, usize), (Body, Vec<String>)> = BTreeMap::new();
        for (bug, number) in bugs.iter().zip(1..) {
            let refused = |message: String| format!("{}: {message}", bug.name);
            let (file, place) = self.place_of(bug).map_err(refused)?;
            let source = &self.0[file];
            let lines: Vec<&str> = source.text.lines().collect();
            let body = body_around(&lines, place.start).map_err(refused)?;
            let above = &lines[body.first..place.start];
            let below = &lines[place.end..body.end];
            let bugged = [above, &[bug.planted], below].concat().join("\n");
            let switch = switch(&source.path);
            let text = format!("if {switch}::is({number}) {{\nreturn {{\n{bugged}\n}};\n}}");
            let (_, texts) = switches
                .entry((file, body.first))
                .or_insert_with(|| (body, Vec::new()));
            texts.push(text);
        }
        let mut files: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        // From the last function of a file to the first, so that the lines above stay where they
        // are.
        for ((file, _), (body, texts)) in switches.into_iter().rev() {
            let lines = files.entry(file).or_insert_with(|| {
                let lines = self.0[file].text.lines();
                lines.map(str::to_owned).collect()
            });
            lines.splice(body.first..body.first, texts);
        }
        let files = files.into_iter().map(|(file, lines)| Source {
            path: self.0[file].path.clone(),
            text: lines.join("\n") + "\n",
        });
        Ok(files.collect())
    }

    /// The file of a bug, by its place in the list, and the lines that the bug replaces.
    fn place_of(&self, bug: &Bug) -> Result<(usize, Range<usize>), String> {
        let mut marked = self.0.iter().enumerate().flat_map(|(file, source)| {
            let lines = source.text.lines().enumerate();
            let marked = lines.filter(|(_, line)| marker_of(line) == Some(bug.marker));
            marked.map(move |(number, _)| (file, number))
        });
        let (Some((file, number)), None) = (marked.next(), marked.next()) else {
            return Err(format!("{MARKER}{} is not there once", bug.marker));
        };
        let lines: Vec<&str> = self.0[file].text.lines().collect();
        let place = place(&lines, number + 1, bug.planted.ends_with('{'))?;
        if bare(&lines[place.clone()].concat()) == bare(bug.planted) {
            return Err("the code is what would be planted".to_owned());
        }
        Ok((file, place))
    }
}

/// The module that tells a function of this file which bug is on.
fn switch(file: &Path) -> &'static str {
    if file
        .components()
        .any(|folder| folder.as_os_str() == "policies")
    {
        "crate::planted"
    } else {
        "gpu_batch_policies::planted"
    }
}

/// The lines between the braces of a function.
#[derive(Debug, Clone, Copy)]
struct Body {
    first: usize,
    end: usize,
}

/// The body of the function around a line, as rustfmt lays it out.
///
/// # Errors
/// If no function is around the line, or one that is worked out when it is compiled: it cannot ask
/// which bug is on.
fn body_around(lines: &[&str], line: usize) -> Result<Body, String> {
    let heads = (0..line).rev().filter(|head| is_function(lines[*head]));
    let mut around = heads.filter_map(|head| {
        let opens = (head..line).find(|opens| lines[*opens].ends_with('{'))?;
        let is_end = |end: &usize| {
            indent_of(lines[*end]) == indent_of(lines[head]) && lines[*end].trim() == "}"
        };
        let end = (opens..lines.len()).find(is_end)?;
        let first = opens + 1;
        (end > line).then_some((head, Body { first, end }))
    });
    match around.next() {
        None => Err("there is no function around the marker".to_owned()),
        Some((head, _)) if lines[head].contains("const fn ") => {
            Err("the function around the marker is const".to_owned())
        }
        Some((_, body)) => Ok(body),
    }
}

/// Whether a function begins with this line.
fn is_function(line: &str) -> bool {
    let words = line.split_whitespace();
    let mut words = words.skip_while(|word| word.starts_with("pub") || *word == "const");
    words.next() == Some("fn")
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

/// The file with the marker `here`, of files with these texts, after a bug is planted there: its
/// number, and its text with the bug.
fn planted(texts: &[&str], planted: &'static str) -> Result<(usize, String), String> {
    let sources = texts.iter().map(|text| Source {
        path: PathBuf::new(),
        text: (*text).to_owned(),
    });
    let sources = Sources(sources.collect());
    let (file, place) = sources.place_of(&bug_here(planted))?;
    let lines: Vec<&str> = texts[file].lines().collect();
    let (above, below) = (&lines[..place.start], &lines[place.end..]);
    Ok((file, [above, &[planted], below].concat().join("\n")))
}

/// A bug at the marker `here`.
fn bug_here(planted: &'static str) -> Bug {
    Bug {
        name: "a bug",
        marker: "here",
        planted,
        catcher: Catcher::Seeds,
        first: 0,
    }
}

/// The marker `here` covers what is left out of `left`.
fn check(code: &str, put: &'static str, left: &str) {
    let (file, text) = planted(&["mod other;\n", code], put).expect(code);
    assert_eq!(file, 1);
    assert_eq!(bare(&text), bare(left), "{code}");
    // Elsewhere, and in a block more.
    let deeper: String = code.lines().map(|line| format!("    {line}\n")).collect();
    let (_, text) = planted(&[&format!("{{\n{deeper}}}\n")], put).expect(code);
    assert_eq!(bare(&text), bare(&format!("{{{left}}}")), "{deeper}");
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

#[test]
fn a_function_asks_first_which_of_its_bugs_is_on() {
    let text = "fn other() {
    a();
}

impl A {
    pub(crate) const fn none(
        b: B,
    ) -> C {
        fn inner() {
            c();
        }
        {
            // tests plant bugs here: here
            d();
        }
    }
}
";
    let sources = |text: &str| {
        Sources(vec![Source {
            path: "simulator/src/a.rs".into(),
            text: text.to_owned(),
        }])
    };
    let const_function = sources(text).with(&[bug_here("e();")]);
    assert!(const_function.is_err_and(|message| message.ends_with("is const")));
    let text = text.replace("const ", "");
    let planted = sources(&text).with(&[bug_here("e();"), bug_here("")]);
    let planted = planted.expect("places for two bugs");
    let healthy = "fn inner() { c(); } { // tests plant bugs here: here d(); }";
    let bugged = |number: u32, code| {
        let body = healthy.replace("d();", code);
        format!("if gpu_batch_policies::planted::is({number}) {{ return {{ {body} }}; }}")
    };
    let bodies = format!("{} {} {healthy}", bugged(1, "e();"), bugged(2, ""));
    assert_eq!(
        bare(&planted[0].text),
        bare(&text.replace(
            &text[text.find("fn inner").expect("it")..text.rfind("    }\n}").expect("it")],
            &bodies
        ))
    );
    let loose = sources("// tests plant bugs here: here\na();\n").with(&[bug_here("")]);
    assert!(loose.is_err_and(|message| message.contains("no function")));
}
