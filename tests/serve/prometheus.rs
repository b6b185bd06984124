//! A real Prometheus, which scrapes once a second.

use super::exporter::{Exporter, PLAIN, get};
use super::support::eventually;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Labels of a result, and its value.
pub type Series = (BTreeMap<String, String>, f64);

/// A program that `scripts/fetch-tools.sh` fetched.
pub fn tool(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/tools/bin")
        .join(name);
    assert!(path.exists(), "{name} is missing: scripts/fetch-tools.sh fetches it");
    path
}

/// Killed when dropped.
pub struct Prometheus {
    child: Child,
    address: String,
    folder: TempDir,
}

impl Prometheus {
    /// Scrapes `exporter` twice: as job `gpuscope` in the format it likes best, and as job `gpuscope-plain` in plain
    /// text, which it is given by a relay; with the rules that are shipped.
    pub fn of(exporter: &Exporter) -> Prometheus {
        let folder = tempfile::tempdir().expect("a folder");
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/prometheus/gpuscope.rules.yml");
        let rules = std::fs::read_to_string(rules).expect("rules");
        // as shipped, but that one need not wait a minute for them
        std::fs::write(
            folder.path().join("rules.yml"),
            rules.replace("interval: 1m", "interval: 1s"),
        )
        .expect("a file");
        let jobs = [
            ("gpuscope", exporter.address().to_owned()),
            ("gpuscope-plain", plain_relay(exporter.address())),
        ];
        let jobs = jobs.map(|(name, address)| {
            format!(
                "  - job_name: {name}\n    honor_labels: true\n    static_configs:\n      - targets: ['{address}']\n"
            )
        });
        let configuration = format!(
            "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  evaluation_interval: 1s\n\
             rule_files: [rules.yml]\nscrape_configs:\n{}",
            jobs.concat()
        );
        std::fs::write(folder.path().join("prometheus.yml"), configuration).expect("a file");
        Prometheus::start(folder)
    }

    /// Scrapes nobody; in the folder is `data`, which it answers of.
    pub fn of_data(folder: TempDir) -> Prometheus {
        std::fs::write(folder.path().join("prometheus.yml"), "scrape_configs: []\n").expect("a file");
        Prometheus::start(folder)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn start(folder: TempDir) -> Prometheus {
        let address = free_address();
        let log = File::create(folder.path().join("log")).expect("a file");
        let child = Command::new(tool("prometheus"))
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            // asks for protobuf first
            .arg("--enable-feature=native-histograms")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus starts");
        let mut prometheus = Prometheus { child, address, folder };
        prometheus.until_ready();
        prometheus
    }

    fn until_ready(&mut self) {
        let url = format!("http://{}/-/ready", self.address);
        eventually("prometheus is ready", || {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "prometheus ended: {}", self.log());
            get(&url, "*/*").is_ok()
        });
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// What its API answers.
    pub fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let url = format!("http://{}/api/v1/{path}", self.address);
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = agent.get(&url);
        for (name, value) in parameters {
            request = request.query(name, value);
        }
        let text = request
            .call()
            .expect("an answer")
            .body_mut()
            .read_to_string()
            .expect("text");
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"));
        assert_eq!(answer["status"], "success", "{parameters:?}: {text}");
        answer["data"].clone()
    }

    /// The series that an expression gives now.
    pub fn query(&self, expression: &str) -> Vec<Series> {
        let data = self.ask("query", &[("query", expression)]);
        let series = |result: &Value| {
            let labels = result["metric"].as_object().into_iter().flatten();
            let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
            let value = result["value"][1].as_str().expect("a value");
            (labels.collect(), value.parse().expect("a number"))
        };
        data["result"]
            .as_array()
            .expect("a vector")
            .iter()
            .map(series)
            .collect()
    }

    /// The values of an expression by some of its labels, none of them 0.
    pub fn table(&self, expression: &str, labels: &[&str]) -> BTreeMap<Vec<String>, u64> {
        let series = self.query(expression).into_iter().filter(|(_, value)| *value != 0.0);
        let key = |of: &BTreeMap<String, String>| {
            labels
                .iter()
                .map(|label| of.get(*label).cloned().unwrap_or_default())
                .collect::<Vec<String>>()
        };
        series.map(|(of, value)| (key(&of), value as u64)).collect()
    }

    /// Waits until a table is as expected; fails with the difference if it never is.
    pub fn until(&self, what: &str, expression: &str, labels: &[&str], expected: &BTreeMap<Vec<String>, u64>) {
        const TRIES: u32 = 60;
        for _ in 0..TRIES {
            if self.table(expression, labels) == *expected {
                return;
            }
            thread::sleep(Duration::from_millis(250));
        }
        super::support::assert_same(what, expected, &self.table(expression, labels));
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

/// Serves what the exporter at `address` answers to who knows plain text alone; as long as the test lives.
fn plain_relay(address: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address").to_string();
    let url = format!("http://{address}/metrics");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = relay(stream, &url);
        }
    });
    own
}

fn relay(mut stream: TcpStream, url: &str) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Ok(());
        }
        request.extend_from_slice(&part[..count]);
    }
    let Ok(text) = get(url, PLAIN) else { return Ok(()) };
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{text}", text.len())
}
