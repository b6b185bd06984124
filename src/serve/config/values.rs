//! From settings to a [`Config`]: every key's bounds and default.

use super::place::{Mistakes, Place};
use super::settings::{Setting, Settings, Word};
use super::words::{self, OFF};
use super::{Config, Keep, Otlp, collectors, labels};
use crate::filter::Filter;
use crate::owner::Choice;
use std::path::Path;
use std::time::Duration;

/// Of values of one list.
const MOST: usize = 64;
const TOP_KERNELS: std::ops::RangeInclusive<usize> = 0..=1000;
const MAX_SERIES: std::ops::RangeInclusive<usize> = 100..=1_000_000;
const MAX_OWNERS: std::ops::RangeInclusive<usize> = 1..=100_000;
const HOUR: Duration = Duration::from_secs(3600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
const SIZES: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 40;
/// In thousandths of a percent: less than a hundredth of one is less than what is measured.
const BUDGET: std::ops::RangeInclusive<u32> = 10..=100_000;
const PATIENCE: Duration = Duration::from_secs(300);

/// What `settings` come to; what is wrong is added to `mistakes` and then has its default.
pub(super) fn config(settings: &Settings, mistakes: &mut Mistakes) -> Config {
    let default = Config::default();
    let mut read = Reader { settings, mistakes };
    let mut config = Config {
        collect: match settings.get("collect") {
            Some(setting) => collectors::chosen(setting, read.mistakes),
            None => default.collect,
        },
        layer: read.layers(default.layer),
        hooks: read.list("hooks", default.hooks, |word| words::path(&word.text, directory(word))),
        nvml_interval: read.one("nvml_interval", default.nvml_interval, |word| {
            words::interval(&word.text, HOUR)
        }),
        budget: read.optional("budget", |word| words::percent(&word.text, &BUDGET)),
        budget_except: read.list("budget_except", default.budget_except, |word| {
            labels::choice(&word.text)
        }),
        listen: read.filled("listen", default.listen, |word| words::address(&word.text)),
        health_listen: read.list("health_listen", default.health_listen, |word| {
            words::address(&word.text)
        }),
        telemetry_path: read.one("telemetry_path", default.telemetry_path, |word| words::page(&word.text)),
        web_config: read.optional("web_config", |word| words::path(&word.text, directory(word))),
        display_interval: read.optional("display_interval", |word| words::bare_interval(&word.text, HOUR)),
        labels: read.list("labels", default.labels, |word| labels::label(&word.text)),
        kubelet: read.optional("kubelet", |word| words::url(&word.text, "http://127.0.0.1:10255")),
        pod_resources: match read.setting("pod_resources") {
            Some(_) => read.optional("pod_resources", |word| words::path(&word.text, directory(word))),
            None => default.pod_resources,
        },
        stacks_per_second: default.stacks_per_second,
        top_kernels: read.one("top_kernels", default.top_kernels, |word| {
            words::number(&word.text, &TOP_KERNELS)
        }),
        max_series: read.one("max_series", default.max_series, |word| {
            words::number(&word.text, &MAX_SERIES)
        }),
        max_owners: read.one("max_owners", default.max_owners, |word| {
            words::number(&word.text, &MAX_OWNERS)
        }),
        retain: read.one("retain", default.retain, |word| words::interval(&word.text, YEAR)),
        keep: read.keep(default.keep),
        otlp: read.otlp(),
    };
    labels::check(&config.labels, settings, mistakes);
    collectors::add_layers(&mut config.collect, &config.layer);
    check_keep(&config, settings, mistakes);
    check_budget(&config, settings, mistakes);
    check_budget_except(&config, settings, mistakes);
    config
}

/// Probes alone take any.
fn check_budget(config: &Config, settings: &Settings, mistakes: &mut Mistakes) {
    let setting = settings.get("budget").filter(|_| config.budget.is_some());
    if let Some(setting) = setting.filter(|_| !config.needs_probes()) {
        let cure = "hint: leave it out, or collect api";
        mistakes.add(
            &setting.place,
            format!("nothing is probed that could take a program's time; {cure}"),
        );
    }
}

/// Whoever is excepted has a label that is read, from something.
fn check_budget_except(config: &Config, settings: &Settings, mistakes: &mut Mistakes) {
    let Some(setting) = settings
        .get("budget_except")
        .filter(|setting| !setting.words.is_empty())
    else {
        return;
    };
    if config.budget.is_none() {
        let words = "there is no budget that it could be an exception from; hint: --budget 1%, say";
        return mistakes.add(&setting.place, words.to_owned());
    }
    let labels = config
        .budget_except
        .iter()
        .filter_map(Choice::label)
        .map(ToString::to_string);
    for label in labels.filter(|label| !config.labels.contains(label)) {
        let words = format!("{label} is not among the labels; hint: add it to --labels, or name a cgroup");
        mistakes.add(&setting.place, words);
    }
}

/// Rows are of calls that are traced.
fn check_keep(config: &Config, settings: &Settings, mistakes: &mut Mistakes) {
    let place = settings.get("keep").filter(|_| config.keep.time.is_some());
    let Some(place) = place.map(|setting| &setting.place) else {
        return;
    };
    if !config.needs_probes() {
        let cure = "hint: collect api, which traces every function but getters";
        mistakes.add(place, format!("no call is traced that could be kept; {cure}"));
    }
    if !cfg!(feature = "record") {
        let cure = "hint: cargo build with the feature record, which is on by default";
        mistakes.add(place, format!("this build writes no recordings; {cure}"));
    }
}

/// Of the file that a word stands in.
fn directory(word: &Word) -> Option<&Path> {
    match &word.place {
        Place::File { path, .. } => path.parent(),
        Place::Flag(_) => None,
    }
}

struct Reader<'a> {
    settings: &'a Settings,
    mistakes: &'a mut Mistakes,
}

