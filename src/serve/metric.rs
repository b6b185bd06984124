//! What a metric is, and one value of it. Knows no format.

use crate::owner::Owner;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

/// What is measured together, and can be left out together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collector {
    Api,
    /// Calls of functions that only give something out, which programs make by the thousand. Adds to those of `Api`.
    Getters,
    /// How long each call of `Api` took, in buckets.
    Buckets,
    Errors,
    Memory,
    Launches,
    Copies,
    Sync,
    /// At which lines of programs these waits are.
    Sites,
    /// Calls to NVIDIA's kernel driver.
    Driver,
    Nvml,
    /// What schedulers have given away.
    Reserved,
    Xid,
    /// gpuscope itself.
    Own,
}

impl Collector {
    pub(crate) const ALL: &'static [Collector] = &[
        Collector::Api,
        Collector::Getters,
        Collector::Buckets,
        Collector::Errors,
        Collector::Memory,
        Collector::Launches,
        Collector::Copies,
        Collector::Sync,
        Collector::Sites,
        Collector::Driver,
        Collector::Nvml,
        Collector::Reserved,
        Collector::Xid,
        Collector::Own,
    ];

    /// Whether it is on where nobody says anything else.
    #[must_use]
    pub(crate) fn is_usual(self) -> bool {
        // two slow programs down that have nothing to do with a GPU, or little; one adds three times as many series, one reads
        // call stacks
        !matches!(
            self,
            Collector::Getters | Collector::Driver | Collector::Buckets | Collector::Sites
        )
    }

    /// As written after `--collect`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Collector::Api => "api",
            Collector::Getters => "getters",
            Collector::Buckets => "buckets",
            Collector::Errors => "errors",
            Collector::Memory => "memory",
            Collector::Launches => "launches",
            Collector::Copies => "copies",
            Collector::Sync => "sync",
            Collector::Sites => "sites",
            Collector::Driver => "driver",
            Collector::Nvml => "nvml",
            Collector::Reserved => "reserved",
            Collector::Xid => "xid",
            Collector::Own => "self",
        }
    }
}

/// How values of a metric behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Never falls, except to begin anew with gpuscope.
    Counter,
    Gauge,
    Histogram,
    /// Always 1; its labels say something.
    Info,
}

/// One metric; see [`super::metrics`] for all.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// In full, as in the text format of Prometheus: of counters with `_total`, of infos with `_info`.
    pub name: &'static str,
    /// A sentence without the full stop.
    pub help: &'static str,
    pub kind: Kind,
    /// Its own labels, in the order of [`Sample::values`].
    pub labels: &'static [&'static str],
    /// Whether the labels of an [`Owner`] come after them.
    pub by_owner: bool,
    pub collector: Collector,
    /// Another collector that adds series of its own.
    also_of: Option<Collector>,
}

impl Metric {
    /// A metric without labels.
    #[must_use]
    pub(crate) const fn new(collector: Collector, kind: Kind, name: &'static str, help: &'static str) -> Metric {
        Metric {
            name,
            help,
            kind,
            labels: &[],
            by_owner: false,
            collector,
            also_of: None,
        }
    }

    /// With series of another collector, too.
    #[must_use]
    pub(crate) const fn also_of(mut self, collector: Collector) -> Metric {
        self.also_of = Some(collector);
        self
    }

    /// Whether one of these collectors measures it.
    #[must_use]
    pub(crate) fn is_of(&self, collectors: &BTreeSet<Collector>) -> bool {
        collectors.contains(&self.collector) || self.also_of.is_some_and(|also| collectors.contains(&also))
    }

    /// With these labels.
    #[must_use]
    pub const fn by(mut self, labels: &'static [&'static str]) -> Metric {
        self.labels = labels;
        self
    }

    /// With the labels of whom it is counted for.
    #[must_use]
    pub(crate) const fn by_owner(mut self) -> Metric {
        self.by_owner = true;
        self
    }

    /// The unit that its name ends with, before `_total`; empty: a number of things.
    #[must_use]
    pub(crate) fn unit(&self) -> &'static str {
        const UNITS: [&str; 9] = [
            "bytes",
            "seconds",
            "ratio",
            "celsius",
            "watts",
            "joules",
            "hertz",
            "bytes_per_second",
            "info",
        ];
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        let fits = |unit: &&&str| name.strip_suffix(**unit).is_some_and(|rest| rest.ends_with('_'));
        let longest = UNITS.iter().filter(fits).max_by_key(|unit| unit.len());
        longest.filter(|unit| **unit != "info").copied().unwrap_or("")
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Integer(u64),
    /// Finite.
    Number(f64),
    Histogram(Histogram),
}

/// Counts by bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    pub sum: f64,
    pub count: u64,
    /// Upper edges, rising, and how many are in the bucket below it (not in those before). What is in none is above
    /// the last edge.
    pub buckets: Vec<(f64, u64)>,
}

/// One value of a metric at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub metric: &'static Metric,
    /// Of its labels, one for one; an empty one is as if it had no such label.
    pub values: Vec<Cow<'static, str>>,
    pub owner: Option<Arc<Owner>>,
    pub value: Value,
    /// When a counter of somebody else's was read; `None`: with all the others.
    pub(crate) read_at: Option<SystemTime>,
}

impl Sample {
    /// A sample that is nobody's.
    #[must_use]
    pub fn new(metric: &'static Metric, values: Vec<Cow<'static, str>>, value: Value) -> Sample {
        debug_assert_eq!(metric.labels.len(), values.len(), "{}", metric.name);
        Sample {
            metric,
            values,
            owner: None,
            value,
            read_at: None,
        }
    }

    /// The same, read at that time.
    #[must_use]
    pub(crate) fn read_at(self, at: Option<SystemTime>) -> Sample {
        Sample { read_at: at, ..self }
    }

    /// The same of `owner`.
    #[must_use]
    pub fn of(mut self, owner: &Arc<Owner>) -> Sample {
        debug_assert!(self.metric.by_owner, "{}", self.metric.name);
        self.owner = Some(Arc::clone(owner));
        self
    }

    /// All labels with their values, none empty.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self
            .metric
            .labels
            .iter()
            .copied()
            .zip(self.values.iter().map(AsRef::as_ref));
        let owner = self.owner.iter().flat_map(|owner| &owner.labels);
        let owner = owner.map(|(name, value)| (name.as_str(), value.as_str()));
        own.chain(owner).filter(|(_, value)| !value.is_empty())
    }
}
