//! What a service account asks the API server for, and what its roles allow.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cluster::Cluster;

/// Verb, API group and resource, as in `create /pods/binding`, each with how often it was made.
pub(crate) type Requests = BTreeMap<String, usize>;

/// The namespace of the service account. What it may do there and nowhere else gets a prefix.
const HOME: &str = "gpu-batch";

fn inside(namespace: &Value) -> &'static str {
    if *namespace == HOME { "at home: " } else { "" }
}

/// Everything that a role allows, whatever the names of the objects.
pub(crate) fn allowed(role: &Value) -> BTreeSet<String> {
    let place = inside(&role["metadata"]["namespace"]);
    let list = |value: &Value| -> Vec<String> {
        let items = value.as_array().unwrap().iter();
        items
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    };
    let mut all = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                let verbs = list(&rule["verbs"]);
                all.extend(
                    verbs
                        .iter()
                        .map(|verb| format!("{place}{verb} {group}/{resource}")),
                );
            }
        }
    }
    assert!(!all.iter().any(|request| request.contains('*')), "{all:?}");
    all
}

impl Cluster {
    /// Everything that this user has asked for, whatever was answered.
    pub(crate) fn requests_of(&self, user: &str) -> Requests {
        let mut requests = Requests::new();
        for event in self.audit_log() {
            if event["user"]["username"] != user || event["impersonatedUser"].is_object() {
                continue;
            }
            let text = |name: &str| event["objectRef"][name].as_str().unwrap_or_default();
            let place = inside(&event["objectRef"]["namespace"]);
            let verb = event["verb"].as_str().unwrap();
            let mut request = format!("{place}{verb} {}/{}", text("apiGroup"), text("resource"));
            if !text("subresource").is_empty() {
                request = format!("{request}/{}", text("subresource"));
            }
            *requests.entry(request).or_default() += 1;
        }
        requests
    }
}
