//! One process: what each of its calls changes.

use super::Call;
use super::classify::{blocks, classify};
use super::copies::{Copies, CopyClass};
use super::lane::Lane;
use super::lanes::Lanes;
use super::name::Stream;
use super::ranges::Ranges;
use super::report::{Created, GpuReport, HostMemory, ProcessReport, StreamReport};
use crate::catalog::{CopyKind, Step, WorkPart};
use crate::model::memory::{self, Origin};
use crate::wire::WorkLoss;

/// See the module.
#[derive(Debug)]
pub struct Process {
    pub comm: String,
    pub origin: Origin,
    first_at: u64,
    ranges: Ranges,
    lanes: Lanes,
    copies: Copies,
    created: Created,
    elapsed_count: u64,
    elapsed_ns: u64,
    pub lost: WorkLoss,
}

impl Process {
    /// A process of which nothing is known yet.
    pub fn new(origin: Origin, at: u64) -> Process {
        Process {
            comm: String::new(),
            origin,
            first_at: at,
            ranges: Ranges::default(),
            lanes: Lanes::default(),
            copies: Copies::default(),
            created: Created::default(),
            elapsed_count: 0,
            elapsed_ns: 0,
            lost: WorkLoss::default(),
        }
    }

    /// Does what `call` did.
    pub fn apply(&mut self, call: &Call<'_>) {
        self.lanes.note(call);
        match call.step {
            Step::Submit | Step::GraphLaunch => self.lanes.submit(call),
            Step::Copy | Step::CopyBatch => self.copy(call),
            Step::Sync => self.wait(call),
            Step::Query => self.lanes.anchor(call),
            Step::Record => self.lanes.record(call),
            Step::Wait => self.lanes.wait(call),
            Step::Elapsed => self.measure(call),
            Step::StreamCreate => {
                self.created.streams += 1;
                self.lanes.create(call);
            }
            Step::StreamDestroy => {
                self.created.streams_destroyed += 1;
                self.lanes.destroy(call);
            }
            Step::EventCreate => self.created.events += 1,
            Step::EventDestroy => {
                self.created.events_destroyed += 1;
                self.lanes.forget_event(call);
            }
            _ => {}
        }
        for (lane, at) in self.lanes.take_closed() {
            self.copies.closed(lane, at);
        }
    }

    fn copy(&mut self, call: &Call<'_>) {
        let (direction, host) = classify(call, &self.ranges, self.origin);
        let blocking = blocks(call, direction);
        let class = CopyClass {
            direction,
            host,
            blocking,
        };
        let lane = self.lanes.lane(call);
        self.copies.copy(call, lane, class);
        // what is read from pageable memory is on its way when the call returns: "API synchronization behavior"
        let done = blocking && (direction != Some(CopyKind::HtoD) || host == Some(HostMemory::Pinned));
        self.lanes
            .copy(call, blocking && direction.is_some(), done && direction.is_some());
    }

    fn wait(&mut self, call: &Call<'_>) {
        self.lanes.anchor(call);
        let _stream = self.lanes.blocked(call);
    }

    fn measure(&mut self, call: &Call<'_>) {
        self.lanes.elapsed(call);
        let Some(bits) = call.part(WorkPart::Milliseconds) else {
            return;
        };
        let milliseconds = f32::from_bits(bits as u32);
        if milliseconds.is_finite() && milliseconds >= 0.0 {
            self.elapsed_count += 1;
            self.elapsed_ns = self.elapsed_ns.saturating_add((f64::from(milliseconds) * 1e6) as u64);
        }
    }

    /// Does what a memory call means for work.
    pub fn remember(&mut self, call: &memory::Call<'_>) {
        self.ranges.note(call);
    }

    /// What the kernel counted for a stream in the end.
    pub fn count(&mut self, name: Stream, submitted: u64) {
        self.lanes.count(name, submitted);
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
            waits: Vec::new(),
            hidden: Vec::new(),
            gpu: self.gpu(now),
            graphs: super::GraphReport::default(),
            lost: self.lost,
        }
    }

    fn streams(&self, now: u64) -> Vec<StreamReport> {
        let report = |(index, lane): (usize, &Lane)| StreamReport {
            stream: lane.stream,
            context: lane.context,
            tid: lane.tid,
            priority: lane.priority,
            nonblocking: lane.nonblocking,
            submissions: lane.submitted.saturating_sub(lane.captured),
            copied: self.copies.of_lane(index),
            busy_at_most_ns: lane.busy_at_most_ns(now),
            depth_at_most: lane.depth_at_most,
            blocked_ns: lane.blocked_ns,
            alive: lane.alive,
        };
        let mut streams: Vec<StreamReport> = self.lanes.iter().map(report).collect();
        streams.sort_by_key(|stream| (std::cmp::Reverse(stream.submissions), stream.stream, stream.tid));
        streams
    }

    fn gpu(&self, now: u64) -> GpuReport {
        let (window_ns, idle_ns) = self.lanes.window(now);
        let (idle_gaps, longest_idle_ns) = self.lanes.gaps();
        let pressure = self.lanes.pressure();
        let late = self.origin == Origin::Late;
        GpuReport {
            window_ns,
            busy_at_most_ns: window_ns.saturating_sub(idle_ns),
            idle_at_least_ns: idle_ns,
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
        if self.lanes.doubts > 0 {
            notes.push("records were lost: no idle time is claimed over a loss".to_owned());
        }
        notes
    }
}
