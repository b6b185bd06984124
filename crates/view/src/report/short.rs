//! What is said first of totals, a line each, and last of what they are worth. Not escaped.

use super::{Report, since_words, words};
use crate::model::snapshot::executed::{Device, IdleCause};
use crate::section::words::percent;
use crate::section::{Cell, Column, Part, Table};
use crate::sink::coverage::missing_in_all;
use crate::text::quantity::{bytes, count, duration, plural};

/// Processes whose idle time is told.
const IDLE: usize = 3;
/// Per cent of a cause that come from a place which stands for it, and of idle time that a cause has which does.
const TELLING_PERCENT: u64 = 20;
/// Functions whose lost rows are told.
const LOST: usize = 20;

/// Good news.
pub(super) const NOTHING_LOST: &str = "lost: nothing";

/// Names and what is said of them; an empty name: of the one before.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(layer) = report.cuda() {
        facts.push(("calls", format!("{} of the {} layer", count(layer.calls), layer.layer)));
    }
    facts.push(("failed", words::figure(report.failed())));
    facts.push(("launches", launches(report)));
    facts.extend(words::graphs(report).into_iter().map(|graphs| ("", graphs)));
    facts.extend(report.steps.fact().map(|fact| ("steps", fact)));
    facts.push(("copied", bytes(report.copied_bytes())));
    facts.push(("waiting", words::waiting(report)));
    facts.extend(words::unasked(report).map(|more| ("", more)));
    for idle in idle(report).into_iter().take(IDLE) {
        facts.push(("GPU idle", idle.sentence()));
        facts.extend(idle.because.map(|because| ("", because)));
    }
    if let Some(peak) = report.memory.peak_bytes() {
        let since = since_words(report.memory.has_late());
        facts.push(("memory", format!("{} at the peak of one process{since}", bytes(peak))));
    }
    facts.extend(
        driver(report).map(|(share, calls)| ("kernel driver", format!("{share} of the time in CUDA calls, {calls}"))),
    );
    facts
}

/// For how long a device had nothing to do.
pub(super) struct Idle {
    /// What it is instead of an exact time.
    pub bound: Option<&'static str>,
    pub total_ns: u64,
    pub window_ns: u64,
    pub whose: String,
    /// For how long of which time between start-up and end, where that is told apart.
    pub(crate) steady_ns: Option<(u64, u64)>,
    /// Why for the largest part of it, where that was looked for: of the steady part, where that is told apart.
    pub(crate) because: Option<String>,
}

impl Idle {
    fn sentence(&self) -> String {
        let words = super::idle::share_words(self.total_ns, self.window_ns);
        let bound = self.bound.map(|bound| format!("{bound} ")).unwrap_or_default();
        let Some((steady, of)) = self.steady_ns else {
            return format!("{bound}{words} of {}", self.whose);
        };
        let steady = super::idle::share_words(steady, of);
        format!("{steady} between start-up and end, {words} in all, of {}", self.whose)
    }
}

/// Said where only a part of the time was measured.
fn in_windows(report: &Report, pid: u32) -> &'static str {
    let mut gpu = report.totals.gpu.iter();
    match gpu.any(|gpu| gpu.windows_of(pid).is_some()) {
        true => ", in windows",
        false => "",
    }
}

/// As measured, most first; then of processes of which nothing was measured, as their calls prove it.
pub(super) fn idle(report: &Report) -> Vec<Idle> {
    let devices = report.totals.gpu.iter().flat_map(|gpu| &gpu.devices);
    let mut measured: Vec<_> = devices.filter(|device| device.is_measured()).collect();
    measured.sort_by_key(|device| std::cmp::Reverse(device.idle_ns));
    let proven = report
        .idle
        .iter()
        .filter(|idle| measured.iter().all(|device| device.pid != idle.pid));
    let proven = proven.map(|idle| Idle {
        bound: Some(if idle.inferred { "inferred:" } else { "at least" }),
        total_ns: idle.total_ns,
        window_ns: idle.window_ns,
        whose: format!("process {}", idle.pid),
        steady_ns: None,
        because: None,
    });
    let measured = measured.iter().map(|device| Idle {
        bound: None,
        total_ns: device.idle_ns,
        window_ns: device.window_ns(),
        whose: format!(
            "process {}, device {} (measured{})",
            device.pid,
            device.device,
            in_windows(report, device.pid)
        ),
        steady_ns: device.steady.as_ref().map(|steady| (steady.idle_ns, steady.of_ns())),
        because: because(device),
    });
    measured.chain(proven).collect()
}

