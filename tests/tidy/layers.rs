//! Which layers may know which names.

use crate::source::{Source, has_word};
use crate::{check, hold};

/// Names that must not occur under some paths.
struct Ban {
    under: &'static [&'static str],
    except: &'static [&'static str],
    names: &'static [&'static str],
    because: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        under: &["policies/src/"],
        except: &[],
        names: &[
            "std",
            "serde",
            "kube",
            "k8s_openapi",
            "tokio",
            "tracing",
            "jiff",
            "rand",
        ],
        because: "policies decides; it has no I/O, no clock, no threads and no formats",
    },
    Ban {
        under: &["policies/src/"],
        except: &[],
        names: &["async", "await"],
        because: "a decision waits for nothing",
    },
    Ban {
        under: &["policies/src/"],
        // The scores of a published experiment are IEEE doubles, truncated before they decide.
        except: &["policies/src/state/score"],
        names: &["f32", "f64"],
        because: "no float takes part in a decision, so that all machines decide alike",
    },
    Ban {
        under: &["simulator/src/"],
        except: &[],
        names: &["kube", "k8s_openapi", "tokio", "gpu_batch"],
        because: "the simulator needs no cluster and no live shell",
    },
    Ban {
        under: &["simulator/src/"],
        // A campaign's printed speed is not of the simulation.
        except: &["simulator/src/bin/"],
        names: &["Instant", "SystemTime"],
        because: "time in the simulator is virtual",
    },
    Ban {
        under: &["policies/src/", "simulator/src/"],
        except: &[],
        names: &[
            "std::collections::HashMap",
            "std::collections::HashSet",
            "RandomState",
        ],
        because: "a randomly seeded map makes two runs differ; use BTreeMap",
    },
    Ban {
        under: &["src/kube/api", "src/kube/convert", "src/kube/objects"],
        except: &[],
        names: &["tokio", "Client"],
        because: "what objects say is read without talking to anybody",
    },
    Ban {
        under: &["src/extender", "src/live/serve", "src/views"],
        except: &[],
        names: &["Engine"],
        because: "what people see is made of copies; the engine has one owner",
    },
];

/// The modules of policies that a part of a shell may name; private modules the compiler forbids to
/// all. The first that fits counts.
const DOORS: &[(&[&str], &[&str])] = &[
    (&["src/kube/api"], &["facts", "status"]),
    (&["src/kube/objects"], &["facts"]),
    (
        &["src/kube/convert"],
        &["facts", "event", "names", "reason", "status"],
    ),
];

fn bans(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    let is_under = |paths: &[&str]| paths.iter().any(|path| source.path.starts_with(path));
    let here = |ban: &&Ban| is_under(ban.under) && !is_under(ban.except);
    for ban in BANS.iter().filter(here) {
        for (number, line) in source.production() {
            for name in ban.names.iter().filter(|name| has_word(line, name)) {
                violations.push(source.at(number, &format!("`{name}`: {}", ban.because)));
            }
        }
    }
    violations
}

fn doors(source: &Source) -> Vec<String> {
    let under =
        |(paths, _): &&(&[&str], &[&str])| paths.iter().any(|path| source.path.starts_with(path));
    let Some((_, open)) = DOORS.iter().find(under) else {
        return Vec::new();
    };
    modules_of_policies(source)
        .into_iter()
        .filter(|(_, module)| !open.contains(&&**module))
        .map(|(line, module)| {
            source.at(
                line,
                &format!("policies::{module} is not for this part of the shell"),
            )
        })
        .collect()
}

/// The modules of policies that a file names, with the lines.
fn modules_of_policies(source: &Source) -> Vec<(usize, String)> {
    let mut modules = Vec::new();
    for (start, path) in source.code.match_indices("gpu_batch_policies::") {
        let line = source.code[..start].lines().count().max(1);
        let rest = &source.code[start + path.len()..];
        let is_name = |char: char| char.is_alphanumeric() || char == '_';
        let Some(list) = rest.strip_prefix('{') else {
            let name = rest.split(|char| !is_name(char)).next().unwrap_or_default();
            modules.push((line, name.to_owned()));
            continue;
        };
        let mut depth = 0;
        let outer: String = list
            .chars()
            .filter(|char| {
                depth += match char {
                    '{' => 1,
                    '}' => -1,
                    _ => 0,
                };
                depth == 0
            })
            .take_while(|char| *char != ';')
            .collect();
        for item in outer
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let name = item.split(|char| !is_name(char)).next().unwrap_or_default();
            modules.push((line, name.to_owned()));
        }
    }
    modules
}

#[test]
fn nobody_names_what_is_not_theirs() {
    hold(bans);
    check(
        bans,
        "policies/src/a.rs",
        "use std::fs;\n// std\nuse no_std;\n",
        &[1],
    );
    check(
        bans,
        "policies/src/a.rs",
        "#[cfg(test)]\nextern crate std;\nlet a: f64;\n",
        &[3],
    );
    check(bans, "policies/src/a.rs", "async fn a() {}\n", &[1]);
    check(
        bans,
        "simulator/src/a.rs",
        "let a = Instant::now();\nuse gpu_batch::b;\n",
        &[2, 1],
    );
    check(
        bans,
        "simulator/src/a.rs",
        "use std::collections::HashMap;\n",
        &[1],
    );
    check(bans, "src/kube/convert/a.rs", "use kube::Client;\n", &[1]);
    check(
        bans,
        "src/live/serve/a.rs",
        "fn a(engine: &mut Engine) {}\n",
        &[1],
    );
    check(
        bans,
        "src/live/driver/a.rs",
        "use gpu_batch_policies::engine::Engine;\n",
        &[],
    );
}

#[test]
fn shells_use_the_doors_of_policies() {
    hold(doors);
    check(
        doors,
        "src/kube/api/a.rs",
        "use gpu_batch_policies::engine::Engine;\n",
        &[1],
    );
    check(
        doors,
        "src/kube/objects/a.rs",
        "\nuse gpu_batch_policies::{event::{A, B}, facts};\n",
        &[2],
    );
    check(doors, "policies/src/a.rs", "use crate::queues;\n", &[]);
}
