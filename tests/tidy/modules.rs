//! The modules of a package, and which of them name what lives in others.
//!
//! Names are followed as far as the sources alone say: through imports and re-exports of any
//! visibility, also by `*`, in code, in macros and in attributes. What a macro would define is not
//! known here. Code for tests does not count.

use proc_macro2::{Ident, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta, UseTree};

/// A module or a name by its path below the crate; empty: the crate itself.
pub(crate) type Path = Vec<String>;

/// A place where production code of one module names what lives in another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mention {
    pub(crate) by: Path,
    /// The module that the name lives in.
    pub(crate) of: Path,
    /// `FILE:LINE`.
    pub(crate) place: String,
}

/// The production modules of a package.
#[derive(Default)]
pub(crate) struct Package {
    modules: BTreeMap<Path, Module>,
    written: Vec<Written>,
}

/// The names of one module.
#[derive(Default)]
struct Module {
    items: BTreeSet<String>,
    /// Imported names, with the paths that they stand for.
    imports: BTreeMap<String, Path>,
    /// Paths of which everything is imported.
    globs: Vec<Path>,
}

/// A path as it is written somewhere.
struct Written {
    by: Path,
    path: Path,
    place: String,
}

impl Package {
    /// Reads a package from its `lib.rs` on. `files`: paths and texts; `folder`: of the package's
    /// sources.
    pub(crate) fn read(files: &[(String, String)], folder: &str) -> Self {
        let mut package = Self::default();
        let mut open = vec![Path::new()];
        while let Some(module) = open.pop() {
            let file = match module.is_empty() {
                true => format!("{folder}/lib.rs"),
                false => format!("{folder}/{}.rs", module.join("/")),
            };
            let text = files.iter().find(|(path, _)| *path == file);
            let (_, text) = text.unwrap_or_else(|| panic!("there is no {file}"));
            let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
            package.modules.entry(module.clone()).or_default();
            let mut reader = Reader {
                package: &mut package,
                module,
                file: &file,
                in_files: Vec::new(),
            };
            reader.visit_file(&parsed);
            open.extend(reader.in_files);
        }
        package
    }

    /// The modules, the crate among them.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &Path> {
        self.modules.keys()
    }

    /// Where modules name what lives in others, or in themselves.
    pub(crate) fn mentions(&self) -> BTreeSet<Mention> {
        let found = self.written.iter().filter_map(|written| {
            let of = self.home(&written.by, &written.path, 0)?;
            Some(Mention {
                by: written.by.clone(),
                of,
                place: written.place.clone(),
            })
        });
        found.collect()
    }

    /// The module that the last name of a path lives in; `None`: the path leads out of the package,
    /// or begins with a name that is nowhere. `steps`: how many imports were followed.
    fn home(&self, module: &[String], path: &[String], steps: usize) -> Option<Path> {
        let mut module = module.to_vec();
        let mut rest = path;
        while let [first, others @ ..] = rest {
            match first.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()),
                _ => break,
            }
            rest = others;
        }
        let is_rooted = rest.len() < path.len();
        let found = self.below(&module, rest, steps);
        found.or_else(|| is_rooted.then_some(module))
    }

    /// The module that the last name lives in, looked up from a module down.
    fn below(&self, module: &[String], path: &[String], steps: usize) -> Option<Path> {
        const STEPS_MAX: usize = 16;
        let Some((name, rest)) = path.split_first() else {
            return Some(module.to_vec());
        };
        let child = [module, std::slice::from_ref(name)].concat();
        if self.modules.contains_key(&child) {
            let found = self.below(&child, rest, steps);
            return found.or(Some(child));
        }
        let names = self.modules.get(module)?;
        let imported = || {
            let import = names.imports.get(name)?;
            let is_foreign = import.first() == Some(name);
            let path = [import, rest].concat();
            (!is_foreign && steps < STEPS_MAX).then(|| self.home(module, &path, steps + 1))?
        };
        let here = || names.items.contains(name).then(|| module.to_vec());
        // A function may have the name of an imported module.
        let found = match rest {
            [] => here().or_else(imported),
            _ => imported().or_else(here),
        };
        found.or_else(|| {
            let mut globs = names.globs.iter().filter(|_| steps < STEPS_MAX);
            globs.find_map(|glob| {
                let of = self.home(module, glob, steps + 1)?;
                (of != module).then(|| self.below(&of, path, steps + 1))?
            })
        })
    }
}