/// The cause that has most of a device's idle time, and where that came from.
fn because(device: &Device) -> Option<String> {
    let (causes, idle_ns, part) = match &device.steady {
        Some(steady) => (&steady.idle_causes, steady.idle_ns, " between start-up and end"),
        None => (&device.idle_causes, device.idle_ns, ""),
    };
    let known = causes.iter().filter(|cause| cause.is_known());
    let most = known.max_by_key(|cause| cause.idle_ns)?;
    let share = most.idle_ns as f64 / idle_ns.max(1) as f64;
    let tells = share * 100.0 >= TELLING_PERCENT as f64;
    let words = most.words() + &at_place(most);
    tells.then(|| format!("{} of its idle time{part} because {words}", percent(share)))
}

fn at_place(cause: &IdleCause) -> String {
    let telling = |_: &String| cause.where_percent.is_none_or(|percent| percent >= TELLING_PERCENT);
    match Cell::site_of(
        cause.place.clone().filter(telling),
        Part::of(cause.where_percent, cause.where_estimated),
    ) {
        Cell::Unknown => String::new(),
        site => format!(" at {}", site.words()),
    }
}

/// The same as a table, without heads.
pub(super) fn table(report: &Report) -> Table {
    let row = |(name, value): (&str, String)| vec![Cell::Text(name.to_owned()), Cell::Text(value)];
    let rows: Vec<_> = facts(report).into_iter().map(row).collect();
    let few = rows.len();
    Table {
        few,
        ..Table::flat(vec![Column::text(""), Column::text("")], rows.into_iter())
    }
}

fn launches(report: &Report) -> String {
    let launches = report.launches();
    let seconds = report.totals_ns() as f64 / 1e9;
    let rate = words::per_second(launches.number as f64 / seconds.max(1e-9));
    format!("{}, {rate}", words::figure(launches))
}

/// The kernel driver's part of the time in CUDA calls, and its calls; `None`: it was not traced.
pub(super) fn driver(report: &Report) -> Option<(String, String)> {
    let driver = report.driver.as_ref()?;
    let share = driver.in_calls_ns as f64 / driver.cuda_ns.max(1) as f64;
    Some((percent(share.min(1.0)), plural(driver.calls, "call")))
}

/// What was lost and what was not seen, a line each.
pub(super) fn missing(report: &Report) -> Vec<String> {
    let lost = report.losses.functions.iter().take(LOST);
    let lost = lost.map(|lost| format!("lost: {} of {} without rows", plural(lost.count, "call"), lost.name));
    let of_gpu = report.totals.gpu.iter().flat_map(|gpu| &gpu.coverage);
    let missing = missing_in_all(of_gpu.map(|one| (one.missing(), one.broken_off)));
    let nothing = (report.losses.calls == 0 && missing.is_none()).then(|| NOTHING_LOST.to_owned());
    let activities = missing.map(|missing| format!("lost: {missing}, as said there"));
    let unseen = report.unseen().iter().map(|unseen| format!("unseen: {unseen}"));
    lost.chain(activities).chain(nothing).chain(unseen).collect()
}

/// What tracing cost; `None`: it is not known.
pub(super) fn cost(report: &Report) -> Option<String> {
    let cost = Some(&report.totals.cost).filter(|cost| !cost.is_null())?;
    let seconds = |key: &str| cost[key].as_f64().unwrap_or(0.0);
    Some(format!(
        "cost of tracing: about {} in the program, {:.2} s CPU and {} in gpuscope",
        duration((seconds("program_seconds") * 1e9) as u64),
        seconds("tracer_cpu_seconds"),
        bytes(cost["tracer_rss_bytes"].as_u64().unwrap_or(0))
    ))
}
