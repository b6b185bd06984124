//! What devices execute, as processes hand it over: told as records, and added up.
//!
//! Owns whether a program is started so. How it comes is `collect::activity`'s business, what it adds up to that of
//! `model::activity`.

use super::Tracer;
use super::lately::{Lately, SETTLED_NS};
use crate::activity::shared::{ACTIVITY_DEVICE, ACTIVITY_ON, ACTIVITY_STREAM, ActivityRecord};
use crate::activity::{self, Activities, INJECTION, Report as Told, Wish};
use crate::catalog::{Class, Layer, Step};
use crate::clock::monotonic_ns;
use crate::decode::{Call, Value};
use crate::discover;
use crate::model::activity::{
    Account, Activity, Cause, Coverage, DeviceReport, Given, Limits, Matcher, Matching, Overhead, OverheadSums, Report,
    Seen, Sites, Turn, Waiting, Waits,
};
use crate::model::beside::{Measure, Measured};
use crate::model::kernel_name::KernelName;
use crate::output::say;
use crate::probe::launch::Runner;
use crate::record::{Taker, json};
use crate::refusal::message;
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Processes hand over what was done each tenth of a second, where they get a processor, and are awaited for so long.
const HANDED_OVER: Duration = Duration::from_secs(2);
const HAND_OVER_STEP: Duration = Duration::from_millis(5);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub wish: Wish,
    /// Where it cannot be had, that is an error.
    pub must: bool,
    /// Activities become lines.
    pub lines: bool,
}

/// What devices execute.
pub(super) struct GpuPlane {
    demand: Demand,
    /// Or why there are none.
    activities: Result<Activities, String>,
    account: Account,
    overheads: OverheadSums,
    comms: HashMap<u32, String>,
    /// When calls ceased to count, CLOCK_MONOTONIC ns: what devices began later belongs to none.
    pub(super) until: Option<u64>,
    /// Processes that go on and have not handed over what was done until then.
    owing: Vec<u32>,
    lately: Lately,
    pub(super) matcher: Matcher,
    matching: Matching,
    pub(super) waiting: Waiting,
    /// What streams wait for, by process, until they are given something to do.
    held_up: HashMap<(u32, u64), Waits>,
    sites: Sites,
    /// When and whence the last call of the runtime that gives work was entered, by thread.
    around: HashMap<u32, (u64, Option<u64>)>,
    /// Whose calls give devices work: the driver's, where they are seen.
    layer: Layer,
}

/// What is known of a call beside what it says itself.
pub(super) struct GivenTo<'a> {
    pub stream: u64,
    pub kernel: Option<&'a Arc<KernelName>>,
    /// Where it was called from.
    pub site: Option<u64>,
}

impl GpuPlane {
    /// Of each process that has loaded what asks CUPTI.
    pub(super) fn reports(&self) -> impl Iterator<Item = Told> + use<> {
        let reports = self.activities.as_ref().map(Activities::reports);
        reports.unwrap_or_default().into_iter()
    }

    /// Those that go on and have not handed over what was done until `ended`, CLOCK_MONOTONIC ns.
    fn owing(&self, ended: u64) -> Vec<u32> {
        let owes = |told: &Told| {
            let is_on = told.head.state == ACTIVITY_ON && told.head.flushed < ended;
            is_on && told.is_connected && !discover::has_ended(told.pid)
        };
        self.reports().filter(owes).map(|told| told.pid).collect()
    }

    /// What is missing at the end.
    pub(super) fn gaps(&self) -> impl Iterator<Item = String> {
        let words = |pid| {
            format!(
                "what the GPU executed last for process {pid}: it did not hand that over within {} s",
                HANDED_OVER.as_secs()
            )
        };
        self.owing.iter().map(words)
    }

    fn devices(&self, steady: impl Fn(u32) -> Option<(u64, u64)>) -> Vec<DeviceReport> {
        let mut devices = self.account.report();
        for device in &mut devices {
            device.causes = self.waiting.causes(device.pid, device.device, device.span.idle_ns());
            let part = steady(device.pid).and_then(|part| device.span.edged(part));
            device.steady = part.and_then(|(from, until)| self.waiting.part(device.pid, device.device, from, until));
        }
        devices
    }