/// Reads one file.
struct Reader<'a> {
    package: &'a mut Package,
    module: Path,
    file: &'a str,
    /// The modules that it declares and that have files of their own.
    in_files: Vec<Path>,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        self.package.modules.entry(self.module.clone()).or_default()
    }

    fn child(&self, name: &str) -> Path {
        let mut child = self.module.clone();
        child.push(name.to_owned());
        child
    }

    fn write(&mut self, path: Path, line: usize) {
        // A variable may have the name of anything, so one name alone must look like a type.
        let looks_like_type = |name: &String| name.starts_with(char::is_uppercase);
        if path.len() > 1 || path.first().is_some_and(looks_like_type) {
            self.package.written.push(Written {
                by: self.module.clone(),
                path,
                place: format!("{}:{line}", self.file),
            });
        }
    }

    fn import(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &Ident| [before, &[name.to_string()]].concat();
        let (name, alias, path) = match tree {
            UseTree::Path(path) => return self.import(&with(&path.ident), &path.tree),
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.import(before, tree));
            }
            UseTree::Glob(glob) => {
                self.module().globs.push(before.to_vec());
                let line = glob.star_token.spans[0].start().line;
                return self.write(before.to_vec(), line);
            }
            UseTree::Name(name) => (&name.ident, &name.ident, with(&name.ident)),
            UseTree::Rename(rename) => (&rename.ident, &rename.rename, with(&rename.ident)),
        };
        let is_self = name == "self";
        let path = if is_self { before.to_vec() } else { path };
        let alias = match is_self && alias == name {
            true => before.last().cloned().unwrap_or_default(),
            false => alias.to_string(),
        };
        self.module().imports.insert(alias, path.clone());
        self.write(path, name.span().start().line);
    }

    /// Reads the paths in tokens that nobody has parsed.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                }
                TokenTree::Ident(ident) if colons == 2 => {
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.write(std::mem::take(&mut path), line);
                    colons = 0;
                    match other {
                        TokenTree::Ident(ident) => {
                            line = ident.span().start().line;
                            path.push(ident.to_string());
                        }
                        TokenTree::Group(group) => self.scan(group.stream()),
                        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                    }
                }
            }
        }
        self.write(path, line);
    }

    /// Reads the paths that an attribute has as text: `schema_with = "schema::amount"`.
    fn scan_texts(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.scan_texts(group.stream()),
                TokenTree::Literal(literal) => {
                    let line = literal.span().start().line;
                    let text = syn::parse_str::<syn::LitStr>(&literal.to_string());
                    let path = text.and_then(|text| text.parse_with(syn::Path::parse_mod_style));
                    if let Ok(path) = path {
                        self.write(names(&path), line);
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        if let Some(name) = name_of(item) {
            self.module().items.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let child = self.child(&item.ident.to_string());
        let Some((_, items)) = &item.content else {
            self.in_files.push(child);
            return;
        };
        self.package.modules.entry(child.clone()).or_default();
        let outer = std::mem::replace(&mut self.module, child);
        items.iter().for_each(|item| self.visit_item(item));
        self.module = outer;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&[], &item.tree);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !is_for_tests(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (None, Some(first)) = (&path.leading_colon, path.segments.first()) {
            self.write(names(path), first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.scan(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) => {
                self.scan(list.tokens.clone());
                self.scan_texts(list.tokens.clone());
            }
            // Of these there is only documentation.
            Meta::Path(_) | Meta::NameValue(_) => {}
        }
    }
}

fn names(path: &syn::Path) -> Path {
    let segments = path.segments.iter();
    segments.map(|segment| segment.ident.to_string()).collect()
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let test = attribute.parse_args::<Ident>();
        attribute.path().is_ident("cfg") && test.is_ok_and(|word| word == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
