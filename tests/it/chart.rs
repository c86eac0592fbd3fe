//! The Helm chart, as far as no API server is needed: it renders what `deploy/` holds, with any
//! values that its schema lets through. `UPDATE=1` rewrites what is generated.

mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpu_batch::kube::api;
use gpu_batch::lab::local::Program;
use gpu_batch::live::config::Configuration;
use serde_json::{Value, json};

use crate::harness;

/// Where the chart is, from the root of the repository.
pub(crate) const CHART: &str = "deploy/helm/gpu-batch";

/// The program, with folders of its own instead of the user's.
pub(crate) struct Helm {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Helm {
    /// `None`: skipped, for want of Go.
    pub(crate) async fn find() -> Option<Self> {
        let binaries = harness::binaries_of(vec![Program::Helm]).await?;
        Some(Self {
            program: binaries.path(Program::Helm),
            folder: tempfile::tempdir().unwrap(),
        })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, self.folder.path());
        }
        let command = command.args(arguments).current_dir(root());
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let [printed, errors] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        match status.success() {
            true => Ok(printed),
            false => Err(format!("{printed}{errors}")),
        }
    }

    /// The objects that a release `gpu-batch` in the namespace `gpu-batch` consists of.
    fn render(&self, values: &Value) -> Result<Vec<Value>, String> {
        self.render_release("gpu-batch", "gpu-batch", values)
    }

    fn render_release(
        &self,
        name: &str,
        namespace: &str,
        values: &Value,
    ) -> Result<Vec<Value>, String> {
        let file = self.values(values);
        let file = file.to_str().unwrap();
        let text = self.run(&[
            "template",
            name,
            CHART,
            "--namespace",
            namespace,
            "--include-crds",
            "--values",
            file,
        ])?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        Ok(objects.into_iter().filter(|o| !o.is_null()).collect())
    }

    /// A file with these values.
    pub(crate) fn values(&self, values: &Value) -> PathBuf {
        let path = self.folder.path().join("values.json");
        std::fs::write(&path, values.to_string()).unwrap();
        path
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// Kind, namespace and name.
fn identity(object: &Value) -> String {
    let metadata = &object["metadata"];
    let [kind, namespace, name] = [&object["kind"], &metadata["namespace"], &metadata["name"]]
        .map(|value| value.as_str().unwrap_or_default());
    format!("{kind} {namespace}/{name}")
}

fn find<'v>(objects: &'v [Value], kind: &str) -> &'v Value {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}"))
}

/// The configuration in a ConfigMap.
fn configuration(map: &Value) -> Configuration {
    let text = map["data"]["configuration.yaml"].as_str().unwrap();
    Configuration::parse(text, "the ConfigMap").unwrap()
}

/// What tells a release from plain manifests, and nothing that matters.
const OF_HELM: &[&str] = &[
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// The object without what is Helm's, and the configuration as what it means.
fn comparable(mut object: Value) -> Value {
    if object["kind"] == "ConfigMap" {
        object["data"] = json!(format!("{:#?}", configuration(&object)));
    }
    strip(&mut object);
    object
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OF_HELM.contains(&&**name));
            fields.values_mut().for_each(strip);
            fields.retain(|name, value| name != "annotations" || *value != json!({}));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Everything that kubectl applies and creates, but the namespace, which is the user's with Helm.
fn plain_manifests() -> Vec<Value> {
    let folders = ["deploy/crds", "deploy", "deploy/defaults"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| {
        let list = documents(&folder.join("kustomization.yaml")).remove(0);
        let listed = list["resources"].as_array().unwrap().clone();
        let names = listed.into_iter().map(|name| name.as_str().unwrap().into());
        let files = names.filter(|name: &String| name.ends_with(".yaml"));
        files.map(|name| folder.join(name)).collect::<Vec<_>>()
    });
    let objects = files.flat_map(|file| documents(&file));
    objects.filter(|o| o["kind"] != "Namespace").collect()
}

#[tokio::test]
async fn with_its_default_values_the_chart_is_what_deploy_applies() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    let by_identity = |objects: Vec<Value>| -> BTreeMap<String, Value> {
        let objects = objects.into_iter();
        objects.map(|o| (identity(&o), comparable(o))).collect()
    };
    let plain = by_identity(plain_manifests());
    let chart = by_identity(helm.render(&json!({})).unwrap());
    let names =
        |objects: &BTreeMap<String, Value>| -> Vec<String> { objects.keys().cloned().collect() };
    assert_eq!(names(&chart), names(&plain));
    assert!(plain.len() > 20, "{}", plain.len());
    for (identity, object) in &plain {
        assert_eq!(
            chart[identity], *object,
            "{identity}: the chart, then deploy/"
        );
    }
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart = documents(&root().join(CHART).join("Chart.yaml")).remove(0);
    for version in ["version", "appVersion"] {
        assert_eq!(chart[version], env!("CARGO_PKG_VERSION"), "{version}");
    }
}