    /// `steady`: when a process was past its start-up and not yet at its end, CLOCK_MONOTONIC ns.
    fn report(&self, steady: impl Fn(u32) -> Option<(u64, u64)>) -> Report {
        let coverage = self.reports().map(|told| Coverage {
            early: self.matcher.early(told.pid),
            late: self.waiting.is_late(told.pid),
            ..Coverage::of(&told)
        });
        Report {
            devices: self.devices(steady),
            coverage: coverage.collect(),
            refused: self.activities.as_ref().err().cloned(),
            matching: self.matching,
            overheads: self.overheads.report(),
            by_site: self.sites.report(),
        }
    }

    /// A call that is shown may give a device something to do. `layer`: whose call it is.
    pub(super) fn follow(&mut self, layer: Layer, call: &Call<'_>, given: &GivenTo<'_>) {
        let header = &call.header;
        let gives = matches!(call.row.class, Class::Launch | Class::Copy | Class::Memset);
        let of = (header.tgid, given.stream);
        let step = call.row.work.as_ref().map(|work| work.step);
        // one that cannot be ended as it should is over all the same
        if call.failed() && step != Some(Step::CaptureEnd) {
            return;
        }
        match step {
            Some(Step::CaptureBegin) => return self.matcher.capture(of.0, of.1, true),
            Some(Step::CaptureEnd) => return self.matcher.capture(of.0, of.1, false),
            Some(Step::Wait) => {
                self.held_up.insert(of, Waits::Stream);
                return;
            }
            _ if call.row.holds_up_its_stream() => {
                self.held_up.insert(of, Waits::HostFunction);
                return;
            }
            Some(Step::ExecDestroy) => {
                if let Some((_, Value::Address(graph))) = call.args().next() {
                    self.matcher.destroy(of.0, graph);
                }
                return;
            }
            _ if !gives => return,
            _ if layer == Layer::Runtime => drop(self.around.insert(header.tid, (header.entered, given.site))),
            _ => {}
        }
        if layer != self.layer {
            return;
        }
        let around = self.around.get(&header.tid).copied();
        let outermost = around.filter(|(entered, _)| header.caller == *entered);
        let by = Cause {
            tid: header.tid,
            entered: outermost.map_or(header.entered, |(entered, _)| entered),
            site: given.site.or(outermost.and_then(|(_, site)| site)),
            waits: self.held_up.remove(&of),
        };
        match (step, call.row.class) {
            (Some(Step::GraphLaunch), _) => {
                let graph = call.args().next().map(|(_, value)| value);
                if let Some(Value::Address(graph)) = graph {
                    self.matcher.launch(of, by, header.entered, graph);
                }
            }
            (_, Class::Launch) => self
                .matcher
                .give(of, by, header.entered, Given::Kernel(given.kernel.cloned())),
            (_, Class::Copy) => {
                let bytes = call.size().filter(|bytes| *bytes > 0);
                self.matcher.give(of, by, header.entered, Given::Copy(bytes));
            }
            _ => self.matcher.give(of, by, header.entered, Given::Memset),
        }
    }

    /// What `program` needs in its environment, in which `given` is there already.
    fn environment(
        &mut self,
        program: Option<&OsStr>,
        given: Option<OsString>,
        user: Option<u32>,
    ) -> Result<Vec<(OsString, OsString)>> {
        let Ok(activities) = &self.activities else {
            return Ok(Vec::new());
        };
        let refusing = program.filter(|program| activity::is_refused_by(program));
        let words = match (given.filter(|path| activity::is_taken(Some(path.clone()))), refusing) {
            (Some(other), _) => format!(
                "{INJECTION} is set to {} already, and has room for one library\nhint: unset it",
                other.display()
            ),
            (None, Some(tool)) => format!(
                "{} does not run where {INJECTION} is set, so it is started without\nhint: --gpu off, or gpuscope without it",
                tool.display()
            ),
            (None, None) => match activities.environment(user) {
                Ok(needed) => return Ok(needed),
                Err(error) => message(&error),
            },
        };
        if self.demand.must {
            bail!("--gpu on: {words}");
        }
        let words = words.replace('\n', "; ");
        say_not_recorded(&words);
        self.activities = Err(words);
        Ok(Vec::new())
    }
}

