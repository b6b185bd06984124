//! Takes rows, and adds up what a report says.

use super::Report;
use super::copies::CopyTally;
use super::driver::DriverTally;
use super::executed::ExecutedTally;
use super::failures::Failures;
use super::functions::{Functions, Layer};
use super::idle::{Covered, IdleTally};
use super::kernels::Kernels;
use super::memory::MemoryTally;
use super::processes::Processes;
use super::ranges::RangeTally;
use super::rates::RateTally;
use super::slowest::{Slowest, Unreturned};
use super::source::Source;
use super::steps::Iterations;
use super::waits::Waits;
use super::words::at;
use crate::catalog::Class;
use crate::model::finding::{Finding, Run};
use crate::model::outside::{BETWEEN, Outside, SAMPLE};
use crate::model::snapshot::{Holder, Snapshot};
use crate::paths::{Paths, Weight};
use crate::record::{Kind, Meta, Record, Taker};
use crate::text::quantity::{count, duration, plural};

/// A row this much earlier than one before it is no matter of order.
const BACKWARDS_NS: i64 = 1_000_000_000;

/// Takes rows, and adds up what a report says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gatherer {
    meta: Option<Meta>,
    /// Where the first row of a call begins, and where the last ends.
    span: Option<(i64, i64)>,
    /// From when on there are all rows, where they do not begin with the trace.
    from: Option<i64>,
    early: Early,
    /// Rows are those of several pieces of time.
    in_pieces: bool,
    latest: i64,
    backwards: u64,
    /// Until when calls were lost: the last of them may be later than any that has a row.
    lost_until: Option<i64>,
    functions: Functions,
    slowest: Slowest,
    unreturned: Unreturned,
    memory: MemoryTally,
    kernels: Kernels,
    copies: CopyTally,
    waits: Waits,
    driver: DriverTally,
    idle: IdleTally,
    executed: ExecutedTally,
    outside: Outside,
    ranges: RangeTally,
    rates: RateTally,
    failures: Failures,
    processes: Processes,
    paths: Paths,
}

/// Outermost calls that began before there are all rows, and how long they had lasted by then.
#[derive(Debug, Clone, Copy, Default)]
struct Early {
    calls: u64,
    ns: u64,
}

impl Taker for Gatherer {
    fn start(&mut self, meta: &Meta) {
        self.meta = Some(meta.clone());
    }

    fn take(&mut self, event: &Record<'_>) {
        self.paths.take(event);
        match event.kind {
            Kind::Call => self.call(event),
            Kind::Open => self.unreturned(event),
            Kind::Kernel => self.kernel(event),
            Kind::Count => drop(self.functions.take(event)),
            Kind::Process => self.processes.lives(event),
            Kind::Lost => self.lose(event),
            Kind::Xid => self.failures.fault(event),
            Kind::Sample => self.sample(event),
            Kind::Idle => {
                self.idle.gap(event, self.origin(event));
                self.executed.take(event);
            }
            Kind::DeviceIdle | Kind::Overhead => self.executed.take(event),
            Kind::Range | Kind::Mark => self.ranges.take(event),
            Kind::Gpu => {
                self.ranges.executed(event);
                self.executed.take(event);
            }
            // others say nothing that is summed up
            _ => {}
        }
    }
}

impl Gatherer {
    fn origin(&self, event: &Record<'_>) -> i64 {
        self.span.map_or(event.at, |(first, _)| first)
    }

    /// Rows are whole from `at` on.
    pub(super) fn covers_from(&mut self, at: i64) {
        self.from = Some(at);
    }

    /// There are only rows of several pieces of time.
    pub(super) fn is_in_pieces(&mut self) {
        self.in_pieces = true;
    }

    fn extend(&mut self, event: &Record<'_>) {
        let from = self.from.unwrap_or(i64::MIN);
        let (at, end) = (event.at.max(from), event.end().max(from));
        if event.at < at && event.depth == 0 {
            self.early.calls += 1;
            self.early.ns = self.early.ns.saturating_add(event.end().min(at).abs_diff(event.at));
        }
        self.cover(at, end);
        self.backwards += u64::from(event.at < self.latest.saturating_sub(BACKWARDS_NS));
        self.latest = self.latest.max(event.at);
    }

    fn cover(&mut self, at: i64, end: i64) {
        let (first, last) = self.span.get_or_insert((at, end));
        (*first, *last) = ((*first).min(at), (*last).max(end));
    }

    fn call(&mut self, event: &Record<'_>) {
        self.extend(event);
        let function = self.functions.take(event);
        let view = self.functions.view(function);
        self.slowest.take(event);
        self.processes.take(event);
        self.rates.take(event, view);
        if event.depth == 0 {
            self.driver.cuda(event, view);
            self.idle.call(event, function);
        }
        if event.failed {
            self.failures.take(event, function);
        }
        if let Some(held) = event.held {
            self.memory.hold(event.pid, event.end(), held, self.origin(event));
        }
        match event.class {
            Class::Launch => self.kernels.take(event, view),
            Class::Copy => {
                self.copies.take(event, view);
                if event.blocking {
                    self.waits.take(event, function, view);
                }
            }
            Class::Sync => self.waits.take(event, function, view),
            Class::Alloc | Class::Free => self.memory.take(event, view),
            _ => {}
        }
    }

