//! How `gpuscope serve` is set up: a TOML file, and flags that go before it.
//!
//! Owns names, bounds and defaults, and the words for what is wrong, with its place. Opens the file, nothing else:
//! what it names (the web config, hook files) is read by who uses it.

mod collectors;
mod file;
mod flags;
mod labels;
mod place;
mod settings;
mod show;
#[cfg(test)]
mod tests;
mod values;
mod words;

pub(crate) use place::Mistakes;

use crate::cli::ServeArgs;
use crate::owner::{Choice, Wanted};
use crate::refusal::Usage;
use crate::reserved;
use crate::serve::metric::Collector;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A longer file is none that a person wrote.
const LONGEST_FILE: u64 = 1 << 20;

/// Everything that can be set. Every value is within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Never empty.
    pub collect: BTreeSet<Collector>,
    /// As [`crate::filter::Filter::parse`] reads them.
    pub layer: Vec<String>,
    pub hooks: Vec<PathBuf>,
    pub(crate) nvml_interval: Duration,
    /// What probes may take of a program's time, 1: all; `None`: whatever they take.
    pub(crate) budget: Option<Share>,
    /// Programs that may take more, and on whose account nothing goes unseen.
    pub(crate) budget_except: Vec<Choice>,
    /// Never empty; port 0 is any free one.
    pub listen: Vec<SocketAddr>,
    /// Where health alone is told, to everybody and in clear; empty: nowhere but on [`Self::listen`].
    pub(crate) health_listen: Vec<SocketAddr>,
    /// Begins with a slash.
    pub telemetry_path: String,
    pub web_config: Option<PathBuf>,
    pub(crate) display_interval: Option<Duration>,
    /// Each as [`crate::owner::Label`] reads it, in the order in which they are shown; may be empty.
    pub labels: Vec<String>,
    /// `http` or `https`.
    pub(crate) kubelet: Option<String>,
    /// The socket of the kubelet that tells reserved devices.
    pub(crate) pod_resources: Option<PathBuf>,
    pub(crate) top_kernels: usize,
    /// Call stacks of calls that allocate, so many a second at most: no option of the exporter, which shows none.
    pub stacks_per_second: u32,
    /// Of one metric.
    pub(crate) max_series: usize,
    pub(crate) max_owners: usize,
    pub(crate) retain: Duration,
    pub(crate) keep: Keep,
    pub otlp: Option<Otlp>,
}

/// A part of a whole, in thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share(pub u32);

impl Share {
    /// 1: all of it.
    #[must_use]
    pub(crate) fn of_one(self) -> f64 {
        f64::from(self.0) / 1e5
    }
}

/// What is kept of the last moments of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// `None`: nothing is kept.
    pub(crate) time: Option<Duration>,
    /// Most bytes in memory.
    pub(crate) memory: u64,
    /// `None`: in the state folder.
    pub(crate) folder: Option<PathBuf>,
    /// Most bytes of all files.
    pub(crate) disk: u64,
}

/// Where metrics are pushed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Otlp {
    /// In full with its path; `http` or `https`.
    pub url: String,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// Each a name and a value that HTTP allows.
    pub headers: Vec<(String, String)>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            collect: collectors::usual().collect(),
            layer: ["runtime", "driver"].map(str::to_owned).to_vec(),
            hooks: Vec::new(),
            nvml_interval: Duration::from_secs(5),
            budget: None,
            budget_except: Vec::new(),
            listen: vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9748)],
            health_listen: Vec::new(),
            telemetry_path: "/metrics".to_owned(),
            web_config: None,
            display_interval: None,
            labels: Wanted::default().labels().iter().map(ToString::to_string).collect(),
            kubelet: None,
            pod_resources: Some(PathBuf::from(reserved::SOCKET)),
            stacks_per_second: 0,
            top_kernels: 10,
            max_series: 10_000,
            max_owners: 1000,
            retain: Duration::from_secs(3600),
            keep: Keep {
                time: None,
                memory: 64 << 20,
                folder: None,
                disk: 1 << 30,
            },
            otlp: None,
        }
    }
}

