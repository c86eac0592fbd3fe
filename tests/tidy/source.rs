//! Rust files as the rules look at them: text, code without comments and literals, tests apart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One Rust file.
pub(crate) struct Source {
    /// Relative to the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text with comments and literals taken out; the lines are the same.
    pub(crate) code: String,
    /// Whether the whole file is test code.
    pub(crate) is_test: bool,
}

impl Source {
    pub(crate) fn new(path: &str, text: String) -> Self {
        let code = code_only(&text);
        let is_test = path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs");
        Self {
            path: path.to_owned(),
            text,
            code,
            is_test,
        }
    }

    /// Every Rust file of the repository.
    pub(crate) fn all() -> Vec<Self> {
        let mut sources: Vec<Self> = files(&["rs"])
            .into_iter()
            .map(|(path, text)| Self::new(&path, text))
            .collect();
        let only_in_tests: BTreeSet<String> = sources.iter().flat_map(Self::test_modules).collect();
        for source in &mut sources {
            source.is_test |= only_in_tests.contains(&source.path);
        }
        sources
    }

    /// Lines of code that users run, numbered from 1; what is only for tests is empty.
    pub(crate) fn production(&self) -> Vec<(usize, &str)> {
        let mut lines = Vec::new();
        let mut test_item: Option<usize> = None;
        for (index, line) in self.code.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let attribute = line.trim_start().starts_with("#[cfg(test)]");
            if attribute {
                test_item = Some(indent);
            }
            let hidden = self.is_test || test_item.is_some();
            lines.push((index + 1, if hidden { "" } else { line }));
            let ends = line.ends_with(';') || line.ends_with('}');
            if !attribute && ends && test_item == Some(indent) {
                test_item = None;
            }
        }
        lines
    }

    /// The files of the modules that this one declares for tests only.
    fn test_modules(&self) -> Vec<String> {
        let stem = self.path.strip_suffix(".rs").unwrap();
        let folder = match stem.rsplit_once('/') {
            Some((folder, "lib" | "main")) => folder,
            _ => stem,
        };
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
        declared
            .filter_map(|pair| pair[1].strip_suffix(';')?.split("mod ").nth(1))
            .map(|module| format!("{folder}/{module}.rs"))
            .collect()
    }

    /// A violation, in the form in which editors jump to it.
    pub(crate) fn at(&self, line: usize, message: &str) -> String {
        format!("{}:{line}: {message}", self.path)
    }
}

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One file of the repository.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files with these endings, sorted; neither what is built nor what is hidden, except `.ci`.
pub(crate) fn files(endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = folder.join(&name);
            let hidden = name.starts_with('.') && name != ".ci";
            if hidden || ["target", "proptest-regressions"].contains(&&*name) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if endings.contains(&name.rsplit('.').next().unwrap()) {
                let path = path.to_str().unwrap().replace('\\', "/");
                let text = read(&path);
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// Whether `line` has `word` in it, and not as a part of a longer name.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |char: char| char.is_alphanumeric() || char == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

/// Takes comments and the insides of literals out, and keeps the line breaks.
fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match literal_or_comment(&chars, at) {
            Some(end) => {
                code.extend(chars[at..end].iter().filter(|char| **char == '\n'));
                end
            }
            None => {
                code.push(chars[at]);
                at + 1
            }
        };
        at = end;
    }
    code
}

/// Where the comment or literal that begins here ends.
fn literal_or_comment(chars: &[char], at: usize) -> Option<usize> {
    let rest = &chars[at..];
    let after = |count: usize| rest.get(count).copied();
    let find = |from: usize, closing: &[char]| {
        let windows = rest.get(from..).unwrap_or_default().windows(closing.len());
        let found = windows.into_iter().position(|window| window == closing);
        found.map_or(chars.len(), |found| at + from + found + closing.len())
    };
    match rest[0] {
        '/' if after(1) == Some('/') => Some(find(2, &['\n']).saturating_sub(1).max(at + 2)),
        '/' if after(1) == Some('*') => Some(find(2, &['*', '/'])),
        '"' => Some(at + quoted(rest, '"')),
        '\'' if after(1) == Some('\\') || after(2) == Some('\'') => Some(at + quoted(rest, '\'')),
        'r' if !at
            .checked_sub(1)
            .is_some_and(|before| in_name(chars, before)) =>
        {
            let hashes = rest[1..].iter().take_while(|char| **char == '#').count();
            let mut closing = vec!['"'];
            closing.extend(std::iter::repeat_n('#', hashes));
            (after(1 + hashes) == Some('"')).then(|| find(2 + hashes, &closing))
        }
        _ => None,
    }
}

/// Whether the character is part of a name and not the `b` of `br"..."`.
fn in_name(chars: &[char], at: usize) -> bool {
    chars[at] != 'b' && (chars[at].is_alphanumeric() || chars[at] == '_')
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

#[test]
fn comments_and_literals_are_no_code() {
    let text = "a // b\nc /* d\n */ e \"f \\\" g\" 'h' '\\'' 'i r#\"j \" k\"# l";
    assert_eq!(code_only(text), "a \nc \n e    'i  l");
}

#[test]
fn what_is_for_tests_only_is_not_production() {
    let text = "use a;\n#[cfg(test)]\nuse b;\nfn c() {}\n#[cfg(test)]\nmod d {\n    e;\n}\nf\n";
    let source = Source::new("src/x.rs", text.to_owned());
    let lines: Vec<&str> = source
        .production()
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    assert_eq!(lines, ["use a;", "", "", "fn c() {}", "", "", "", "", "f"]);
    assert!(Source::new("src/x/tests/y.rs", String::new()).is_test);
}

#[test]
fn modules_for_tests_only_are_known_by_their_file() {
    let check = |path: &str, expected: &str| {
        let source = Source::new(path, "#[cfg(test)]\npub(crate) mod fake;\n".to_owned());
        assert_eq!(source.test_modules(), [expected]);
    };
    check("src/lib.rs", "src/fake.rs");
    check("src/connection.rs", "src/connection/fake.rs");
}
