//! The chart of Helm and the manifests made of it.

use super::{file, read, run, said, succeeded, tool, yaml};
use serde_json::{Value, json};
use std::process::Command;

const CHART: &str = "deploy/kubernetes/chart";
const EVERYTHING: &str = "serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,\
                          networkPolicy.enabled=true,webConfigSecret=web,runtimeClassName=nvidia,\
                          priorityClassName=system-node-critical,scheme=HTTPS";
/// The versions of Kubernetes whose schemas manifests are held against.
const VERSIONS: [&str; 2] = ["1.30.0", "1.37.0"];

/// What the chart makes of these values, as text and as objects.
fn rendered(set: &str) -> (String, Vec<Value>) {
    template(&["--set", set])
}

fn template(options: &[&str]) -> (String, Vec<Value>) {
    let arguments = ["template", "gpuscope", CHART, "--namespace", "gpuscope"];
    let output = tool("helm", &[&arguments, options].concat());
    succeeded(&output);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let objects = objects(&text);
    (text, objects)
}

/// What the chart makes of values that may hold commas.
pub(super) fn objects_of(values: &[&str]) -> Vec<Value> {
    let literal = |value: &str| ["--set-literal".to_owned(), value.to_owned()];
    let typed = |value: &str| ["--set".to_owned(), value.to_owned()];
    let options = values.iter().flat_map(|value| match value.starts_with("config=") {
        true => literal(value),
        false => typed(value),
    });
    let options: Vec<String> = options.collect();
    template(&options.iter().map(String::as_str).collect::<Vec<_>>()).1
}

fn objects(text: &str) -> Vec<Value> {
    let documents = text
        .split("\n---\n")
        .map(|document| document.trim_start_matches("---\n"));
    let documents =
        documents.filter(|document| document.lines().any(|line| !line.is_empty() && !line.starts_with('#')));
    documents.map(yaml).collect()
}

pub(super) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found = objects.iter().find(|object| object["kind"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}"))
}