    fn unreturned(&mut self, event: &Record<'_>) {
        self.unreturned.take(event);
        self.rates.reach(event.end());
        let from = self.from.unwrap_or(i64::MIN);
        self.cover(event.at.max(from), event.end().max(from));
    }

    fn lose(&mut self, event: &Record<'_>) {
        self.failures.lose(event);
        self.lost_until = self.lost_until.max(Some(event.end()));
    }

    /// Said where it makes a difference.
    fn lost_end_words(&self) -> Option<String> {
        let ((first, last), until) = (self.span?, self.lost_at_the_end()?);
        (until.abs_diff(last) >= until.abs_diff(first) / 100).then(|| {
            format!(
                "the last call with a row ended at {}; others were lost until {} at most, which counts as the end",
                at(last),
                at(until)
            )
        })
    }

    /// Until when calls were lost, where that is later than all that have rows.
    fn lost_at_the_end(&self) -> Option<i64> {
        let (_, last) = self.span?;
        self.lost_until.filter(|until| *until > last)
    }

    fn kernel(&mut self, event: &Record<'_>) {
        self.extend(event);
        let function = self.functions.take(event);
        self.driver.kernel(event);
        if event.failed {
            self.failures.take(event, function);
        }
    }

    fn sample(&mut self, event: &Record<'_>) {
        match (event.name, event.bytes) {
            ("memory.held", Some(bytes)) => self.memory.hold(event.pid, event.at, bytes, self.origin(event)),
            ("gpu.idle_at_least_ns", Some(ns)) => self.idle.measured(event, ns, 0),
            ("gpu.busy_at_most_ns", Some(ns)) => self.idle.measured(event, ns, 1),
            (SAMPLE, _) => {
                let place = event.stack.and_then(crate::frame::json::place_of);
                self.outside.add(event.pid, place.as_deref(), event.ns.unwrap_or(0));
            }
            (BETWEEN, _) => {
                let place = event.stack.and_then(crate::frame::json::place_of);
                self.outside.look(event.pid, place.as_deref());
            }
            ("thread.cpu_ns", _) => self.processes.measure(event, 0),
            ("thread.runnable_ns", _) => self.processes.measure(event, 1),
            _ => {}
        }
    }

    /// What the rows so far say. `exact`: the summary of the run, if it is known.
    #[must_use]
    pub(crate) fn report(
        &self,
        source: Source,
        exact: Option<Snapshot>,
        whole: Option<&Snapshot>,
        findings: Vec<Finding>,
        run: Run,
    ) -> Report {
        let (from_ns, last_ns) = self.span.unwrap_or((0, 0));
        let to_ns = self.lost_at_the_end().unwrap_or(last_ns);
        let told = exact.as_ref();
        let waited = self.waits.list(&self.functions, told, source.until.is_some());
        let layers = self.functions.layers(told);
        let source = Source {
            meta: self.meta.clone().or(source.meta),
            ..source
        };
        let losses = self.failures.losses();
        let is_snapshot = source.until.is_some();
        let by_rows = (exact.is_none() || is_snapshot).then(|| self.totals(whole));
        Report {
            notes: self.notes(&source, told, &layers, losses.calls),
            driver: self.driver.report(&layers),
            layers,
            source,
            findings,
            not_looked_for: None,
            run,
            from_ns,
            to_ns,
            slowest: self.slowest.list(),
            unreturned: self.unreturned.clone(),
            memory: self
                .memory
                .report()
                .with_totals(told.or(whole).and_then(|told| told.memory.as_deref())),
            kernels: self.kernels.list(told),
            copies: self.copies.list(told),
            waits: waited.waits,
            hidden: waited.hidden,
            wait_calls: waited.calls,
            outside: self.outside.clone(),
            idle: self.idle.list(
                &self.functions,
                &self.covers((from_ns, to_ns)),
                told.or(by_rows.as_ref()),
            ),
            ranges: self.ranges.report(),
            rates: self
                .rates
                .report(&self.kernels.launches, &self.copies.counts, &self.waits.calls),
            failures: self
                .failures
                .list(told.map(|told| told.failures.as_slice()).unwrap_or_default()),
            losses,
            processes: self.processes.list(),
            xids: self.failures.xids.clone(),
            paths: Weight::ALL.map(|weight| self.paths.tree(weight, told)),
            steps: Iterations::default(),
            exact: exact.is_some(),
            totals: match exact {
                None => by_rows.clone().unwrap_or_default(),
                Some(exact) => self.completed(exact, is_snapshot),
            },
            by_rows: by_rows.filter(|_| is_snapshot),
        }
    }

    fn covers(&self, (from_ns, to_ns): (i64, i64)) -> Covered {
        Covered {
            from_ns,
            to_ns,
            whole: self.from.is_none(),
        }
    }

