//! The chart's values: each is documented once, beside its default, and known to the schema.

use gpu_batch::live::config::ConfigurationFile;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{CHART, documents, root};

/// A value as users read about it.
struct Documented {
    /// Its keys, with dots between them.
    path: String,
    default: Value,
    description: String,
}

/// The text of a file of the chart.
fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(CHART).join(name)).unwrap()
}

/// Rewrites a file of the chart where that is asked for, and compares it.
fn hold(name: &str, fresh: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root().join(CHART).join(name), fresh).unwrap();
    }
    assert!(read(name) == fresh, "{name} is stale; UPDATE=1 rewrites it");
}

fn defaults() -> Value {
    documents(&root().join(CHART).join("values.yaml")).remove(0)
}

/// A key with a comment is a value, with all that is below it. A key without one is a group.
fn documented() -> Vec<Documented> {
    let defaults = defaults();
    let text = read("values.yaml");
    let mut found = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut groups: Vec<&str> = Vec::new();
    let mut value_indent = None;
    for line in text.lines() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.is_empty() {
            comment.clear();
        } else if let Some(sentence) = content.strip_prefix("# ") {
            comment.push(sentence);
            value_indent = None;
        } else if value_indent.is_none_or(|value| indent <= value) {
            let (key, rest) = content.split_once(':').unwrap();
            groups.truncate(indent / 2);
            groups.push(key);
            value_indent = None;
            if comment.is_empty() {
                assert_eq!(rest, "", "{key} has no comment");
                continue;
            }
            value_indent = Some(indent);
            found.push(Documented {
                path: groups.join("."),
                default: defaults
                    .pointer(&format!("/{}", groups.join("/")))
                    .unwrap()
                    .clone(),
                description: std::mem::take(&mut comment).join(" "),
            });
        }
    }
    found
}

#[test]
fn the_readme_lists_every_value() {
    let values = documented();
    assert!(values.len() > 35, "{}", values.len());
    let mut table = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    for value in values {
        let Documented {
            path,
            default,
            description,
        } = value;
        assert!(description.ends_with('.'), "{path}: {description}");
        let description = description.replace('|', "\\|");
        table.push_str(&format!("| `{path}` | `{default}` | {description} |\n"));
    }
    let readme = read("README.md");
    let (before, rest) = readme.split_once("<!-- values -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of values -->\n").unwrap();
    let fresh = format!("{before}<!-- values -->\n{table}<!-- end of values -->\n{after}");
    hold("README.md", &fresh);
}

/// What the chart itself says in the configuration file: it must agree with other objects.
const OWNED: &[&str] = &["apiVersion", "kind", "serveAddress"];
const OWNED_OF_LEASE: &[&str] = &["identity", "name", "namespace"];

#[test]
fn the_schema_takes_the_configuration_that_the_program_takes() {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings
        .into_generator()
        .into_root_schema_for::<ConfigurationFile>();
    let mut schema = schema.to_value();
    for_helm(&mut schema);
    for name in ["$schema", "title"] {
        schema.as_object_mut().unwrap().remove(name);
    }
    schema["description"] = json!("The configuration file.");
    remove(&mut schema, OWNED);
    remove(&mut schema["properties"]["leaderElection"], OWNED_OF_LEASE);

    let mut values: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    values["properties"]["configuration"] = schema;
    hold(
        "values.schema.json",
        &format!("{}\n", serde_json::to_string_pretty(&values).unwrap()),
    );
}

fn remove(schema: &mut Value, names: &[&str]) {
    let properties = schema["properties"].as_object_mut().unwrap();
    for name in names {
        properties.remove(*name).unwrap();
    }
}

/// The program knows its defaults; the chart does not repeat them. Rules for the API server become
/// patterns.
fn for_helm(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("default");
            if let Some(rules) = fields.remove("x-kubernetes-validations") {
                let patterns: Vec<Value> = rules
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|rule| rule["rule"].as_str().unwrap())
                    // How long a duration may be is no pattern; the program says it.
                    .filter(|rule| !rule.starts_with('!'))
                    .flat_map(|rule| rule.split("self.matches('").skip(1))
                    .map(|rest| json!({"pattern": rest.split("')").next().unwrap()}))
                    .collect();
                fields.insert("allOf".to_owned(), Value::Array(patterns));
            }
            fields.values_mut().for_each(for_helm);
        }
        Value::Array(items) => items.iter_mut().for_each(for_helm),
        _ => {}
    }
}

#[test]
fn the_schema_knows_every_value_and_no_other() {
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let mut known = schema["properties"].clone();
    // Helm puts it into the values of charts that others depend on.
    known.as_object_mut().unwrap().remove("global").unwrap();
    same_keys("", defaults().as_object().unwrap(), &known);
    closed("", &schema);
}

fn same_keys(path: &str, values: &Map<String, Value>, properties: &Value) {
    let properties = properties.as_object().unwrap();
    let keys = |map: &Map<String, Value>| -> Vec<String> {
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort();
        keys
    };
    // What Kubernetes defines has keys that have no default here.
    if !["/affinity", "/configuration", "/resources"].contains(&path) {
        assert_eq!(keys(values), keys(properties), "{path}");
    }
    for (key, value) in values {
        let below = &properties[key]["properties"];
        if let (Some(value), true) = (value.as_object(), below.is_object()) {
            same_keys(&format!("{path}/{key}"), value, below);
        }
    }
}

/// An object whose properties are listed takes no others.
fn closed(path: &str, schema: &Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                assert_eq!(
                    fields.get("additionalProperties"),
                    Some(&json!(false)),
                    "{path}"
                );
            }
            for (key, value) in fields {
                closed(&format!("{path}/{key}"), value);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| closed(path, item)),
        _ => {}
    }
}
