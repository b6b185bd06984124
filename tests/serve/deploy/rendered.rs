//! The command that the chart makes, run as a node would run it, and asked as a kubelet and Prometheus would ask.

use super::kubernetes::{container, objects_of, of_kind};
use super::{run, succeeded};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing that needs privileges.
const CONFIG: &str = "config=collect = [\"self\"]";
const INSIDE: &str = "/etc/gpuscope";

/// A container that is no container; ended when dropped.
struct Pod {
    objects: Vec<Value>,
    child: Child,
    /// What is mounted at [`INSIDE`].
    folder: TempDir,
}

impl Pod {
    /// What the chart makes of `values`, with these files in the Secret.
    fn start(values: &[&str], secret: &[(&str, &str)]) -> Pod {
        let (port, health) = (format!("port={}", free_port()), format!("healthPort={}", free_port()));
        let objects = objects_of(&[values, &[CONFIG, &port, &health]].concat());
        let folder = tempfile::tempdir().expect("a folder");
        let config = of_kind(&objects, "ConfigMap")["data"]["serve.toml"].as_str();
        std::fs::write(folder.path().join("serve.toml"), config.expect("a file")).expect("a file");
        mount(&objects, &folder, secret);
        let child = command(&objects, folder.path()).spawn().expect("gpuscope starts");
        Pod { objects, child, folder }
    }

    fn port(&self, name: &str) -> u64 {
        let ports = container(&self.objects)["ports"].as_array().expect("ports");
        let port = ports.iter().find(|port| port["name"] == name);
        port.unwrap_or_else(|| panic!("no port {name}"))["containerPort"]
            .as_u64()
            .expect("a number")
    }

    /// The answer to each of the kubelet's probes, once it is 200.
    fn until_well(&mut self) {
        for name in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let probe = &container(&self.objects)[name]["httpGet"];
            let (port, path) = (
                probe["port"].as_str().expect("a port"),
                probe["path"].as_str().expect("a path"),
            );
            let scheme = probe["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
            let url = format!("{scheme}://127.0.0.1:{}{path}", self.port(port));
            let start = Instant::now();
            while code(&url, None) != 200 {
                let ended = self.child.try_wait().expect("a child");
                assert!(ended.is_none(), "it ended: {ended:?}");
                assert!(start.elapsed() < PATIENCE, "{name} at {url} never succeeds");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn metrics(&self, user: Option<&str>) -> u16 {
        code(&format!("http://127.0.0.1:{}/metrics", self.port("metrics")), user)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Puts the files of the Secret where the pod mounts it.
fn mount(objects: &[Value], folder: &TempDir, secret: &[(&str, &str)]) {
    let mounts = container(objects)["volumeMounts"].as_array().expect("mounts");
    let Some(web) = mounts.iter().find(|mount| mount["name"] == "web-config") else {
        assert!(secret.is_empty(), "the Secret is not mounted");
        return;
    };
    let inside = web["mountPath"].as_str().expect("a path").strip_prefix(INSIDE);
    let outside = folder
        .path()
        .join(inside.expect("beside the configuration").trim_start_matches('/'));
    std::fs::create_dir(&outside).expect("a folder");
    for (name, text) in secret {
        std::fs::write(outside.join(name), text).expect("a file");
        std::fs::set_permissions(outside.join(name), PermissionsExt::from_mode(0o400)).expect("a mode");
    }
}

fn command(objects: &[Value], folder: &Path) -> Command {
    let words = container(objects)["args"].as_array().expect("arguments");
    let words = words.iter().map(|word| word.as_str().expect("a word"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.args(words.map(|word| word.replace(INSIDE, &folder.display().to_string())));
    command.stdin(Stdio::null());
    command
}

/// The status of an answer; 0: there was none.
fn code(url: &str, user: Option<&str>) -> u16 {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let mut request = agent.get(url);
    if let Some(user) = user {
        request = request.header("Authorization", format!("Basic {}", STANDARD.encode(user)));
    }
    request.call().map_or(0, |answer| answer.status().as_u16())
}

/// A certificate for 127.0.0.1 and its key.
fn certify(folder: &Path, words: &str) {
    let usual =
        "req -x509 -days 2 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -addext subjectAltName=IP:127.0.0.1";
    let mut openssl = Command::new("openssl");
    openssl.args(usual.split_whitespace()).args(words.split_whitespace());
    succeeded(&openssl.current_dir(folder).output().expect("openssl"));
}

fn users() -> String {
    let hash = bcrypt::hash("sesame", 4).expect("a hash");
    format!("basic_auth_users:\n  prometheus: {hash}\n")
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn a_pod_becomes_ready_and_serves_at_the_port_that_is_asked_for() {
    let mut pod = Pod::start(&[], &[]);
    pod.until_well();
    assert_eq!(pod.metrics(None), 200);
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn a_pod_with_passwords_becomes_ready_and_asks_for_them() {
    let mut pod = Pod::start(&["webConfigSecret=web"], &[("web.yml", &users())]);
    pod.until_well();
    assert_eq!(pod.metrics(None), 401);
    assert_eq!(pod.metrics(Some("prometheus:sesame")), 200);
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn a_pod_that_asks_for_certificates_of_clients_stays_alive() {
    let folder = tempfile::tempdir().expect("a folder");
    certify(folder.path(), "-subj /CN=gpuscope -keyout key -out crt");
    let of_it = "-subj /CN=prometheus -CA crt -CAkey key -addext basicConstraints=CA:FALSE";
    certify(folder.path(), &format!("{of_it} -keyout client.key -out client.crt"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    let web = "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n  client_ca_file: tls.crt\n  \
               client_auth_type: RequireAndVerifyClientCert\n";
    let secret = [("web.yml", web), ("tls.crt", &read("crt")), ("tls.key", &read("key"))];
    let mut pod = Pod::start(&["webConfigSecret=web", "scheme=HTTPS"], &secret);
    pod.until_well();
    let url = format!("https://127.0.0.1:{}/metrics", pod.port("metrics"));
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--noproxy", "*", "--max-time", "60", "--cacert"]);
    curl.arg(pod.folder.path().join("web/tls.crt")).arg(&url);
    assert!(!run(&mut curl).status.success(), "without a certificate");
    curl.arg("--cert").arg(folder.path().join("client.crt"));
    curl.arg("--key").arg(folder.path().join("client.key"));
    let said = succeeded(&run(&mut curl));
    assert!(said.contains("gpuscope_build_info"), "{said}");
}

#[test]
#[ignore = "needs helm: scripts/fetch-tools.sh"]
fn another_path_of_metrics_is_served_and_scraped() {
    let mut pod = Pod::start(&["telemetryPath=/gpu", "serviceMonitor.enabled=true"], &[]);
    pod.until_well();
    let monitor = &of_kind(&pod.objects, "ServiceMonitor")["spec"]["endpoints"][0];
    let path = monitor["path"].as_str().expect("a path");
    let at = |path: &str| code(&format!("http://127.0.0.1:{}{path}", pod.port("metrics")), None);
    assert_eq!((at(path), at("/metrics")), (200, 404));
}
