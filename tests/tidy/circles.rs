//! A module knows the module that it lives in and those below it, and of its siblings none that
//! knows it.

use crate::assert_none;
use crate::modules::{Mention, Package, Path};
use crate::source::files;
use std::collections::{BTreeMap, BTreeSet};

/// The sources of all packages, each with a number of modules that it exceeds: with fewer, not all
/// sources were found.
const PACKAGES: &[(&str, usize)] = &[
    ("src", 50),
    ("policies/src", 50),
    ("simulator/src", 50),
    ("testing/src", 4),
];

/// The rooms of the live shell: none names one that comes later.
const ROOMS: &[&str] = &[
    "handles", "kube", "views", "extender", "live", "plan", "lab", "cli",
];

/// A module, with those of its siblings that it names, each with the first place.
type Siblings = BTreeMap<String, BTreeMap<String, String>>;

/// The circles among the children of each module: those in it, and for each edge one place.
fn circles(package: &Package, sources: &str) -> Vec<String> {
    let mut families: BTreeMap<Path, Siblings> = BTreeMap::new();
    for Mention { by, of, place } in package.mentions() {
        let shared = by.iter().zip(&of).take_while(|(one, other)| one == other);
        let parent = by[..shared.count()].to_vec();
        if let (Some(one), Some(other)) = (by.get(parent.len()), of.get(parent.len())) {
            let siblings = families.entry(parent).or_default();
            let named = siblings.entry(one.clone()).or_default();
            named.entry(other.clone()).or_insert(place);
        }
    }
    let in_family = |(parent, siblings): (&Path, &Siblings)| {
        let of = [&[sources.to_owned()], &parent[..]].concat().join("/");
        let found = circles_among(siblings);
        let told = found.iter().map(|circle| told(&of, circle, siblings));
        told.collect::<Vec<_>>()
    };
    families.iter().flat_map(in_family).collect()
}

/// Sets of siblings of which each leads to each.
fn circles_among(siblings: &Siblings) -> Vec<BTreeSet<&String>> {
    let mut found: Vec<BTreeSet<&String>> = Vec::new();
    for one in siblings.keys() {
        let reached = reached(siblings, one);
        let back = |other: &&String| self::reached(siblings, other).contains(one);
        let circle: BTreeSet<&String> = reached.into_iter().filter(back).collect();
        if !circle.is_empty() && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// Everything that a module names, and what that names, and so on.
fn reached<'a>(siblings: &'a Siblings, from: &String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for named in siblings.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(named) {
                open.push(named);
            }
        }
    }
    reached
}

fn told(of: &str, circle: &BTreeSet<&String>, siblings: &Siblings) -> String {
    let names: Vec<&str> = circle.iter().map(|name| name.as_str()).collect();
    let mut text = format!("a circle in {of}: {}", names.join(", "));
    for one in circle {
        for (other, place) in &siblings[*one] {
            if circle.contains(other) {
                text += &format!("\n  {place}: {one} -> {other}");
            }
        }
    }
    text
}

/// Where a room names one that comes later, and rooms that are not in the list.
fn upward(package: &Package, rooms: &[&str]) -> Vec<String> {
    let place = |module: &Path| rooms.iter().position(|room| Some(*room) == first(module));
    let mut found: Vec<String> = package
        .modules()
        .filter(|module| !module.is_empty() && place(module).is_none())
        .map(|module| format!("{} is in no room", module.join("::")))
        .collect();
    for Mention { by, of, place: at } in package.mentions() {
        if let (Some(one), Some(other)) = (place(&by), place(&of))
            && one < other
        {
            found.push(format!(
                "{at}: {} must not know {}",
                rooms[one], rooms[other]
            ));
        }
    }
    found
}

fn first(module: &Path) -> Option<&str> {
    module.first().map(String::as_str)
}

