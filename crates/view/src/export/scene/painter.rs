//! What a format has to draw: tracks, what lies on them, and arrows.

use super::super::nest::Flow;
use super::super::sums::Counter;
use super::super::waits::Devices;
use crate::record::{Ending, Meta, Record};

/// Where something is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Track {
    Thread {
        pid: u32,
        tid: u32,
    },
    /// What a thread put into a stream. No two such slices overlap.
    Stream {
        pid: u32,
        tid: u32,
        stream: u64,
    },
    /// What a device has done for a stream of a process, by CUPTI's number.
    Gpu {
        pid: u32,
        device: u32,
        stream: u64,
    },
    /// Phases as the program calls them: of a domain, by number, on a thread, where they nest; or those that are of no thread,
    /// side by side.
    Range {
        pid: u32,
        tid: u32,
        domain: u32,
        side: u32,
    },
    /// When nothing that a process submitted can have been running.
    Idle {
        pid: u32,
    },
    /// When devices had nothing to do for it, with the cause: the only one that it uses, or all of them.
    Waits {
        pid: u32,
        devices: Devices,
    },
    /// What CUPTI took for itself in a process; at the same time on several threads: side by side.
    Overhead {
        pid: u32,
        side: u32,
    },
    /// Iterations of a process. `marked`: as it says itself.
    Steps {
        pid: u32,
        marked: bool,
    },
    /// From the start of a process to its end.
    Life {
        pid: u32,
    },
    /// Calls without a row, of all processes.
    Lost,
    Xid,
    /// Holds the numbers of calls that have no slices.
    Counted {
        pid: u32,
    },
}

impl Track {
    /// 0: of no process.
    #[must_use]
    pub fn pid(self) -> u32 {
        match self {
            Track::Thread { pid, .. } | Track::Stream { pid, .. } | Track::Gpu { pid, .. } => pid,
            Track::Range { pid, .. } | Track::Idle { pid } | Track::Steps { pid, .. } => pid,
            Track::Waits { pid, .. } | Track::Overhead { pid, .. } | Track::Life { pid } | Track::Counted { pid } => {
                pid
            }
            Track::Lost | Track::Xid => 0,
        }
    }

    /// What it is called; a thread is called by its own name.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Track::Thread { tid, .. } => format!("thread {tid}"),
            Track::Stream { stream: 0, .. } => "default stream (submitted)".to_owned(),
            Track::Stream { stream, .. } => format!("stream {stream:#x} (submitted)"),
            Track::Gpu { device, stream, .. } => format!("GPU {device} stream {stream} (executed)"),
            // the domain's name is added by who knows it
            Track::Range { tid: 0, .. } => "ranges (NVTX)".to_owned(),
            Track::Range { tid, .. } => format!("ranges (NVTX) of thread {tid}"),
            Track::Idle { .. } => "GPU idle (nothing submitted can be running)".to_owned(),
            Track::Waits { devices, .. } => match devices {
                Devices::One(device) => format!("GPU {device} idle (measured), by cause"),
                Devices::Several => "all GPUs of the process idle (measured), by cause".to_owned(),
            },
            Track::Overhead { .. } => "CUPTI's overhead".to_owned(),
            Track::Steps { marked: true, .. } => "steps (by NVTX range)".to_owned(),
            Track::Steps { marked: false, .. } => "steps (inferred)".to_owned(),
            Track::Life { .. } => "process".to_owned(),
            Track::Lost => "lost calls".to_owned(),
            Track::Xid => "Xid".to_owned(),
            Track::Counted { .. } => "calls that are only counted".to_owned(),
        }
    }
}

/// Something with a beginning and an end, ns since the start of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    pub track: Track,
    pub at: i64,
    /// `None`: a mark.
    pub end: Option<i64>,
    pub name: &'a str,
    pub category: &'static str,
    /// The arrow that leads to it. It may lead on to another.
    pub flow: Option<u64>,
    /// Thread and time of the call that it has its arrow from; `None`: the one that was drawn last.
    pub from: Option<(u32, i64)>,
    /// JSON object.
    pub args: Option<&'a str>,
}

/// Whither arrows lead from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrows<'a> {
    /// To calls of its own thread.
    pub callees: &'a [Flow],
    /// To what it put into a stream.
    pub submission: Option<u64>,
}

/// How a scene is drawn.
pub trait Painter {
    /// What is kept of a call until it is drawn.
    type Call;

    /// Before everything else.
    fn start(&mut self, meta: &Meta, out: &mut Vec<u8>);
    /// A track is called that.
    fn title(&mut self, track: Track, title: &str, out: &mut Vec<u8>);
    /// A process or thread has a name.
    fn name(&mut self, pid: u32, tid: u32, comm: &str, out: &mut Vec<u8>);
    /// A program calls a thread so.
    fn name_thread(&mut self, pid: u32, tid: u32, name: &str, out: &mut Vec<u8>);
    /// Keeps a call, whose end is drawn if `event` has one. `flow`: the arrow that leads to it from its caller.
    fn hold(&mut self, event: &Record<'_>, flow: Option<u64>, out: &mut Vec<u8>) -> Self::Call;
    /// Draws it on its thread's track; its callees are drawn already. `end`: `None` where only the entry was seen.
    fn call(&mut self, call: Self::Call, at: i64, end: Option<i64>, arrows: Arrows<'_>, out: &mut Vec<u8>);
    /// Draws anything else.
    fn span(&mut self, span: &Span<'_>, out: &mut Vec<u8>);
    /// A number from now on.
    fn count(&mut self, counter: Counter, at: i64, value: u64, out: &mut Vec<u8>);
    /// After everything else.
    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>);
}
