//! gpuscope itself: what it sees, what it lost, what it costs.

use super::Label;
use crate::serve::metric::{Metric, Sample, Value};
use crate::serve::metrics::own as table;
use crate::tracer::{Census, Spending};
use crate::version::{self, Build};
use std::time::Duration;

/// What is known of gpuscope beside what it traces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own {
    pub cpu_seconds: f64,
    pub rss_bytes: u64,
    pub open_fds: u64,
    /// Seconds since 1970.
    pub started_at: f64,
    /// Answers of the web server, by status code.
    pub requests: Vec<(u16, u64)>,
    /// When gathering began, seconds since 1970, and what it took.
    pub gathered_at: f64,
    pub gathered_in: Duration,
}

/// Of the program alone.
pub(crate) fn own(own: &Own) -> Vec<Sample> {
    let number = |metric: &'static Metric, value: f64| Sample::new(metric, Vec::new(), Value::Number(value));
    let integer = |metric: &'static Metric, value: u64| Sample::new(metric, Vec::new(), Value::Integer(value));
    let mut samples = vec![
        Sample::new(&table::BUILD_INFO, build(version::this()), Value::Integer(1)),
        number(&table::GATHER_DURATION_SECONDS, own.gathered_in.as_secs_f64()),
        number(&table::GATHERED_TIMESTAMP_SECONDS, own.gathered_at),
        number(&table::PROCESS_CPU_SECONDS, own.cpu_seconds),
        integer(&table::PROCESS_RESIDENT_MEMORY_BYTES, own.rss_bytes),
        integer(&table::PROCESS_OPEN_FDS, own.open_fds),
        number(&table::PROCESS_START_TIME_SECONDS, own.started_at),
    ];
    let requests = own.requests.iter();
    samples.extend(requests.map(|(code, count)| {
        Sample::new(
            &table::HTTP_REQUESTS,
            vec![code.to_string().into()],
            Value::Integer(*count),
        )
    }));
    samples
}

/// What is not known is empty, and then no label.
fn build(build: &Build) -> Vec<Label> {
    vec![
        build.version.into(),
        build.commit.unwrap_or_default().into(),
        build.dirty.map(|dirty| dirty.to_string()).unwrap_or_default().into(),
        build.rustc.unwrap_or_default().into(),
        build.features.join(",").into(),
        build.target.clone().into(),
    ]
}

/// What has come of it.
fn budget(spending: &Spending) -> Vec<Sample> {
    let most = Sample::new(&table::BUDGET_SPENT, Vec::new(), Value::Number(spending.most));
    let shed = spending.shed.iter().flat_map(|(traffic, now, seconds)| {
        let labels = || vec![traffic.name().into()];
        [
            Sample::new(&table::BUDGET_SHED, labels(), Value::Integer(u64::from(*now))),
            Sample::new(&table::BUDGET_UNSEEN_SECONDS, labels(), Value::Number(*seconds)),
        ]
    });
    std::iter::once(most).chain(shed).collect()
}

/// Of the tracing.
pub(crate) fn tracing(census: &Census) -> Vec<Sample> {
    let count =
        |metric: &'static Metric, labels: Vec<Label>, value: u64| Sample::new(metric, labels, Value::Integer(value));
    let mut samples = vec![
        count(&table::PROBE_HITS, vec!["call".into()], census.hits.0),
        count(&table::PROBE_HITS, vec!["entry".into()], census.hits.1),
        Sample::new(&table::PROBE_SECONDS, Vec::new(), Value::Number(census.probe_seconds)),
        count(&table::TRACED_PROCESSES, Vec::new(), census.processes as u64),
        count(&table::ATTACHED_FILES, Vec::new(), census.files as u64),
        count(&table::ATTACHED_FUNCTIONS, Vec::new(), census.functions as u64),
        count(
            &table::COVERAGE_GAPS,
            vec!["machine".into()],
            (census.unseen.len() - census.unseen_files) as u64,
        ),
        count(&table::COVERAGE_GAPS, vec!["files".into()], census.unseen_files as u64),
        count(&table::OWNERS, Vec::new(), census.readings.len() as u64),
        count(&table::OWNERS_RETIRED, Vec::new(), census.retired_owners),
        count(&table::OWNERS_MERGED, Vec::new(), census.merged),
        count(&table::OWNERS_UNKNOWN, vec!["place".into()], census.unknown.places),
        count(&table::OWNERS_UNKNOWN, vec!["program".into()], census.unknown.programs),
        count(&table::KERNELS_EVICTED, Vec::new(), census.evicted_kernels),
    ];
    samples.extend(census.spending.iter().flat_map(budget));
    let lost = census.lost.iter();
    samples.extend(lost.map(|(reason, lost)| count(&table::LOST_RECORDS, vec![(*reason).into()], *lost)));
    samples
}