/// A package of these modules, each with its text.
fn package(modules: &[(&str, &str)]) -> Package {
    let file = |(module, text): &(&str, &str)| (format!("src/{module}.rs"), (*text).to_owned());
    Package::read(&modules.iter().map(file).collect::<Vec<_>>(), "src")
}

#[test]
fn no_module_knows_one_that_knows_it() {
    let files = files(&["rs"]);
    for (sources, least) in PACKAGES {
        let package = Package::read(&files, sources);
        let count = package.modules().count();
        assert!(count > *least, "only {count} modules found in {sources}");
        assert_none(&circles(&package, sources));
    }
}

#[test]
fn no_room_knows_one_above_it() {
    assert_none(&upward(&Package::read(&files(&["rs"]), "src"), ROOMS));
    let package = package(&[
        ("lib", "mod kube; mod lab; mod other;"),
        ("kube", "fn a() { crate::lab::b() }"),
        ("lab", "use crate::kube;\npub fn b() { kube::a() }"),
        ("other", ""),
    ]);
    let found = upward(&package, ROOMS);
    assert_eq!(
        found,
        [
            "other is in no room",
            "src/kube.rs:1: kube must not know lab"
        ]
    );
}

#[test]
fn a_circle_is_told_with_a_place_for_each_edge() {
    let package = package(&[
        ("lib", "pub mod a;\npub mod b;\nmod c;\nmod d;"),
        ("a", "mod inner;\nuse crate::{b::{self, B}, c::C};"),
        ("a/inner", "fn f() {}"),
        ("b", "pub struct B;\nfn f() {\n    super::c::g()\n}"),
        ("c", "pub struct C;\npub fn g() { crate::a::h() }"),
        ("d", "use crate::a;"),
    ]);
    let expected = "a circle in src: a, b, c\n  src/a.rs:2: a -> b\n  src/a.rs:2: a -> c\n  \
                    src/b.rs:3: b -> c\n  src/c.rs:2: c -> a";
    assert_eq!(circles(&package, "src"), [expected]);
}

#[test]
fn names_are_followed_to_where_they_live() {
    // Each `a` names something of `b`, which names `a`.
    for (lib, a) in [
        ("mod a; mod b;", "use super::b::B;"),
        ("mod a; mod b; use b::B;", "use crate::B;"),
        ("mod a; mod b; pub use b::{B as C};", "fn f(c: super::C) {}"),
        ("mod a; mod b; pub use b::*;", "use super::*;\nstruct D(B);"),
        ("mod a; mod b;", "fn f() { assert!(x == crate::b::f()); }"),
        (
            "mod a; mod b;",
            "use crate::b as c;\n#[serde(with = \"c::f\")]\nstruct D;",
        ),
        ("mod a; mod b;", "fn f() {\n    use crate::b::f as g;\n}"),
        ("mod a; mod b;", "mod inner {\n    use super::super::b;\n}"),
        ("mod a; mod b;", "impl Into<crate::b::B> for u8 {}"),
    ] {
        let b = "pub struct B;\npub fn f() { crate::a::h() }";
        let package = package(&[("lib", lib), ("a", a), ("b", b)]);
        let found = circles(&package, "src");
        assert!(
            found.len() == 1 && found[0].contains("a -> b"),
            "{lib} {a}: {found:?}"
        );
    }
}

#[test]
fn tests_and_parents_make_no_circle() {
    for a in [
        "#[cfg(test)]\nmod tests;",
        "#[cfg(test)]\nmod tests {\n    use crate::b;\n}",
        "struct A {\n    #[cfg(test)]\n    b: crate::b::B,\n}",
        "// crate::b\nfn f() { \"crate::b\" }",
        "mod inner {\n    use super::f;\n}\nfn f() { inner::f() }",
        "use b::B;\nuse std::b;",
    ] {
        let package = package(&[("lib", "mod a; mod b;"), ("a", a), ("b", "use crate::a;")]);
        assert_eq!(circles(&package, "src"), [""; 0], "{a}");
    }
}