pub(super) fn say_not_recorded(why: &str) {
    say(format_args!("gpuscope: what the GPU executes is not recorded: {why}"));
}

/// How many multiprocessors a device has.
fn of_device(pid: u32, record: &ActivityRecord) -> Option<Measure> {
    (record.kind == ACTIVITY_DEVICE).then(|| Measure {
        at: record.begin,
        pid,
        tid: 0,
        what: Measured::Value {
            name: json::multiprocessors_name(record.device),
            value: record.bytes,
        },
    })
}

fn of_overhead(overhead: &Overhead) -> Measure {
    Measure {
        at: overhead.begin,
        pid: overhead.pid,
        tid: 0,
        what: Measured::Overhead {
            ns: overhead.end - overhead.begin,
            kind: overhead.kind,
        },
    }
}

impl Tracer {
    /// Has programs that are started from now on tell what devices execute for them.
    ///
    /// # Errors
    /// It must be, and cannot.
    pub(crate) fn watch_gpu(&mut self, demand: Demand) -> Result<()> {
        let activities = match Activities::start(demand.wish) {
            Err(error) if demand.must => return Err(error.context("failed to record what the GPU executes")),
            started => started.map_err(|error| message(&error)),
        };
        let layer = match self.rows.has_layer(Layer::Driver) {
            true => Layer::Driver,
            false => Layer::Runtime,
        };
        self.gpu = Some(GpuPlane {
            demand,
            activities,
            account: Account::default(),
            overheads: OverheadSums::default(),
            comms: HashMap::new(),
            until: None,
            owing: Vec::new(),
            matcher: Matcher::default(),
            matching: Matching::default(),
            waiting: Waiting::default(),
            held_up: HashMap::new(),
            lately: Lately::default(),
            sites: Sites::default(),
            around: HashMap::new(),
            layer,
        });
        Ok(())
    }

