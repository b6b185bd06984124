//! `gpuscope serve` as a process, with the simulated NVML.

use super::support::{Counts, Ledger, eventually, sim, sim_folder};
use gpuscope::catalog::{Catalog, Row};
use gpuscope::filter::Filter;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// What Prometheus asks for when it knows OpenMetrics.
pub const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0";
pub const PLAIN: &str = "text/plain;version=0.0.4";

/// What the simulated NVML has from the beginning: two links of NVLink.
pub const LINKS: &str = "0 nvlinks 2\n0 nvlink_sent_kib.0 100\n0 nvlink_received_kib.0 100\n";

/// Calls of a program that are hooked where nobody asks for getters, as far as their functions are `wanted`.
pub fn hooked(ledger: &Ledger, wanted: impl Fn(&Row) -> bool) -> Counts {
    let catalog = Catalog::builtin().expect("the catalogue");
    let filter = Filter::parse(&[], &["all".to_owned()])
        .expect("a filter")
        .without_getters();
    ledger.visible_where(|layer, name| {
        let is_it = |row: &&Row| {
            let library = catalog.library_with(row.library);
            row.symbol == name && library.is_some_and(|library| library.name == layer)
        };
        let row = catalog.rows.iter().find(is_it);
        row.is_some_and(|row| filter.selects(&catalog, row) && wanted(row))
    })
}

/// As [`Exporter::sum`], of a scrape.
pub fn sum_in(text: &str, metric: &str, parts: &[&str]) -> Option<f64> {
    let is_of = |line: &&str| {
        line.strip_prefix(metric)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let lines = text
        .lines()
        .filter(is_of)
        .filter(|line| parts.iter().all(|part| line.contains(part)));
    let values: Vec<f64> = lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

/// An exporter; killed when dropped.
pub struct Exporter {
    child: Child,
    address: String,
    folder: TempDir,
    /// Whether calls of getters are counted, too.
    getters: bool,
}

impl Exporter {
    /// `gpuscope serve OPTIONS…` on a free port, as root.
    pub fn start(options: &[&str]) -> Exporter {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
        let mut exporter = Exporter::start_as(command.arg("serve").args(options));
        exporter.getters = options.iter().any(|option| option.contains("getters"));
        exporter
    }

    /// Another one in its place, as after an update: it sees the same devices and finds the programs that run.
    pub fn restarted(mut self, options: &[&str]) -> Exporter {
        let other = tempfile::tempdir().expect("a folder");
        let folder = std::mem::replace(&mut self.folder, other);
        drop(self);
        Exporter::start_in(&mut Exporter::command(options, &folder), folder)
    }

    /// The same, with a folder for what is kept over restarts.
    pub fn remembering(options: &[&str]) -> Exporter {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("state")).expect("a folder");
        std::fs::create_dir_all(folder.path().join("kept")).expect("a folder");
        Exporter::start_in(&mut Exporter::command(options, &folder), folder)
    }

    /// Another one in its place, after it was killed.
    pub fn crashed(mut self, options: &[&str]) -> Exporter {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
        self.restarted(options)
    }

    fn command(options: &[&str], folder: &TempDir) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
        command.arg("serve").args(options);
        let kept = folder.path().join("kept");
        if kept.exists() {
            command.env("STATE_DIRECTORY", kept);
        }
        command
    }

    /// As [`Exporter::start`], of a command that ends with `gpuscope serve` and its options.
    pub fn start_as(command: &mut Command) -> Exporter {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("state")).expect("a folder");
        Exporter::start_in(command, folder)
    }

    fn start_in(command: &mut Command, folder: TempDir) -> Exporter {
        std::fs::write(folder.path().join("state/nvml"), LINKS).expect("a file");
        std::fs::write(folder.path().join("state/kmsg"), "6,0,1,-;boot\n").expect("a file");
        let output = |name: &str| File::create(folder.path().join(name)).expect("a file");
        let child = command
            .args(["--listen", "127.0.0.1:0", "--nvml-interval", "1s"])
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .env("LD_LIBRARY_PATH", sim_folder())
            .env("GPUSCOPE_NVML", sim("libnvidia-ml.so.1"))
            .env("GPUSCOPE_KMSG", folder.path().join("state/kmsg"))
            .env("GPUSIM_STATE", folder.path().join("state"))
            // a whole one, and one in two parts
            .env("GPUSIM_DEVICES", "2")
            .env("GPUSIM_MIG", "1:2")
            .spawn()
            .expect("gpuscope starts");
        let mut exporter = Exporter {
            child,
            address: String::new(),
            folder,
            getters: false,
        };
        exporter.until_serving();
        exporter
    }

    /// What it has said to be at `http://HOST:PORT/`, as `HOST:PORT`, once all of that is there.
    pub fn said_to_be_at(&self, what: &str) -> Option<String> {
        let said = self.stderr();
        let (_, rest) = said.split_once(&format!("{what} http://"))?;
        Some(rest.split_once('/')?.0.to_owned())
    }

    fn until_serving(&mut self) {
        let mut address = None;
        eventually("gpuscope: serving http://…", || {
            let ended = self.child.try_wait().expect("a child");
            let said = self.stderr();
            assert!(ended.is_none(), "gpuscope ended: {ended:?}\n{said}");
            address = self.said_to_be_at("serving");
            address.is_some()
        });
        self.address = address.expect("an address");
    }

    /// How many of a program's calls it should count.
    pub fn calls_of(&self, ledger: &Ledger) -> u64 {
        if self.getters {
            return ledger.visible().values().sum();
        }
        hooked(ledger, |_| true).values().sum()
    }

    /// It was started with the collector of getters.
    pub fn counts_getters(&mut self) {
        self.getters = true;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The folder through which the simulated NVML sees the simulated CUDA.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    /// The metrics, in the format asked for.
    pub fn scrape(&self, accept: &str) -> String {
        self.get("/metrics", accept)
    }

    pub fn get(&self, path: &str, accept: &str) -> String {
        get(&format!("http://{}{path}", self.address), accept).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The sum of the samples of a metric whose line contains all of `parts`; `None`: there is none.
    pub fn sum(&self, metric: &str, parts: &[&str]) -> Option<f64> {
        sum_in(&self.scrape(PLAIN), metric, parts)
    }

    /// How it ended, once it has.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the end of gpuscope", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("a status")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("gpuscope said:\n{}", self.stderr());
        }
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // as a service ends it: probes are taken out
        // SAFETY: plain numbers; the child has not been waited for, so its id is its own
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}

/// The body of an answer that is no error.
pub fn get(url: &str, accept: &str) -> Result<String, ureq::Error> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(30)))
        .build()
        .into();
    agent
        .get(url)
        .header("Accept", accept)
        .call()?
        .body_mut()
        .read_to_string()
}
