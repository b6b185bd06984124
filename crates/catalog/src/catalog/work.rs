//! What a call has to do with the work of a device, in the words of a row's `work`: what is put into a stream, and
//! what tells that it has been done.
//!
//! Owns the vocabulary. What follows from it (bandwidth, waits, idleness) is `model::work`'s business.

use super::Catalog;
use super::arg::Arg;
use super::hint::unknown;
use super::named::named;
use super::path::{Place, place};

named! {
    /// What a call does.
    Step {
        /// Puts work into a stream: a kernel, a memset, a host function.
        Submit "submit",
        /// The same, into streams that the call does not name one by one.
        SubmitAnywhere "submit_anywhere",
        /// Moves bytes. Without a stream: blocks, in the default stream.
        Copy "copy",
        /// Several copies at once, each described by elements of arrays.
        CopyBatch "copy_batch",
        /// Runs a graph.
        GraphLaunch "graph_launch",
        /// Waits for an event, a stream or, with neither, a context.
        Sync "sync",
        /// Asks whether an event or a stream is done.
        Query "query",
        /// An event marks how far its stream has come.
        Record "record",
        /// A stream waits for an event.
        Wait "wait",
        /// The program measures the time between two events.
        Elapsed "elapsed",
        /// A new stream.
        StreamCreate "stream_create",
        /// Its end, once its work is done.
        StreamDestroy "stream_destroy",
        /// A new event.
        EventCreate "event_create",
        /// Its end.
        EventDestroy "event_destroy",
        /// From now on work of the stream becomes nodes of a graph.
        CaptureBegin "capture_begin",
        /// And now no longer.
        CaptureEnd "capture_end",
        /// Adds a kernel to a graph.
        NodeKernel "node_kernel",
        /// Adds a copy.
        NodeCopy "node_copy",
        /// Adds a memset.
        NodeSet "node_set",
        /// Adds another graph.
        NodeChild "node_child",
        /// Adds a node of a `CUgraphNodeType`.
        Node "node",
        /// Removes a node.
        NodeDestroy "node_destroy",
        /// A node may launch another kernel.
        NodeChange "node_change",
        /// The same in a runnable graph.
        ExecChange "exec_change",
        /// A node of a runnable graph is left out, or not any more.
        ExecSwitch "exec_switch",
        /// A copy of a graph.
        GraphClone "graph_clone",
        /// A graph becomes runnable.
        GraphInstantiate "graph_instantiate",
        /// A runnable graph is made like another graph.
        GraphUpdate "graph_update",
        /// The end of a graph.
        GraphDestroy "graph_destroy",
        /// The end of a runnable graph.
        ExecDestroy "exec_destroy",
    }
}

impl Step {
    /// Whether something is put into a stream.
    #[must_use]
    pub fn submits(self) -> bool {
        matches!(
            self,
            Step::Submit | Step::SubmitAnywhere | Step::Copy | Step::CopyBatch | Step::GraphLaunch
        )
    }
}

named! {
    /// What an argument is to such a call, beside its stream.
    WorkPart {
        /// An event.
        Event "event",
        /// The earlier one of two.
        FromEvent "from_event",
        /// A context; 0: the current one.
        Context "context",
        /// Address that a copy reads, or an array of such.
        From "from",
        /// Address that it writes.
        To "to",
        /// A `CUmemorytype`: 1 host, 2 device, 3 array, 4 by address.
        FromType "from_type",
        /// Address if that is the host.
        FromHost "from_host",
        /// Address if it is a device, or not said.
        FromDevice "from_device",
        /// As `from_type`.
        ToType "to_type",
        /// As `from_host`.
        ToHost "to_host",
        /// As `from_device`.
        ToDevice "to_device",
        /// A `CUmemcpy3DOperandType`: 1 address, 2 array.
        FromOperand "from_operand",
        /// The same of what is written.
        ToOperand "to_operand",
        /// Array of sizes.
        Size "size",
        /// Bytes of a line.
        Width "width",
        /// Lines.
        Height "height",
        /// Layers of lines.
        Depth "depth",
        /// Elements of the arrays; comes last.
        Count "count",
        /// What is made.
        Key "key",
        /// Of a stream: bit 0 frees it from the default stream.
        Flags "flags",
        /// Of a stream: less is more urgent.
        Priority "priority",
        /// A graph, or a runnable one.
        Graph "graph",
        /// Another graph inside.
        Child "child",
        /// A `CUgraphNodeType`.
        Type "type",
        /// A `CUkernel`, where the next one is 0.
        Kernel "kernel",
        /// A `CUfunction`; comes last.
        Function "function",
        /// A `float`: time between two events.
        Milliseconds "milliseconds",
    }
}

/// A row's `work`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub step: Step,
    /// `None`: the default stream, or none at all.
    pub stream: Option<Place>,
    /// Stream 0 is the calling thread's own.
    pub(crate) per_thread: bool,
    pub parts: Vec<(WorkPart, Place)>,
}

/// Reads `copy from=srcHost to=dstDevice stream=hStream per_thread`.
///
/// # Errors
/// Says what was found and what was expected.
pub(super) fn parse(text: &str, args: &[Arg], catalog: &Catalog) -> Result<Work, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let names = Step::ALL.iter().map(|step| step.name());
    let step = Step::from_name(name).ok_or_else(|| unknown("step", name, names))?;
    let mut work = Work {
        step,
        stream: None,
        per_thread: false,
        parts: Vec::new(),
    };
    for word in words {
        add(&mut work, word, args, catalog)?;
    }
    Ok(work)
}

fn add(work: &mut Work, word: &str, args: &[Arg], catalog: &Catalog) -> Result<(), String> {
    if word == "per_thread" {
        work.per_thread = true;
        return Ok(());
    }
    let (name, path) = word
        .split_once('=')
        .ok_or_else(|| format!("`{word}` is neither `per_thread` nor of the form `event=ARGUMENT`"))?;
    let place = place(path, args, catalog)?;
    if name == "stream" {
        work.stream = Some(place);
        return Ok(());
    }
    let names = WorkPart::ALL.iter().map(|part| part.name()).chain(["stream"]);
    let part = WorkPart::from_name(name).ok_or_else(|| unknown("part", name, names))?;
    work.parts.push((part, place));
    Ok(())
}