impl<'a> Reader<'a> {
    fn value<T>(&mut self, word: &Word, read: impl Fn(&Word) -> Result<T, String>) -> Option<T> {
        read(word).map_err(|what| self.mistakes.add(&word.place, what)).ok()
    }

    fn setting(&self, key: &str) -> Option<&'a Setting> {
        self.settings.get(key)
    }

    fn one<T>(&mut self, key: &str, default: T, read: impl Fn(&Word) -> Result<T, String>) -> T {
        let word = self.setting(key).and_then(|setting| setting.words.first());
        word.and_then(|word| self.value(word, read)).unwrap_or(default)
    }

    fn optional<T>(&mut self, key: &str, read: impl Fn(&Word) -> Result<T, String>) -> Option<T> {
        let word = self.setting(key)?.words.first().filter(|word| word.text != OFF)?;
        self.value(word, read)
    }

    /// Values of which none comes twice.
    fn list<T: PartialEq>(&mut self, key: &str, default: Vec<T>, read: impl Fn(&Word) -> Result<T, String>) -> Vec<T> {
        let Some(setting) = self.setting(key) else {
            return default;
        };
        if setting.words.len() > MOST {
            self.mistakes
                .add(&setting.place, format!("too many values; hint: at most {MOST}"));
            return default;
        }
        let mut values = Vec::new();
        for word in &setting.words {
            match self.value(word, &read) {
                Some(value) if values.contains(&value) => {
                    let twice = super::place::quoted(&word.text);
                    self.mistakes
                        .add(&word.place, format!("{twice} is there twice; hint: write it once"));
                }
                value => values.extend(value),
            }
        }
        values
    }

    /// A list that must not be empty.
    fn filled<T: PartialEq>(
        &mut self,
        key: &str,
        default: Vec<T>,
        read: impl Fn(&Word) -> Result<T, String>,
    ) -> Vec<T> {
        let values = self.list(key, default, read);
        if let Some(setting) = self.setting(key).filter(|setting| setting.words.is_empty()) {
            self.mistakes
                .add(&setting.place, "there is no value; hint: leave it out for the default");
        }
        values
    }

    fn layers(&mut self, default: Vec<String>) -> Vec<String> {
        self.filled("layer", default, |word| {
            let layer = vec![word.text.clone()];
            let refused = |error: anyhow::Error| error.to_string().replace('\n', "; ");
            Filter::parse(&[], &layer).map(|_| word.text.clone()).map_err(refused)
        })
    }

    fn keep(&mut self, default: Keep) -> Keep {
        Keep {
            time: self.optional("keep", |word| words::interval(&word.text, HOUR)),
            memory: self.one("keep_memory", default.memory, |word| words::size(&word.text, &SIZES)),
            folder: self.optional("keep_folder", |word| words::path(&word.text, directory(word))),
            disk: self.one("keep_disk", default.disk, |word| words::size(&word.text, &SIZES)),
        }
    }

    fn otlp(&mut self) -> Option<Otlp> {
        const SUCH_AS: &str = "http://127.0.0.1:4318/v1/metrics";
        let url = self.optional("otlp.url", |word| words::url(&word.text, SUCH_AS));
        let otlp = Otlp {
            interval: self.one("otlp.interval", Duration::from_secs(15), |word| {
                words::interval(&word.text, HOUR)
            }),
            timeout: self.one("otlp.timeout", Duration::from_secs(10), |word| {
                words::interval(&word.text, PATIENCE)
            }),
            headers: self.list("otlp.headers", Vec::new(), |word| words::header(&word.text)),
            url: url.unwrap_or_default(),
        };
        let settings = self.settings;
        let place = |key| settings.get(key).map(|setting| setting.place.clone());
        if let (true, Some(place)) = (!cfg!(feature = "otlp"), place("otlp.url")) {
            let cure = "hint: cargo build with the feature otlp, which is on by default";
            self.mistakes
                .add(&place, format!("this build cannot push by OTLP; {cure}"));
        }
        let others = ["otlp.interval", "otlp.timeout", "otlp.headers"]
            .into_iter()
            .find_map(place);
        if let (None, Some(place)) = (self.setting("otlp.url"), others) {
            self.mistakes.add(
                &place,
                format!("nothing is pushed without a URL; hint: url = \"{SUCH_AS}\" in [otlp]"),
            );
        }
        (!otlp.url.is_empty()).then_some(otlp)
    }
}