/// The container of the DaemonSet.
pub(super) fn container(objects: &[Value]) -> &Value {
    &of_kind(objects, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
}

/// Holds objects that are Kubernetes' own against its schemas, strictly.
fn check_schemas(name: &str, text: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("objects.yaml");
    let own = |document: &&str| !document.contains("monitoring.coreos.com");
    let documents: Vec<&str> = text.split("\n---\n").filter(own).collect();
    std::fs::write(&path, documents.join("\n---\n")).expect("a file");
    let python = file("target/tools/python");
    assert!(
        python.exists(),
        "kubernetes-validate is missing: scripts/fetch-tools.sh fetches it"
    );
    for version in VERSIONS {
        let mut command = Command::new("python3");
        command
            .args(["-m", "kubernetes_validate", "--strict", "-k", version])
            .arg(&path);
        let said = succeeded(&run(command.env("PYTHONPATH", &python)));
        let passed = said.matches(" passed for resource ").count();
        assert_eq!(passed, documents.len(), "{name} on {version}: {said}");
    }
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn helm_finds_no_fault_in_the_chart() {
    let said = succeeded(&tool("helm", &["lint", "--strict", CHART, "--set", EVERYTHING]));
    assert!(said.contains("0 chart(s) failed"), "{said}");
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn the_plain_manifests_are_what_the_chart_makes() {
    let plain = objects(&read("deploy/kubernetes/gpuscope.yaml"));
    assert_eq!(plain[0]["kind"], "Namespace");
    assert_eq!(
        plain[1..],
        rendered("port=9748").1,
        "run: scripts/generate_manifests.sh"
    );
}

#[test]
#[ignore = "needs kubernetes-validate: scripts/fetch-tools.sh"]
fn manifests_are_as_kubernetes_defines_them() {
    check_schemas("gpuscope.yaml", &read("deploy/kubernetes/gpuscope.yaml"));
    check_schemas("network-policy.yaml", &read("deploy/kubernetes/network-policy.yaml"));
    check_schemas(
        "the chart with everything",
        rendered(EVERYTHING).0.trim_start_matches("---\n"),
    );
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn the_container_can_do_no_more_than_it_needs() {
    let (_, objects) = rendered(EVERYTHING);
    let pod = &of_kind(&objects, "DaemonSet")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let security = &container["securityContext"];
    assert_eq!((&pod["hostPID"], &pod["hostNetwork"]), (&json!(true), &Value::Null));
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(security["privileged"], false);
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    let added = json!(["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "LEASE"]);
    assert_eq!(security["capabilities"]["add"], added);
    let mounts = container["volumeMounts"].as_array().expect("mounts");
    let writable = mounts.iter().filter(|mount| mount["readOnly"] != true);
    let writable: Vec<&str> = writable.filter_map(|mount| mount["name"].as_str()).collect();
    assert_eq!(writable, ["state"], "{mounts:?}");
    assert!(container["resources"]["limits"]["memory"].is_string());
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn the_kernels_log_is_reached_where_somebody_asks_for_it_alone() {
    let of = |set: &str| rendered(set).1;
    let (off, device, privileged) = (of("port=9748"), of("kernelLog=device"), of("kernelLog=privileged"));
    let security = |objects: &[Value]| container(objects)["securityContext"].clone();
    let adds = |objects: &[Value]| {
        security(objects)["capabilities"]["add"]
            .to_string()
            .contains("\"SYSLOG\"")
    };
    let mounts = |objects: &[Value]| container(objects)["volumeMounts"].to_string().contains("\"/dev/kmsg\"");
    assert_eq!([adds(&off), adds(&device), adds(&privileged)], [false, true, false]);
    assert_eq!(
        [mounts(&off), mounts(&device), mounts(&privileged)],
        [false, true, false]
    );
    let rights =
        |objects: &[Value]| ["privileged", "allowPrivilegeEscalation"].map(|right| security(objects)[right] == true);
    assert_eq!(
        [rights(&off), rights(&device), rights(&privileged)],
        [[false; 2], [false; 2], [true; 2]]
    );
    check_schemas(
        "with the kernel's log",
        rendered("kernelLog=device").0.trim_start_matches("---\n"),
    );
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn the_operator_gets_the_same_rules_and_grafana_the_same_dashboards() {
    let (_, objects) = rendered(EVERYTHING);
    let rules = &of_kind(&objects, "PrometheusRule")["spec"];
    assert_eq!(rules, &yaml(&read("deploy/prometheus/gpuscope.rules.yml")));
    let maps: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "ConfigMap").collect();
    for name in super::dashboard::NAMES {
        let file = format!("{name}.json");
        let dashboard = maps.iter().find_map(|map| map["data"][&file].as_str());
        let dashboard: Value = serde_json::from_str(dashboard.expect("a dashboard")).expect("JSON");
        let own: Value = serde_json::from_str(&read(&format!("deploy/grafana/{file}"))).expect("JSON");
        assert_eq!(dashboard, own, "{file}");
    }
    let monitor = &of_kind(&objects, "ServiceMonitor")["spec"]["endpoints"][0];
    assert_eq!(
        (&monitor["honorLabels"], &monitor["scheme"]),
        (&json!(true), &json!("https"))
    );
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn wrong_values_are_refused_by_name() {
    for (set, named) in [
        ("port=99999", "port"),
        ("prot=1", "prot"),
        ("capabilities={CAP_BPF}", "capabilities"),
        ("capabilities={SYS_ADMIN}", "capabilities"),
        ("scheme=http", "scheme"),
        ("hostPaths[0].name=a,hostPaths[0].path=relative", "path"),
        ("serviceMonitor.interval=15", "interval"),
        ("healthPort=9748", "healthPort"),
        ("scheme=HTTPS", "webConfigSecret"),
        ("serviceMonitor.basicAuth.username.name=web", "webConfigSecret"),
        ("config=listen = \"0.0.0.0:1\"", "listenAddress"),
        ("config=\"web_config\" = \"/web.yml\"", "webConfigSecret"),
        ("listenAddress=localhost", "listenAddress"),
        ("kernelLog=true", "kernelLog"),
        ("statePath=relative", "statePath"),
        ("statePath=/", "statePath"),
    ] {
        let output = tool("helm", &["template", "gpuscope", CHART, "--set", set]);
        let said = said(&output);
        assert!(!output.status.success() && said.contains(named), "{set}: {said}");
    }
}

/// `gpuscope serve` itself reads the configurations that are shipped.
#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn shipped_configurations_are_right() {
    let (_, objects) = rendered("port=9748");
    let inside = of_kind(&objects, "ConfigMap")["data"]["serve.toml"]
        .as_str()
        .expect("a file")
        .to_owned();
    for text in [inside, read("deploy/systemd/serve.toml")] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, &text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
        command.args(["serve", "--check-config", "--config"]).arg(path);
        succeeded(&run(&mut command));
    }
}

/// Each is used by a template: none is there for nothing.
#[test]
fn every_value_is_used_and_has_its_place_in_the_schema() {
    let folder = file(CHART).join("templates");
    let files = std::fs::read_dir(folder).expect("templates");
    let templates: String = files
        .map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a template"))
        .collect();
    let schema: Value = serde_json::from_str(&read(&format!("{CHART}/values.schema.json"))).expect("JSON");
    for (name, value) in yaml(&read(&format!("{CHART}/values.yaml")))
        .as_object()
        .expect("values")
    {
        assert!(schema["properties"][name].is_object(), "{name} is not in the schema");
        let uses = |path: &str| templates.contains(&format!(".Values.{path}"));
        let whole = [format!(".Values.{name} "), format!(".Values.{name})")];
        if whole.iter().any(|whole| templates.contains(whole)) {
            continue;
        }
        let parts = value.as_object().unwrap_or_else(|| panic!("{name} is used nowhere"));
        for part in parts.keys() {
            assert!(uses(&format!("{name}.{part}")), "{name}.{part} is used nowhere");
        }
    }
}

fn affinity(values: &[&str]) -> Value {
    let objects = objects_of(values);
    of_kind(&objects, "DaemonSet")["spec"]["template"]["spec"]["affinity"].clone()
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn only_nodes_with_a_device_are_chosen_unless_others_are_asked_for() {
    let usual = affinity(&[]);
    let nodes = &usual["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = nodes["nodeSelectorTerms"].as_array().expect("terms");
    let keys: Vec<&str> = terms
        .iter()
        .filter_map(|term| term["matchExpressions"][0]["key"].as_str())
        .collect();
    for key in ["nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    // one label is enough: nobody sets all of them
    assert!(
        terms
            .iter()
            .all(|term| term["matchExpressions"].as_array().map(Vec::len) == Some(1))
    );
    assert_eq!(affinity(&["gpuNodesOnly=false"]), Value::Null);
    let own = affinity(&["affinity.podAffinity.x=y"]);
    assert_eq!(own, json!({"podAffinity": {"x": "y"}}));
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn otlp_names_the_node_unless_the_environment_says_something_else() {
    let named = |values: &[&str]| {
        let objects = objects_of(values);
        let env = container(&objects)["env"].as_array().expect("variables").clone();
        let named = env.iter().filter(|one| one["name"] == "OTEL_RESOURCE_ATTRIBUTES");
        named
            .map(|one| one["value"].as_str().expect("a value").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(named(&[]), ["host.name=$(NODE_NAME),k8s.node.name=$(NODE_NAME)"]);
    assert_eq!(
        named(&["env[0].name=OTEL_RESOURCE_ATTRIBUTES", "env[0].value=a"]),
        ["a"]
    );
}

/// Variable, mount in the container, folder of the node.
fn state(values: &[&str]) -> [Value; 3] {
    let objects = objects_of(values);
    let container = container(&objects);
    let named = |list: &Value, name: &str| {
        let found = list
            .as_array()
            .and_then(|list| list.iter().find(|one| one["name"] == name));
        found.cloned().unwrap_or_default()
    };
    let pod = &of_kind(&objects, "DaemonSet")["spec"]["template"]["spec"];
    [
        named(&container["env"], "STATE_DIRECTORY")["value"].clone(),
        named(&container["volumeMounts"], "state")["mountPath"].clone(),
        named(&pod["volumes"], "state")["hostPath"].clone(),
    ]
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn gpus_that_were_known_outlive_the_pod() {
    let [variable, mount, folder] = state(&[]);
    assert!(mount.is_string() && variable == mount, "{variable} {mount}");
    assert_eq!(
        folder,
        json!({"path": "/var/lib/gpuscope", "type": "DirectoryOrCreate"})
    );
    let [variable, mount, folder] = state(&["statePath=/srv/gpuscope"]);
    assert!(mount.is_string() && variable == mount, "{variable} {mount}");
    assert_eq!(folder["path"], "/srv/gpuscope");
    assert_eq!(state(&["statePath="]), [Value::Null, Value::Null, Value::Null]);
}
