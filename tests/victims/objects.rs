//! Kubernetes objects of a world that is written down in few words.

use serde_json::{Map, Value, json};

pub(crate) const NAMESPACE: &str = "w";

/// A duration such as `1h30m`, or a number of seconds.
fn seconds(value: &Value) -> i64 {
    if let Some(seconds) = value.as_i64() {
        return seconds;
    }
    let (mut sum, mut number) = (0, 0);
    for letter in value.as_str().unwrap().chars() {
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            digit => {
                number = number * 10 + i64::from(digit.to_digit(10).unwrap());
                continue;
            }
        };
        sum += number * unit;
        number = 0;
    }
    sum
}

/// The gangs of a world, with those that it says how to generate.
fn gangs(case: &Value) -> Map<String, Value> {
    let mut gangs = case["gangs"].as_object().cloned().unwrap_or_default();
    let Some(generate) = case.get("generate") else {
        return gangs;
    };
    let victims = &generate["victims"];
    for node in 0..generate["nodes"].as_u64().unwrap() {
        let name = format!("{}{node}", generate["nodePrefix"].as_str().unwrap());
        for number in 0..victims["perNode"].as_u64().unwrap() {
            let mut gang = victims.clone();
            gang["at"] = json!([name]);
            gangs.insert(format!("v{node}-{number}"), gang);
        }
    }
    let mut claimant = generate["claimant"].clone();
    claimant["pending"] = claimant["pods"].clone();
    let name = claimant["name"].as_str().unwrap().to_owned();
    gangs.insert(name, claimant);
    gangs
}

/// The names of all pods that run, sorted.
pub(crate) fn running(case: &Value) -> Vec<String> {
    let gangs = gangs(case);
    let mut pods: Vec<String> = gangs
        .iter()
        .flat_map(|(name, gang)| {
            let at = gang["at"].as_array().map_or(0, Vec::len);
            (0..at).map(move |pod| format!("{name}-{pod}"))
        })
        .collect();
    pods.sort();
    pods
}

/// The objects of a world, as a List.
pub(crate) fn of_case(case: &Value, now: &str) -> Value {
    let now: jiff::Timestamp = now.parse().unwrap();
    let ago = |seconds: i64| {
        let span = jiff::SignedDuration::from_secs(seconds);
        (now - span).to_string()
    };
    let mut items = nodes(case);
    for (name, queue) in case["queues"].as_object().into_iter().flatten() {
        items.push(self::queue(name, queue, &ago(864_000)));
    }
    let gangs = gangs(case);
    let mut priorities: Vec<i64> = gangs.values().map(priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    items.extend(priorities.into_iter().map(|value| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
               "metadata": {"name": format!("p{value}")}, "value": value})
    }));
    for (name, gang) in &gangs {
        items.extend(self::gang(name, gang, &ago));
    }
    for budget in case["pdbs"].as_array().into_iter().flatten() {
        items.push(self::budget(budget, &gangs));
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn label(key: &str) -> &str {
    match key {
        "model" => "nvidia.com/gpu.product",
        "rack" => "example.com/rack",
        other => other,
    }
}

fn nodes(case: &Value) -> Vec<Value> {
    let mut nodes = case["nodes"].as_object().cloned().unwrap_or_default();
    if let Some(generate) = case.get("generate") {
        for number in 0..generate["nodes"].as_u64().unwrap() {
            let mut node = generate["labels"].clone();
            node["gpu"] = generate["gpus"].clone();
            let name = format!("{}{number}", generate["nodePrefix"].as_str().unwrap());
            nodes.insert(name, node);
        }
    }
    let mut has_racks = false;
    let mut items = Vec::new();
    for (name, node) in nodes {
        let node = match node {
            Value::Object(node) => node,
            gpus => Map::from_iter([("gpu".to_owned(), gpus)]),
        };
        has_racks |= node.contains_key("rack");
        let mut labels = Map::from_iter([("kubernetes.io/hostname".to_owned(), json!(name))]);
        let words = ["gpu", "cpu", "cordoned", "pods"];
        for (key, value) in node
            .iter()
            .filter(|(key, _)| !words.contains(&key.as_str()))
        {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            labels.insert(label(key).to_owned(), json!(text));
        }
        let amount = |key: &str, default: u64| {
            node.get(key)
                .and_then(Value::as_u64)
                .unwrap_or(default)
                .to_string()
        };
        let mut allocatable = json!({"cpu": amount("cpu", 96), "memory": "768Gi",
                                     "pods": amount("pods", 110)});
        if amount("gpu", 0) != "0" {
            allocatable["nvidia.com/gpu"] = json!(amount("gpu", 0));
        }
        let cordoned = node.get("cordoned").is_some_and(|it| it == true);
        items.push(json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"unschedulable": cordoned},
            "status": {"allocatable": allocatable,
                       "conditions": [{"type": "Ready", "status": "True"}]}}));
    }
    if has_racks {
        items.push(
            json!({"apiVersion": "gpu-batch.io/v1alpha1", "kind": "Topology",
            "metadata": {"name": "default"},
            "spec": {"levels": [{"name": "rack", "nodeLabel": "example.com/rack"}]}}),
        );
    }
    items
}

