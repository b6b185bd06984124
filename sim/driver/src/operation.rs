//! What streams are given to do, and doing it: recorded while capturing, else placed in time,
//! counted and logged.

use std::ffi::{CStr, CString};

use gpusim_common::clock::sleep_until;
use gpusim_common::ledger::Bytes;

use crate::copy::{Copy, Wait};
use crate::error::STREAM_CAPTURE_UNSUPPORTED;
use crate::fill::Fill;
use crate::graph::{Recording, Step};
use crate::machine::{Bus, machine};
use crate::stream::Stream;
use crate::timeline::Span;
use crate::work::{self, Entry};
use crate::{LEDGER, activity, code};

/// Which part of a runnable graph something is.
#[derive(Clone, Copy)]
pub struct Part {
    /// Its handle, and its number for CUPTI.
    pub graph: usize,
    pub id: u32,
    pub node: u64,
}

/// Of a kernel's launch.
#[derive(Clone, Copy, Default)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
}

#[derive(Clone)]
pub enum Work {
    /// A name where one will be needed.
    Kernel {
        name: Option<CString>,
        ns: u64,
        shape: Shape,
    },
    Copy(Copy),
    Fill(Fill),
    Prefetch {
        bytes: u64,
        to_device: bool,
    },
    /// What takes no time and leaves no trace, as an empty node.
    Nothing,
    /// A child graph.
    Graph(Recording),
    Memory(Step),
}

/// Launches `function` as long as the calling thread's kernels last.
pub fn launch(function: &code::Function, shape: Shape, stream: &Stream) {
    let capture = stream.capture();
    let is_named = capture.is_some() || work::is_wanted() || activity::is_watched();
    let work = kernel(function, shape, is_named);
    match capture {
        Some(capture) => capture.record(work),
        None => drop(run(&work, stream, None, false)),
    }
    function.count_launch();
}

pub fn kernel(function: &code::Function, shape: Shape, is_named: bool) -> Work {
    Work::Kernel {
        shape,
        name: is_named.then(|| function.text()),
        ns: machine().kernel_ns(),
    }
}

/// Gives a stream something to do, and blocks as long as such a call does.
pub fn submit(work: Work, stream: &Stream, synchronous: bool) -> Result<(), u32> {
    if let Some(capture) = stream.capture() {
        if synchronous {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        capture.record(work);
        return Ok(());
    }
    let wait = wait_for(&work, synchronous);
    let span = run(&work, stream, None, wait != Wait::No);
    if let Wait::AllBut(rest) = wait {
        sleep_until(span.end_ns - rest);
    }
    Ok(())
}

fn wait_for(work: &Work, synchronous: bool) -> Wait {
    match work {
        Work::Copy(copy) => copy.wait(synchronous),
        Work::Fill(fill) if synchronous && fill.is_waited_for() => Wait::AllBut(0),
        _ => Wait::No,
    }
}

/// Does one thing, as part of a runnable graph or not. Child graphs and memory nodes
/// are the graph's to do.
pub fn run(work: &Work, stream: &Stream, part: Option<Part>, blocking: bool) -> Span {
    let (span, entry) = match work {
        Work::Kernel { ns, .. } => {
            LEDGER.add_launches(1);
            (stream.place_kernel(*ns), entry("kernel", 0))
        }
        Work::Copy(copy) => {
            let span = stream.place(copy.ns());
            copy.carry();
            LEDGER.add_bytes(copy.way.counter(), copy.bytes());
            (span, copied(copy))
        }
        Work::Fill(fill) => {
            let span = stream.place(fill.ns());
            fill.write();
            LEDGER.add_bytes(Bytes::Memset, fill.bytes());
            let host = fill.host();
            let entry = entry("memset", fill.bytes());
            (span, Entry { host, ..entry })
        }
        Work::Prefetch { bytes, to_device } => {
            let span = stream.place(machine().copy_ns(*bytes, Bus::Host));
            (span, prefetched(*bytes, *to_device))
        }
        Work::Nothing | Work::Graph(_) | Work::Memory(_) => return stream.place(0),
    };
    activity::ran(work, stream, part, span);
    if work::is_wanted() {
        let name = match work {
            Work::Kernel { name: Some(name), .. } => Some(text(name)),
            _ => None,
        };
        let name = name.as_deref();
        work::ran(
            &Entry {
                name,
                graph: part.map(|part| part.graph),
                blocking,
                ..entry
            },
            stream,
            span,
        );
    }
    span
}

fn entry(op: &'static str, bytes: u64) -> Entry<'static> {
    Entry {
        op,
        name: None,
        bytes,
        direction: None,
        host: None,
        ends: None,
        blocking: false,
        graph: None,
    }
}

fn copied(copy: &Copy) -> Entry<'static> {
    Entry {
        direction: Some(copy.way.name()),
        host: copy.host.map(|host| host.name()),
        ends: Some(copy.ends),
        ..entry("copy", copy.bytes())
    }
}

fn prefetched(bytes: u64, to_device: bool) -> Entry<'static> {
    Entry {
        direction: Some(if to_device { "HtoD" } else { "DtoH" }),
        host: Some("managed"),
        ..entry("prefetch", bytes)
    }
}

/// A name byte by byte, whatever is in it.
fn text(name: &CStr) -> String {
    name.to_bytes().iter().map(|byte| char::from(*byte)).collect()
}
