//! One process: what each of its calls changes.

use super::Call;
use super::classify::{blocks, classify};
use super::copies::Copies;
use super::graphs::Graphs;
use super::hidden::{CopyWait, HiddenWaits, SyncWait};
use super::idle::Gap;
use super::name::StreamName;
use super::ranges::Ranges;
use super::report::{Created, GpuReport, ProcessReport, StreamReport};
use super::stream::Stream;
use super::streams::Streams;
use super::waits::{Wait, Waits};
use crate::catalog::{CopyKind, Family, HostMemory, MemoryKind, Step, Verb, WorkPart};
use crate::model::kind::{CopyClass, HiddenKind};
use crate::model::memory::{self, Origin};
use crate::wire::WorkLoss;

/// Copies to a device of no more than that may not wait.
const ASYNCHRONOUS_BYTES: u64 = 64 << 10;

/// What graphs have to do with a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphKernel {
    pub id: u64,
    pub runs: u64,
    pub captured: u64,
}

/// One process: what each of its calls changes.
#[derive(Debug)]
pub struct Process {
    pub comm: String,
    pub origin: Origin,
    pub(super) first_at: u64,
    ranges: Ranges,
    streams: Streams,
    copies: Copies,
    waits: Waits,
    pub(super) hidden: HiddenWaits,
    graphs: Graphs,
    created: Created,
    elapsed_count: u64,
    elapsed_ns: u64,
    pub lost: WorkLoss,
}

impl Process {
    /// A process of which nothing is known yet.
    pub(crate) fn new(origin: Origin, at: u64) -> Process {
        Process {
            comm: String::new(),
            origin,
            first_at: at,
            ranges: Ranges::default(),
            streams: Streams::default(),
            copies: Copies::default(),
            waits: Waits::default(),
            hidden: HiddenWaits::default(),
            graphs: Graphs::new(origin),
            created: Created::default(),
            elapsed_count: 0,
            elapsed_ns: 0,
            lost: WorkLoss::default(),
        }
    }

    /// Calls of it may be missing: what lies at an address, and what is in a graph, was perhaps not told.
    pub fn doubt(&mut self) {
        self.origin = Origin::Late;
        self.graphs.watched_late();
    }

    /// See [`Streams::set_blind`].
    pub(crate) fn set_blind(&mut self, blind: bool, at: u64) {
        match blind {
            true => self.graphs.miss(),
            false => self.graphs.forget_captures(),
        }
        self.streams.set_blind(blind, at);
    }

    /// Does what `call` did. What it was, if it was a copy.
    pub fn apply(&mut self, call: &Call<'_>) -> Option<CopyClass> {
        if self.streams.note(call) {
            self.graphs.doubt();
        }
        if self.streams.is_blind() {
            self.graphs.miss();
        }
        if self.graphs.note(call) {
            if call.step.submits() {
                self.streams.capture(call);
            }
            return None;
        }
        let copied = matches!(call.step, Step::Copy | Step::CopyBatch).then(|| self.copy(call));
        self.follow(call);
        for (stream, at) in self.streams.take_closed() {
            self.copies.closed(stream, at);
        }
        copied
    }

    /// See [`Streams::take_gaps`].
    pub fn take_gaps(&mut self, horizon: u64) -> Vec<Gap> {
        self.streams.take_gaps(horizon)
    }

    /// See [`Streams::quiet_until`].
    pub fn quiet_until(&mut self, at: u64, lost: u64) {
        self.streams.quiet_until(at, lost);
    }