#[test]
fn the_definitions_of_the_chart_are_those_of_the_program() {
    let folder = root().join(CHART).join("crds");
    let mut expected = BTreeSet::new();
    for crd in api::crds() {
        let name = format!("{}.yaml", crd.spec.names.plural);
        let fresh = api::manifest(&crd).unwrap();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(folder.join(&name), &fresh).unwrap();
        }
        let stored = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            stored == fresh,
            "crds/{name} is stale; UPDATE=1 rewrites it"
        );
        expected.insert(name);
    }
    let found = std::fs::read_dir(&folder).unwrap();
    let found = found.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.collect::<BTreeSet<_>>(), expected);
}

/// Everything that can be switched off.
fn nothing_extra() -> Value {
    json!({
        "replicas": 1,
        "configuration": {"leaderElection": {"enabled": false}},
        "serviceAccount": {"create": false, "name": "given"},
        "rbac": {"create": false, "users": false, "explain": false},
        "resources": {"requests": null, "limits": null},
        "topologySpreadConstraints": [],
        "priorityClassName": "",
        "podDisruptionBudget": {"enabled": false},
        "flowSchema": {"enabled": false},
        "networkPolicy": {"enabled": false},
        "defaultQueue": {"create": false},
        "defaultTopology": {"create": false},
        "priorityClasses": {"create": false},
    })
}

/// Everything that can be set.
fn everything() -> Value {
    json!({
        "fullnameOverride": "night-shift",
        "replicas": 3,
        "image": {
            "repository": "images.example.com/batch/gpu-batch",
            "digest": format!("sha256:{}", "0123456789abcdef".repeat(4)),
            "pullPolicy": "Always",
            "pullSecrets": [{"name": "registry"}],
        },
        "configuration": {
            "schedulerName": "night-shift",
            "log": {"format": "json", "level": "info,gpu_batch=debug"},
            "leaderElection": {"leaseDuration": "30s"},
            "extender": {"schedulerName": "day-shift"},
            "placement": {"gpu": "binpack", "cpu": "spread"},
            "inFlight": {"actions": 100_000},
        },
        "serve": {"address": "[::]", "port": 9090},
        "metrics": {
            "serviceMonitor": {"enabled": true, "interval": "15s", "labels": {"team": "a"}},
            "prometheusRule": {"enabled": true, "labels": {"team": "a"}},
        },
        "serviceAccount": {"name": "batch", "annotations": {"example.com/a": "b"}},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"example.com/a": "b"},
        "podLabels": {"team": "a"},
        "networkPolicy": {
            "ingressFrom": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}],
            "apiServerPorts": [8443],
        },
        "defaultQueue": {"spec": {"closed": true}},
        "defaultTopology": {"levels": [{"name": "rack", "nodeLabel": "example.com/rack"}]},
        "gangGate": {"enabled": true},
        "podFailurePolicy": {"enabled": true},
    })
}

#[tokio::test]
async fn it_renders_with_everything_off_and_with_everything_set() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    for values in [json!({}), nothing_extra(), everything()] {
        let file = helm.values(&values);
        let file = file.to_str().unwrap();
        let linted = helm.run(&["lint", "--strict", CHART, "--values", file]);
        linted.unwrap_or_else(|message| panic!("{message}"));
    }
    let off = helm.render(&nothing_extra()).unwrap();
    let kinds: BTreeSet<&str> = off.iter().map(|o| o["kind"].as_str().unwrap()).collect();
    let expected = [
        "ConfigMap",
        "CustomResourceDefinition",
        "Deployment",
        "Service",
    ];
    assert_eq!(kinds, expected.into());
    let pod = &find(&off, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "given");

    let on = helm.render(&everything()).unwrap();
    let pod = &find(&on, "Deployment")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let image = container["image"].as_str().unwrap();
    assert!(
        image.starts_with("images.example.com/batch/gpu-batch@sha256:0123"),
        "{image}"
    );
    assert_eq!(pod["serviceAccountName"], "batch");
    assert_eq!(container["ports"][0]["containerPort"], 9090);
    let configuration = configuration(find(&on, "ConfigMap"));
    assert_eq!(configuration.scheduler_name, "night-shift");
    assert_eq!(configuration.serve_address, "[::]:9090".parse().unwrap());
    assert_eq!(configuration.lease.name, "night-shift");
    let roles = on.iter().filter(|object| object["kind"] == "Role");
    let lease = |role: &Value| {
        let mut rules = role["rules"].as_array().unwrap().iter();
        let named = rules.find(|rule| rule["resourceNames"].is_array()).unwrap();
        named["resourceNames"][0].clone()
    };
    let leases: Vec<Value> = roles.map(lease).collect();
    assert_eq!(leases, ["night-shift", "night-shift"]);
    is_policy_for(&on, "night-shift-pod-failure-policy", "night-shift");
    is_policy_for(&on, "night-shift-gang-gate", "day-shift");
    let policy = find(&on, "NetworkPolicy");
    assert_eq!(policy["spec"]["egress"][0]["ports"][0]["port"], 8443);
}