fn queue(name: &str, queue: &Value, created: &str) -> Value {
    let mut entries: Map<String, Value> = Map::new();
    for field in ["quota", "limit"] {
        let amounts = match &queue[field] {
            Value::Null => continue,
            Value::Object(amounts) => amounts.clone(),
            gpus => Map::from_iter([("gpu".to_owned(), gpus.clone())]),
        };
        for (entry, amount) in amounts {
            entries.entry(entry).or_insert(json!({}))[field] = json!(amount.to_string());
        }
    }
    if let Some(weight) = queue.get("weight") {
        entries.entry("gpu").or_insert(json!({}))["weight"] = weight.clone();
    }
    let resources: Vec<Value> = entries
        .into_iter()
        .map(|(entry, mut terms)| {
            let (name, model) = entry.split_once('@').unwrap_or((&entry, ""));
            let name = if name == "gpu" {
                "nvidia.com/gpu"
            } else {
                name
            };
            terms["name"] = json!(name);
            if !model.is_empty() {
                terms["product"] = json!(model);
            }
            terms
        })
        .collect();
    let mut spec = json!({});
    if !resources.is_empty() {
        spec["resources"] = json!(resources);
    }
    if let Some(parent) = queue["parent"].as_str() {
        spec["parent"] = json!(parent.to_lowercase());
    }
    for field in ["priority", "reclaimMinRuntime", "preemptMinRuntime"] {
        if let Some(value) = queue.get(field) {
            spec[field] = value.clone();
        }
    }
    json!({"apiVersion": "gpu-batch.io/v1alpha1", "kind": "Queue",
        "metadata": {"name": name.to_lowercase(), "creationTimestamp": created}, "spec": spec})
}

fn priority(gang: &Value) -> i64 {
    gang["prio"].as_i64().unwrap_or(0)
}

/// The PodGroup of a gang, and its pods: those that run first.
fn gang(name: &str, gang: &Value, ago: &dyn Fn(i64) -> String) -> Vec<Value> {
    let at: Vec<&str> = gang["at"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let pods = at.len() + usize::try_from(gang["pending"].as_u64().unwrap_or(0)).unwrap();
    let since = gang.get("since").map_or(3_600, seconds);
    let ages: Vec<i64> = match gang["ages"].as_array() {
        Some(ages) => ages.iter().map(seconds).collect(),
        None => vec![gang.get("age").map_or(3_600, seconds); at.len()],
    };
    let created = ages.iter().copied().chain([since]).max().unwrap();
    let queue = gang["queue"].as_str().unwrap_or("default").to_lowercase();
    let mut spec = json!({"queue": queue, "minMember": pods,
        "priorityClassName": format!("p{}", priority(gang)), "preemptionDelay": "0s"});
    if let Some(minimum) = gang.get("min") {
        spec["minMember"] = minimum.clone();
    }
    if gang.get("preemptible").is_some_and(|it| it == false) {
        spec["preemptible"] = json!(false);
    }
    if let Some(level) = gang["required"].as_str() {
        spec["topology"] = json!({"required": level});
    }
    let mut items = vec![
        json!({"apiVersion": "gpu-batch.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": ago(created)},
        "spec": spec}),
    ];
    for number in 0..pods {
        let node = at.get(number).copied();
        let age = ages.get(number).copied().unwrap_or(since);
        items.push(pod(
            &format!("{name}-{number}"),
            name,
            gang,
            (node, number),
            &ago(age),
            ago,
        ));
    }
    items
}

fn pod(
    name: &str,
    of: &str,
    gang: &Value,
    (node, number): (Option<&str>, usize),
    since: &str,
    ago: &dyn Fn(i64) -> String,
) -> Value {
    let amount = |one: &str, each: &str| {
        let listed = gang[each].as_array().map(|amounts| amounts[number].clone());
        listed
            .or(gang.get(one).cloned())
            .and_then(|it| it.as_u64())
            .unwrap_or(0)
    };
    let (gpus, cpus) = (amount("gpu", "gpus"), amount("cpu", "cpus"));
    let mut resources = json!({});
    if gpus > 0 {
        resources["limits"] = json!({"nvidia.com/gpu": gpus.to_string()});
    }
    if cpus > 0 {
        resources["requests"] = json!({"cpu": cpus.to_string()});
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": name,
            "labels": {"gpu-batch.io/pod-group": of}, "creationTimestamp": since},
        "spec": {"schedulerName": "gpu-batch",
            "priority": gang.get("podPrio").cloned().unwrap_or(json!(priority(gang))),
            "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Pending"}});
    if gang.get("controller").is_none_or(|it| it != false) {
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job",
            "name": of, "uid": format!("job-{of}"), "controller": true}]);
    }
    if gang.get("never").is_some_and(|it| it == true) {
        pod["spec"]["preemptionPolicy"] = json!("Never");
    }
    for (key, value) in gang["select"].as_object().into_iter().flatten() {
        pod["spec"]["nodeSelector"][label(key)] = value.clone();
    }
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
        pod["status"] = json!({"phase": "Running", "startTime": since});
    }
    let leaving = gang["leaving"].as_array().into_iter().flatten();
    if leaving
        .filter_map(Value::as_u64)
        .any(|leaving| leaving == number as u64)
    {
        pod["metadata"]["deletionTimestamp"] = json!(ago(-20));
    }
    pod
}

fn budget(budget: &Value, gangs: &Map<String, Value>) -> Value {
    let of = budget["gangs"].as_array().unwrap();
    let running = |gang: &Value| {
        gangs[gang.as_str().unwrap()]["at"]
            .as_array()
            .map_or(0, Vec::len)
    };
    let pods: usize = of.iter().map(running).sum();
    let allowed = budget["allowed"].as_u64().unwrap();
    let kept = pods as u64 - allowed;
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": budget["name"], "namespace": NAMESPACE, "generation": 1},
        "spec": {"minAvailable": kept, "selector": {"matchExpressions": [
            {"key": "gpu-batch.io/pod-group", "operator": "In", "values": of}]}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": allowed,
            "currentHealthy": pods, "desiredHealthy": kept, "expectedPods": pods}})
}