impl Config {
    /// Whether something is measured that only probes see; without, no privileges are needed.
    #[must_use]
    pub(crate) fn needs_probes(&self) -> bool {
        self.collect
            .iter()
            .any(|collector| collectors::needs_probes(*collector))
    }

    /// What differs in `new` and takes effect only after a restart; one sentence each.
    #[must_use]
    pub(crate) fn changes_that_need_a_restart(&self, new: &Config) -> Vec<String> {
        let (now, then) = (show::lines(self), show::lines(new));
        let fixed = now.iter().zip(&then).filter(|((key, _), _)| FIXED.contains(key));
        let changed = fixed.filter(|((_, old), (_, new))| old != new);
        let sentence = |((key, old), (_, new)): (&(&str, String), &(&str, String))| {
            format!("{key} stays {old}; for {new}, restart gpuscope")
        };
        changed.map(sentence).collect()
    }

    /// `new`, with what needs a restart as it is here.
    #[must_use]
    pub(crate) fn reloaded(&self, new: Config) -> Config {
        Config {
            collect: self.collect.clone(),
            layer: self.layer.clone(),
            hooks: self.hooks.clone(),
            nvml_interval: self.nvml_interval,
            budget: self.budget,
            budget_except: self.budget_except.clone(),
            listen: self.listen.clone(),
            health_listen: self.health_listen.clone(),
            telemetry_path: self.telemetry_path.clone(),
            kubelet: self.kubelet.clone(),
            pod_resources: self.pod_resources.clone(),
            keep: self.keep.clone(),
            ..new
        }
    }

    /// As a file that says the same, with the values of headers left out.
    #[must_use]
    pub fn show(&self) -> String {
        show::text(self)
    }
}

/// What a running gpuscope cannot change.
const FIXED: [&str; 15] = [
    "collect",
    "layer",
    "hooks",
    "nvml_interval",
    "budget",
    "budget_except",
    "listen",
    "health_listen",
    "telemetry_path",
    "kubelet",
    "pod_resources",
    "keep",
    "keep_memory",
    "keep_folder",
    "keep_disk",
];

/// Reads the file that the flags name, if any, and the flags.
///
/// # Errors
/// The file cannot be read, or something in it or in the flags is wrong: each with its place and cure, as [`Usage`].
pub(crate) fn check(args: &ServeArgs) -> Result<Config> {
    let file = args.config.as_deref().map(read).transpose();
    let file = file.map_err(|error| Usage(crate::refusal::message(&error)))?;
    let file = args.config.as_deref().zip(file.as_deref());
    parse(args, file).map_err(|mistakes| Usage(mistakes.to_string()).into())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = || {
        let name = crate::text::quantity::escaped(&path.display().to_string());
        format!("failed to read the configuration {name}\nhint: does --config name a file that gpuscope may read?")
    };
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(failed)?;
    file.take(LONGEST_FILE + 1)
        .read_to_end(&mut bytes)
        .with_context(failed)?;
    match bytes.len() as u64 > LONGEST_FILE {
        true => Err(anyhow::anyhow!("it is longer than 1 MiB")).with_context(failed),
        false => Ok(bytes),
    }
}

/// What flags and the bytes of a file come to. Opens nothing.
///
/// # Errors
/// All that is wrong.
pub fn parse(args: &ServeArgs, file: Option<(&Path, &[u8])>) -> Result<Config, Mistakes> {
    let (mut settings, mut mistakes) = (settings::Settings::new(), Mistakes::default());
    if let Some((path, bytes)) = file {
        file::read(path, bytes, &mut settings, &mut mistakes);
    }
    flags::read(args, &mut settings);
    let config = values::config(&settings, &mut mistakes);
    mistakes.or(config)
}