/// That there is an admission policy, with its binding, for what this scheduler places.
fn is_policy_for(objects: &[Value], name: &str, scheduler: &str) {
    let of_kind = |kind: &str, path: &str| {
        let mut of_kind = objects.iter().filter(|object| object["kind"] == kind);
        of_kind.find(|object| object.pointer(path) == Some(&json!(name)))
    };
    let policy = of_kind("MutatingAdmissionPolicy", "/metadata/name").unwrap();
    let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
    let is_ours = |condition: &Value| {
        let expression = condition["expression"].as_str().unwrap();
        expression.ends_with(&format!("== \"{scheduler}\""))
    };
    assert!(conditions.iter().any(is_ours), "{policy:#}");
    assert!(of_kind("MutatingAdmissionPolicyBinding", "/spec/policyName").is_some());
}

#[tokio::test]
async fn the_extender_has_a_service_its_certificates_and_a_way_in() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    let values = json!({
        "replicas": 1,
        "configuration": {"extender": {"schedulerName": "day-shift"}},
        "extender": {"enabled": true, "port": 9443, "ingressFrom": [{"podSelector": {}}]},
    });
    let objects = helm.render(&values).unwrap();
    let extender = configuration(find(&objects, "ConfigMap")).extender.unwrap();
    assert_eq!(extender.scheduler_name, "day-shift");
    assert_eq!(extender.serve_address.port(), 9443);
    let services = objects.iter().filter(|object| object["kind"] == "Service");
    let names: Vec<&Value> = services.map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, ["gpu-batch", "gpu-batch-extender"]);
    let pod = &find(&objects, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(
        pod["volumes"][1]["secret"]["secretName"],
        "gpu-batch-extender"
    );
    let mount = &pod["containers"][0]["volumeMounts"][1]["mountPath"];
    assert_eq!(mount, "/etc/gpu-batch-extender");
    let ingress = &find(&objects, "NetworkPolicy")["spec"]["ingress"][1];
    assert_eq!(ingress["ports"][0]["port"], "extender");
    assert_eq!(ingress["from"], json!([{"podSelector": {}}]));
}

#[tokio::test]
async fn what_is_off_at_first_is_that_of_the_plain_manifests() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    let usual = helm.render(&json!({})).unwrap();
    let usual: Vec<_> = usual.iter().map(identity).collect();
    let comparable = |objects: Vec<Value>| -> BTreeMap<String, Value> {
        let objects = objects.into_iter();
        objects.map(|o| (identity(&o), comparable(o))).collect()
    };
    for (value, files) in [
        ("podFailurePolicy", &["pod-failure-policy/policy.yaml"][..]),
        (
            "gangGate",
            &["gang-gate/rbac.yaml", "gang-gate/policy.yaml"],
        ),
    ] {
        let mut chart = helm.render(&json!({value: {"enabled": true}})).unwrap();
        chart.retain(|o| !usual.contains(&identity(o)));
        let files = files.iter().map(|file| root().join("deploy").join(file));
        let plain: Vec<Value> = files.flat_map(|file| documents(&file)).collect();
        assert!(plain.len() >= 2);
        assert_eq!(comparable(chart), comparable(plain), "{value}");
    }
}

#[tokio::test]
async fn two_releases_share_no_name() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    let first = helm.render(&json!({})).unwrap();
    let values = json!({
        "configuration": {"schedulerName": "night"},
        "rbac": {"users": false},
        "defaultQueue": {"create": false},
        "defaultTopology": {"create": false},
        "priorityClasses": {"create": false},
    });
    let second = helm.render_release("night", "night", &values).unwrap();
    let names = |objects: &[Value]| -> BTreeSet<String> {
        let own = objects
            .iter()
            .filter(|o| o["kind"] != "CustomResourceDefinition");
        own.map(identity).collect()
    };
    let (first, second) = (names(&first), names(&second));
    assert_eq!(first.intersection(&second).next(), None);
    assert!(
        second.contains("Deployment night/night-gpu-batch"),
        "{second:?}"
    );
}