    /// Has process `pid`, which runs already and waits for that, tell what devices execute for it from now on.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn visit_gpu(&mut self, pid: u32, patience: Duration) -> Result<()> {
        let Some(gpu) = &mut self.gpu else { return Ok(()) };
        let Ok(activities) = &gpu.activities else { return Ok(()) };
        match activities.visit(pid, patience) {
            Err(error) if !discover::has_ended(pid) => Err(error.context("failed to ask what the GPU executes")),
            _ => Ok(()),
        }
    }

    /// Processes that wait for CUPTI's first answer.
    pub(super) fn asked(&self) -> Vec<u32> {
        let waits = |told: &Told| told.is_connected && Coverage::of(told).seen == Seen::Unanswered;
        let reports = self.gpu.iter().flat_map(GpuPlane::reports);
        reports.filter(waits).map(|told| told.pid).collect()
    }

    pub(super) fn is_cupti_asked(&self) -> bool {
        !self.asked().is_empty()
    }

    /// Whether it has to be known what devices execute.
    pub(super) fn must_watch_gpu(&self) -> bool {
        self.gpu.as_ref().is_some_and(|gpu| gpu.demand.must)
    }

    /// What a program that is started needs for that.
    pub(super) fn environment_of_gpu(
        &mut self,
        program: Option<&OsStr>,
        runner: Option<&Runner>,
    ) -> Result<Vec<(OsString, OsString)>> {
        let Some(gpu) = &mut self.gpu else {
            return Ok(Vec::new());
        };
        let given = match runner {
            Some(runner) => runner.environment.get(OsStr::new(INJECTION)).cloned(),
            None => std::env::var_os(INJECTION),
        };
        gpu.environment(program, given, runner.map(|runner| runner.user.uid))
    }

    /// Takes in what devices have done.
    pub(super) fn take_activities(&mut self) {
        let Some(gpu) = &mut self.gpu else { return };
        let Ok(activities) = &gpu.activities else { return };
        // a run that shows no line has them, too, where it sees calls: sums by call site need those
        let encoder = self.encoder.as_ref();
        let sees_calls = encoder.is_some_and(|encoder| encoder.shows() || self.findings.is_ok());
        let matched = gpu.demand.lines && sees_calls;
        let drained = monotonic_ns();
        activities.drain(&mut |source, record| {
            if record.kind == ACTIVITY_STREAM {
                gpu.matcher
                    .name_stream(source.pid, record.context, record.stream, record.bytes);
            }
            if let Some(turn) = Turn::of(record) {
                gpu.account.turn(source.pid, turn);
                gpu.matcher.turn(source.pid, turn);
                gpu.waiting.turn(source.pid, turn);
                return;
            }
            if let Some(limits) = Limits::of(record) {
                gpu.account.limit(source.pid, record.device, limits);
            }
            if let Some(measure) = of_device(source.pid, record).filter(|_| matched) {
                self.window.measure(measure);
            }
            if let Some(overhead) = Overhead::of(source, record) {
                gpu.overheads.add(&overhead);
                if matched {
                    gpu.waiting.overhead(&overhead);
                    self.window.measure(of_overhead(&overhead));
                }
                return;
            }
            let Some(activity) = Activity::of(source, record, &mut self.launches) else {
                return;
            };
            if gpu.until.is_some_and(|until| activity.begin > until) {
                return;
            }
            gpu.account.add(&activity);
            if let Some(activity) = matched.then(|| gpu.lately.keep(activity)).flatten() {
                self.window.run(activity);
            }
        });
        self.settle_activities(drained.saturating_sub(SETTLED_NS));
    }

    /// What began before `horizon` has come, as far as it ever does.
    pub(super) fn settle_activities(&mut self, horizon: u64) {
        if let Some(gpu) = &mut self.gpu {
            gpu.lately.settle(horizon, |activity| self.window.run(activity));
        }
    }

    /// A process is gone, or another program has its number.
    pub(super) fn settle_process(&mut self, pid: u32, gone: bool) {
        if let Some(gpu) = &mut self.gpu {
            gpu.lately.turn(pid, gone, |activity| self.window.run(activity));
        }
    }

    /// What is asked for ends at `ended`, CLOCK_MONOTONIC ns: what begins later is left out, as the calls are that caused it.
    pub(super) fn end_activities(&mut self, ended: u64) {
        if let Some(gpu) = &mut self.gpu {
            gpu.until = Some(ended);
        }
    }

    /// Programs that go on hand over what was done until `ended`.
    pub(super) fn await_activities(&mut self, ended: u64) {
        let until = Instant::now() + HANDED_OVER;
        loop {
            self.take_activities();
            let Some(gpu) = self.gpu.as_mut() else { return };
            gpu.owing = gpu.owing(ended);
            if gpu.owing.is_empty() || Instant::now() >= until {
                break;
            }
            std::thread::sleep(HAND_OVER_STEP);
        }
    }

    pub(super) fn write_activity(&mut self, activity: &Activity) {
        let Some(encoder) = self.encoder.as_mut() else { return };
        let Some(gpu) = self.gpu.as_mut() else { return };
        let call = gpu.matcher.cause(activity);
        gpu.matching.looked_for += 1;
        gpu.matching.found += u64::from(call.is_some());
        let activity = &Activity {
            call,
            ..activity.clone()
        };
        gpu.sites.add(activity);
        gpu.waiting.run(activity);
        let known = gpu.comms.entry(activity.pid);
        let comm = known.or_insert_with(|| discover::comm(activity.pid, activity.pid).unwrap_or_default());
        let made = self.maker.activity(activity, comm, self.full_names, encoder.keeps());
        if let Ok(findings) = &mut self.findings {
            Taker::take(findings.as_mut(), &made);
        }
        encoder.take(&made, &mut self.buffer);
        self.write_if_full();
    }

    /// What there is so far; `None`: nobody asks.
    pub(super) fn report_activities(&self) -> Option<Report> {
        let steady = |pid| {
            let diagnostics = self.findings.as_ref().ok()?;
            let (from, until) = diagnostics.steady_of(pid)?;
            Some((self.maker.monotonic(from), self.maker.monotonic(until)))
        };
        self.gpu.as_ref().map(|gpu| gpu.report(steady))
    }
}