    /// What rows add up to, in the place of a summary. `whole`: that of all of which these are a part.
    fn totals(&self, whole: Option<&Snapshot>) -> Snapshot {
        let executed = self.executed.report(whole.and_then(|whole| whole.gpu.as_ref()));
        Snapshot {
            // between pieces of time nobody has looked whether anything ran
            gpu: executed.filter(|_| !self.in_pieces),
            functions: self.functions.totals(),
            failures: self.failures.totals(),
            memory: self.holders(),
            xids: self.failures.faults(),
            ..Snapshot::default()
        }
    }

    /// A summary, with what only rows tell of memory where functions were left out. Of a snapshot rows tell what was held later.
    fn completed(&self, exact: Snapshot, is_snapshot: bool) -> Snapshot {
        let memory = match (exact.memory, self.holders()) {
            (_, Some(rows)) if is_snapshot && !rows.is_empty() => Some(rows),
            (Some(told), _) if !told.is_empty() => Some(told),
            (told, Some(rows)) if rows.is_empty() => told,
            (_, by_rows) => by_rows,
        };
        Snapshot { memory, ..exact }
    }

    /// What processes held in the last row that says so; `None`: no row does, but something was allocated.
    fn holders(&self) -> Option<Vec<Holder>> {
        let memory = self.memory.report();
        if memory.processes.is_empty() && memory.allocations > 0 {
            return None;
        }
        let processes = self.processes.list();
        let comm = |pid: u32| processes.iter().find(|one| one.pid == pid).map(|one| one.comm.clone());
        let all = memory.processes.iter().map(|held| Holder {
            pid: held.pid,
            comm: comm(held.pid).unwrap_or_else(|| "?".to_owned()),
            ended: true,
            late: false,
            held_bytes: held.last_bytes,
        });
        Some(all.collect())
    }

    /// Which time there are rows of, where that is not all of the trace.
    fn covered(&self) -> Option<String> {
        let ((_, to), from) = (self.span?, self.from.filter(|from| *from > 0)?);
        let early = match self.early {
            Early { calls: 0, .. } => String::new(),
            Early { calls, ns } => format!(
                "; {} began before and count in full, {} more",
                plural(calls, "call"),
                duration(ns)
            ),
        };
        let idle = match self.idle.known_until() {
            Some(until) if until < to => format!("; idle time is known until {}", at(until)),
            _ => String::new(),
        };
        Some(format!(
            "it covers the {} from {} to {}{early}{idle}; calls without rows are counted by the second",
            duration(to.abs_diff(from)),
            at(from),
            at(to)
        ))
    }

    fn notes(&self, source: &Source, exact: Option<&Snapshot>, layers: &[Layer], lost: u64) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(source.part.clone());
        let rows_alone = "there are no exact totals: all numbers are computed from rows";
        notes.extend(
            source
                .unreadable
                .as_ref()
                .map(|why| format!("its exact totals cannot be read: {why}")),
        );
        match (&source.cut, exact) {
            (Some(why), Some(_)) if let Some(until) = source.until => {
                notes.push(format!("the recording was cut off ({why}); {until}"));
            }
            (Some(why), None) => notes.push(format!("the recording was cut off ({why}); {rows_alone}")),
            (Some(why), Some(_)) => notes.push(format!("the recording is damaged behind its last row ({why})")),
            (None, None) => notes.push(rows_alone.to_owned()),
            (None, Some(_)) => {}
        }
        notes.extend(source.of_more_until.map(|until| {
            format!(
                "its rows of type snapshot have the totals of the whole trace, up to {}",
                at(until)
            )
        }));
        notes.extend(self.covered());
        if lost > 0 {
            let what = match exact {
                Some(_) => "totals by function are exact all the same; everything else may be too little",
                None => "every number may be too little",
            };
            notes.push(format!("{} without rows (lost): {what}", plural(lost, "call")));
        }
        notes.extend(self.lost_end_words());
        if self.backwards > 0 {
            notes.push(format!(
                "{} out of order by more than a second: what is shown over time may be wrong there",
                plural(self.backwards, "row")
            ));
        }
        notes.extend(exact.and_then(|exact| filtered(layers, exact, lost)));
        notes
    }
}

/// Calls that were counted and left out on purpose (`--errors`, `--min-duration`, `--filter`).
fn filtered(layers: &[Layer], exact: &Snapshot, lost: u64) -> Option<String> {
    let is_chatty = |name: &str| exact.counted_only.iter().any(|one| one == name);
    let timed = layers
        .iter()
        .flat_map(|layer| &layer.functions)
        .filter(|function| function.errors.is_some() && !is_chatty(&function.name));
    let (calls, rows) = timed.fold((0u64, 0u64), |(calls, rows), function| {
        (
            calls.saturating_add(function.calls),
            rows.saturating_add(function.rows.min(function.calls)),
        )
    });
    // calls under way when tracing ended have no row either
    let missing = (calls - rows).saturating_sub(lost);
    (missing > calls / 100).then(|| {
        format!(
            "{} of {} calls have rows, the others were only counted: what is not a total is of those alone",
            count(rows),
            count(calls)
        )
    })
}