/// Values that would make objects that no API server takes, or pods that never start.
fn useless_values() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"replicas": null}), "'replicas'"),
        (json!({"configuration": null}), "'configuration'"),
        (json!({"image": null}), "'image'"),
        (
            json!({"extender": {"enabled": true}}),
            "extender.enabled needs replicas: 1",
        ),
        (json!({"extender": {"port": 443}}), "/extender/port"),
        (json!({"fullnameOverride": "A B"}), "/fullnameOverride"),
        (json!({"nameOverride": "UPPER_case!"}), "/nameOverride"),
        (
            json!({"podLabels": {"app.kubernetes.io/name": "other"}}),
            "/podLabels",
        ),
        (
            json!({"resources": {"limits": {"cpu": -1}}}),
            "/resources/limits/cpu",
        ),
        (
            json!({"serviceAccount": {"create": false}}),
            "serviceAccount.name is needed",
        ),
        (
            json!({"configuration": {"schedulerName": "Bad Name"}}),
            "/configuration/schedulerName",
        ),
        (
            json!({"configuration": {"inFlight": {"actions": 0}}}),
            "/configuration/inFlight/actions",
        ),
    ]
}

/// Values, and what the message about them says.
fn bad_values() -> Vec<(Value, &'static str)> {
    vec![
        (
            json!({"replica": 2}),
            "additional properties 'replica' not allowed",
        ),
        (json!({"replicas": 0}), "/replicas"),
        (json!({"replicas": "two"}), "/replicas"),
        (
            json!({"image": {"tags": "1"}}),
            "additional properties 'tags' not allowed",
        ),
        (json!({"image": {"digest": "sha256:12"}}), "/image/digest"),
        (
            json!({"image": {"pullPolicy": "Sometimes"}}),
            "/image/pullPolicy",
        ),
        (
            json!({"image": {"pullSecrets": ["registry"]}}),
            "/image/pullSecrets/0",
        ),
        (json!({"serve": {"port": 80}}), "/serve/port"),
        (
            json!({"resources": {"limits": {"memory": "lots"}}}),
            "/resources/limits/memory",
        ),
        (json!({"serve": {"address": "::"}}), "/serve/address"),
        (
            json!({"configuration": {"schedulerNames": "a"}}),
            "'schedulerNames' not allowed",
        ),
        (
            json!({"configuration": {"requestDeadline": "soon"}}),
            "/configuration/requestDeadline",
        ),
        (
            json!({"configuration": {"log": {"format": "xml"}}}),
            "/configuration/log/format",
        ),
        (
            json!({"configuration": {"serveAddress": "[::]:1"}}),
            "'serveAddress' not allowed",
        ),
        (
            json!({"configuration": {"leaderElection": {"name": "mine"}}}),
            "additional properties 'name' not allowed",
        ),
        (
            json!({"configuration": {"leaderElection": {"enabled": false}}}),
            "configuration.leaderElection.enabled: false needs replicas: 1",
        ),
        (
            json!({"podDisruptionBudget": {"maxUnavailable": 0}}),
            "/maxUnavailable",
        ),
        (
            json!({"networkPolicy": {"apiServerPorts": []}}),
            "/networkPolicy/apiServerPorts",
        ),
        (
            json!({"defaultTopology": {"levels": [{"name": "rack"}]}}),
            "missing property 'nodeLabel'",
        ),
        (
            json!({"metrics": {"serviceMonitor": {"interval": "often"}}}),
            "/interval",
        ),
        (json!({"priorityClasses": true}), "/priorityClasses"),
    ]
}

#[tokio::test]
async fn bad_values_are_refused_with_their_key() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    for (values, expected) in bad_values().into_iter().chain(useless_values()) {
        let rendered = helm.render(&values).map(|objects| objects.len());
        let message = rendered.expect_err(expected);
        assert!(message.contains(expected), "{values}: {message}");
    }
}

#[tokio::test]
async fn alerts_ask_for_metrics_that_exist() {
    let Some(helm) = Helm::find().await else {
        return;
    };
    let objects = helm.render(&everything()).unwrap();
    let documented = std::fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let rules = &find(&objects, "PrometheusRule")["spec"]["groups"][0]["rules"];
    let rules = rules.as_array().unwrap();
    assert!(rules.len() > 3, "{rules:?}");
    for rule in rules {
        let expression = rule["expr"].as_str().unwrap();
        let start = expression.find("gpu_batch_").unwrap();
        let name = expression[start..].split('{').next().unwrap();
        assert!(documented.contains(&format!("`{name}`")), "{expression}");
        assert!(expression.contains("{job=\"night-shift\""), "{expression}");
    }
}