    /// See [`Streams::is_idle`].
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_idle()
    }

    fn follow(&mut self, call: &Call<'_>) {
        match call.step {
            Step::Submit | Step::GraphLaunch => self.streams.submit(call),
            Step::SubmitAnywhere => self.streams.submit_anywhere(call),
            Step::Sync => self.wait(call),
            Step::Query => self.streams.anchor(call),
            Step::Record => self.streams.record(call),
            Step::Wait => self.streams.wait(call),
            Step::Elapsed => self.measure(call),
            Step::StreamCreate => {
                self.created.streams += 1;
                self.streams.create(call);
            }
            Step::StreamDestroy => {
                self.created.streams_destroyed += 1;
                self.streams.destroy(call);
            }
            Step::EventCreate => self.created.events += 1,
            Step::EventDestroy => {
                self.created.events_destroyed += 1;
                self.streams.forget_event(call);
            }
            _ => {}
        }
    }

    fn copy(&mut self, call: &Call<'_>) -> CopyClass {
        let (direction, host) = classify(call, &self.ranges, self.origin);
        let blocking = blocks(call, direction);
        let class = CopyClass {
            direction,
            host,
            blocking,
        };
        let stream = self.streams.stream(call);
        let leads = self.copies.copy(call, stream, class);
        if leads {
            self.note_wait(call, class);
        }
        // "API synchronization behavior": few bytes go to a device asynchronously whatever the call, and what is
        // read from pageable memory is still on its way when the call returns
        let to_device = direction == Some(CopyKind::HtoD);
        let waited = blocking && direction.is_some() && !(to_device && call.raw.bytes <= ASYNCHRONOUS_BYTES);
        let done = waited && (!to_device || host == Some(HostMemory::Pinned));
        self.streams.copy(call, waited, done);
        class
    }

    fn note_wait(&mut self, call: &Call<'_>, class: CopyClass) {
        self.hidden.copied(&CopyWait {
            tid: call.raw.tid,
            entered: call.raw.entered,
            returned: call.raw.returned,
            bytes: call.row.bytes.as_ref().map(|_| call.raw.bytes),
            direction: class.direction,
            host: class.host,
            blocking: class.blocking,
            stream: StreamName::of(call),
            site: call.raw.site,
        });
    }

    fn wait(&mut self, call: &Call<'_>) {
        let stream = self.streams.blocked(call);
        self.streams.anchor(call);
        self.waits.note(&Wait {
            row: call.raw.row,
            function: &call.row.symbol,
            stream,
            site: call.raw.site,
            ns: call.duration_ns(),
        });
        if call.part(WorkPart::Event).is_none() {
            self.hidden.synced(&SyncWait {
                tid: call.raw.tid,
                entered: call.raw.entered,
                returned: call.raw.returned,
                stream: call.has_stream.then(|| StreamName::of(call)),
                site: call.raw.site,
            });
        }
    }

    fn measure(&mut self, call: &Call<'_>) {
        self.streams.elapsed(call);
        let Some(bits) = call.part(WorkPart::Milliseconds) else {
            return;
        };
        let milliseconds = f32::from_bits(bits as u32);
        if milliseconds.is_finite() && milliseconds >= 0.0 {
            self.elapsed_count += 1;
            self.elapsed_ns = self.elapsed_ns.saturating_add((f64::from(milliseconds) * 1e6) as u64);
        }
    }

    /// What is known from elsewhere to lie at addresses.
    pub fn seed(&mut self, start: u64, end: u64, kind: MemoryKind) {
        self.ranges.seed(start, end, kind);
    }

    /// Does what a memory call means for work.
    pub fn remember(&mut self, call: &memory::Call<'_>) {
        self.ranges.note(call);
        if call.verb == Verb::GraphCreate && call.succeeded {
            self.graphs.created(call.key(), call.raw.returned);
        }
        let waits = matches!(
            call.family,
            Family::Device | Family::Managed | Family::Pinned | Family::Registered
        );
        let kind = match call.verb {
            Verb::Free if waits => HiddenKind::Free,
            Verb::Alloc if waits => HiddenKind::Alloc,
            _ => return,
        };
        if self.streams.is_unsure() {
            return; // whether it waited for anything is not known
        }
        if self.streams.is_busy() {
            let ns = call.raw.returned.saturating_sub(call.raw.entered);
            self.hidden.memory(kind, call.raw.site, ns);
        } else {
            self.streams.memory(call.raw.entered, call.raw.returned);
        }
    }

    /// Kernels that graphs ran, and launches that only went into one, by kernel.
    pub fn graph_kernels(&self) -> impl Iterator<Item = GraphKernel> {
        let runs = self.graphs.kernel_runs().into_iter();
        let runs = runs.map(|(id, runs)| GraphKernel { id, runs, captured: 0 });
        let captured = self.graphs.captured_launches().iter();
        runs.chain(captured.map(|(id, captured)| GraphKernel {
            id: *id,
            runs: 0,
            captured: *captured,
        }))
    }

    /// What the kernel counted for a stream in the end.
    pub fn count(&mut self, name: StreamName, submitted: u64) {
        self.streams.count(name, submitted);
    }

    /// What is known at `now`, CLOCK_MONOTONIC ns.
    pub fn report(&self, pid: u32, ended_at: Option<u64>, now: u64) -> ProcessReport {
        ProcessReport {
            pid,
            comm: self.comm.clone(),
            origin: self.origin,
            first_at: self.first_at,
            ended_at,
            copies: self.copies.report(),
            streams: self.streams(now),
            created: self.created,
            waits: self.waits.report(),
            hidden: self.hidden.report(),
            gpu: self.gpu(now),
            graphs: self.graphs.report(),
            lost: self.lost,
        }
    }

    fn streams(&self, now: u64) -> Vec<StreamReport> {
        let report = |(index, stream): (usize, &Stream)| StreamReport {
            stream: stream.handle,
            context: stream.context,
            tid: stream.tid,
            priority: stream.priority,
            nonblocking: stream.nonblocking,
            submissions: stream.submitted.saturating_sub(stream.captured),
            copied: self.copies.of_stream(index),
            busy_at_most_ns: stream.busy_at_most_ns(now),
            depth_at_most: stream.depth_at_most,
            blocked_ns: stream.blocked_ns,
            alive: stream.alive,
        };
        let mut streams: Vec<StreamReport> = self.streams.iter().map(report).collect();
        streams.sort_by_key(|stream| (std::cmp::Reverse(stream.submissions), stream.stream, stream.tid));
        streams
    }

    fn gpu(&self, now: u64) -> GpuReport {
        let (window_ns, idle_ns) = self.streams.window(now);
        let (idle_gaps, longest_idle_ns) = self.streams.gaps();
        let pressure = self.streams.pressure();
        let (from_at, until_at) = self.streams.limits(now).unwrap_or_default();
        let late = self.origin == Origin::Late;
        GpuReport {
            window_ns,
            busy_at_most_ns: window_ns.saturating_sub(idle_ns),
            idle_at_least_ns: idle_ns,
            idle_reasons: self.streams.idle_reasons(),
            idle_likely_ns: self.streams.likely_idle_ns().max(idle_ns),
            from_at,
            until_at,
            idle_gaps,
            longest_idle_ns,
            notes: self.notes(),
            inferred: late,
            elapsed_count: self.elapsed_count,
            elapsed_ns: self.elapsed_ns,
            slow_submissions: pressure.count,
            slow_submission_ns: pressure.ns,
            slow_depth_at_most: pressure.depth_at_most,
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.origin == Origin::Late {
            notes.push("watched late: what was submitted before may still have been running".to_owned());
        }
        if self.streams.doubts > 0 {
            notes.push("records were lost: no idle time is claimed over a loss".to_owned());
        }
        if self.streams.is_crowded() {
            notes.push("more streams than are told apart: no idle time is claimed since".to_owned());
        }
        notes
    }
}
